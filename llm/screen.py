"""What one person's screen has gone through, in the browser's own words."""

from __future__ import annotations

import threading
import time
from array import array
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, replace

from llm.frame_credit import FrameCredit
from llm.pacing import BELIEVABLE_MS, PaintMeter
from llm.screen_figures import ScreenFigures

MOST_STAMPS = 2**31
DAY_MS = 86_400_000.0
"""A longer time can't be meant."""
MOST_FRAMES = 10_000
MOST_REPORTS = 1000
"""A quarter of an hour of frames, and some minutes of reports; older ones are let go."""


@dataclass(frozen=True, slots=True)
class ScreenReport:
    """What a browser says, of the time since it last said something; milliseconds.

    Args:
        stamp: the newest stamped frame that has been painted; 0 for none.
        busy_ms: how long the main thread was kept from anything else, added up.
        freeze_ms: the longest time for which that held the page up.
        blocked_ms: what long animation frames kept from input, added up (`blockingDuration`).
        inp_ms: the slowest answer to a key or click, until it was painted; 0 for none.
        hidden: whether the tab is out of sight.

    Raises:
        ValueError: a figure can't be so.
    """

    stamp: int = 0
    busy_ms: float = 0.0
    freeze_ms: float = 0.0
    blocked_ms: float = 0.0
    inp_ms: float = 0.0
    hidden: bool = False

    def __post_init__(self) -> None:
        times = (self.busy_ms, self.freeze_ms, self.blocked_ms, self.inp_ms)
        if not all(0 <= each <= DAY_MS for each in times):  # nor NaN
            raise ValueError("a time that can't be")
        if not 0 <= self.stamp < MOST_STAMPS:
            raise ValueError("a stamp that can't be")

    @classmethod
    def read(cls, told: object) -> ScreenReport:
        """What a browser posted.

        Raises:
            ValueError: it isn't a report.
        """
        if not isinstance(told, dict):
            raise ValueError("not an object")
        try:
            return cls(
                stamp=int(told.get("stamp", 0)),
                **{
                    name: float(told.get(name, 0.0))
                    for name in ("busy_ms", "freeze_ms", "blocked_ms", "inp_ms")
                },
                hidden=told.get("hidden", False) is True,
            )
        except (TypeError, OverflowError) as error:
            raise ValueError("not a number") from error


class ScreenLog:
    """The latest frames of an answer and the browser's reports, each with when: `clock` seconds.

    Attributes:
        frames_s, frame_bytes: when each frame was sent, and how much Markdown it carried.
        reports: when each report came, and what it said.

    Thread-safety: none; its screen's lock is held, or it is a copy.
    """

    __slots__ = ("frame_bytes", "frames_s", "reports")

    def __init__(self) -> None:
        self.frames_s = array("d")
        self.frame_bytes = array("q")
        self.reports: deque[tuple[float, ScreenReport]] = deque(maxlen=MOST_REPORTS)

    def frame(self, at_s: float, size: int) -> None:
        """A frame was sent."""
        if len(self.frames_s) >= MOST_FRAMES:
            del self.frames_s[: MOST_FRAMES // 2], self.frame_bytes[: MOST_FRAMES // 2]
        self.frames_s.append(at_s)
        self.frame_bytes.append(size)

    def copy(self) -> ScreenLog:
        """The same, which stays as it is."""
        made = ScreenLog()
        made.frames_s, made.frame_bytes = self.frames_s[:], self.frame_bytes[:]
        made.reports.extend(self.reports)
        return made


class Screen:
    """One browser session's screen: its slowness, its credit, and the answer that it shows.

    Thread-safety: frames come from the script's thread, reports from the server's; both lock.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.meter = PaintMeter()
        self.credit = FrameCredit(clock)
        self._lock = threading.Lock()
        self._clock = clock
        self._turn_id = ""
        self._looks = False
        self._figures = self._told = ScreenFigures()
        self._log = ScreenLog()

    def hear(self, report: ScreenReport) -> None:
        """Take a browser's report.

        What it went through before it had painted a first frame was the page's own start, and what
        it goes through before there is text isn't the answer's.
        """
        self.meter.report(min(report.busy_ms, BELIEVABLE_MS))
        began = self.credit.has_painted()
        self.credit.painted(report.stamp, hidden=report.hidden)
        with self._lock:
            if not self._turn_id or not self._looks:
                return
            self._log.reports.append((self._clock(), report))
            if not began or not self._figures.bytes_sent:
                return
            seen = self._figures
            self._figures = replace(
                seen,
                longest_freeze_ms=max(report.freeze_ms, seen.longest_freeze_ms or 0.0),
                inp_ms=max(report.inp_ms, seen.inp_ms or 0.0) or None,
                blocked_ms=report.blocked_ms + (seen.blocked_ms or 0.0),
            )

    def look_away(self) -> None:
        """The page shows something else: what it goes through is no answer's."""
        with self._lock:
            self._looks = False

    def follow(self, turn_id: str) -> None:
        """This answer is shown now; a further run that shows it adds to the same figures."""
        with self._lock:
            self._looks = True
            if turn_id != self._turn_id:
                self._turn_id, self._log = turn_id, ScreenLog()
                self._figures = self._told = ScreenFigures()

    @property
    def turn_id(self) -> str:
        """Whose answer is shown, or was shown last; empty before any, and once it is let go."""
        with self._lock:
            return self._turn_id

    def let_go(self) -> None:
        """Nothing more is noted of the answer that was shown."""
        with self._lock:
            self._turn_id, self._log = "", ScreenLog()
            self._figures = self._told = ScreenFigures()

    def frame(self, bytes_sent: int) -> None:
        """A frame of the answer has been sent, with so much Markdown."""
        with self._lock:
            self._log.frame(self._clock(), bytes_sent)
            seen = self._figures
            self._figures = replace(
                seen,
                frames=(seen.frames or 0) + 1,
                bytes_sent=(seen.bytes_sent or 0) + bytes_sent,
            )

    def log(self, turn_id: str) -> ScreenLog:
        """That answer's frames and reports so far."""
        with self._lock:
            if turn_id != self._turn_id:
                return ScreenLog()
            return self._log.copy()

    def news(self) -> ScreenFigures | None:
        """How the answer goes, where the browser has said something since it was asked last."""
        figures = self.figures(self.turn_id)
        with self._lock:
            if figures.longest_freeze_ms is None or figures == self._told:
                return None
            self._told = figures
            return figures

    def figures(self, turn_id: str) -> ScreenFigures:
        """How that answer went, as far as it is known."""
        lag_s = self.credit.lag_s
        with self._lock:
            if turn_id != self._turn_id:
                return ScreenFigures()
            if lag_s is None or not self._figures.frames:  # of the answer before
                return self._figures
            return replace(self._figures, lag_ms=lag_s * 1000)
