"""An answer as plain text: for pipes, files, and terminals that can do no more."""

from __future__ import annotations

from typing import TextIO

from llm.job import Snapshot
from llm.terminal_text import Trickle


class PlainAnswer:
    """Writes each piece once, as it comes.

    Args:
        out: gets the answer's text and nothing else.
        thoughts: gets the reasoning; None leaves it out.
    """

    delay_s = 0.0

    def __init__(self, out: TextIO, thoughts: TextIO | None) -> None:
        self._text = Trickle(lambda piece: _written(out, piece))
        self._reasoning = None
        if thoughts is not None:
            self._reasoning = Trickle(lambda piece: _written(thoughts, piece))

    def shows(self, answer: Snapshot) -> bool:
        """Whether there is something of it to be seen here."""
        thoughts = self._reasoning is not None and answer.reasoning.strip()
        return bool(answer.text.strip() or thoughts)

    def draw(self, answer: Snapshot) -> None:
        """Write what is new."""
        if self._reasoning is not None:
            self._reasoning.grow(answer.reasoning)
            if answer.text.strip():
                self._reasoning.end()
        self._text.grow(answer.text)

    def end(self) -> None:
        """End the last line."""
        if self._reasoning is not None:
            self._reasoning.end()
        self._text.end()


def _written(stream: TextIO, piece: str) -> None:
    stream.write(piece)
    stream.flush()
