"""Whether a frame gets dearer as an answer gets longer.

    python -m benchmarks.frame_growth --chars 60000 --rate 400 --repeats 3

The long answer, which is alike throughout, is asked for again and again, its conversation cleared
in between. While it streams the main thread's processor time and the frames that brought new
content are read every second: their quotient is **a frame's cost**, less what the page takes at
rest. The windows of the answer's first third are held against those of its last, the question's
own frame left out. Medians over the windows of each answer, and the median of the answers' ratios:
beginning and end alternate by themselves. The first answer warms up.

(What a long history above costs is history.py's business.)
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
from dataclasses import dataclass
from pathlib import Path

from playwright.sync_api import Browser

from benchmarks import answers
from benchmarks.browser_probe import chromium
from benchmarks.chat_page import APP, Chat, open_tab, serve_chat
from benchmarks.closed_loop import Asked, by_chars
from benchmarks.stream import GRACE_S
from benchmarks.table import Goal, Section, render, row, spread

WINDOW_MS = 1000
REST_S = 3.0
PART = 3


@dataclass(frozen=True, slots=True)
class GrowthFigures:
    """A drawn frame's cost at the beginning and at the end of each answer, in CPU milliseconds."""

    answer: str
    first_ms: tuple[float, ...]
    last_ms: tuple[float, ...]

    @property
    def ratio(self) -> float:
        pairs = zip(self.first_ms, self.last_ms, strict=True)
        return statistics.median(last / first for first, last in pairs)


def measure_growth(browser: Browser, asked: Asked, repeats: int) -> GrowthFigures:
    """Compare the frames of the answer's first part with those of its last."""
    parts = []
    with tempfile.TemporaryDirectory() as folder:
        scripts = answers.write_answers(Path(folder), {asked.question: asked.text}, asked.rate)
        with serve_chat(APP, scripts) as server, open_tab(browser, server) as chat:
            chat.probe.look_at_every_frame(False)
            for number in range(repeats + 1):
                windows = _windows_ms(chat, asked)
                size = max(1, len(windows) // PART)
                if number:
                    parts.append((windows[:size], windows[-size:]))
                chat.settle()
                chat.clear_history()
    first, last = zip(*((map(statistics.median, part)) for part in parts), strict=True)
    return GrowthFigures(asked.name, first, last)


def _windows_ms(chat: Chat, asked: Asked) -> list[float]:
    """A frame's cost in each window of one answer."""
    probe = chat.probe
    before_s = probe.main_thread_cpu_s()
    probe.page.wait_for_timeout(REST_S * 1000)
    rest = (probe.main_thread_cpu_s() - before_s) / REST_S
    probe.watch("begin", answers.BEGIN_MARK)
    probe.watch("end", asked.end)
    chat.ask(asked.question)
    probe.wait_seen("begin", GRACE_S, every_ms=50)
    windows = []
    busy_s, drawn = probe.main_thread_cpu_s(), probe.read().drawn
    while not probe.wait_seen("end", 0):
        probe.page.wait_for_timeout(WINDOW_MS)
        spent_s, brought = probe.main_thread_cpu_s() - busy_s, probe.read().drawn - drawn
        busy_s, drawn = busy_s + spent_s, drawn + brought
        if brought:
            windows.append(1000 * (spent_s - rest * WINDOW_MS / 1000) / brought)
    # The frame of the question's run stands in the first, the end's in the last.
    return windows[1:-1] or windows


def growth_section(figures: GrowthFigures) -> Section:
    milliseconds = "{:.1f} ms"
    return Section(
        f"a frame as the answer grows: {figures.answer}",
        (
            spread("a frame at the beginning", figures.first_ms, milliseconds),
            spread("a frame at the end", figures.last_ms, milliseconds),
            row("end / beginning", {APP: figures.ratio}, "{:.2f}x".format, Goal(1.2, "x")),
        ),
    )


def main() -> None:
    parser = argparse.ArgumentParser(description="Whether a frame gets dearer with the answer.")
    parser.add_argument("--chars", type=int, default=60_000)
    parser.add_argument("--rate", type=float, default=400)
    parser.add_argument("--repeats", type=int, default=3)
    chosen = parser.parse_args()
    with chromium() as browser:
        asked = by_chars(chosen.chars, chosen.rate)
        print(render([growth_section(measure_growth(browser, asked, chosen.repeats))]))


if __name__ == "__main__":
    main()
