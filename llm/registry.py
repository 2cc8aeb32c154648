"""All running answers of this process: who answers now, who waits, and in which order."""

from __future__ import annotations

import logging
import threading
import time
from collections import Counter
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field

from llm.errors import QueueFullError, ShuttingDownError
from llm.fault_log import log_fault
from llm.job import AnswerSink, GenerationJob
from llm.types import Backend, GenerationRequest

logger = logging.getLogger(__name__)

KEEPER_INTERVAL_S = 0.5
"""How often partial texts are saved and stuck jobs looked for; well inside the one second that
an answer may lose."""


@dataclass(slots=True)
class _Line:
    """The queue in front of one backend."""

    waiting: list[GenerationJob] = field(default_factory=list)
    running: list[GenerationJob] = field(default_factory=list)


class JobRegistry:
    """Starts, finds, stops and looks after jobs; at most one a conversation.

    A backend's slots are given to waiting jobs fairly by person: who has the fewest answers
    running comes first, then who has stood in line longest since their last answer.

    Args:
        max_waiting: how many questions may wait for one backend.

    Thread-safety: every method may be called from any thread. Jobs' callbacks and backends are
    never called with the lock held.
    """

    def __init__(
        self,
        *,
        max_waiting: int = 100,
        idle_limit_s: float = 60.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._max_waiting = max_waiting
        self._idle_limit_s = idle_limit_s
        self._clock = clock
        self._lock = threading.Lock()
        self._jobs: dict[Hashable, GenerationJob] = {}
        self._lines: dict[int, _Line] = {}
        self._closed = threading.Event()
        self._keeper: threading.Thread | None = None

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
    ) -> GenerationJob:
        """Ask; the answer begins as soon as the backend has a slot.

        Where the conversation has a job already, that one wins and is returned.

        Args:
            on_end: called after the job's end was published and its place was given away.
            start_text: as in `GenerationJob`.

        Raises:
            QueueFullError: too many are waiting.
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
            line = self._lines.get(id(backend)) or _Line()
            if len(line.waiting) >= self._max_waiting:
                raise QueueFullError(limit=self._max_waiting)
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
            self._lines[id(backend)] = line
            line.waiting.append(job)
        self._start_next(backend)
        return job

    def get(self, conversation_id: Hashable) -> GenerationJob | None:
        """The conversation's job, if one is waiting or running."""
        with self._lock:
            return self._jobs.get(conversation_id)

    def ahead_of(self, job: GenerationJob) -> int:
        """How many waiting questions will be taken before this one; 0 when it isn't waiting."""
        with self._lock:
            line = self._lines.get(id(job.backend))
            if line is None or job not in line.waiting:
                return 0
            return self._order(line).index(job)

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

    def _start_next(self, backend: Backend) -> None:
        slots = backend.slots
        while not self._closed.is_set():
            with self._lock:
                line = self._lines.get(id(backend))
                if line is None or not line.waiting or len(line.running) >= slots:
                    return
                job = self._order(line)[0]
                line.waiting.remove(job)
                line.running.append(job)
            job.start()

    def _forget(self, job: GenerationJob) -> None:
        with self._lock:
            if self._jobs.get(job.conversation_id) is job:
                del self._jobs[job.conversation_id]
            line = self._lines.get(id(job.backend))
            if line is not None:
                if job in line.waiting:
                    line.waiting.remove(job)
                elif job in line.running:
                    line.running.remove(job)
                    # Who had an answer goes to the back of the line; the sort is stable.
                    line.waiting.sort(key=lambda other: other.person == job.person)
                if not line.waiting and not line.running:
                    del self._lines[id(job.backend)]
        self._start_next(job.backend)

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
        for job in jobs:
            try:
                job.check_stuck()
                job.save_partial()
            except Exception as error:  # noqa: BLE001 - the keeper must go on
                log_fault(logger, "Looking after an answer failed", error)
