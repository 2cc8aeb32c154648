"""The bars of smoothness: slow browsers, somebody who types and clicks meanwhile.

    python -m benchmarks.closed_loop --chars 60000 --rate 400 --throttle 8 --pages app,per_token

An answer streams while a person clicks and types (interactions.py), on a browser whose CPU is
slowed down. For each page, on a fresh server and a fresh tab, after a warm-up at that speed:

- **complete**: as in stream.py, and so are **behind**, **to the browser** and **server CPU**.
- **longest freeze**: the longest time between two animation frames, or main-thread task, from the
  question to a second after the end mark; then where the longest such time was: up to the answer's
  first text, while it streamed, or with and after its end mark.
- **keys** and **clicks**: INP, what three of four took until their effect was painted.
- **busy**: the processor time of main-thread tasks of all lengths (CDP TaskDuration by the thread's
  own clock, in which the slowing counts) over the clock's time, in the third quarter of the stream.
  There no animation frames are asked for: sixty a second of nothing new would keep a slow processor
  half busy, and that would be the measuring's. **By the clock** counts as well what other processes
  took of the same cores meanwhile.
- **times the answer**: bytes to the browser over the answer's own, in UTF-8.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from playwright.sync_api import Browser

from benchmarks import answers
from benchmarks.browser_probe import Counters, Probe, chromium
from benchmarks.chat_page import SCRIPTS, open_chat
from benchmarks.interactions import Person, p75
from benchmarks.long_answer import long_answer, long_end_mark, long_question
from benchmarks.stream import AFTER_END_S, GRACE_S
from benchmarks.table import Goal, Row, Section, render, row, yes_no
from llm.script import Script

FREEZE = Goal(350, " ms")
INP = Goal(200, " ms")
BUSY = Goal(50, " %")
BEHIND = Goal(1, " s")
TIMES = Goal(12, "x")


@dataclass(frozen=True, slots=True)
class Asked:
    """An answer of one of the benchmarks, and its pace.

    Args:
        name: what it is called in the table.
        end: what its last paragraph says.
        rate: tokens a second.
    """

    name: str
    question: str
    text: str
    end: str
    rate: float

    @property
    def due_s(self) -> float:
        """From its first piece to its last."""
        return (sum(1 for _ in Script(self.text).pieces("")) - 1) / self.rate


def by_chars(chars: int, rate: float) -> Asked:
    """The long answer."""
    name = f"{chars:,} characters at {rate:g} tok/s"
    return Asked(name, long_question(chars), long_answer(chars), long_end_mark(chars), rate)


def by_tokens(tokens: int, rate: float) -> Asked:
    """An answer of the stream benchmark."""
    name = f"{tokens:,} tokens at {rate:g} tok/s"
    question, end = answers.question(tokens), answers.end_mark(tokens)
    return Asked(name, question, answers.answer(tokens), end, rate)


@dataclass(frozen=True, slots=True)
class LoopFigures:
    """One page, one answer, one speed; see the module's docstring. None: not measured."""

    page: str
    answer: str
    throttle: float
    complete: bool
    behind_s: float | None
    freeze_ms: float
    freeze_before_ms: float
    freeze_within_ms: float
    freeze_after_ms: float
    keys: int
    keys_p75_ms: float | None
    clicks: int
    clicks_p75_ms: float | None
    busy_share: float
    busy_clock_share: float
    long_tasks: int
    longest_task_ms: float
    drawn_frames: int
    sent_bytes: int
    answer_bytes: int
    messages: int
    server_cpu_s: float

    @property
    def times_the_answer(self) -> float:
        return self.sent_bytes / self.answer_bytes


def measure_loop(browser: Browser, page: str, asked: Asked, throttle: float) -> LoopFigures:
    """Ask the page `page`, and type and click until the answer is all there."""
    due_s = asked.due_s
    with tempfile.TemporaryDirectory() as folder:
        scripts = answers.write_answers(Path(folder), {asked.question: asked.text}, asked.rate)
        with open_chat(browser, page, scripts) as chat:
            probe, server = chat.probe, chat.server
            probe.throttle(throttle)
            chat.warm_up()
            person = Person(probe)
            probe.watch("begin", answers.BEGIN_MARK)
            probe.watch("end", asked.end)
            probe.main_thread_cpu_s()
            cpu_s = server.cpu_s()
            probe.reset()
            chat.ask(asked.question)
            ended_at = person.press_until_seen("end", due_s / 2)
            probe.look_at_every_frame(False)
            began_at, busy_s, busy_clock_s = _busy(probe)
            ended_at = ended_at or person.press_until_seen("end", due_s / 4)
            now, busy_then_s, busy_clock_then_s = _busy(probe)
            probe.look_at_every_frame(True)
            ended_at = ended_at or person.press_until_seen("end", due_s / 4 + GRACE_S)
            probe.page.wait_for_timeout(AFTER_END_S * 1000)
            counted, felt = probe.read(), person.felt()
            cpu_s = server.cpu_s() - cpu_s
            probe.throttle(1)
            missing = answers.missing_blocks(asked.text, chat.shown())
            times = server.stream_times(asked.question)
    due_at = times.first + due_s if times else None
    before_ms, within_ms, after_ms = _freezes(counted, ended_at)
    return LoopFigures(
        page=page,
        answer=asked.name,
        throttle=throttle,
        complete=ended_at is not None and not missing,
        behind_s=ended_at - due_at if ended_at and due_at else None,
        freeze_ms=max(counted.longest_frame_ms, *counted.tasks_ms, 0.0),
        freeze_before_ms=before_ms,
        freeze_within_ms=within_ms,
        freeze_after_ms=after_ms,
        keys=len(felt.keys_ms),
        keys_p75_ms=p75(felt.keys_ms),
        clicks=len(felt.clicks_ms),
        clicks_p75_ms=p75(felt.clicks_ms),
        busy_share=(busy_then_s - busy_s) / (now - began_at),
        busy_clock_share=(busy_clock_then_s - busy_clock_s) / (now - began_at),
        long_tasks=len(counted.tasks_ms),
        longest_task_ms=max(counted.tasks_ms, default=0.0),
        drawn_frames=counted.drawn,
        sent_bytes=counted.bytes,
        answer_bytes=len(asked.text.encode()),
        messages=counted.messages,
        server_cpu_s=cpu_s,
    )


