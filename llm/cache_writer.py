"""Writes to the answer cache's store when nobody waits for it."""

from __future__ import annotations

import logging
import queue
import threading
from collections.abc import Callable
from contextlib import suppress

from llm.cache_guard import CacheGuard
from llm.cache_types import AnswerStore, CacheStoreError
from llm.fault_log import log_fault

logger = logging.getLogger(__name__)

WRITE_LIMIT_S = 2.0
"""How long the writer waits for the store; nobody waits for the writer."""
MOST_UNWRITTEN = 1000
"""What comes on top is dropped: an answer that isn't kept is only asked for again."""


class CacheWriter:
    """One thread that writes, in order.

    Thread-safety: every method may be called from any thread.
    """

    def __init__(self, guard: CacheGuard) -> None:
        self._guard = guard
        self._writes: queue.Queue[Callable[[AnswerStore], object] | None] = queue.Queue(
            MOST_UNWRITTEN
        )
        self._thread = threading.Thread(target=self._run, name="answer-cache-writer", daemon=True)
        self._thread.start()

    def later(self, write: Callable[[AnswerStore], object]) -> None:
        """Have it written; dropped where the store fails, or can't keep up."""
        try:
            self._writes.put_nowait(write)
        except queue.Full:
            logger.warning("The answer cache has too much to write; some of it is dropped")

    def flush(self, timeout_s: float) -> bool:
        """Wait until what was to be written so far is, or is given up; says whether in time."""
        with self._writes.all_tasks_done:
            return self._writes.all_tasks_done.wait_for(
                lambda: not self._writes.unfinished_tasks, timeout_s
            )

    def close(self) -> None:
        """Write what is to be written, for a moment at most."""
        self.flush(WRITE_LIMIT_S)
        with suppress(queue.Full):
            self._writes.put_nowait(None)

    def _run(self) -> None:
        while True:
            write = self._writes.get()
            try:
                if write is None:
                    return
                self._guard.ask(write, WRITE_LIMIT_S)
            except CacheStoreError:
                pass  # the guard has said it
            except Exception as error:  # noqa: BLE001 - the writer must go on
                log_fault(logger, "Writing to the answer cache failed", error)
            finally:
                self._writes.task_done()
