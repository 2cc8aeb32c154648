"""Whether a long conversation makes the next answer dearer to draw.

**A frame's cost** is what the main thread does for each frame that brought new content, while an
answer streams: CDP TaskDuration over a few seconds in mid-stream, less what the page takes at
rest over as long, divided by the number of such frames.

Two tabs are open on one server. In one the history is cleared before each answer; the other has
at least 100 one-line turns (200 messages), and so many more that the page shows the most turns
it ever does by itself. Each has given an answer of the kind before, for the browser compiles what
runs often. Answers are then measured in turns, without and with, three times; the **ratio** of
the medians is the figure. What was measured stays in the tab with history and belongs to it.

The app shows the newest turns only and the others on demand, so there is one more measurement
with all turns shown.
"""

from __future__ import annotations

import statistics
import tempfile
from dataclasses import dataclass
from pathlib import Path

from playwright.sync_api import Browser

from benchmarks import answers
from benchmarks.chat_page import APP, Chat, open_tab, serve_chat
from pages.chat_page import MOST_TURNS

EDGE_S = 1.5
REST_S = 3.0
GRACE_S = 30.0


@dataclass(frozen=True, slots=True)
class HistoryFigures:
    """A drawn frame's main-thread cost without history and with it.

    Args:
        turns_shown: turns that the page showed while the last answer with history was drawn.
    """

    page: str
    messages: int
    tokens: int
    rate: float
    frame_ms_without: tuple[float, ...]
    frame_ms_with: tuple[float, ...]
    frame_ms_all_shown: float
    turns_shown: int

    @property
    def ratio(self) -> float:
        return statistics.median(self.frame_ms_with) / statistics.median(self.frame_ms_without)

    @property
    def ratio_all_shown(self) -> float:
        return self.frame_ms_all_shown / statistics.median(self.frame_ms_without)


def measure_history(
    browser: Browser, turns: int, tokens: int, rate: float, repeats: int
) -> HistoryFigures:
    """Compare the cost of a frame without history and after `turns` one-line answers."""
    without, loaded = [], []
    with (
        tempfile.TemporaryDirectory() as folder,
        serve_chat(APP, answers.write_scripts(Path(folder), tokens, rate)) as server,
        open_tab(browser, server) as bare,
        open_tab(browser, server) as long,
    ):
        for chat in (bare, long):
            chat.ask_and_wait(
                answers.question(tokens), answers.end_mark(tokens), tokens / rate + GRACE_S
            )
        asked = _give_history(long, turns, repeats)
        for _ in range(repeats):
            bare.clear_history()
            without.append(_frame_ms(bare, tokens, rate))
            loaded.append(_frame_ms(long, tokens, rate))
        turns_shown = long.turns_shown()
        long.show_all_turns()
        all_shown = _frame_ms(long, tokens, rate)
    return HistoryFigures(
        APP, 2 * asked, tokens, rate, tuple(without), tuple(loaded), all_shown, turns_shown
    )


def _give_history(chat: Chat, turns: int, repeats: int) -> int:
    """Ask for one-line answers, `turns` of them or some more; returns how many.

    The page cuts its list back once it has grown to MOST_TURNS: it should be nearly there.
    """
    most = turns + MOST_TURNS if turns > MOST_TURNS else turns
    for asked in range(most):
        if asked >= turns:
            chat.settle()
            if chat.turns_shown() == MOST_TURNS - repeats:
                return asked
        chat.ask_and_wait(answers.short_question(asked), answers.short_mark(asked))
    return most


def _frame_ms(chat: Chat, tokens: int, rate: float) -> float:
    """Main-thread milliseconds a drawn frame, in the middle of an answer."""
    probe = chat.probe
    rest_s = _busy_s(chat, REST_S) / REST_S
    span_s = max(1.0, tokens / rate - 2 * EDGE_S)
    probe.watch("begin", answers.BEGIN_MARK)
    probe.watch("end", answers.end_mark(tokens))
    chat.ask(answers.question(tokens))
    probe.wait_seen("begin", GRACE_S, every_ms=50)
    probe.page.wait_for_timeout(EDGE_S * 1000)
    probe.reset()
    busy_s = _busy_s(chat, span_s)
    drawn = probe.read().drawn
    probe.wait_seen("end", EDGE_S + GRACE_S)
    chat.settle()
    return 1000 * (busy_s - rest_s * span_s) / max(1, drawn)


def _busy_s(chat: Chat, span_s: float) -> float:
    """Main-thread seconds during the next `span_s` seconds."""
    before_s = chat.probe.main_thread_s()
    chat.probe.page.wait_for_timeout(span_s * 1000)
    return chat.probe.main_thread_s() - before_s
