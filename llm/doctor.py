"""What is well with this installation and what isn't: checks, and one round of them at a time.

Every check runs on a thread of its own and has a time limit of its own, so none can keep a page
or an answer waiting, nor the others for ever. Each server has a place of its own: one that doesn't
answer keeps nothing waiting but what is asked of itself. What a check finds is a sentence of the
catalogue.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, replace
from queue import Empty, SimpleQueue
from typing import Literal, Protocol

from llm.errors import LLMError, Reason, StoreError
from llm.fault_log import log_fault
from llm.types import CancelToken

logger = logging.getLogger(__name__)

AT_ONCE = 4
"""Checks of this machine that run at once; the answers of the same process want their time, too."""

APART = frozenset({"doctor-group-server"})
"""Groups, by their sentence, of which each asks one and the same thing that may not answer: its
checks run one after another, beside those of all others. Waiting for a server costs no time here."""

REST_S = 5.0
"""Who asks sooner than this after a round has ended is given that one: nobody hammers a server."""

Level = Literal["bad", "warn", "ok", "skipped"]
"""It doesn't work; it works, and something is to be looked at; it is well; there's nothing to say."""


@dataclass(frozen=True, slots=True)
class Finding:
    """What a check found.

    Args:
        reason: what is well, or what isn't and what to do, as one sentence of the catalogue.
        seconds: what the check took.
    """

    level: Level
    reason: Reason
    seconds: float = 0.0


class Check(Protocol):
    """Something that is looked at.

    Thread-safety: `run` is called once in a round, on a thread of its own.
    """

    @property
    def name(self) -> str:
        """What is looked at: a sentence of the catalogue."""
        ...

    @property
    def group(self) -> Reason:
        """What it belongs to, such as one server: a sentence of the catalogue."""
        ...

    @property
    def limit_s(self) -> float:
        """When it is given up, at the latest."""
        ...

    def run(self, cancel: CancelToken) -> Finding:
        """Look. May raise anything.

        Args:
            cancel: is cancelled when the time is over: then nobody waits for it any more.
        """
        ...


class DoctorRun:
    """One round of checks, whose findings come as they end.

    Thread-safety: every method may be called from any thread.
    """

    def __init__(self, checks: Sequence[Check], clock: Callable[[], float]) -> None:
        self.checks = tuple(checks)
        self.began_at_s = time.time()
        self._clock = clock
        self._changed = threading.Condition()
        self._findings: list[Finding | None] = [None] * len(self.checks)
        self._left = len(self.checks)
        self._over_s = clock()

    @property
    def findings(self) -> tuple[Finding | None, ...]:
        """One for each check, in their order; None while it runs or waits for its turn."""
        with self._changed:
            return tuple(self._findings)

    @property
    def left(self) -> int:
        """How many checks have yet to end."""
        return self._left

    @property
    def over(self) -> bool:
        return self._left == 0

    @property
    def over_for_s(self) -> float:
        """How long ago the last check ended."""
        return self._clock() - self._over_s

    def wait(self, left: int, timeout_s: float) -> bool:
        """Wait until fewer than `left` checks have yet to end; whether that is so."""
        with self._changed:
            return self._changed.wait_for(lambda: self._left < left, timeout_s)

    def tell(self, number: int, finding: Finding) -> None:
        """Note what a check found; the first word counts."""
        with self._changed:
            if self._findings[number] is None:
                self._findings[number] = finding
                self._left -= 1
                self._over_s = self._clock()
                self._changed.notify_all()


class Doctor:
    """Has checks run, one round at a time.

    Thread-safety: every method may be called from any thread.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._last: DoctorRun | None = None
        self._hanging: dict[str, threading.Thread] = {}

    def run(self, checks: Callable[[], Sequence[Check]]) -> DoctorRun:
        """Begin a round; or join the one under way, or that which has just ended.

        Args:
            checks: makes them; quick.
        """
        with self._lock:
            last = self._last
            if last is not None and (not last.over or last.over_for_s < REST_S):
                return last
            self._last = begun = DoctorRun(checks(), self._clock)
        lines = _lines_of(begun.checks)
        for line in (each for each, places in lines for _ in range(places)):
            try:
                threading.Thread(
                    target=self._work, args=(begun, line), name="doctor", daemon=True
                ).start()
            except RuntimeError as error:  # the system gives no more threads
                log_fault(logger, "A round of checks has too few threads", error)
                for number, _ in (left for each, _ in lines for left in _taken(each)):
                    begun.tell(number, _failed(error))
                break
        return begun

    @property
    def last(self) -> DoctorRun | None:
        """The round under way, or that which ended last; None before the first."""
        with self._lock:
            return self._last

    def _work(self, run: DoctorRun, line: _Line) -> None:
        for number, check in _taken(line):
            began_s = self._clock()
            try:
                finding = self._looked(check)
            except Exception as error:  # noqa: BLE001 - the other checks go on
                finding = _failed(error)
            run.tell(number, replace(finding, seconds=self._clock() - began_s))

    def _looked(self, check: Check) -> Finding:
        key = f"{check.group} {check.name}"
        with self._lock:
            before = self._hanging.pop(key, None)
            if before is not None and before.is_alive():
                # No second thread beside one that may never end.
                self._hanging[key] = before
                return Finding("bad", Reason("doctor-still-hanging"))
        cancel, told = CancelToken(), Future[Finding]()

        def look() -> None:
            try:
                told.set_result(check.run(cancel))
            except StoreError as error:  # its own sentence says where the store lies
                log_fault(logger, f"The check {check.name} failed", error)
                told.set_result(_failed(error))
            except LLMError as error:
                told.set_result(Finding("bad", error.reason))
            except Exception as error:  # noqa: BLE001 - a check may raise anything
                log_fault(logger, f"The check {check.name} failed", error)
                told.set_result(_failed(error))

        thread = threading.Thread(target=look, name=check.name, daemon=True)
        thread.start()
        try:
            return told.result(check.limit_s)
        except TimeoutError:
            cancel.cancel()
            with self._lock:
                self._hanging[key] = thread
            return Finding("bad", Reason("doctor-too-long", {"seconds": round(check.limit_s)}))


_Line = SimpleQueue[tuple[int, Check]]
"""Checks that nobody has begun with, and their numbers."""


def _lines_of(checks: Sequence[Check]) -> list[tuple[_Line, int]]:
    """Checks in their lines, and how many of each may run at once."""
    lines: dict[str, _Line] = defaultdict(SimpleQueue)
    for number, check in enumerate(checks):
        lines[_place_of(check)].put((number, check))
    return [(line, 1 if place else min(AT_ONCE, line.qsize())) for place, line in lines.items()]


def _place_of(check: Check) -> str:
    """The line in which a check waits; the empty one is that of this machine."""
    return str(check.group) if check.group.message_id in APART else ""


def _taken(line: _Line) -> Iterator[tuple[int, Check]]:
    """What is left of a line, each for whoever asks first."""
    with suppress(Empty):
        while True:
            yield line.get_nowait()


def _failed(error: Exception) -> Finding:
    return Finding("bad", Reason("doctor-failed", {"kind": type(error).__name__}))
