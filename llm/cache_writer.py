"""Writes to the answer cache's store when nobody waits for it."""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, Generic, TypeVar

from llm.cache_guard import CacheGuard
from llm.cache_types import AnswerStore, CacheStoreError
from llm.fault_log import log_fault

logger = logging.getLogger(__name__)

T = TypeVar("T")

WRITE_LIMIT_S = 2.0
"""How long the writer waits for the store; nobody waits for the writer."""
END_LIMIT_S = 2.0
"""How long it waits on for the end of a write that took longer, before the store is left alone."""
MOST_UNWRITTEN = 1000
"""What comes on top is dropped: an answer that isn't kept is only asked for again."""
MOST_TOGETHER = 16
"""So many writes that wait are done at once. Other processes wait meanwhile, a few ms at most."""


class CacheWriter:
    """One thread that writes, in order: nothing is written while an earlier write goes on.

    What waits meanwhile is written together, and fails together. Where one write never ends what comes after it is given up, not written before it.

    Thread-safety: every method may be called from any thread.
    """

    def __init__(self, guard: CacheGuard) -> None:
        self._guard = guard
        self._changed = threading.Condition()  # its lock may be taken again by its holder
        self._writes: deque[_Write[Any]] = deque()
        self._asked = 0
        self._done = 0
        self._dropped = 0  # since it couldn't keep up
        self._closed = False
        self._stuck: _Write[Any] | None = None  # the writer's own
        self._thread = threading.Thread(target=self._run, name="answer-cache-writer", daemon=True)
        self._thread.start()

    def later(self, what: Callable[[AnswerStore], object]) -> None:
        """Have it written; dropped where the store fails, or can't keep up.

        Args:
            what: a write as `AnswerStore.together` takes them.
        """
        with self._changed:
            if self._add(_Write(what, alone=False)) or self._closed:
                return
            self._dropped += 1
            first = self._dropped == 1
        if first:  # not for each: there may be hundreds a second
            logger.warning("The answer cache has too much to write; some of it is dropped")

    def in_order(self, what: Callable[[AnswerStore], T], timeout_s: float) -> T:
        """Have it written after all that was to be written before, and wait for it.

        A person wants it: it is tried also where the store was left alone after a failure.

        Raises:
            CacheStoreError: it couldn't be done, or not in time; then it may still be done later.
        """
        write = _Write(what, limit_s=timeout_s, insist=True)
        if not self._add(write):
            raise CacheStoreError("too much to write")
        try:
            return write.told.result(timeout_s)
        except TimeoutError:
            raise CacheStoreError("it takes too long") from None

    def flush(self, timeout_s: float) -> bool:
        """Wait until what was to be written so far is, or is given up; says whether in time."""
        with self._changed:
            so_far = self._asked
            return self._changed.wait_for(lambda: self._done >= so_far, timeout_s)

    def close(self) -> None:
        """Write what is to be written, for a moment at most."""
        self.flush(WRITE_LIMIT_S)
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def _add(self, write: _Write[Any]) -> bool:
        with self._changed:
            if self._closed or len(self._writes) >= MOST_UNWRITTEN:
                return False
            self._writes.append(write)
            self._asked += 1
            self._changed.notify_all()
            return True

    def _run(self) -> None:
        while (following := self._next()) is not None:
            write, number = following
            self._say_what_was_dropped()
            try:
                write.told.set_result(self._write(write))
            except CacheStoreError as error:
                write.told.set_exception(error)  # the guard has said it
            except Exception as error:  # noqa: BLE001 - the writer must go on
                log_fault(logger, "Writing to the answer cache failed", error)
                write.told.set_exception(CacheStoreError(type(error).__name__))
            with self._changed:
                self._done += number
                self._changed.notify_all()

    def _next(self) -> tuple[_Write[Any], int] | None:
        """What to write now, and how many writes that is; None where nothing ever comes."""
        with self._changed:
            self._changed.wait_for(lambda: self._writes or self._closed)
            if not self._writes:
                return None
            first = self._writes.popleft()
            if first.alone:
                return first, 1
            together = [first.what]
            while self._writes and not self._writes[0].alone and len(together) < MOST_TOGETHER:
                together.append(self._writes.popleft().what)
            return _Write(lambda store: store.together(together)), len(together)

    def _say_what_was_dropped(self) -> None:
        with self._changed:
            if not self._dropped or len(self._writes) > MOST_UNWRITTEN // 2:
                return
            dropped, self._dropped = self._dropped, 0
        logger.warning("The answer cache keeps up again; %d writes were dropped", dropped)

    def _write(self, write: _Write[T]) -> T:
        if self._stuck is not None:
            if not self._stuck.ended(0.0):
                raise CacheStoreError("an earlier write goes on")
            self._stuck = None
        try:
            limit_s = WRITE_LIMIT_S if write.limit_s is None else write.limit_s
            return self._guard.ask(write, limit_s, insist=write.insist)
        except CacheStoreError:
            if not write.ended(END_LIMIT_S):
                self._stuck = write
                self._guard.leave_alone("a write doesn't end")
            raise


class _Write(Generic[T]):
    """One write, which knows when it has really ended: what the guard gave up may go on.

    Args:
        alone: it isn't done together with others: somebody waits for what it says.
        limit_s, insist: of `CacheGuard.ask`; None is the writer's usual limit.

    Thread-safety: every method may be called from any thread.
    """

    def __init__(
        self,
        what: Callable[[AnswerStore], T],
        *,
        alone: bool = True,
        limit_s: float | None = None,
        insist: bool = False,
    ) -> None:
        self.told: Future[T] = Future()
        self.what = what
        self.alone = alone
        self.limit_s = limit_s
        self.insist = insist
        self._lock = threading.Lock()
        self._begun = False
        self._over = threading.Event()

    def __call__(self, store: AnswerStore) -> T:
        with self._lock:
            if self._over.is_set():
                raise CacheStoreError("given up")
            self._begun = True
        try:
            return self.what(store)
        finally:
            self._over.set()

    def ended(self, timeout_s: float) -> bool:
        """Wait for its end; one that hasn't begun never will."""
        with self._lock:
            if not self._begun:
                self._over.set()
        return self._over.wait(timeout_s)
