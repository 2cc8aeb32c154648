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
"""16 bytes a piece each, and 16 a frame: some 3 MB for long ones."""


@dataclass(frozen=True, slots=True)
class _Flight:
    backend: str
    snapshot: Snapshot
    arrivals: Arrivals
    begun_s: float
    screen: ScreenLog


class FlightRecorder:
    """Keeps the latest `MOST_FLIGHTS` answers' timings of this process; no text.

    Thread-safety: every method may be called from any thread.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._flights: OrderedDict[str, _Flight] = OrderedDict()

    def answered(self, turn_id: str, job: GenerationJob) -> None:
        """An answer is over."""
        begun_s = self._clock() - job.reading_s()
        # Of what was said only its length is kept.
        snapshot = replace(job.snapshot(), text="", reasoning="", error=None, cached=None)
        flight = _Flight(job.backend.name, snapshot, job.arrivals(), begun_s, ScreenLog())
        with self._lock:
            self._flights[turn_id] = flight
            while len(self._flights) > MOST_FLIGHTS:
                self._flights.popitem(last=False)

    def seen(self, turn_id: str, screen: ScreenLog) -> None:
        """How it went on a screen; of several, the last that told."""
        with self._lock:
            flight = self._flights.get(turn_id)
            if flight is not None:
                self._flights[turn_id] = replace(flight, screen=screen)

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
