"""How an answer went on the screen of whoever watched it."""

from __future__ import annotations

from dataclasses import dataclass, replace

WORST = ("longest_freeze_ms", "inp_ms", "lag_ms")
"""Of several words on an answer the greatest of each counts; all else is of the one that froze
longest, and of the later where they are equal: one screen's word grows."""


@dataclass(frozen=True, slots=True)
class ScreenFigures:
    """What a browser said of one answer; None where it said nothing.

    Args:
        longest_freeze_ms: the longest time for which the page was held up while it streamed, in sight.
        inp_ms: the slowest answer to a key or click meanwhile; None where there was none.
        blocked_ms: what long animation frames kept from input, all together.
        lag_ms: from the sending of its last frame to the word that it was painted.
        frames: how many frames were drawn.
        bytes_sent: the Markdown that these carried, in UTF-8.
    """

    longest_freeze_ms: float | None = None
    inp_ms: float | None = None
    blocked_ms: float | None = None
    lag_ms: float | None = None
    frames: int | None = None
    bytes_sent: int | None = None

    def worst(self, other: ScreenFigures) -> ScreenFigures:
        """Of this and a later word on the same answer, of another screen or the same; see `WORST`."""
        pairs = {name: (getattr(self, name), getattr(other, name)) for name in WORST}
        known = {name: [each for each in pair if each is not None] for name, pair in pairs.items()}
        before_ms, after_ms = (-1.0 if each is None else each for each in pairs[WORST[0]])
        return replace(
            other if after_ms >= before_ms else self,
            **{name: max(values, default=None) for name, values in known.items()},
        )
