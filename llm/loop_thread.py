"""An event loop on a thread of its own, for what must be cancellable while it waits.

A thread that is blocked in a read can't be woken from outside; a task can. So whatever talks to
a server runs as a task here, and ordinary threads wait for it at a `Handover`.
"""

from __future__ import annotations

import asyncio
import threading
import weakref
from collections import deque
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any, Generic, TypeVar

T = TypeVar("T")
R = TypeVar("R")

Outcome = Callable[[R | None, BaseException | None], None]
"""Told once how an errand ended: its result, or what it raised (CancelledError included)."""


class Errand(Generic[R]):
    """One coroutine under way on a `LoopThread`.

    Thread-safety: `cancel` may be called from any thread, and never waits.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, outcome: Outcome[R]) -> None:
        self._loop = loop
        self._outcome = outcome
        self._task: asyncio.Task[R] | None = None
        self._over = False

    def cancel(self) -> None:
        """Throw CancelledError into it, wherever it waits; nothing where it is over."""
        with suppress(RuntimeError):  # the loop is closed, so it is over
            self._loop.call_soon_threadsafe(self._cancel)

    def _start(self, coroutine: Coroutine[Any, Any, R]) -> None:
        self._task = self._loop.create_task(coroutine)
        self._task.add_done_callback(self._done)

    def _cancel(self) -> None:
        if self._task is not None:
            self._task.cancel()

    def _done(self, task: asyncio.Task[R]) -> None:
        if task.cancelled():
            self._give_up()
        elif (error := task.exception()) is not None:
            self._tell(None, error)
        else:
            self._tell(task.result(), None)

    def _give_up(self) -> None:
        self._tell(None, asyncio.CancelledError())

    def _tell(self, result: R | None, error: BaseException | None) -> None:
        if not self._over:
            self._over = True
            self._outcome(result, error)


class LoopThread:
    """The loop and its thread; started by the first errand, stopped by `close`.

    Thread-safety: every method may be called from any thread, `close` not from the loop's own.

    Args:
        name: the thread's.
        farewell: run at the end, after the last errand, to close what they shared.
    """

    def __init__(self, name: str, farewell: Callable[[], Coroutine[Any, Any, None]]) -> None:
        self._name = name
        self._farewell = farewell
        # Reentrant: a forgotten iterator may be collected, and tidied up, anywhere.
        self._lock = threading.RLock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._closed = False
        self._under_way: weakref.WeakSet[Errand[Any]] = weakref.WeakSet()

    def submit(self, coroutine: Coroutine[Any, Any, R], outcome: Outcome[R]) -> Errand[R]:
        """Run `coroutine` as a task; `outcome` is told of its end, on the loop's thread.

        Raises:
            RuntimeError: the thread is closed.
        """
        with self._lock:
            if self._closed:
                coroutine.close()
                raise RuntimeError("the loop thread is closed")
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                self._thread = threading.Thread(
                    target=self._run, args=(self._loop,), name=self._name, daemon=True
                )
                self._thread.start()
            errand: Errand[R] = Errand(self._loop, outcome)
            self._under_way.add(errand)
            self._loop.call_soon_threadsafe(errand._start, coroutine)
        return errand

    def close(self, timeout_s: float = 5.0) -> None:
        """Cancel whatever runs and end the thread; a second call does nothing."""
        with self._lock:
            self._closed = True
            loop, thread = self._loop, self._thread
            if loop is not None and not loop.is_closed():
                loop.call_soon_threadsafe(loop.stop)
        if thread is not None and thread is not threading.current_thread():
            thread.join(timeout_s)

    def _run(self, loop: asyncio.AbstractEventLoop) -> None:
        asyncio.set_event_loop(loop)
        loop.run_forever()
        with self._lock:
            under_way = list(self._under_way)
        # Not every task there is: those that an errand began are ended by it, and some libraries
        # (anyio's task groups) can't have theirs cancelled before their first step.
        for errand in under_way:
            errand._cancel()
        if tasks := asyncio.all_tasks(loop):
            loop.run_until_complete(asyncio.wait(tasks, timeout=2))
        with suppress(Exception):
            loop.run_until_complete(asyncio.wait_for(self._farewell(), timeout=2))
        loop.run_until_complete(loop.shutdown_asyncgens())
        loop.close()
        with self._lock:
            left = list(self._under_way)
        for errand in left:
            errand._give_up()  # nobody may wait for what has no loop any more


class Handover(Generic[T, R]):
    """A bounded queue from a loop's task to an ordinary thread, and how the task ended.

    Nothing is dropped: where `limit` items wait, `put` waits too, so the task stops reading its
    socket and the server feels it.

    Thread-safety: `put` is for one task, `get` and `result` for one thread.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._items: deque[T] = deque()
        self._changed = threading.Condition()
        self._room: tuple[asyncio.AbstractEventLoop, asyncio.Event] | None = None
        self._ended = False
        self._result: R | None = None
        self._error: BaseException | None = None

    @property
    def full(self) -> bool:
        return len(self._items) >= self._limit

    async def put(self, item: T) -> None:
        """Hand over `item`; waits, without holding up the loop, while too many lie there."""
        while True:
            with self._changed:
                if not self.full:
                    self._items.append(item)
                    self._changed.notify()
                    return
                room = asyncio.Event()
                self._room = (asyncio.get_running_loop(), room)
            await room.wait()

    def end(self, result: R | None, error: BaseException | None) -> None:
        """The task's outcome; nothing is put after it."""
        with self._changed:
            self._ended, self._result, self._error = True, result, error
            self._changed.notify()

    def get(self) -> T | None:
        """The next item, waiting for it; None once the task has ended and all was taken."""
        with self._changed:
            while not self._items:
                if self._ended:
                    return None
                self._changed.wait()
            item = self._items.popleft()
            if self._room is not None and len(self._items) <= self._limit // 2:
                (loop, room), self._room = self._room, None
                with suppress(RuntimeError):  # the loop is closed: nobody waits
                    loop.call_soon_threadsafe(room.set)
        return item

    def wait_for_end(self, timeout_s: float) -> bool:
        """Wait until the task has ended, whatever still lies here."""
        with self._changed:
            return self._changed.wait_for(lambda: self._ended, timeout_s)

    def result(self) -> R:
        """What the task returned; only after `get` said None.

        Raises:
            BaseException: what the task raised.
        """
        if self._error is not None:
            raise self._error
        assert self._result is not None
        return self._result