def _busy(probe: Probe) -> tuple[float, float, float]:
    """Now, and how long the main thread has worked: in processor time, and by the clock."""
    return time.time(), probe.main_thread_cpu_s(), probe.main_thread_s()


def _freezes(counted: Counters, ended_at: float | None) -> tuple[float, float, float]:
    """The longest wait up to the first text, then up to the end mark, and from there on."""
    begun_at = counted.seen.get("begin", float("inf"))
    ended = ended_at or float("inf")
    parts: tuple[list[float], ...] = ([], [], [])
    for over_at, wait_ms in counted.waits:
        # Seen is what a frame has painted: the wait before it was over just before.
        began_at = over_at - wait_ms / 1000
        parts[
            0 if over_at <= begun_at else 1 if began_at < ended and over_at < ended else 2
        ].append(wait_ms)
    before, within, after = (max(part, default=0.0) for part in parts)
    return before, within, after


def loop_section(figures: Sequence[LoopFigures]) -> Section:
    """One answer at one speed, page beside page."""
    first = figures[0]
    slow = first.throttle > 1

    def of(
        figure: str,
        value: Callable[[LoopFigures], float | None],
        show: Callable[[float], str],
        goal: Goal | None = None,
    ) -> Row:
        return row(figure, {f.page: value(f) for f in figures}, show, goal)

    milliseconds = "{:.0f} ms".format
    slower = f", browser CPU {first.throttle:g}x slower" if slow else ""
    return Section(
        f"somebody types and clicks: {first.answer}{slower}",
        (
            yes_no("complete", {f.page: f.complete for f in figures}),
            of("longest freeze", lambda f: f.freeze_ms, milliseconds, FREEZE if slow else None),
            of("… up to its first text", lambda f: f.freeze_before_ms, milliseconds),
            of("… while it streams", lambda f: f.freeze_within_ms, milliseconds),
            of("… at its end", lambda f: f.freeze_after_ms, milliseconds),
            of("keys, INP p75", lambda f: f.keys_p75_ms, milliseconds, INP if slow else None),
            of("clicks, INP p75", lambda f: f.clicks_p75_ms, milliseconds, INP if slow else None),
            of("keys and clicks", lambda f: f.keys + f.clicks, "{:.0f}".format),
            of("busy", lambda f: 100 * f.busy_share, "{:.0f} %".format, BUSY if slow else None),
            of("busy by the clock", lambda f: 100 * f.busy_clock_share, "{:.0f} %".format),
            of("behind at the end", lambda f: f.behind_s, "{:.2f} s".format, BEHIND),
            of(
                "times the answer",
                lambda f: f.times_the_answer,
                "{:.1f}x".format,
                None if slow else TIMES,
            ),
            of("to the browser", lambda f: f.sent_bytes / 1e6, "{:.2f} MB".format),
            of("messages", lambda f: f.messages, "{:,.0f}".format),
            of("drawn frames", lambda f: f.drawn_frames, "{:.0f}".format),
            of("longest task", lambda f: f.longest_task_ms, milliseconds),
            of("server CPU", lambda f: f.server_cpu_s, "{:.2f} s".format),
        ),
    )


def main() -> None:
    parser = argparse.ArgumentParser(description="Somebody types and clicks while it streams.")
    parser.add_argument("--chars", type=int, default=60_000)
    parser.add_argument("--tokens", type=int, help="the stream benchmark's answer instead")
    parser.add_argument("--rate", type=float, default=400)
    parser.add_argument("--throttle", default="1,4,8", help="times slower the browser's CPU")
    parser.add_argument("--pages", default=",".join(SCRIPTS), help="of " + ", ".join(SCRIPTS))
    chosen = parser.parse_args()
    asked = (
        by_tokens(chosen.tokens, chosen.rate)
        if chosen.tokens
        else by_chars(chosen.chars, chosen.rate)
    )
    with chromium() as browser:
        for throttle in map(float, chosen.throttle.split(",")):
            pages = chosen.pages.split(",")
            print(
                render([loop_section([measure_loop(browser, p, asked, throttle) for p in pages])])
            )


if __name__ == "__main__":
    main()
