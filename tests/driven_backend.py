"""Backends and a clock that do nothing by themselves: the test says what happens, and when.

`DrivenStream.say` returns only when the job has taken the piece in and asked for the next, so a
test never has to guess how far the job has come.
"""

from __future__ import annotations

import math
import queue
import threading
from collections.abc import Generator
from contextlib import suppress

from llm.job import GenerationJob, Snapshot
from llm.types import (
    BackendPhase,
    BackendStatus,
    CancelToken,
    Delta,
    DeltaKind,
    Fingerprint,
    Finish,
    FinishReason,
    GenerationRequest,
    Usage,
)

PATIENCE_S = 60.0
"""Nothing here takes long; whoever waits this long has found a bug."""
NEVER = 2**62
"""A version no answer reaches: waiting for it is waiting for the end."""


class ManualClock:
    """Time passes only when the test says so."""

    def __init__(self, now_s: float = 1000.0) -> None:
        self._now_s = now_s

    def __call__(self) -> float:
        return self._now_s

    def advance(self, seconds: float) -> None:
        self._now_s += seconds


class _Step:
    """Something the stream shall do, and whether the job has taken it in."""

    def __init__(self, action: Delta | Finish | BaseException | object | None) -> None:
        self.action = action
        self.taken = threading.Event()


_ABORT = object()
_END = object()


class DrivenStream:
    """One running `stream()` call, in the hands of the test."""

    def __init__(self, request: GenerationRequest, cancel: CancelToken) -> None:
        self.request = request
        self.cancel = cancel
        self.closed = threading.Event()
        self._steps: queue.Queue[_Step] = queue.Queue()

    @property
    def question(self) -> str:
        return self.request.messages[-1].content

    def say(self, text: str, kind: DeltaKind = "text") -> None:
        """Yield a piece; returns when the job has taken it in."""
        self._do(Delta(text, kind))

    def finish(
        self,
        reason: FinishReason = "stop",
        completion_tokens: int | None = None,
        fingerprint: Fingerprint | None = None,
    ) -> None:
        """Yield the Finish; returns when the job has let go of the stream."""
        self._do(Finish(reason, Usage(completion_tokens=completion_tokens), fingerprint))

    def raise_(self, error: BaseException) -> None:
        self._do(error)

    def end_without_finish(self) -> None:
        self._do(_END)

    def yield_raw(self, item: object) -> None:
        """Break the contract: yield something that is neither Delta nor Finish."""
        self._do(item)

    def answer(self, text: str) -> None:
        """A whole answer, in one piece."""
        self.say(text)
        self.finish()

    def _do(self, action: Delta | Finish | BaseException | object) -> None:
        step = _Step(action)
        self._steps.put(step)
        assert step.taken.wait(PATIENCE_S), f"the job never took {action!r}"

    def abort_soon(self) -> None:
        self._steps.put(_Step(_ABORT))

    def play(self) -> Generator[Delta | Finish]:
        step = _Step(None)
        try:
            while True:
                step = self._steps.get()
                action = step.action
                if action is _END:
                    return
                if action is _ABORT:
                    yield Finish("abort")
                    return
                if isinstance(action, BaseException):
                    raise action
                yield action  # type: ignore[misc]
                step.taken.set()
        finally:
            self.closed.set()
            step.taken.set()


class DrivenBackend:
    """A backend whose streams the test feeds by hand.

    Args:
        slots: how many requests may run at once.
        ignores_cancel: keeps streaming after cancel, against its contract.
    """

    name = "driven"

    def __init__(
        self, slots: int = 1, *, ignores_cancel: bool = False, model: str = "hand-driven"
    ) -> None:
        self.slots = slots
        self.model = model
        self.phase: BackendPhase = "ready"
        self.told_fingerprint: Fingerprint | None = None
        self._ignores_cancel = ignores_cancel
        self._new: queue.Queue[DrivenStream] = queue.Queue()
        self.streams: list[DrivenStream] = []

    def status(self) -> BackendStatus:
        return BackendStatus(self.phase, self.model, elapsed_s=math.inf)

    def prepare(self) -> None:
        pass

    def window_tokens(self, request: GenerationRequest) -> int | None:
        return None

    def count_tokens(self, request: GenerationRequest, cancel: CancelToken) -> int | None:
        return None

    def fingerprint(self, request: GenerationRequest) -> Fingerprint | None:
        """What the test wants it to be; `DrivenStream.finish` is told what answered."""
        return self.told_fingerprint

    def stream(self, request: GenerationRequest, cancel: CancelToken) -> Generator[Delta | Finish]:
        stream = DrivenStream(request, cancel)
        self.streams.append(stream)
        if not self._ignores_cancel:
            cancel.on_cancel(stream.abort_soon)
        self._new.put(stream)
        return stream.play()

    def next_stream(self) -> DrivenStream:
        """The next stream the engine opens, in the order they were opened."""
        return self._new.get(timeout=PATIENCE_S)

    def close(self) -> None:
        """Let go of every stream, whatever state it is in."""
        for stream in self.streams:
            stream.abort_soon()

    def __enter__(self) -> DrivenBackend:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()


