"""A race between the model and the search for a similar question: whoever is first answers."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from llm.cache_types import CachedAnswer
from llm.types import CacheUse, FromCache


@dataclass(frozen=True, slots=True)
class Found:
    """A kept answer that may be given.

    Args:
        told: what its receipt says.
        asked: the question that it is given to.
    """

    answer: CachedAnswer
    told: FromCache
    use: CacheUse
    asked: str


class Seeking:
    """The search for one question's answer, while the model may be at work on it.

    Thread-safety: every method may be called from any thread. Callbacks run on the thread that
    finds, or at once where it was found before; they must be quick and must not raise.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._winner: Literal["model", "cache"] | None = None
        self._found: Found | None = None
        self._when_found: list[Callable[[], object]] = []
        self.why_not = ""
        """Why nothing can be found, or wasn't yet, by a fixed name."""

    @property
    def found(self) -> Found | None:
        """The answer, where the cache was first."""
        with self._lock:
            return self._found

    @property
    def over(self) -> bool:
        """Whether somebody has won."""
        with self._lock:
            return self._winner is not None

    def find(self, found: Found) -> bool:
        """It was found; says whether that was in time."""
        with self._lock:
            if self._winner is not None:
                return False
            self._winner, self._found = "cache", found
            callbacks, self._when_found = self._when_found, []
        for callback in callbacks:
            callback()
        return True

    def model_speaks(self) -> bool:
        """The model has begun to answer, or nothing is wanted any more; says whether in time."""
        with self._lock:
            if self._winner is None:
                self._winner = "model"
                self._when_found.clear()
            return self._winner == "model"

    def when_found(self, callback: Callable[[], object]) -> None:
        """Call it once an answer is found in time."""
        with self._lock:
            if self._found is None:
                if self._winner is None:
                    self._when_found.append(callback)
                return
        callback()
