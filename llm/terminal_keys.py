"""Keys pressed while an answer is drawn: not shown in the middle of it, kept for the next prompt."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress


@contextmanager
def unseen_keys() -> Iterator[None]:
    """Have the terminal echo nothing for as long as this lasts; Ctrl-C is heard all the same."""
    try:
        import termios
    except ImportError:  # Windows shows nothing by itself
        yield
        return
    if sys.stdin is None or not sys.stdin.isatty():
        yield
        return
    keyboard = sys.stdin.fileno()
    if not _ours(keyboard):
        yield
        return
    before = termios.tcgetattr(keyboard)
    changed = [*before]
    changed[3] &= ~termios.ECHO
    termios.tcsetattr(keyboard, termios.TCSANOW, changed)
    try:
        yield
    finally:
        with suppress(termios.error):  # it may have been closed meanwhile
            termios.tcsetattr(keyboard, termios.TCSANOW, before)


def _ours(keyboard: int) -> bool:
    """Whether this program may set it: in the background a terminal is another's."""
    try:
        return os.tcgetpgrp(keyboard) == os.getpgrp()
    except OSError:  # a terminal, but not the one that this program was started from
        return False
