"""A race between the model and the search for a similar question: whoever is first answers."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Literal

from llm.cache_types import CachedAnswer
from llm.types import FromCache


class Seeking:
    """The search for one question's answer, while the model may be at work on it.

    Thread-safety: every method may be called from any thread. Callbacks run on the thread that
    finds, or at once where it was found before; they must be quick and must not raise.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._winner: Literal["model", "cache"] | None = None
        self._found: tuple[CachedAnswer, FromCache] | None = None
        self._when_found: list[Callable[[], object]] = []

    @property
    def found(self) -> tuple[CachedAnswer, FromCache] | None:
        """The answer, where the cache was first."""
        with self._lock:
            return self._found

    def find(self, answer: CachedAnswer, told: FromCache) -> bool:
        """It was found; says whether that was in time."""
        with self._lock:
            if self._winner is not None:
                return False
            self._winner, self._found = "cache", (answer, told)
            callbacks, self._when_found = self._when_found, []
        for callback in callbacks:
            callback()
        return True

    def model_speaks(self) -> bool:
        """The model has begun to answer; says whether that was in time."""
        with self._lock:
            self._winner = self._winner or "model"
            return self._winner == "model"

    def when_found(self, callback: Callable[[], object]) -> None:
        """Call it once an answer is found in time."""
        with self._lock:
            if self._found is None:
                self._when_found.append(callback)
                return
        callback()
