"""The figures of this process, from its start on, as Prometheus scrapes them.

Names and units follow https://prometheus.io/docs/practices/naming/. What can be a label's value is
bounded: names come from servers and settings, and each value costs Prometheus a time series.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4

from llm.answer_figures import AnswerFigures
from llm.screen_figures import ScreenFigures

CONTENT_TYPE = CONTENT_TYPE_PLAIN_0_0_4
MOST_MODELS = 50
"""Pairs of backend and model; those that come later are told as `other`."""
OTHER = "other"
SEEN_S = 30.0
"""For so long the worst of an answer's tabs is looked for; then it is counted, once."""
MOST_SEEN = 2_000
"""Answers whose tabs are remembered, and whose models are."""

_TTFT_S = (0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60, 120, 300)
_TPOT_S = (0.001, 0.0025, 0.005, 0.01, 0.02, 0.03, 0.05, 0.075, 0.1, 0.2, 0.5, 1)
_ITL_HELP = (
    "An answer's {which} gap between two pieces as they arrived (its {share}); "
    "a server's piece may hold several tokens."
)
_FREEZE_HELP = (
    "Longest stretch in which the page's main thread stood still while an answer streamed, "
    "in the worst of its tabs."
)
_SCREEN_S = (0.016, 0.05, 0.1, 0.2, 0.35, 0.5, 1, 2, 5, 10, 60)


class PrometheusFigures:
    """Counts answers, and times them.

    Args:
        gauges: tells queue depth and memory in bytes, asked at each scrape.
        clock: seconds.

    Thread-safety: every method may be called from any thread.
    """

    def __init__(
        self,
        gauges: Callable[[], tuple[int, int]],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._registry = CollectorRegistry()
        self._clock = clock
        # By the turn's id, oldest first: when it was first seen, and the worst until it is counted.
        self._seen: dict[str, tuple[float, ScreenFigures | None]] = {}
        # Whose answers they were, by the same ids; what is too old is counted under `other`.
        self._named: dict[str, tuple[str, str]] = {}
        self._gauges = gauges
        self._lock = threading.Lock()
        self._models: set[tuple[str, str]] = set()

        def histogram(name: str, what: str, buckets: tuple[float, ...], *labels: str) -> Histogram:
            return Histogram(
                f"steady_chat_{name}", what, labels, registry=self._registry, buckets=buckets
            )

        model = ("backend", "model")
        self._ttft = histogram("ttft_seconds", "Time to first token.", _TTFT_S, *model)
        self._tpot = histogram(
            "tpot_seconds", "Time per output token after the first.", _TPOT_S, *model
        )
        self._itl = {
            share: histogram(
                f"itl_{share}_seconds", _ITL_HELP.format(which=which, share=share), _TPOT_S, *model
            )
            for share, which in (("p50", "usual"), ("p95", "long"))
        }
        self._freeze = histogram("freeze_seconds", _FREEZE_HELP, _SCREEN_S, *model)
        self._inp = histogram(
            "inp_seconds",
            "Slowest interaction to next paint while an answer streamed, in the worst of its tabs.",
            _SCREEN_S,
            *model,
        )

        def counter(name: str, what: str, *labels: str) -> Counter:
            return Counter(f"steady_chat_{name}", what, labels, registry=self._registry)

        self._answers = counter("answers_total", "Answers that ended.", *model, "finish")
        self._errors = counter("errors_total", "Answers that ended with an error.", *model, "kind")
        self._hits = counter("cache_hits_total", "Answers given from the cache.", *model, "kind")
        self._queue = Gauge(
            "steady_chat_queue_depth", "Questions in line.", registry=self._registry
        )
        self._memory = Gauge(
            "steady_chat_memory_bytes", "Resident memory of the process.", registry=self._registry
        )

    def answered(self, figures: AnswerFigures) -> None:
        """An answer is over."""
        model = self._bounded(figures.backend, figures.model)
        with self._lock:
            self._named[figures.turn_id] = model
            if len(self._named) > MOST_SEEN:
                del self._named[next(iter(self._named))]
        self._answers.labels(*model, figures.finish).inc()
        if figures.error:
            self._errors.labels(*model, figures.error).inc()
        if figures.cached:  # its times are the cache's, not the model's
            self._hits.labels(*model, figures.cached).inc()
            return
        if figures.ttft_s is not None:
            self._ttft.labels(*model).observe(figures.ttft_s)
        if figures.tpot_ms is not None:
            self._tpot.labels(*model).observe(figures.tpot_ms / 1000)
        for share, gap_ms in (("p50", figures.itl_p50_ms), ("p95", figures.itl_p95_ms)):
            if gap_ms is not None:
                self._itl[share].labels(*model).observe(gap_ms / 1000)

    def seen(self, turn_id: str, screen: ScreenFigures) -> None:
        """How an answer looked in a tab; told once an answer, `SEEN_S` after the first tab's word."""
        with self._lock:
            self._count_seen()
            since_s, worst = self._seen.setdefault(turn_id, (self._clock(), screen))
            if worst is not None:
                self._seen[turn_id] = since_s, worst.worst(screen)
            if len(self._seen) > MOST_SEEN:
                oldest = next(iter(self._seen))
                self._observe(oldest, self._seen.pop(oldest)[1])

    def _count_seen(self) -> None:
        """Called with the lock held."""
        until_s = self._clock() - SEEN_S
        due = [(each, *told) for each, told in self._seen.items() if told[0] <= until_s]
        for turn_id, since_s, worst in due:
            if worst is not None:
                self._observe(turn_id, worst)
                self._seen[turn_id] = since_s, None

    def _observe(self, turn_id: str, screen: ScreenFigures | None) -> None:
        """Called with the lock held."""
        if screen is None:
            return
        model = self._named.get(turn_id, (OTHER, OTHER))
        if screen.longest_freeze_ms is not None:
            self._freeze.labels(*model).observe(screen.longest_freeze_ms / 1000)
        if screen.inp_ms is not None:
            self._inp.labels(*model).observe(screen.inp_ms / 1000)

    def text(self) -> bytes:
        """All of it in Prometheus' text format, of the content type `CONTENT_TYPE`."""
        queue_depth, memory_bytes = self._gauges()
        with self._lock:
            self._count_seen()
        self._queue.set(queue_depth)
        self._memory.set(memory_bytes)
        return generate_latest(self._registry)

    def _bounded(self, backend: str, model: str) -> tuple[str, str]:
        named = (backend, model)
        with self._lock:
            if named in self._models or len(self._models) < MOST_MODELS:
                self._models.add(named)
                return named
        return backend, OTHER
