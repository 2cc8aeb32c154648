"""The timings of the latest answers, in memory: for who wants to show what they have seen."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, replace

from llm.arrivals import Arrivals
from llm.flight_record import flight_file
from llm.job import GenerationJob, Snapshot
from llm.screen import ScreenLog

MOST_FLIGHTS = 100
MOST_BYTES = 64 << 20
"""Of all flights together; an answer of 4,000 tokens that took 100 s has 0.1 MB."""

MOST_EARLY = 20

_PAIR_BYTES = 16
_REPORT_BYTES = 400


@dataclass(frozen=True, slots=True)
class _Flight:
    backend: str
    snapshot: Snapshot
    arrivals: Arrivals
    begun_s: float
    screen: ScreenLog

    def size(self) -> int:
        """Bytes, about."""
        pairs = len(self.arrivals.chars) + len(self.screen.frames_s)
        return _PAIR_BYTES * pairs + _REPORT_BYTES * len(self.screen.reports)


class FlightRecorder:
    """Keeps the latest answers' timings of this process, within both limits; no text.

    Thread-safety: every method may be called from any thread.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._flights: OrderedDict[str, _Flight] = OrderedDict()
        # A page may be done with an answer before its job is.
        self._early: OrderedDict[str, ScreenLog] = OrderedDict()

    def answered(self, turn_id: str, job: GenerationJob) -> None:
        """An answer is over."""
        begun_s = self._clock() - job.reading_s()
        # Of what was said only its length is kept.
        snapshot = replace(job.snapshot(), text="", reasoning="", error=None, cached=None)
        flight = _Flight(job.backend.name, snapshot, job.arrivals(), begun_s, ScreenLog())
        with self._lock:
            screen = self._early.pop(turn_id, flight.screen)
            self._flights[turn_id] = replace(flight, screen=screen)
            self._make_room()

    def seen(self, turn_id: str, screen: ScreenLog) -> None:
        """How it went on a screen; of several, the last that told."""
        with self._lock:
            flight = self._flights.get(turn_id)
            if flight is not None:
                self._flights[turn_id] = replace(flight, screen=screen)
            else:
                self._early[turn_id] = screen
            self._make_room()

    def _make_room(self) -> None:
        """Let go of the oldest. Called with the lock held."""
        while len(self._early) > MOST_EARLY:
            self._early.popitem(last=False)
        size = sum(flight.size() for flight in self._flights.values())
        while len(self._flights) > MOST_FLIGHTS or (size > MOST_BYTES and len(self._flights) > 1):
            size -= self._flights.popitem(last=False)[1].size()

    def has(self, turn_id: str) -> bool:
        """Whether that answer's timings are still there."""
        with self._lock:
            return turn_id in self._flights

    def file(self, turn_id: str) -> bytes | None:
        """Its timings as a file; None where they aren't there."""
        with self._lock:
            flight = self._flights.get(turn_id)
        if flight is None:
            return None
        return flight_file(
            flight.backend, flight.snapshot, flight.arrivals, flight.screen, flight.begun_s
        )
