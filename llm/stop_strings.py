"""Ending an answer before a stop string, and how stop strings are written on one line each.

Most servers cut the text themselves; `transformers serve` gives the stop string out with it.
"""

from __future__ import annotations

import re

_ESCAPES = {"n": "\n", "t": "\t", "\\": "\\"}


class StopStrings:
    """Cuts text that comes in pieces before the first stop string.

    Held back is only what could be a stop string's beginning, so no part of one is ever given
    out. Where the text is cut doesn't depend on how it comes in pieces.

    Source: the string that is complete first wins, and of two that are complete at the same
    character the one named first, as in vLLM, v1/engine/detokenizer.py, check_stop_strings.

    Thread-safety: none; one thread uses it.

    Attributes:
        found: whether a stop string came. Nothing is given out from then on.
    """

    def __init__(self, stop: tuple[str, ...]) -> None:
        self.found = False
        self._stop = stop
        self._held = ""

    def push(self, piece: str) -> str:
        """Take a piece; the text that is certain now, often empty."""
        if self.found or not self._stop:
            return "" if self.found else piece
        text = self._held + piece
        ends = [(at + len(one), at) for one in self._stop if (at := text.find(one)) >= 0]
        if ends:
            self.found, self._held = True, ""
            # min() keeps the first of equals.
            return text[: min(ends, key=lambda end: end[0])[1]]
        held = max(_beginning(text, one) for one in self._stop)
        self._held = text[len(text) - held :]
        return text[: len(text) - held]

    def flush(self) -> str:
        """Nothing more comes: what was held back, since it was no stop string."""
        held, self._held = self._held, ""
        return held


def _beginning(text: str, stop: str) -> int:
    """How many characters at the end of `text` could be the beginning of `stop`."""
    longest = min(len(text), len(stop) - 1)
    return next((n for n in range(longest, 0, -1) if text.endswith(stop[:n])), 0)


def read_lines(text: str) -> tuple[str, ...]:
    r"""Stop strings written one a line; `\n`, `\t` and `\\` stand for what they usually do.

    Spaces count, since they may be meant; empty lines don't.
    """
    lines = dict.fromkeys(line for line in text.split("\n") if line)
    return tuple(re.sub(r"\\([nt\\])", lambda found: _ESCAPES[found[1]], line) for line in lines)


def write_lines(stop: tuple[str, ...]) -> str:
    """What `read_lines` reads as these."""
    return "\n".join(
        one.replace("\\", "\\\\").replace("\n", "\\n").replace("\t", "\\t") for one in stop
    )
