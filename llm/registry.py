"""All running answers of this process: who answers now, who waits, and in which order."""

from __future__ import annotations

import logging
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from llm.errors import QueueFullError, ShuttingDownError
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
    running comes first, then who came first.

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
        self._jobs: dict[str, GenerationJob] = {}
        self._lines: dict[int, _Line] = {}
        self._closed = threading.Event()
        self._keeper: threading.Thread | None = None

    def submit(
        self,
        conversation_id: str,
        person: str,
        backend: Backend,
        request: GenerationRequest,
        *,
        save: AnswerSink,
        on_end: Callable[[GenerationJob], None] = lambda job: None,
    ) -> GenerationJob:
        """Ask; the answer begins as soon as the backend has a slot.

        Where the conversation has a job already, that one wins and is returned.

        Args:
            on_end: called after the job's end was published and its place was given away.

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
            line = self._lines.setdefault(id(backend), _Line())
            if len(line.waiting) >= self._max_waiting:
                raise QueueFullError(limit=self._max_waiting)
            job = GenerationJob(
                conversation_id,
                person,
                backend,
                request,
                save=save,
                idle_limit_s=self._idle_limit_s,
                on_end=ended,
                clock=self._clock,
            )
            self._jobs[conversation_id] = job
            line.waiting.append(job)
            self._ensure_keeper()
        self._start_next(backend)
        return job

    def get(self, conversation_id: str) -> GenerationJob | None:
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
        left, order = list(line.waiting), []
        while left:
            job = min(left, key=lambda candidate: load[candidate.person])
            left.remove(job)
            order.append(job)
            load[job.person] += 1
        return order

    def _start_next(self, backend: Backend) -> None:
        while True:
            with self._lock:
                line = self._lines.get(id(backend))
                if line is None or not line.waiting or len(line.running) >= backend.slots:
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
                for jobs in (line.waiting, line.running):
                    if job in jobs:
                        jobs.remove(job)
                if not line.waiting and not line.running:
                    del self._lines[id(job.backend)]
        self._start_next(job.backend)

    def _ensure_keeper(self) -> None:
        if self._keeper is None:
            self._keeper = threading.Thread(target=self._keep, name="job-keeper", daemon=True)
            self._keeper.start()

    def _keep(self) -> None:
        while not self._closed.wait(KEEPER_INTERVAL_S):
            with self._lock:
                jobs = list(self._jobs.values())
            for job in jobs:
                try:
                    job.check_stuck()
                    job.save_partial()
                except Exception:
                    logger.exception("Looking after an answer failed")
