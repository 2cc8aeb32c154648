"""The line that says what goes on before there is text, and is gone then."""

from __future__ import annotations

import os
import shutil
from typing import TextIO


def can_move(stream: TextIO) -> bool:
    """Whether it is a terminal on which what was written can be written over."""
    term = os.environ.get("TERM", "" if os.name == "posix" else "windows")
    return stream.isatty() and term not in ("", "dumb", "unknown")


class StatusLine:
    """One line on standard error; nothing at all where that is no terminal."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._can_move = can_move(stream)
        self._shown = ""

    def show(self, sentence: str) -> None:
        """Show this in place of what was shown; "" takes the line away."""
        if sentence == self._shown or not self._can_move:
            return
        from rich.cells import set_cell_size

        columns = shutil.get_terminal_size().columns - 1
        self._stream.write("\r\x1b[K" + set_cell_size(sentence, columns).rstrip())
        self._stream.flush()
        self._shown = sentence
