"""What it costs to ask the browser how smooth it is.

    python -m benchmarks.measuring --rounds 4 --throttle 8

Two tabs are open on one server, in one of which the page's probe (ui/paint_probe.py) never starts. An
answer trickles, so slowly that each piece is a frame of its own and has a stamp, however frames
are paced, and fast enough that the probe reports nearly as often as it does while an answer pours.
The tabs answer in turns, ABBA. The figures are the medians of each tab, and of the rounds' differences:

- **browser**: processor time of the page's main thread, over the clock's time.
- **server**: processor time of the process, likewise: of one core.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from playwright.sync_api import Browser, Request

from benchmarks import answers
from benchmarks.browser_probe import chromium
from benchmarks.chat_page import APP, Chat, open_tab, serve_chat
from benchmarks.stream import GRACE_S
from benchmarks.table import Goal, Section, render, row, spread
from ui.paint_probe import PATH

RATE = 1.6
PIECES = 32
QUESTION = "please answer drop by drop"
END = "END-OF-THE-LAST-DROP"
END_PIECES = 7
"""What END is split into."""
EDGE_S = 2.0
SHARE = Goal(1, " %")

NO_PROBE_JS = "window.__steadyPaintProbe = { running: true, channel: {} };"
"""The page's probe finds one at work already, and leaves it at that."""


@dataclass(frozen=True, slots=True)
class MeasuringFigures:
    """Shares of the clock's time, in percent, by round; and the reports a second."""

    throttle: float
    browser_with: tuple[float, ...]
    browser_without: tuple[float, ...]
    server_with: tuple[float, ...]
    server_without: tuple[float, ...]
    reports_per_s: float

    @property
    def browser(self) -> tuple[float, ...]:
        pairs = zip(self.browser_with, self.browser_without, strict=True)
        return tuple(one - other for one, other in pairs)

    @property
    def server(self) -> tuple[float, ...]:
        pairs = zip(self.server_with, self.server_without, strict=True)
        return tuple(one - other for one, other in pairs)


def measure_measuring(
    browser: Browser, rounds: int, throttle: float = 1, pieces: int = PIECES
) -> MeasuringFigures:
    """Hold the page against itself without its probe."""
    text = "so " * (pieces - END_PIECES) + END
    told: dict[bool, list[tuple[float, float]]] = {True: [], False: []}
    reports: list[Request] = []
    with (
        tempfile.TemporaryDirectory() as folder,
        serve_chat(APP, answers.write_answers(Path(folder), {QUESTION: text}, RATE)) as server,
        open_tab(browser, server) as plain,
        open_tab(browser, server, NO_PROBE_JS) as without,
    ):
        plain.probe.page.on("request", lambda r: reports.append(r) if PATH in r.url else None)
        chats = {True: plain, False: without}
        for chat in chats.values():
            chat.probe.look_at_every_frame(False)
        span_s = 0.0
        for number in range(rounds):
            for has_probe in (True, False) if number % 2 else (False, True):
                chats[not has_probe].probe.throttle(1)
                chats[has_probe].probe.throttle(throttle)
                shares, took_s = _shares(chats[has_probe], pieces)
                told[has_probe].append(shares)
                span_s += took_s if has_probe else 0.0
    browser_with, server_with = zip(*told[True], strict=True)
    browser_without, server_without = zip(*told[False], strict=True)
    return MeasuringFigures(
        throttle=throttle,
        browser_with=browser_with,
        browser_without=browser_without,
        server_with=server_with,
        server_without=server_without,
        reports_per_s=len(reports) / span_s,
    )


def _shares(chat: Chat, pieces: int) -> tuple[tuple[float, float], float]:
    """Percent that the main thread and the server take while an answer trickles, and its seconds."""
    probe = chat.probe
    probe.watch("end", END)
    chat.ask(QUESTION)
    probe.page.wait_for_timeout(EDGE_S * 1000)
    began_at, busy_s, cpu_s = time.time(), probe.main_thread_cpu_s(), chat.server.cpu_s()
    # Looked for rarely: each look is work for the page.
    probe.page.wait_for_timeout((pieces / RATE - 2 * EDGE_S) * 1000)
    span_s = time.time() - began_at
    busy_s, cpu_s = probe.main_thread_cpu_s() - busy_s, chat.server.cpu_s() - cpu_s
    probe.wait_seen("end", GRACE_S)
    chat.settle()
    return (100 * busy_s / span_s, 100 * cpu_s / span_s), span_s


def measuring_section(figures: MeasuringFigures) -> Section:
    f, percent = figures, "{:.2f} %"
    slower = f", browser CPU {f.throttle:g}x slower" if f.throttle > 1 else ""
    return Section(
        f"what measuring costs{slower}",
        (
            spread("browser with it", f.browser_with, percent),
            spread("browser without", f.browser_without, percent),
            row("browser", {APP: statistics.median(f.browser)}, percent.format, SHARE),
            spread("server with it", f.server_with, percent),
            spread("server without", f.server_without, percent),
            row("server", {APP: statistics.median(f.server)}, percent.format, SHARE),
            row("reports", {APP: f.reports_per_s}, "{:.1f}/s".format),
        ),
    )


def main() -> None:
    parser = argparse.ArgumentParser(description="What measuring costs.")
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--throttle", type=float, default=1)
    chosen = parser.parse_args()
    with chromium() as browser:
        print(
            render([measuring_section(measure_measuring(browser, chosen.rounds, chosen.throttle))])
        )


if __name__ == "__main__":
    main()
