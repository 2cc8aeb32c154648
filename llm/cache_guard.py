"""Keeps a chat from ever waiting for its cache: what takes long or fails is left for a while."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor, wait
from contextlib import suppress
from typing import TypeVar

from llm.cache_types import AnswerStore, CacheBusyError, CacheStoreError
from llm.fault_log import log_fault

logger = logging.getLogger(__name__)

T = TypeVar("T")

LIMIT_S = 0.05
"""A store that takes longer than this is slower than some models."""
PAUSE_S = 1.0
"""How long a store that failed is left alone."""
SLOW_TIMES = 3
"""So many times in a row too slow counts as a failure. Once may be a busy machine."""
_QUIET_S = 60.0
"""How long nothing must fail until that is said in the log: each question may fail in turn."""
_THREADS = 4


class _TookTooLongError(CacheBusyError):
    """Nothing is known of it yet."""


class _ClosedError(CacheStoreError):
    """This guard is closed, which is no failure of the store's."""


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
        self._warned_s: float | None = None  # the last failure since the log has a warning
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

    def ask(
        self,
        what: Callable[[AnswerStore], T],
        limit_s: float | None = None,
        *,
        insist: bool = False,
    ) -> T:
        """What the store says.

        Args:
            limit_s: a longer limit, for who may wait: a page about the cache, a search, a writer.
                That the store takes longer then, or is busy, says nothing of what answers wait
                for. A failure still does.
            insist: ask also where it was left alone: a person wants it.

        Raises:
            CacheStoreError: it failed, took too long, did so a moment ago, or isn't open yet.
        """
        held_up = limit_s is None
        end_s = time.monotonic() + (self._limit_s if limit_s is None else limit_s)
        with self._lock:
            failed_s = self._failed_s
        if failed_s is not None and self._clock() - failed_s < self._pause_s and not insist:
            raise CacheStoreError("left alone after a failure")
        store = self._opened(end_s - time.monotonic())
        future = self._submit(lambda: what(store))
        try:
            told = self._result(future, end_s - time.monotonic())
        except CacheBusyError:
            future.cancel()
            if held_up:
                self._was_slow()
            raise
        except _ClosedError:
            raise
        except CacheStoreError as error:
            self._failed(str(error))
            raise
        with self._lock:
            self._failed_s = None
            if held_up:
                self._slow = 0
            back = self._warned_s is not None and self._clock() - self._warned_s >= _QUIET_S
            if back:
                self._warned_s = None
        if back:
            logger.info("The answer cache can be used again")
        return told

    def leave_alone(self, why: str) -> None:
        """Have the store left alone for a while, as after a failure."""
        self._failed(why)

    def close(self) -> None:
        """Free the store, also one that is still being opened. Nothing is waited for."""
        self._pool.shutdown(wait=False, cancel_futures=True)
        with self._lock:
            opening = self._opening
        if opening is not None:
            opening.add_done_callback(_free)

    def _opened(self, limit_s: float) -> AnswerStore:
        with self._lock:
            if self._opening is None:
                self._opening = self._submit(self._make_and_use)
            opening = self._opening
        try:
            return self._result(opening, limit_s)
        except (_TookTooLongError, _ClosedError):
            raise  # it may have been opened in this very moment: that is the next one's
        except CacheStoreError:
            with self._lock:
                mine = self._opening is opening
                if mine:  # or another waiter has begun anew already
                    self._opening = None
            if mine:
                self._failed("it can't be opened")
            raise

    def _make_and_use(self) -> AnswerStore:
        store = self._make()
        try:
            store.totals("nobody", 0.0)  # a file is opened by its first use
        except BaseException:
            with suppress(Exception):
                store.close()
            raise
        return store

    def _submit(self, what: Callable[[], T]) -> Future[T]:
        try:
            return self._pool.submit(what)
        except RuntimeError:
            raise _ClosedError("closed") from None

    def _result(self, future: Future[T], limit_s: float) -> T:
        if not wait((future,), max(0.0, limit_s)).done:
            raise _TookTooLongError("it takes too long")
        try:
            return future.result()
        except CancelledError:
            raise _ClosedError("closed") from None
        except CacheStoreError:
            raise
        except Exception as error:
            log_fault(logger, "The answer cache's store has a defect", error)
            raise CacheStoreError(type(error).__name__) from error

    def _was_slow(self) -> None:
        with self._lock:
            self._slow += 1
            too_often = self._slow >= SLOW_TIMES
        if too_often:
            self._failed("it takes too long")

    def _failed(self, why: str) -> None:
        with self._lock:
            first, self._failed_s = self._warned_s is None, self._clock()
            self._warned_s = self._failed_s
        if first:
            logger.warning("The answer cache can't be used, so the model is asked: %s", why)


def _free(opening: Future[AnswerStore]) -> None:
    with suppress(Exception, CancelledError):
        opening.result().close()
