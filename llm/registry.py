"""All running answers of this process: who answers now, who waits, and in which order."""

from __future__ import annotations

import logging
import threading
import time
import weakref
from collections import Counter
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from llm.cached_backend import CachedBackend
from llm.errors import QueueFullError, ShuttingDownError, TooManyWaitingError
from llm.fault_log import log_fault
from llm.job import AnswerSink, GenerationJob
from llm.types import Backend, GenerationRequest
from llm.wait_estimate import Asked, Countdown, RecentAnswers

if TYPE_CHECKING:
    from llm.settings import Settings

logger = logging.getLogger(__name__)

KEEPER_INTERVAL_S = 0.5
"""How often partial texts are saved and stuck jobs looked for; well inside the one second that
an answer may lose."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a question stands in line.

    Args:
        number: 1 is the next to be taken.
        left_s: the seconds until then, as they may be told; below 0 where it should have been
            taken by now, None while nothing is known to tell it by.
    """

    number: int
    left_s: float | None = None


@dataclass(slots=True)
class _Line:
    """The queue in front of one backend.

    Args:
        told: what those are told who have asked for their place.
        starting: whether some thread is giving out slots, and will see what changes meanwhile.
    """

    backend: Backend
    waiting: list[GenerationJob] = field(default_factory=list)
    running: list[GenerationJob] = field(default_factory=list)
    told: dict[GenerationJob, Countdown] = field(default_factory=dict)
    starting: bool = False


