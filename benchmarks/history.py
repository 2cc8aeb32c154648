"""Whether a long conversation makes the next answer dearer to draw.

**A frame's cost** is what the main thread does for each frame that brought new content, while an
answer streams: CDP TaskDuration over a few seconds in mid-stream, less what the page takes at
rest over as long, divided by the number of such frames. It is measured in a conversation of two
turns (the second answer of its kind, so that the browser has compiled what it runs) and again
after 100 one-line turns more (200 messages); the **ratio** is the figure. The app shows the
newest turns only and the others on demand, so it is taken both as the page is by itself and with
all turns shown.
"""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path

from playwright.sync_api import Browser

from benchmarks import answers
from benchmarks.chat_page import APP, Chat, open_chat

EDGE_S = 1.5
REST_S = 4.0
GRACE_S = 30.0


@dataclass(frozen=True, slots=True)
class HistoryFigures:
    """A drawn frame's main-thread cost without history and with it."""

    page: str
    messages: int
    tokens: int
    rate: float
    frame_ms_without: float
    frame_ms_with: float
    frame_ms_all_shown: float

    @property
    def ratio(self) -> float:
        return self.frame_ms_with / self.frame_ms_without

    @property
    def ratio_all_shown(self) -> float:
        return self.frame_ms_all_shown / self.frame_ms_without


def measure_history(
    browser: Browser, turns: int, tokens: int, rate: float, page: str = APP
) -> HistoryFigures:
    """Compare the cost of a frame before and after `turns` one-line answers."""
    with (
        tempfile.TemporaryDirectory() as folder,
        open_chat(browser, page, answers.write_scripts(Path(folder), tokens, rate)) as chat,
    ):
        # The browser compiles what runs often: the first answer is dearer than any later one.
        _frame_ms(chat, tokens, rate)
        without = _frame_ms(chat, tokens, rate)
        for number in range(turns):
            chat.ask_and_wait(answers.short_question(number), answers.short_mark(number))
        chat.settle()
        loaded = _frame_ms(chat, tokens, rate)
        chat.show_all_turns()
        all_shown = _frame_ms(chat, tokens, rate)
    return HistoryFigures(page, 2 * turns, tokens, rate, without, loaded, all_shown)


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