class EchoBackend:
    """Answers by itself, at once: the question, a letter at a time. Counts what runs at once."""

    name = "echo"

    def __init__(self, slots: int) -> None:
        self.slots = slots
        self.most_at_once = 0
        self._running = 0
        self._lock = threading.Lock()

    def status(self) -> BackendStatus:
        return BackendStatus("ready", "echo", elapsed_s=math.inf)

    def prepare(self) -> None:
        pass

    def window_tokens(self, request: GenerationRequest) -> int | None:
        return None

    def count_tokens(self, request: GenerationRequest, cancel: CancelToken) -> int | None:
        return None

    def fingerprint(self, request: GenerationRequest) -> Fingerprint | None:
        return None

    def stream(self, request: GenerationRequest, cancel: CancelToken) -> Generator[Delta | Finish]:
        with self._lock:
            self._running += 1
            self.most_at_once = max(self.most_at_once, self._running)
        try:
            for letter in request.messages[-1].content:
                yield Delta(letter)
            yield Finish("stop")
        finally:
            with self._lock:
                self._running -= 1

    def close(self) -> None:
        pass


class Saves:
    """A sink that remembers all it was given, in the order in which the writes were over."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self.snapshots: list[Snapshot] = []

    def __call__(self, snapshot: Snapshot) -> None:
        with self._changed:
            self.snapshots.append(snapshot)
            self._changed.notify_all()

    @property
    def texts(self) -> list[str]:
        return [snapshot.text for snapshot in self.snapshots]

    @property
    def finals(self) -> list[Snapshot]:
        return [snapshot for snapshot in self.snapshots if snapshot.done]

    def wait_for_text(self, text: str) -> None:
        with self._changed:
            assert self._changed.wait_for(lambda: text in self.texts, PATIENCE_S), self.texts


def end_of(job: GenerationJob) -> Snapshot:
    """The answer when it is over."""
    snapshot = job.wait(NEVER, PATIENCE_S)
    assert snapshot.done, f"still {snapshot.phase} after {PATIENCE_S} s"
    return snapshot


def let_go(job: GenerationJob) -> Snapshot:
    """The answer when it is over and all that follows from its end has been done."""
    snapshot = end_of(job)
    for thread in answer_threads(job):
        join(thread)
    return snapshot


def answer_threads(job: GenerationJob | None = None) -> list[threading.Thread]:
    """The threads that answer, or that answer this job."""
    prefix = "answer-" + (job.request.request_id[:8] if job else "")
    return [thread for thread in threading.enumerate() if thread.name.startswith(prefix)]


def join(thread: threading.Thread) -> None:
    with suppress(RuntimeError):  # it is this very thread
        thread.join(PATIENCE_S)
    assert thread is threading.current_thread() or not thread.is_alive(), thread.name


def at_once(*actions: object) -> None:
    """Run all of these on threads that begin together; raises what the first of them raised."""
    barrier = threading.Barrier(len(actions))
    errors: list[BaseException] = []

    def run(action: object) -> None:
        try:
            barrier.wait(PATIENCE_S)
            action()  # type: ignore[operator]
        except BaseException as error:  # noqa: BLE001
            errors.append(error)

    threads = [threading.Thread(target=run, args=(action,)) for action in actions]
    for thread in threads:
        thread.start()
    for thread in threads:
        join(thread)
    if errors:
        raise errors[0]
