"""What a slow line does to an answer, and to the server.

    python -m benchmarks.slow_line --chars 60000 --rate 400

The browser's line is slowed down to 50 kB/s in each direction and 400 ms (CDP's
emulateNetworkConditions, which slows web sockets too). The page is opened on a quick line, and
gives the same answer there first: what the process keeps of an answer is not the line's doing.

- **growth**: how far the server's resident memory rose above what it was before the question, the
  most of what was looked at twice a second until the end mark.
- **closed**: web sockets that were closed, from the first question to the end.
- **Stop**: the answer is asked for once more and stopped in the middle. From the press in the
  browser until the backend handed over its last piece (launch.py), and until the page, which is sent
  anew for that, shows no Stop any more. (Chromium delays what a web socket brings, not what it takes;
  a message of few bytes comes sooner than the 400 ms, so *first text* says little of the line.)
"""

from __future__ import annotations

import argparse
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from playwright.sync_api import Browser

from benchmarks import answers
from benchmarks.browser_probe import chromium
from benchmarks.chat_page import APP, PAGE_TIMEOUT_S, Chat, open_chat
from benchmarks.closed_loop import BEHIND, Asked, by_chars
from benchmarks.stream import GRACE_S
from benchmarks.table import Goal, Section, render, row, yes_no

LATENCY_S = 0.4
BYTES_A_SECOND = 50_000
LOOK_MS = 500
STOP_AFTER_S = 5.0
"""At most: of a short answer, a quarter."""
GROWTH = Goal(5, " MB")
"""What is noise in a process of 200 MB; an answer that piled up would be all of its bytes."""


@dataclass(frozen=True, slots=True)
class OnALine:
    """How an answer went on a line."""

    complete: bool
    first_text_s: float | None
    behind_s: float | None
    growth_mb: float


@dataclass(frozen=True, slots=True)
class SlowLineFigures:
    """See the module's docstring. None: it never came."""

    answer: str
    quick: OnALine
    slow: OnALine
    closed: int
    stop_s: float | None
    stop_seen_s: float | None


def measure_slow_line(browser: Browser, asked: Asked) -> SlowLineFigures:
    """The same answer on a quick line, on a slow one, and stopped there."""
    with tempfile.TemporaryDirectory() as folder:
        scripts = answers.write_answers(Path(folder), {asked.question: asked.text}, asked.rate)
        with open_chat(browser, APP, scripts) as chat:
            quick = _on_this_line(chat, asked, f"{asked.question}, quickly")
            chat.settle()
            chat.clear_history()
            chat.probe.slow_line(LATENCY_S, BYTES_A_SECOND)
            slow = _on_this_line(chat, asked, f"{asked.question}, slowly")
            chat.settle()
            stop_s, stop_seen_s = _stop(chat, asked, f"{asked.question}, to be stopped")
            return SlowLineFigures(
                asked.name, quick, slow, chat.probe.sockets_closed(), stop_s, stop_seen_s
            )


def _on_this_line(chat: Chat, asked: Asked, question: str) -> OnALine:
    probe, server = chat.probe, chat.server
    probe.watch("begin", answers.BEGIN_MARK)
    probe.watch("end", asked.end)
    rss_mb = most_mb = server.rss_mb()
    asked_at = chat.ask(question)
    deadline = time.monotonic() + asked.due_s + GRACE_S
    while not (ended_at := probe.wait_seen("end", 0)) and time.monotonic() < deadline:
        most_mb = max(most_mb, server.rss_mb())
        probe.page.wait_for_timeout(LOOK_MS)
    begun_at = probe.read().seen.get("begin")
    chat.settle()
    times = server.stream_times(question)
    return OnALine(
        complete=ended_at is not None and not answers.missing_blocks(asked.text, chat.shown()),
        first_text_s=begun_at - asked_at if begun_at else None,
        behind_s=ended_at - times.first - asked.due_s if ended_at and times else None,
        growth_mb=most_mb - rss_mb,
    )


def _stop(chat: Chat, asked: Asked, question: str) -> tuple[float | None, float | None]:
    """Ask and press Stop in mid-stream: seconds until it stopped, and until the page shows so."""
    probe = chat.probe
    probe.watch("begin", answers.BEGIN_MARK)
    chat.ask(question)
    probe.wait_seen("begin", GRACE_S)
    probe.page.wait_for_timeout(min(STOP_AFTER_S, asked.due_s / 4) * 1000)
    stop = probe.page.locator(".st-key-stop button")
    stop.click()
    pressed_at = probe.read().input_at
    assert pressed_at is not None
    stop.wait_for(state="detached", timeout=PAGE_TIMEOUT_S * 1000)
    seen_at = time.time()
    times = chat.server.stream_times(question)
    stopped_at = times.last if times else None
    return stopped_at - pressed_at if stopped_at else None, seen_at - pressed_at


def slow_line_section(figures: SlowLineFigures) -> Section:
    f, seconds = figures, "{:.2f} s".format
    return Section(
        f"a line of {BYTES_A_SECOND // 1000} kB/s and {LATENCY_S * 1000:.0f} ms: {f.answer}",
        (
            yes_no("complete", {APP: f.slow.complete}),
            row("web sockets closed", {APP: f.closed}, "{:.0f}".format, Goal(0)),
            row("first text", {APP: f.slow.first_text_s}, seconds),
            row("first text on a quick line", {APP: f.quick.first_text_s}, seconds),
            row("behind at the end", {APP: f.slow.behind_s}, seconds, BEHIND),
            row("behind on a quick line", {APP: f.quick.behind_s}, seconds),
            row("growth of server memory", {APP: f.slow.growth_mb}, "{:.1f} MB".format, GROWTH),
            row("growth on a quick line", {APP: f.quick.growth_mb}, "{:.1f} MB".format),
            row("Stop", {APP: f.stop_s}, seconds, Goal(1, " s")),
            row("Stop, seen", {APP: f.stop_seen_s}, seconds),
        ),
    )


def main() -> None:
    parser = argparse.ArgumentParser(description="An answer over a slow line.")
    parser.add_argument("--chars", type=int, default=60_000)
    parser.add_argument("--rate", type=float, default=400)
    chosen = parser.parse_args()
    with chromium() as browser:
        asked = by_chars(chosen.chars, chosen.rate)
        print(render([slow_line_section(measure_slow_line(browser, asked))]))


if __name__ == "__main__":
    main()
