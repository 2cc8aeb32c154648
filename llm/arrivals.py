"""When the pieces of an answer came: what a gap between them, or a stutter, is told from."""

from __future__ import annotations

import math
from array import array
from collections.abc import Sequence
from itertools import pairwise

MOST_PIECES = 100_000
"""Above it, neighbours are joined: 1.6 MB an answer at most, however long it gets."""


class Arrivals:
    """The times of an answer's pieces and how long each was; never what was in them.

    A piece is what a backend gave at once. It may hold several tokens, as servers send them, or a
    part of one, so gaps between pieces are inter-token latencies (ITL) only where a backend gives
    tokens one by one, as local models and vLLM do as long as nobody is behind.

    Attributes:
        offsets_s: seconds from when the model read the question to each piece, never falling.
        chars: the characters of each, reasoning's too.
        joined: whether pieces were joined, because there were too many.

    Thread-safety: none; its job's lock is held.
    """

    __slots__ = ("chars", "joined", "offsets_s")

    def __init__(self) -> None:
        self.offsets_s = array("d")
        self.chars = array("q")
        self.joined = False

    def note(self, offset_s: float, chars: int) -> None:
        """A piece came."""
        self.offsets_s.append(offset_s)
        self.chars.append(chars)
        if len(self.chars) > MOST_PIECES:
            self._join()

    def copy(self) -> Arrivals:
        """The same, which stays as it is."""
        made = Arrivals()
        made.offsets_s, made.chars, made.joined = self.offsets_s[:], self.chars[:], self.joined
        return made

    def total_chars(self) -> int:
        """The characters of all."""
        return sum(self.chars)

    def gaps_s(self) -> list[float]:
        """Seconds between neighbours; none where pieces were joined: they aren't neighbours then."""
        if self.joined:
            return []
        return [after - before for before, after in pairwise(self.offsets_s)]

    def _join(self) -> None:
        """Take each two as one, which came when the first of them did."""
        last = self.chars[-1:] if len(self.chars) % 2 else array("q", [])
        self.offsets_s = self.offsets_s[::2]
        pairs = zip(self.chars[::2], self.chars[1::2], strict=False)
        self.chars = array("q", [first + second for first, second in pairs]) + last
        self.joined = True


def nearest_rank(ascending: Sequence[float], share: float) -> float | None:
    """A percentile by nearest rank: the least value that has this share of all at or below it.

    It is always a value that was measured, never one between two. None of no values.

    Args:
        share: over 0 and up to 1; 0.95 is p95.

    Source: https://en.wikipedia.org/wiki/Percentile#The_nearest-rank_method, as PostgreSQL's
    percentile_disc and numpy's `inverted_cdf`.
    """
    if not ascending:
        return None
    # Rounded first: 0.95 * 100 is a little more than 95 in floating point.
    return ascending[max(0, math.ceil(round(share * len(ascending), 9)) - 1)]
