"""Tells a reader how far the model has got with reading a long prompt."""

from __future__ import annotations

import time
from collections.abc import Callable

from llm.errors import Reason
from llm.types import Notice

LONG_S = 3.0
"""A prompt that is expected to be read in less needs no progress: the answer is there first."""

FIRST_S = 0.5
"""Before this nobody can say how long it will take."""

EVERY_S = 0.3
"""How often it is told."""


class PrefillProgress:
    """One prompt's.

    Thread-safety: none; the thread that reads the prompt uses it.

    Args:
        tell: gets a notice a few times a second at most, never for a short prompt.
    """

    def __init__(
        self, tell: Callable[[Notice], None], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._tell = tell
        self._clock = clock
        self._began_s = clock()
        self._told_s = self._began_s
        self._part = 0.0
        self._percent: int | None = None
        self._over = False

    def reached(self, part: float) -> None:
        """So much has been read, 0 to 1. Less than before means that the prompt was read to its
        end, and this is about the tokens after it: nothing is told any more.
        """
        if self._over or part < self._part:
            self._over = True
            return
        self._part = part
        percent = int(100 * part)
        now_s = self._clock()
        passed_s = now_s - self._began_s
        if passed_s < max(FIRST_S, LONG_S * part) or now_s - self._told_s < EVERY_S:
            return
        if percent == self._percent:
            return
        self._told_s, self._percent = now_s, percent
        self._tell(Notice(Reason("notice-reading-part", {"percent": percent})))
