"""How full a model's window is before the next question."""

from __future__ import annotations

import hashlib
import logging
import threading
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from weakref import WeakKeyDictionary

from llm.context_fit import estimate_tokens
from llm.fault_log import log_fault
from llm.types import Backend, CancelToken, GenerationRequest

logger = logging.getLogger(__name__)

KEPT = 100
"""Counts that are remembered for each backend."""


@dataclass(frozen=True, slots=True)
class ContextUse:
    """What a request's messages take of the window.

    Args:
        tokens: of the messages.
        exact: counted by the model's own tokenizer, else an estimate.
        window: tokens that prompt and answer may have together; None while unknown.
    """

    tokens: int
    exact: bool
    window: int | None

    @property
    def share(self) -> float | None:
        """0 to 1 and beyond; None without a window."""
        return None if self.window is None else self.tokens / self.window


class ContextMeter:
    """Counts in the background, so that no page waits for a server's tokenizer.

    Thread-safety: every method may be called from any thread.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._pool = ThreadPoolExecutor(max_workers=2, thread_name_prefix="count-tokens")
        self._closing = CancelToken()
        # Of digests: a conversation that was cleared must not live on here.
        self._counts: WeakKeyDictionary[Backend, OrderedDict[bytes, Future[int | None]]]
        self._counts = WeakKeyDictionary()

    def use(
        self,
        backend: Backend,
        request: GenerationRequest,
        wait: Callable[[Future[int | None]], None],
    ) -> ContextUse:
        """What the messages of `request` take, exactly where that is known when `wait` returns.

        Args:
            wait: given a count under way, waits as long as the caller likes.
        """
        if not request.messages:
            return ContextUse(0, True, backend.window_tokens(request))
        counting = self._counting(backend, request)
        if counting is not None and not counting.done():
            wait(counting)
        tokens = counting.result() if counting is not None and counting.done() else None
        if tokens is None:
            return ContextUse(
                estimate_tokens(request.messages), False, backend.window_tokens(request)
            )
        return ContextUse(tokens, True, backend.window_tokens(request))

    def close(self) -> None:
        """Count no more."""
        with self._lock:
            self._closing.cancel()
            self._pool.shutdown(wait=False, cancel_futures=True)

    def _counting(self, backend: Backend, request: GenerationRequest) -> Future[int | None] | None:
        status = backend.status()
        key = _digest(status.model, request)
        with self._lock:
            known = self._counts.setdefault(backend, OrderedDict())
            counting = known.get(key)
            if counting is not None and not (counting.done() and counting.result() is None):
                known.move_to_end(key)
                return counting
            if self._closing.cancelled or not status.ready:
                return None
            counting = known[key] = self._pool.submit(self._count, backend, request)
            if len(known) > KEPT:
                known.popitem(last=False)
        return counting

    def _count(self, backend: Backend, request: GenerationRequest) -> int | None:
        try:
            return backend.count_tokens(request, self._closing)
        except Exception as error:  # noqa: BLE001 - told by type and place
            log_fault(logger, "Counting tokens failed", error)
            return None


def _digest(model: str, request: GenerationRequest) -> bytes:
    """What a count depends on, model and messages, without keeping a word of it."""
    told = hashlib.sha256()
    for text in (model, request.model, *(t for m in request.messages for t in (m.role, m.content))):
        told.update(text.encode("utf-8", "surrogatepass") + b"\0")
    return told.digest()
