"""One answer being generated, on a thread of its own, whoever is looking.

A job belongs to a conversation, not to a script run: reruns, refreshes and closed tabs don't
reach it. Readers take snapshots and wait for newer ones; what they miss is merged, never queued,
so a slow reader costs nothing and loses nothing.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Hashable
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Literal, Protocol, cast

from llm.arrivals import Arrivals, nearest_rank
from llm.context_fit import fit, shorten
from llm.errors import ContextOverflowError, InternalError, LLMError, Reason, StalledError
from llm.fault_log import log_fault
from llm.served_values import whole_text
from llm.types import (
    NOT_BEGUN,
    Backend,
    CancelToken,
    Delta,
    Finish,
    FromCache,
    GenerationRequest,
    Notice,
)

logger = logging.getLogger(__name__)

JobPhase = Literal["waiting", "reading", "answering", "done"]

CANCEL_GRACE_S = 5.0
"""A backend that hasn't let go this long after Stop is left behind."""

MEASURABLE_S = 0.1
"""An answer that came quicker than this came in one burst: its speed is the network's."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """An answer as it stands.

    Args:
        version: grows with every change; what `wait` compares.
        phase: waiting for a slot, reading the prompt (prefill), answering (decode), or done.
        text: all of the answer so far, with what stood before it was gone on with.
        reasoning: all of the thinking so far.
        finish: why it ended; only when done.
        error: what went wrong; only when done with reason `error`.
        ttft_s: seconds from the slot, or from when the model was there if that was later, to the
            first new text or reasoning; None before.
        thinking: whether reasoning is what comes now; no more once the answer has begun.
        reasoning_s: seconds from the first reasoning to the answer's first text, or as far as it
            has come; None without reasoning.
        decode_s: seconds from the first to the latest piece.
        waited_s: seconds spent in line, and with a slot until the model was there.
        model: the model's name, as soon as it is known.
        server: who is asked, where the backend has several.
        notice: what goes on before the first text, where it is out of the ordinary.
        left_out: how many of the oldest questions didn't fit the model's window any more and were
            left out, with their answers.
        cached: the answer is one that was given before; None where the model gives it.
        itl_ms: p50 and p95 of the gaps between its pieces (ITL, where a piece is a token); only
            when done, and None where there are no gaps.
        recast: what was text at first turned out to be reasoning, and is there now.
    """

    version: int = 0
    phase: JobPhase = "waiting"
    text: str = ""
    reasoning: str = ""
    finish: Finish | None = None
    error: LLMError | None = None
    ttft_s: float | None = None
    thinking: bool = False
    reasoning_s: float | None = None
    decode_s: float = 0.0
    waited_s: float = 0.0
    model: str = ""
    server: str = ""
    notice: Reason | None = None
    left_out: int = 0
    cached: FromCache | None = None
    itl_ms: tuple[float, float] | None = None
    recast: bool = False

    @property
    def done(self) -> bool:
        return self.phase == "done"

    @property
    def tokens_per_s(self) -> float | None:
        """Decode speed (1 / TPOT): tokens after the first over the time they took."""
        tokens = self.finish.usage.completion_tokens if self.finish else None
        if tokens is None or tokens < 2 or self.decode_s < MEASURABLE_S:
            return None
        return (tokens - 1) / self.decode_s


class AnswerSink(Protocol):
    """Where a job keeps its answer. Called from the job's own or the registry's thread."""

    def __call__(self, snapshot: Snapshot) -> None: ...


class GenerationJob:
    """Generates one answer and publishes it.

    Args:
        conversation_id: whose answer this is.
        person: who asked, for the fairness of the queue.
        backend: who answers.
        request: what is asked.
        save: keeps the answer; gets the partial text at least every second (`save_partial`), and
            the end before anybody is shown it. Its failures are logged and change nothing.
        idle_limit_s: without new text for this long, after the first, the answer is ended.
        on_end: called once, after done was published.
        start_text: the answer's text so far, where `request` asks to go on with it. Every
            snapshot's text begins with it; the times are those of what is new.

    Thread-safety: every public method may be called from any thread.
    """

    def __init__(
        self,
        conversation_id: Hashable,
        person: str,
        backend: Backend,
        request: GenerationRequest,
        *,
        save: AnswerSink,
        idle_limit_s: float = 60.0,
        on_end: Callable[[GenerationJob], None] = lambda job: None,
        start_text: str = "",
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.conversation_id = conversation_id
        self.person = person
        self.backend = backend
        self.request = request
        self._save = save
        self._idle_limit_s = idle_limit_s
        self._on_end = on_end
        self._clock = clock
        self._cancel = CancelToken()
        self._changed = threading.Condition()
        self._saving = threading.Lock()  # one save after the other; taken before _changed
        self._state = Snapshot(text=start_text)
        self._version = 0  # ahead of the state's where pieces came since
        self._start_text = start_text
        self._text, self._reasoning = _Growing(start_text), _Growing()
        self._arrivals = Arrivals()
        self._half_pair = ""
        self._ending = False
        self._created_s = clock()
        self._started_s: float | None = None
        self._begun_s: float | None = None  # when the model was there, too
        self._first_s: float | None = None
        self._thinking_from_s: float | None = None
        self._thought_at_s: float | None = None
        self._latest_s = self._created_s
        self._alive_s = self._created_s
        self._noticed_s = self._created_s
        self._cancelled_s: float | None = None
        self._saved_version = 0

    @property
    def cancelled(self) -> bool:
        return self._cancel.cancelled

    def start(self) -> None:
        """Begin to answer. Called once, by the registry, when there is a slot."""
        with self._changed:
            if self._ending or self._cancelled_s is not None or self._started_s is not None:
                return
            self._started_s = self._begun_s = self._clock()
            self._publish(phase="reading", waited_s=self._started_s - self._created_s)
        name = f"answer-{self.request.request_id[:8]}"
        try:
            threading.Thread(target=self._run, name=name, daemon=True).start()
        except Exception as error:  # noqa: BLE001 - told by type and place
            log_fault(logger, "The system gives no thread for an answer", error)
            self._end(Finish("error"), InternalError(kind=type(error).__name__))

    def cancel(self) -> None:
        """Stop. What has been said stays; a second call, or one after the end, does nothing."""
        with self._changed:
            if self._cancelled_s is None:
                self._cancelled_s = self._clock()
            started = self._started_s is not None
        self._cancel.cancel()
        if not started:
            self._end(Finish("abort", why=NOT_BEGUN), None)

    def snapshot(self) -> Snapshot:
        """The answer as it stands now."""
        with self._changed:
            return self._merged()

    def arrivals(self) -> Arrivals:
        """When each piece so far came, and how long it was: a copy."""
        with self._changed:
            return self._arrivals.copy()

    def reading_s(self) -> float:
        """Seconds since the slot was given and the model there: how long the prompt is read for."""
        with self._changed:
            return 0.0 if self._begun_s is None else self._clock() - self._begun_s

    def notice_s(self) -> float:
        """Seconds since the present notice was given."""
        with self._changed:
            return self._clock() - self._noticed_s

    def thinking_s(self) -> float:
        """Seconds since the first reasoning, until the answer began; 0 before."""
        with self._changed:
            return self._reasoning_s(self._clock()) or 0.0

    def wait(self, version: int, timeout_s: float) -> Snapshot:
        """The answer once it is newer than `version` or done, or as it stands after the timeout."""
        with self._changed:
            self._changed.wait_for(lambda: self._version > version or self._state.done, timeout_s)
            return self._merged()

    def save_partial(self) -> None:
        """Keep what has been said so far. Called about once a second by the registry."""
        with self._saving:
            with self._changed:
                if self._ending or self._version == self._saved_version:
                    return
                snapshot = self._merged()
                self._saved_version = snapshot.version
            self._keep(snapshot)

    def check_stuck(self) -> None:
        """End the job if its backend has fallen silent or doesn't let go after Stop."""
        now = self._clock()
        with self._changed:
            phase, alive_s, cancelled_s = self._merged().phase, self._alive_s, self._cancelled_s
        if phase == "done":
            return
        if cancelled_s is not None:
            if now - cancelled_s > CANCEL_GRACE_S:
                self._end(Finish("abort"), None)
        elif phase == "answering" and now - alive_s > self._idle_limit_s:
            self._end(Finish("error"), StalledError(seconds=round(self._idle_limit_s)))
            self._cancel.cancel()

    def fail(self, error: LLMError) -> None:
        """End the job with an error from outside, for instance a shutdown."""
        self._end(Finish("error"), error)
        self._cancel.cancel()

    def _run(self) -> None:
        # Ended outside any handler: what an exception holds is free when the next answer begins.
        self._end(*self._outcome())

    def _outcome(self) -> tuple[Finish, LLMError | None]:
        try:
            return self._consume(), None
        except LLMError as error:
            if isinstance(error, InternalError):
                log_fault(logger, "An answer ended with a defect", error)
            # It is kept as long as its turn; the frames that raised it may hold a model's memory.
            error.__traceback__ = error.__cause__ = error.__context__ = None
            return Finish("error"), error
        except BaseException as error:  # noqa: BLE001 - told by type and place
            # Whatever it is, nobody may be left waiting; the class name is all a person needs.
            log_fault(logger, "An answer ended with an unforeseen error", error)
            return Finish("error"), InternalError(kind=type(error).__name__)

    def _consume(self) -> Finish:
        fitted = fit(self.backend, self.request, self._cancel)
        while True:
            if fitted.left_out:
                with self._changed:
                    if not self._ending:
                        self._publish(left_out=fitted.left_out)
            try:
                return self._read(fitted.request)
            except ContextOverflowError as error:
                shorter = shorten(fitted, error)
                if shorter is None or self._first_s is not None or self._cancel.cancelled:
                    raise
                fitted = shorter

    def _read(self, request: GenerationRequest) -> Finish:
        with closing(self.backend.stream(request, self._cancel)) as stream:
            for item in stream:
                if isinstance(item, Finish):
                    return item
                if isinstance(item, Notice):
                    self._notice(item)
                else:
                    self._append(item)
        raise InternalError(kind="NoFinish")

    def _notice(self, notice: Notice) -> None:
        with self._changed:
            self._alive_s = self._clock()
            if self._ending or self._first_s is not None:
                return
            if notice.reason != self._state.notice:
                self._noticed_s = self._clock()
            changes: dict[str, object] = {}
            if notice.begins:
                self._begun_s = self._clock()
                changes["waited_s"] = self._begun_s - self._created_s
            self._publish(
                notice=notice.reason,
                server=notice.server,
                model=notice.model,
                cached=notice.cached,
                **changes,
            )

    def _append(self, delta: Delta) -> None:
        # Hundreds of times a second, so it only notes what came; who looks builds the snapshot.
        now = self._clock()
        with self._changed:
            if self._ending:
                return
            if delta.kind == "recast":
                self._recast(now)
                return
            text = self._whole_characters(delta.text)
            if not text:
                return
            self._latest_s = self._alive_s = now
            if self._first_s is None:
                self._first_s = now
            self._arrivals.note(now - cast(float, self._begun_s), len(text))
            (self._text if delta.kind == "text" else self._reasoning).append(text)
            if self._thought_at_s is None:
                if delta.kind == "reasoning":
                    self._thinking_from_s = self._thinking_from_s or now
                elif not text.isspace():
                    self._thought_at_s = now
            self._version += 1
            self._changed.notify_all()

    def _recast(self, now: float) -> None:
        """All new text so far turned out to be reasoning. Called with the lock held."""
        if self._first_s is None:
            return
        self._reasoning.append(self._text.whole().removeprefix(self._start_text))
        self._text = _Growing(self._start_text)
        self._state = replace(self._state, recast=True)
        self._thinking_from_s, self._thought_at_s = self._first_s, now
        self._version += 1
        self._changed.notify_all()

    def _reasoning_s(self, now: float) -> float | None:
        """How long it has thought, by now. Called with the lock held."""
        if self._thinking_from_s is None:
            return None
        return (now if self._thought_at_s is None else self._thought_at_s) - self._thinking_from_s

    def _whole_characters(self, text: str) -> str:
        """Join surrogate pairs that a server split over two pieces; drop what can't be text."""
        if not self._half_pair and text.isascii() and "\0" not in text:
            return text
        text = (self._half_pair + text).replace("\0", "")
        self._half_pair = ""
        if text and "\ud800" <= text[-1] <= "\udbff":
            self._half_pair, text = text[-1], text[:-1]
        return whole_text(text)

    def _end(self, finish: Finish, error: LLMError | None) -> None:
        # Of several servers, the backend's own status is that of the first.
        unknown = self._state.server or finish.why == NOT_BEGUN
        model = self._state.model or ("" if unknown else self._model())
        with self._changed:
            if self._ending:
                return
            self._ending = True
            if self._cancel.cancelled:
                # A connection cut by Stop may end as an error; the person only meant Stop.
                finish, error = Finish("abort", finish.usage, why=finish.why), None
            final = replace(
                self._merged(),
                version=self._version + 1,
                phase="done",
                thinking=False,
                reasoning_s=self._reasoning_s(self._clock()),
                finish=finish,
                error=error,
                model=model,
                itl_ms=_itl_ms(self._arrivals),
            )
        with self._saving:
            self._keep(final)
        with self._changed:
            self._state, self._version = final, final.version
            self._changed.notify_all()
        try:
            self._on_end(self)
        except Exception as fault:  # noqa: BLE001 - told by type and place
            log_fault(logger, "What follows an answer failed", fault)

    def _model(self) -> str:
        try:
            return self.backend.status().model
        except Exception as error:  # noqa: BLE001 - told by type and place
            log_fault(logger, "A backend couldn't say its model's name", error)
            return ""

    def _keep(self, snapshot: Snapshot) -> None:
        try:
            self._save(snapshot)
        except BaseException as error:  # noqa: BLE001 - told by type and place
            # Even SystemExit: the end must be published, saved or not.
            log_fault(logger, "An answer couldn't be saved", error)

    def _publish(self, **changes: object) -> None:
        self._version += 1
        self._state = replace(self._state, version=self._version, **changes)  # type: ignore[arg-type]
        self._changed.notify_all()

    def _merged(self) -> Snapshot:
        """The state with the pieces that came since it was last looked at."""
        if self._state.version != self._version:
            first_s = cast(float, self._first_s)
            self._state = replace(
                self._state,
                version=self._version,
                phase="answering",
                notice=None,
                text=self._text.whole(),
                reasoning=self._reasoning.whole(),
                ttft_s=first_s - cast(float, self._begun_s),
                thinking=self._thinking_from_s is not None and self._thought_at_s is None,
                reasoning_s=self._reasoning_s(self._latest_s),
                decode_s=self._latest_s - first_s,
            )
        return self._state


def _itl_ms(arrivals: Arrivals) -> tuple[float, float] | None:
    gaps_s = sorted(arrivals.gaps_s())
    p50_s, p95_s = nearest_rank(gaps_s, 0.5), nearest_rank(gaps_s, 0.95)
    return None if p50_s is None or p95_s is None else (1000 * p50_s, 1000 * p95_s)


class _Growing:
    """A text that grows piece by piece and is joined only when somebody looks."""

    def __init__(self, start: str = "") -> None:
        self._parts = [start]

    def append(self, piece: str) -> None:
        self._parts.append(piece)

    def whole(self) -> str:
        if len(self._parts) > 1:
            self._parts = ["".join(self._parts)]
        return self._parts[0]
