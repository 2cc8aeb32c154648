"""Text that came from a model or a server, made fit for a terminal."""

from __future__ import annotations

import re
from collections.abc import Callable

_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def clean(text: str) -> str:
    """The text without C0 and C1 control characters, but for line breaks and tabs.

    With these a text could colour, move, overwrite or retitle: whatever begins an escape sequence
    is gone, and the rest of it is harmless. Works on pieces as on the whole.
    """
    return _CONTROLS.sub("", text)


class Trickle:
    """Writes a text that grows, as it grows; from its first line with something on it to its last.

    Args:
        write: takes a piece, never empty, and lets it be seen at once.
    """

    def __init__(self, write: Callable[[str], None]) -> None:
        self._write = write
        self._taken = ""
        self._held = ""  # line breaks that may be the last
        self._open = False
        self.begun = False

    def grow(self, text: str) -> None:
        """Take all of the text so far. One that doesn't go on with the one before starts anew."""
        if not text.startswith(self._taken):
            self.end()
            self._taken, self.begun = "", False
        new = self._held + clean(text[len(self._taken) :])
        self._taken = text
        if not self.begun:
            new = new.lstrip("\n")
        piece = new.rstrip("\n")
        self._held = new[len(piece) :]
        if piece:
            self.begun = self._open = True
            self._write(piece)

    def end(self) -> None:
        """End the line that is open."""
        if self._open:
            self._write("\n")
        self._held, self._open = "", False
