"""When the next frame of a running answer may be drawn.

Three facts set the pace. A frame's cost grows with the tail that it sends again (`frame_cost_ms`),
and screens differ; how much, the browser says itself (`PaintMeter`). The pacer spends at most a
share of the browser's main thread (`DUTY`) on drawing, so that typing and clicking find it free.
And what has been sent must have been painted before much more is (`FrameCredit`).
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from llm.frame_credit import FrameCredit

MIN_INTERVAL_S = 1 / 12
"""12 frames a second: 20 are not read as smoother, and cost two thirds more at both ends."""
QUICK_INTERVAL_S = 0.1
"""A quick screen gets at least 10 frames a second."""
MAX_INTERVAL_S = 1.0
"""However slow the screen, it moves once a second."""
DUTY = 0.2
"""The share of the main thread that drawing may take."""
QUICK_SLOWNESS = 1.5
"""Up to here a screen counts as quick."""
QUICK_FRAME_MS = 80.0
"""Frames that cost more get fewer than 10 a second on a quick screen too: one paragraph of
60,000 characters would otherwise ask for ten seconds of work every second."""

# Source: measured on this project's own page, docs/decisions.md ("What a frame costs").
_FRAME_BASE_MS = 11.0
_FRAME_PER_KCHAR_MS = 16.0

BELIEVABLE_MS = 60_000.0
"""A report of more isn't believed."""


def frame_cost_ms(tail_chars: int) -> float:
    """Main-thread milliseconds that a frame is expected to cost a desktop browser.

    Args:
        tail_chars: characters of Markdown that the frame sends again.
    """
    return _FRAME_BASE_MS + _FRAME_PER_KCHAR_MS * tail_chars / 1000


class PaintMeter:
    """How slow one person's screen is, as a factor over `frame_cost_ms`.

    Frames drawn are noted with what they should have cost; the browser's reports say what the
    main thread was really busy with. Their ratio, smoothed, is the slowness.

    Thread-safety: frames come from the script's thread, reports from the server's; both lock.
    """

    FLOOR, CEILING = 0.5, 40.0
    _SMOOTHING = 0.5
    # Reports about less than this say more about the noise than about the screen; they add up.
    _MIN_EXPECTED_MS = 20.0

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._expected_ms = 0.0
        self._busy_ms = 0.0
        self._slowness = 1.0

    @property
    def slowness(self) -> float:
        """1 for the screen that `frame_cost_ms` was measured on; that too while nothing is known."""
        with self._lock:
            return self._slowness

    def frame_drawn(self, expected_ms: float) -> None:
        """Note a frame that was sent."""
        with self._lock:
            self._expected_ms += expected_ms

    def report(self, busy_ms: float) -> None:
        """Take the browser's word: the main thread was busy this long since the last report.

        What can't be so (negative, not a number, more than a minute) is not heard.
        """
        if not 0 <= busy_ms <= BELIEVABLE_MS:
            return
        with self._lock:
            if self._expected_ms == 0:
                return  # whatever kept it busy, it wasn't our drawing
            self._busy_ms += busy_ms
            if self._expected_ms < self._MIN_EXPECTED_MS:
                return
            measured = min(max(self._busy_ms / self._expected_ms, self.FLOOR), self.CEILING)
            self._expected_ms = self._busy_ms = 0.0
            # The first report is smoothed too: it may have met the page still being built.
            self._slowness += self._SMOOTHING * (measured - self._slowness)


class FramePacer:
    """Spaces the frames of one view of one answer.

    The first frame is due at once; later ones an interval after the one before. The last frame
    of an answer isn't the pacer's business: it is always drawn, without asking.

    Thread-safety: one thread, the script run that draws.
    """

    def __init__(
        self,
        meter: PaintMeter,
        credit: FrameCredit,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._meter = meter
        self._credit = credit
        self._clock = clock
        self._due_s = float("-inf")

    def delay_s(self) -> float:
        """Seconds until the next frame may be drawn, as it looks now; 0 when it may be now."""
        return max(0.0, self._due_s - self._clock(), self._credit.delay_s())

    def drawn(self, tail_chars: int) -> int | None:
        """A frame with this tail has just been sent.

        Returns:
            The stamp to show with it, or None.
        """
        expected_ms = frame_cost_ms(tail_chars)
        self._meter.frame_drawn(expected_ms)
        self._due_s = self._clock() + interval_s(expected_ms, self._meter.slowness)
        return self._credit.sent(tail_chars)


def interval_s(expected_ms: float, slowness: float) -> float:
    """Seconds from one frame to the next on a screen of this slowness."""
    spent_ms = expected_ms * slowness
    wanted_s = spent_ms / 1000 / DUTY
    if slowness <= QUICK_SLOWNESS:
        over_ms = max(0.0, spent_ms - QUICK_FRAME_MS)
        wanted_s = min(wanted_s, QUICK_INTERVAL_S + over_ms / 1000 / DUTY)
    return min(max(wanted_s, MIN_INTERVAL_S), MAX_INTERVAL_S)
