"""An answer as it passes by, so that it can be said again."""

from __future__ import annotations

import time
from collections.abc import Callable

from llm.types import Delta, Fingerprint, Finish, Notice, Usage


class RecordedAnswer:
    """Takes down a stream's items.

    Args:
        max_chars: of text and reasoning; once there are more, nothing is kept.
        clock: seconds; only differences count.

    Thread-safety: none; it belongs to the thread that reads the stream.
    """

    def __init__(self, max_chars: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._max_chars = max_chars
        self._clock = clock
        self._begun_s = clock()
        self._pieces: list[Delta] = []
        self._chars = 0
        self._has_text = False
        self._finish: Finish | None = None
        self._tells = True
        self.model = ""
        self.server = ""
        self.took_s = 0.0

    def take(self, item: Delta | Notice | Finish) -> None:
        """Take down one item."""
        if isinstance(item, Notice):
            self.model, self.server = item.model or self.model, item.server or self.server
            # An answer given again must not seem to be new by being kept again.
            self._tells = self._tells and item.cached is None
        elif isinstance(item, Finish):
            self._finish = item
            self.took_s = self._clock() - self._begun_s
        else:
            self._take_piece(item)

    @property
    def whole(self) -> bool:
        """Whether it ended by itself, has text, and isn't too long."""
        ended = self._finish is not None and self._finish.reason == "stop"
        return ended and self._has_text and self._tells and self._chars <= self._max_chars

    @property
    def fingerprint(self) -> Fingerprint | None:
        """What gave it, where that is certain."""
        return self._finish.fingerprint if self._finish is not None else None

    @property
    def pieces(self) -> tuple[Delta, ...]:
        """The text and the reasoning, as they came."""
        return tuple(self._pieces)

    @property
    def usage(self) -> Usage:
        """The tokens it took, as far as the backend told."""
        return self._finish.usage if self._finish is not None else Usage()

    def _take_piece(self, piece: Delta) -> None:
        self._chars += len(piece.text)
        if self._chars > self._max_chars:
            self._pieces.clear()
            return
        self._pieces.append(piece)
        if piece.kind == "recast":
            self._has_text = False
        elif piece.kind == "text" and not piece.text.isspace():
            self._has_text = True
