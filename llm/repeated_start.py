"""Leaving out the given text where a server, asked to go on with it, says it once more.

Some give it back before what is new; a model that answers anew may begin in the very same words.
"""

from __future__ import annotations

LEAST_CHARS = 16
"""A shorter text may come again because it belongs there: "ha", "1, ", "- "."""


class RepeatedStart:
    """Cuts `start` off the beginning of a text that comes in pieces.

    Held back is only what is the beginning of `start` so far; nothing at all where it is short.

    Thread-safety: none; one thread uses it.

    Args:
        start: the text that may be repeated; empty cuts nothing.
    """

    def __init__(self, start: str) -> None:
        self._start = start if len(start) >= LEAST_CHARS else ""
        self._held = ""

    def push(self, piece: str) -> str:
        """Take a piece; the new text that is certain now."""
        if not self._start:
            return piece
        text = self._held + piece
        if len(text) < len(self._start) and self._start.startswith(text):
            self._held = text
            return ""
        new = text.removeprefix(self._start)
        self._start = self._held = ""
        return new

    def flush(self) -> str:
        """Nothing more comes: what was held back, unless it is too long to be there by chance."""
        held, self._held = self._held, ""
        self._start = ""
        return held if len(held) < LEAST_CHARS else ""
