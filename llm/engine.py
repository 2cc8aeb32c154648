"""A request's way to its answer: through the cache, into its backend's line; and what it took.

Who asks keeps the text, or doesn't: the chat has a conversation for it, the API none.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Hashable, Mapping
from typing import TYPE_CHECKING

from llm.answer_cache import AnswerCache
from llm.answer_figures import AnswerFigures, error_kind, figures_of
from llm.errors import LLMError
from llm.fault_log import log_fault
from llm.job import AnswerSink, GenerationJob
from llm.registry import JobRegistry
from llm.types import Backend, GenerationRequest

if TYPE_CHECKING:
    from llm.metrics_log import MetricsLog

logger = logging.getLogger(__name__)


class Engine:
    """Has requests answered.

    Args:
        backends: name to a function that gives the backend, made on first use.
        cache: gives answers again; None asks the backends alone.
        metrics: keeps the figures of every answer.
        clock: seconds since 1970.

    Thread-safety: every method may be called from any thread.
    """

    def __init__(
        self,
        registry: JobRegistry,
        backends: Mapping[str, Callable[[], Backend]],
        *,
        cache: AnswerCache | None = None,
        metrics: MetricsLog | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._registry = registry
        self._backends = backends
        self._cache = cache
        self._metrics = metrics
        self._clock = clock

    def ask(
        self,
        conversation_id: Hashable,
        person: str,
        backend: str,
        request: GenerationRequest,
        *,
        save: AnswerSink,
        on_end: Callable[[GenerationJob], None] = lambda job: None,
        start_text: str = "",
        admitted: bool = False,
    ) -> GenerationJob:
        """Ask the backend of that name, or the cache; the rest as in `JobRegistry.submit`.

        May wait for the cache's store for a moment (`LIMIT_S`).

        Raises:
            LLMError: it was refused; `refused` keeps that for the figures.
        """
        answers = self._backends[backend]()

        def ended(job: GenerationJob) -> None:
            self.measure(
                lambda metrics: metrics.answered(
                    figures_of(
                        request.request_id, backend, job.snapshot(), job.arrivals(), self._clock()
                    )
                )
            )
            if self._cache is not None:
                self._cache.ended(request)
            on_end(job)

        job = None
        try:
            job = self._registry.submit(
                conversation_id,
                person,
                self._routed(person, answers, request),
                request,
                start_text=start_text,
                save=save,
                on_end=ended,
                admitted=admitted,
            )
        finally:
            if self._cache is not None:
                self._cache.submitted(request, job, self._registry.answer_instead)
        return job

    def refused(self, backend: str, model: str, request_id: str, error: LLMError) -> None:
        """Count a request that came to no answer."""
        kind, told = backend.partition("/")[0], error_kind(error)
        self.measure(
            lambda metrics: metrics.answered(
                AnswerFigures(request_id, self._clock(), kind, model, finish="error", error=told)
            )
        )

    def measure(self, note: Callable[[MetricsLog], None]) -> None:
        """Keep an answer's figures; whatever goes wrong with them, the answer is as it is."""
        if self._metrics is None:
            return
        try:
            note(self._metrics)
        except Exception as error:  # noqa: BLE001 - told by type and place
            log_fault(logger, "The figures of an answer couldn't be kept", error)

    def _routed(self, person: str, backend: Backend, request: GenerationRequest) -> Backend:
        """Whom to ask, where the cache has a say."""
        if self._cache is None:
            return backend
        cache = self._cache

        def ask_alone(rest: GenerationRequest, start_text: str) -> GenerationJob:
            # In line like any other question, and nobody's conversation: its follower has one.
            return self._registry.submit(
                ("joined", request.request_id),
                person,
                cache.through(backend),
                rest,
                start_text=start_text,
                save=lambda snapshot: None,
                admitted=True,
            )

        return cache.route(backend, request, ask_alone)
