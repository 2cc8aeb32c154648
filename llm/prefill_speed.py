"""How fast a server reads prompts, learned from the answers it gave."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Sequence
from statistics import median

from llm.types import Message

REMEMBERED = 9
"""Answers that count: enough for a median, few enough to follow a server that has changed."""

LEAST_BYTES = 1000
"""A shorter prompt tells the way there and back, not the speed of reading."""


class PrefillSpeed:
    """UTF-8 bytes of prompt a second, as the median of the last answers.

    Bytes stand for tokens, about four a token in English and in Chinese alike: they are known
    before the server has counted anything, and are counted the same way on both sides.

    Thread-safety: every method may be called from any thread.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._bytes_per_s: deque[float] = deque(maxlen=REMEMBERED)

    def learn(self, messages: Sequence[Message], ttft_s: float) -> None:
        """An answer's first text came `ttft_s` after its request was sent.

        Only a first question counts: later ones find most of their prompt in the server's prefix
        cache, and would make it look quicker than it reads.
        """
        size = _bytes(messages)
        first = not any(message.role == "assistant" for message in messages)
        if first and size >= LEAST_BYTES and ttft_s > 0:
            with self._lock:
                self._bytes_per_s.append(size / ttft_s)

    def expect_s(self, messages: Sequence[Message]) -> float | None:
        """How long this prompt may take to be read, at most; None while nothing is known."""
        with self._lock:
            if not self._bytes_per_s:
                return None
            return _bytes(messages) / median(self._bytes_per_s)


def _bytes(messages: Sequence[Message]) -> int:
    return sum(len(message.content.encode("utf-8", "replace")) for message in messages)
