"""How an answer went on the screen of whoever watched it."""

from __future__ import annotations

from dataclasses import dataclass


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
