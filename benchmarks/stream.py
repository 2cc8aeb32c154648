"""What a streamed answer costs the browser and the server, page against page.

    python -m benchmarks.stream --tokens 12000 --rate 400 --pages app,per_token

For each page, on a fresh server and a fresh tab, after a warm-up answer:

- **complete**: every numbered block of the answer is on the screen once and in order, by the
  time the stream should have ended plus 30 s.
- **followed**: the reader has been kept at the end of it. What nobody sees costs little to paint.
- **behind**: from when the stream's last piece was due until the end mark was painted. Due is the
  first piece's time, as the scripted backend gave it, plus (tokens - 1) / rate. The backend keeps
  to that schedule by itself, so a page that holds it up by drawing inside the generator's loop
  can't hide that.
- **generator late**: from when the last piece was due until it was handed over.
- **first text**: from sending the question until the first piece was painted.
- **to the browser**: payload of the web socket's messages, from the question to a second after
  the end.
- **long tasks**: main-thread tasks over 50 ms: how many, how long together, the longest. The
  **busy share** is their sum over the time from the question to the end mark; **main thread**
  counts the short ones too (CDP TaskDuration), up to a second after the end.
- **frames > 50 ms**: animation frames that came over 50 ms after the one before.
- **server CPU**: processor seconds of the Streamlit process, from the question to a second after
  the end; and its resident memory before and after.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import cycle, islice
from pathlib import Path

from playwright.sync_api import Browser

from benchmarks import answers
from benchmarks.browser_probe import chromium
from benchmarks.chat_page import SCRIPTS, TOUCHES, open_chat
from benchmarks.table import Goal, Row, Section, render, row, yes_no

GRACE_S = 30.0
AFTER_END_S = 1.0
TOUCH_COUNT = 4
TOUCH_TIMEOUT_S = 5.0


@dataclass(frozen=True, slots=True)
class StreamFigures:
    """One page, one answer; see the module's docstring. None: it couldn't be measured."""

    page: str
    tokens: int
    rate: float
    throttle: float
    complete: bool
    followed: bool
    behind_s: float | None
    generator_late_s: float | None
    first_text_s: float | None
    sent_mb: float
    messages: int
    long_tasks: int
    long_tasks_s: float
    longest_task_ms: float
    busy_share: float
    main_thread_share: float
    frames: int
    long_frames: int
    longest_frame_ms: float
    drawn_frames: int
    server_cpu_s: float
    rss_before_mb: float
    rss_after_mb: float


def measure_stream(
    browser: Browser, page: str, tokens: int, rate: float, throttle: float = 1
) -> StreamFigures:
    """Ask the page `page` for `tokens` at `rate` a second and measure until it is all there."""
    text, due_s = answers.answer(tokens), (tokens - 1) / rate
    with (
        tempfile.TemporaryDirectory() as folder,
        open_chat(browser, page, answers.write_scripts(Path(folder), tokens, rate)) as chat,
    ):
        probe, server = chat.probe, chat.server
        probe.throttle(throttle)
        probe.watch("begin", answers.BEGIN_MARK)
        probe.watch("end", answers.end_mark(tokens))
        cpu_s, rss_mb, busy_s = server.cpu_s(), server.rss_mb(), probe.main_thread_s()
        probe.reset()
        asked_at = chat.ask(answers.question(tokens))
        ended_at = probe.wait_seen("end", due_s + GRACE_S)
        probe.page.wait_for_timeout(AFTER_END_S * 1000)
        counted = probe.read()
        main_thread_share = (probe.main_thread_s() - busy_s) / (time.time() - asked_at)
        cpu_s = server.cpu_s() - cpu_s
        probe.throttle(1)
        complete = ended_at is not None and not answers.missing_blocks(text, chat.shown())
        followed = chat.at_the_end()
        times = server.stream_times(answers.question(tokens))
        due_at = times.first + due_s if times else None
        last_at = times.last if times else None
        begun_at = counted.seen.get("begin")
        long_s = sum(counted.tasks_ms) / 1000
        # A page that catches up late is busy for longer than the stream lasts.
        span_s = (ended_at or time.time()) - asked_at
        return StreamFigures(
            page=page,
            tokens=tokens,
            rate=rate,
            throttle=throttle,
            complete=complete,
            followed=followed,
            behind_s=ended_at - due_at if ended_at and due_at else None,
            generator_late_s=last_at - due_at if last_at and due_at else None,
            first_text_s=begun_at - asked_at if begun_at else None,
            sent_mb=counted.bytes / 1e6,
            messages=counted.messages,
            long_tasks=len(counted.tasks_ms),
            long_tasks_s=long_s,
            longest_task_ms=max(counted.tasks_ms, default=0.0),
            busy_share=long_s / span_s,
            main_thread_share=main_thread_share,
            frames=counted.frames,
            long_frames=counted.long_frames,
            longest_frame_ms=counted.longest_frame_ms,
            drawn_frames=counted.drawn,
            server_cpu_s=cpu_s,
            rss_before_mb=rss_mb,
            rss_after_mb=server.rss_mb(),
        )


@dataclass(frozen=True, slots=True)
class ClickFigures:
    """What a touch of the sidebar in mid-stream does: the app's language, another page's button.

    Args:
        effects_s: for each of four touches, seconds from the press until the page shows what
            the server made of it; None where that was never seen.
        complete: whether the answer still came whole.
    """

    page: str
    tokens: int
    rate: float
    effects_s: tuple[float | None, ...]
    complete: bool


def measure_click(browser: Browser, page: str, tokens: int, rate: float) -> ClickFigures:
    """Touch the sidebar four times while the page `page` draws an answer."""
    text, due_s = answers.answer(tokens), (tokens - 1) / rate
    with (
        tempfile.TemporaryDirectory() as folder,
        open_chat(browser, page, answers.write_scripts(Path(folder), tokens, rate)) as chat,
    ):
        chat.probe.watch("begin", answers.BEGIN_MARK)
        chat.probe.watch("end", answers.end_mark(tokens))
        chat.ask(answers.question(tokens))
        chat.probe.wait_seen("begin", GRACE_S, every_ms=50)
        effects = []
        for touch in islice(cycle(TOUCHES[page]), TOUCH_COUNT):
            chat.probe.page.wait_for_timeout(1000 * due_s / (TOUCH_COUNT + 1))
            effects.append(chat.touch_sidebar(touch, TOUCH_TIMEOUT_S))
        # A page that lost the answer never shows the end.
        ended_at = chat.probe.wait_seen("end", due_s / (TOUCH_COUNT + 1) + GRACE_S / 3)
        chat.settle()
        complete = ended_at is not None and not answers.missing_blocks(text, chat.shown())
        return ClickFigures(page, tokens, rate, tuple(effects), complete)


def stream_section(figures: Sequence[StreamFigures]) -> Section:
    """The figures of one scenario, page beside page. Its goals depend on the throttling."""
    first = figures[0]
    slow = first.throttle > 1
    # Bytes go with the number of frames, not of tokens: the bar holds for this stream alone.
    bytes_goal = Goal(0.6, " MB") if (first.tokens, first.rate) == (12_000, 400) else None

    def of(
        figure: str,
        value: Callable[[StreamFigures], float | None],
        show: Callable[[float], str],
        goal: Goal | None = None,
    ) -> Row:
        return row(figure, {f.page: value(f) for f in figures}, show, goal)

    return Section(
        stream_title(figures),
        (
            yes_no("complete", {f.page: f.complete for f in figures}),
            yes_no("followed", {f.page: f.followed for f in figures}),
            of("behind at the end", lambda f: f.behind_s, "{:.2f} s".format, Goal(0.3, " s")),
            of("generator late", lambda f: f.generator_late_s, "{:.2f} s".format),
            of("first text", lambda f: f.first_text_s, "{:.2f} s".format),
            of("to the browser", lambda f: f.sent_mb, "{:.2f} MB".format, bytes_goal),
            of("messages", lambda f: f.messages, "{:,.0f}".format),
            Row(
                "frames > 50 ms",
                {f.page: f"{f.long_frames} of {f.frames}" for f in figures},
                "" if slow else str(Goal(20)),
                _app_meets(figures, lambda f: f.long_frames <= 20) if not slow else None,
            ),
            of("longest frame", lambda f: f.longest_frame_ms, "{:.0f} ms".format),
            of(
                "longest task",
                lambda f: f.longest_task_ms,
                "{:.0f} ms".format,
                Goal(250 if slow else 120, " ms"),
            ),
            of("long tasks", lambda f: f.long_tasks, "{:.0f}".format),
            of("long tasks together", lambda f: f.long_tasks_s, "{:.2f} s".format),
            of(
                "busy share",
                lambda f: 100 * f.busy_share,
                "{:.0f} %".format,
                Goal(25, " %") if slow else None,
            ),
            of("main thread", lambda f: 100 * f.main_thread_share, "{:.0f} %".format),
            of("drawn frames", lambda f: f.drawn_frames, "{:.0f}".format),
            of(
                "server CPU",
                lambda f: f.server_cpu_s,
                "{:.2f} s".format,
                None if slow else Goal(2.5, " s"),
            ),
            of("server memory before", lambda f: f.rss_before_mb, "{:.0f} MB".format),
            of("server memory after", lambda f: f.rss_after_mb, "{:.0f} MB".format),
        ),
    )


def stream_title(figures: Sequence[StreamFigures]) -> str:
    """What was asked for."""
    first = figures[0]
    slower = f", browser CPU {first.throttle:g}x slower" if first.throttle > 1 else ""
    return f"{first.tokens:,} tokens at {first.rate:g} tok/s{slower}"


def click_section(figures: Sequence[ClickFigures]) -> Section:
    """The touches in mid-stream, page beside page; the slowest of four counts."""

    def slowest(f: ClickFigures) -> float | None:
        seen = [effect for effect in f.effects_s if effect is not None]
        return 1000 * max(seen) if len(seen) == len(f.effects_s) else None

    return Section(
        f"a sidebar touch in mid-stream ({figures[0].rate:g} tok/s)",
        (
            row(
                "slowest effect of four",
                {f.page: slowest(f) for f in figures},
                "{:.0f} ms".format,
                Goal(250, " ms"),
            ),
            yes_no("answer whole", {f.page: f.complete for f in figures}),
        ),
    )


def _app_meets(
    figures: Sequence[StreamFigures], bar: Callable[[StreamFigures], bool]
) -> bool | None:
    return next((bar(f) for f in figures if f.page == "app"), None)


def main() -> None:
    parser = argparse.ArgumentParser(description="One stream, page against page.")
    parser.add_argument("--tokens", type=int, default=12_000)
    parser.add_argument("--rate", type=float, default=400)
    parser.add_argument("--throttle", type=float, default=1, help="times slower the browser's CPU")
    parser.add_argument("--pages", default=",".join(SCRIPTS), help="of " + ", ".join(SCRIPTS))
    parser.add_argument("--click", action="store_true", help="touch the sidebar in mid-stream")
    chosen = parser.parse_args()
    pages = chosen.pages.split(",")
    with chromium() as browser:
        if chosen.click:
            clicks = [measure_click(browser, p, chosen.tokens, chosen.rate) for p in pages]
            print(render([click_section(clicks)]))
        else:
            streams = [
                measure_stream(browser, p, chosen.tokens, chosen.rate, chosen.throttle)
                for p in pages
            ]
            print(render([stream_section(streams)]))


if __name__ == "__main__":
    main()