class JobRegistry:
    """Starts, finds, stops and looks after jobs; at most one a conversation.

    A backend's slots are given to waiting jobs fairly by person: who has the fewest answers
    running comes first, then who has stood in line longest since their last answer. So a person
    with one question waits for about one answer of each other person, however many questions
    those have. How many slots there are is asked at each start, and at least twice a second: a
    backend may come to have more or fewer. With fewer, those that run go on.

    Args:
        max_waiting: how many questions may wait for one backend.
        max_waiting_each: how many of one person's.

    Thread-safety: every method may be called from any thread. Jobs' callbacks and backends are
    never called with the lock held.
    """

    def __init__(
        self,
        *,
        max_waiting: int = 100,
        max_waiting_each: int = 100,
        idle_limit_s: float = 60.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._max_waiting = max_waiting
        self._max_waiting_each = max_waiting_each
        self._idle_limit_s = idle_limit_s
        self._clock = clock
        self._lock = threading.Lock()
        self._jobs: dict[Hashable, GenerationJob] = {}
        self._lines: dict[int, _Line] = {}
        # Outlives the line, which is gone as soon as nobody is in it.
        self._recent: weakref.WeakKeyDictionary[Backend, RecentAnswers] = (
            weakref.WeakKeyDictionary()
        )
        self._closed = threading.Event()
        self._keeper: threading.Thread | None = None

    @classmethod
    def from_settings(cls, settings: Settings) -> JobRegistry:
        """As long lines as settings allow."""
        return cls(
            max_waiting=settings.max_waiting,
            max_waiting_each=settings.max_waiting_each,
            # The backends have watchdogs of their own; this one is for one that is stuck itself.
            idle_limit_s=settings.idle_timeout_s + 5,
        )

    def submit(
        self,
        conversation_id: Hashable,
        person: str,
        backend: Backend,
        request: GenerationRequest,
        *,
        save: AnswerSink,
        on_end: Callable[[GenerationJob], None] = lambda job: None,
        start_text: str = "",
        admitted: bool = False,
    ) -> GenerationJob:
        """Ask; the answer begins as soon as the backend has a slot.

        Where the conversation has a job already, that one wins and is returned.

        Args:
            on_end: called after the job's end was published and its place was given away.
            start_text: as in `GenerationJob`.
            admitted: whether it was taken before, and has waited behind its conversation's own
                answer: then no limit refuses it any more.

        Raises:
            QueueFullError: too many are waiting.
            TooManyWaitingError: too many of this person's are.
            ShuttingDownError: the registry is closed.
        """

        def ended(job: GenerationJob) -> None:
            self._forget(job)
            on_end(job)

        with self._lock:
            if self._closed.is_set():
                raise ShuttingDownError
            if conversation_id in self._jobs:
                return self._jobs[conversation_id]
            line = self._lines.get(_key(backend)) or _Line(backend)
            if not admitted:
                self._refuse_too_many(line, person)
            self._ensure_keeper()
            job = GenerationJob(
                conversation_id,
                person,
                backend,
                request,
                save=save,
                idle_limit_s=self._idle_limit_s,
                on_end=ended,
                start_text=start_text,
                clock=self._clock,
            )
            self._jobs[conversation_id] = job
            self._lines[_key(backend)] = line
            line.waiting.append(job)
        self._start_next(backend)
        return job

    def answer_instead(self, job: GenerationJob, backend: Backend) -> bool:
        """Have a job that waits be answered by another backend, which is at once asked.

        Returns:
            Whether it still waited.
        """
        with self._lock:
            line = self._lines.get(_key(job.backend))
            if line is None or job not in line.waiting:
                return False
            line.waiting.remove(job)
            line.told.pop(job, None)
            self._drop_if_empty(line)
            job.backend = backend
            self._lines.setdefault(_key(backend), _Line(backend)).waiting.append(job)
        self._start_next(backend)
        return True

    def get(self, conversation_id: Hashable) -> GenerationJob | None:
        """The conversation's job, if one is waiting or running."""
        with self._lock:
            return self._jobs.get(conversation_id)

    def place_of(self, job: GenerationJob) -> Place | None:
        """Where a question stands in line; None when it doesn't wait.

        Two who look at the same question are told the same, and it goes down from look to look.
        """
        backend = job.backend
        ready_s, slots = _ready_s(backend), _slots(backend)
        with self._lock:
            line = self._lines.get(_key(backend))
            if line is None or job not in line.waiting:
                return None
            order = self._order(line)
            number = order.index(job) + 1
            running, ahead = list(line.running), order[: number - 1]
            recent = self._recent.get(backend)
        expected_s = None
        if recent is not None and ready_s is not None:  # getting ready takes nobody knows how long
            expected_s = recent.wait_s(
                [_asked(each, min(each.reading_s(), ready_s)) for each in running],
                [_asked(each) for each in ahead],
                slots,
            )
        with self._lock:
            if job not in line.waiting:
                return None
            countdown = line.told.setdefault(job, Countdown())
            return Place(number, countdown.left_s(expected_s, self._clock()))

    def waiting(self, backend: Backend) -> int:
        """How many questions stand in line for this backend."""
        with self._lock:
            line = self._lines.get(_key(backend))
            return len(line.waiting) if line is not None else 0

    def in_line(self) -> int:
        """How many questions stand in line, for whichever backend."""
        with self._lock:
            return sum(len(line.waiting) for line in self._lines.values())

    def jobs(self) -> list[GenerationJob]:
        """All that are waiting or running."""
        with self._lock:
            return list(self._jobs.values())

    def running(self) -> int:
        """How many answers are running or waiting in this process."""
        with self._lock:
            return len(self._jobs)

    def close(self) -> None:
        """End every job, keeping the partial texts, and take no more."""
        with self._lock:
            self._closed.set()
            jobs = list(self._jobs.values())
        for job in jobs:
            job.fail(ShuttingDownError())

    @staticmethod
    def _order(line: _Line) -> list[GenerationJob]:
        """The waiting jobs in the order in which they would be taken, each turn counted."""
        load = Counter(job.person for job in line.running)
        rounds = []
        for job in line.waiting:
            rounds.append(load[job.person])
            load[job.person] += 1
        by_round = sorted(zip(rounds, line.waiting, strict=True), key=lambda pair: pair[0])
        return [job for _, job in by_round]

    def _refuse_too_many(self, line: _Line, person: str) -> None:
        """Called with the lock held."""
        if len(line.waiting) >= self._max_waiting:
            raise QueueFullError(limit=self._max_waiting)
        if sum(job.person == person for job in line.waiting) >= self._max_waiting_each:
            raise TooManyWaitingError(limit=self._max_waiting_each)

    def _start_next(self, backend: Backend) -> None:
        """Give the free slots to those who wait.

        One thread at a time does it for a line: a job that can't be started ends at once, and its
        end comes here again. Others leave it to that thread, which looks once more before it goes.
        """
        with self._lock:
            line = self._lines.get(_key(backend))
            if line is None or line.starting:
                return
            line.starting = True
        try:
            while (job := self._take_next(line)) is not None:
                job.start()
        except BaseException:
            with self._lock:
                line.starting = False
            raise

    def _take_next(self, line: _Line) -> GenerationJob | None:
        """Who has a slot now; None, and nobody is starting any more, when that is nobody."""
        slots = _slots(line.backend)
        with self._lock:
            if self._closed.is_set() or not line.waiting or len(line.running) >= slots:
                line.starting = False
                self._drop_if_empty(line)
                return None
            job = self._order(line)[0]
            line.waiting.remove(job)
            line.told.pop(job, None)
            line.running.append(job)
            return job

    def _drop_if_empty(self, line: _Line) -> None:
        """Called with the lock held."""
        if not line.waiting and not line.running and not line.starting:
            self._lines.pop(_key(line.backend), None)

    def _forget(self, job: GenerationJob) -> None:
        with self._lock:
            if self._jobs.get(job.conversation_id) is job:
                del self._jobs[job.conversation_id]
            line = self._lines.get(_key(job.backend))
            ran = line is not None and job in line.running
            if line is not None:
                line.told.pop(job, None)
                if ran:
                    line.running.remove(job)
                    # Who had an answer goes to the back of the line; the sort is stable.
                    line.waiting.sort(key=lambda other: other.person == job.person)
                elif job in line.waiting:
                    order = self._order(line)
                    for behind in order[order.index(job) + 1 :]:
                        line.told.pop(behind, None)  # their wait is another now
                    line.waiting.remove(job)
                self._drop_if_empty(line)
        if ran:
            try:
                self._learn(job)
            except Exception as error:  # noqa: BLE001 - told by type and place
                log_fault(logger, "What an answer took couldn't be told", error)
        self._start_next(job.backend)

    def _learn(self, job: GenerationJob) -> None:
        """Remember what an answer took, for the sake of those who wait for the next ones."""
        answer, ready_s = job.snapshot(), _ready_s(job.backend)
        if answer.finish is None or answer.finish.reason == "error" or ready_s is None:
            return
        if answer.cached is not None:
            return  # the model gave none
        # Not what it waited for the model to be ready: the next won't.
        taken_s = min(job.reading_s(), ready_s)
        with self._lock:
            recent = self._recent.setdefault(job.backend, RecentAnswers())
        recent.learn(taken_s, answer.ttft_s, answer.tokens_per_s)

    def _ensure_keeper(self) -> None:
        if self._keeper is None:
            keeper = threading.Thread(target=self._keep, name="job-keeper", daemon=True)
            keeper.start()
            self._keeper = keeper

    def _keep(self) -> None:
        while not self._closed.wait(KEEPER_INTERVAL_S):
            self._look_after_all()

    def _look_after_all(self) -> None:
        with self._lock:
            jobs = list(self._jobs.values())
            backends = [line.backend for line in self._lines.values()]
        for backend in backends:
            try:
                self._start_next(backend)  # it may have come to have more slots
            except Exception as error:  # noqa: BLE001 - the keeper must go on
                log_fault(logger, "Starting the next answer failed", error)
        for job in jobs:
            try:
                job.check_stuck()
                job.save_partial()
            except Exception as error:  # noqa: BLE001 - the keeper must go on
                log_fault(logger, "Looking after an answer failed", error)


def _asked(job: GenerationJob, running_s: float = 0.0) -> Asked:
    return Asked(job.request.params.max_tokens, running_s)


def _key(backend: Backend) -> int:
    """Whose line it is: what goes through the cache stands in its backend's."""
    return id(backend.inner if isinstance(backend, CachedBackend) else backend)


def _slots(backend: Backend) -> int:
    """How many may run at once, now; 1 where the backend can't say, so that the line moves."""
    try:
        return max(1, backend.slots)
    except Exception as error:  # noqa: BLE001 - told by type and place
        log_fault(logger, "A backend couldn't say its slots", error)
        return 1


def _ready_s(backend: Backend) -> float | None:
    """How long the backend has been ready for; None while it isn't."""
    try:
        status = backend.status()
    except Exception as error:  # noqa: BLE001 - told by type and place
        log_fault(logger, "A backend couldn't say its state", error)
        return None
    return status.elapsed_s if status.ready else None
