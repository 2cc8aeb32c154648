"""Whether the server's memory grows with the answers it has given.

Ten long answers, one after the other in the same conversation, as fast as the scripted backend
gives them; the resident memory of the server's processes after each. **Growth** is the last over
the third: the first two fill caches and pools that stay. The conversation itself is about 40 kB
an answer.
"""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path

from playwright.sync_api import Browser

from benchmarks import answers
from benchmarks.chat_page import APP, open_chat

BASE = 2
GRACE_S = 60.0


@dataclass(frozen=True, slots=True)
class MemoryFigures:
    """Resident megabytes before the first answer and after each."""

    page: str
    tokens: int
    rate: float
    before_mb: float
    after_mb: tuple[float, ...]

    @property
    def growth(self) -> float:
        """The last over the third, less one."""
        return self.after_mb[-1] / self.after_mb[min(BASE, len(self.after_mb) - 1)] - 1


def measure_memory(
    browser: Browser, times: int, tokens: int, rate: float, page: str = APP
) -> MemoryFigures:
    """Weigh the server after each of `times` answers."""
    with (
        tempfile.TemporaryDirectory() as folder,
        open_chat(browser, page, answers.write_scripts(Path(folder), tokens, rate)) as chat,
    ):
        before_mb = chat.server.rss_mb()
        after_mb = []
        for _ in range(times):
            chat.ask_and_wait(
                answers.question(tokens), answers.end_mark(tokens), tokens / rate + GRACE_S
            )
            chat.settle()
            after_mb.append(chat.server.rss_mb())
    return MemoryFigures(page, tokens, rate, before_mb, tuple(after_mb))
