"""Keeps a chat from ever waiting for its cache: what takes long or fails is left for a while."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as TookTooLong
from contextlib import suppress
from typing import TypeVar

from llm.cache_types import AnswerStore, CacheStoreError
from llm.fault_log import log_fault

logger = logging.getLogger(__name__)

T = TypeVar("T")

LIMIT_S = 0.05
"""A store that takes longer than this is slower than some models."""
PAUSE_S = 1.0
"""How long a store that failed is left alone."""
SLOW_TIMES = 3
"""So many times in a row too slow counts as a failure. Once may be a busy machine."""
_THREADS = 4


class CacheGuard:
    """Asks a store within a time limit, and leaves it alone after a failure.

    Args:
        make: makes the store at the first call, on a thread of this guard's.

    Thread-safety: every method may be called from any thread.
    """

    def __init__(
        self,
        make: Callable[[], AnswerStore],
        *,
        limit_s: float = LIMIT_S,
        pause_s: float = PAUSE_S,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._make = make
        self._limit_s = limit_s
        self._pause_s = pause_s
        self._clock = clock
        self._lock = threading.Lock()
        self._opening: Future[AnswerStore] | None = None
        self._failed_s: float | None = None
        self._slow = 0
        self._pool = ThreadPoolExecutor(_THREADS, thread_name_prefix="answer-cache")

    @property
    def in_trouble(self) -> bool:
        """Whether the last thing that was asked of the store failed."""
        with self._lock:
            return self._failed_s is not None

    def open(self) -> None:
        """Have the store opened in the background."""
        with suppress(CacheStoreError):
            self._opened(0)

    def ask(self, what: Callable[[AnswerStore], T], limit_s: float | None = None) -> T:
        """What the store says.

        Args:
            limit_s: a longer limit, for who may wait: a page about the cache, a writer.

        Raises:
            CacheStoreError: it failed, took too long, did so a moment ago, or isn't open yet.
        """
        end_s = time.monotonic() + (self._limit_s if limit_s is None else limit_s)
        with self._lock:
            failed_s = self._failed_s
        if failed_s is not None and self._clock() - failed_s < self._pause_s:
            raise CacheStoreError("left alone after a failure")
        store = self._opened(end_s - time.monotonic())
        told = self._result(self._submit(lambda: what(store)), end_s - time.monotonic())
        with self._lock:
            back, self._failed_s, self._slow = self._failed_s is not None, None, 0
        if back:
            logger.info("The answer cache can be used again")
        return told

    def close(self) -> None:
        """Free the store. What is under way is not waited for."""
        self._pool.shutdown(wait=False, cancel_futures=True)
        with self._lock:
            opening = self._opening
        if opening is not None and opening.done() and not opening.cancelled():
            with suppress(Exception):
                opening.result().close()

    def _opened(self, limit_s: float) -> AnswerStore:
        with self._lock:
            if self._opening is None:
                self._opening = self._submit(self._make_and_use)
            opening = self._opening
        try:
            return self._result(opening, limit_s, counts=False)
        except CacheStoreError:
            if opening.done():
                with self._lock:
                    self._opening = None
                self._failed("it can't be opened")
            raise

    def _make_and_use(self) -> AnswerStore:
        store = self._make()
        store.totals("nobody", 0.0)  # a file is opened by its first use
        return store

    def _submit(self, what: Callable[[], T]) -> Future[T]:
        try:
            return self._pool.submit(what)
        except RuntimeError:
            raise CacheStoreError("closed") from None

    def _result(self, future: Future[T], limit_s: float, *, counts: bool = True) -> T:
        try:
            return future.result(max(0.0, limit_s))
        except TookTooLong:
            if counts:
                future.cancel()
                with self._lock:
                    self._slow += 1
                    counts = self._slow >= SLOW_TIMES
            why = "it takes too long"
        except CacheStoreError as error:
            why = str(error)
        except CancelledError:
            raise CacheStoreError("closed") from None
        except Exception as error:  # noqa: BLE001 - a store's defect is no answer's
            log_fault(logger, "The answer cache's store has a defect", error)
            why = type(error).__name__
        if counts:
            self._failed(why)
        raise CacheStoreError(why)

    def _failed(self, why: str) -> None:
        with self._lock:
            first, self._failed_s = self._failed_s is None, self._clock()
        if first:
            logger.warning("The answer cache can't be used, so the model is asked: %s", why)
