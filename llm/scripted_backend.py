"""A backend that says what it is told, at the rate it is told. No model is behind it.

It ships: the demo, the tests and the benchmarks all run on it. Rules choose the `Script` by the
question.
"""

from __future__ import annotations

import hashlib
import re
import threading
import time
from collections.abc import Generator, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from llm import demo_answers
from llm.errors import ContextOverflowError, ShuttingDownError
from llm.script import Script
from llm.script_file import read_script_file
from llm.stop_strings import StopStrings
from llm.types import (
    BackendStatus,
    CancelToken,
    Delta,
    DeltaKind,
    Fingerprint,
    Finish,
    GenerationRequest,
    Message,
    Usage,
)

if TYPE_CHECKING:
    from llm.settings import Settings

_CHINESE = re.compile(r"[\u3400-\u9fff\uf900-\ufaff]")


SHORTEST_WAIT_S = 0.005
"""Falling asleep costs more than the token: faster ones come in twos and threes, as they do over a
network (over 200 a second, and none late by more than this)."""

DEMO = Script(demo_answers.ENGLISH, tokens_per_s=40, prefill_s=0.3)
"""What is said where no rule fits and no default was given."""

DEMO_ZH = replace(DEMO, text=demo_answers.CHINESE)


class ScriptedBackend:
    """Says what its scripts say; asked to go on with a text, what comes after as many characters.

    Thread-safety: every method may be called from any thread; `stream` runs on its caller's.

    Args:
        default: the answer where no rule fits; None gives the demo answer, in Chinese where the
            question holds Chinese characters.
        rules: (needle, script) pairs; the first needle that the last user message contains wins.
        slots: how many answers may run at once.
        ready_after_s: how long getting ready takes.
        window_tokens: what prompt and answer may have together; None is without end.
    """

    name = "scripted"

    def __init__(
        self,
        default: Script | None = None,
        rules: Sequence[tuple[str, Script]] = (),
        *,
        slots: int = 32,
        ready_after_s: float = 0.0,
        window_tokens: int | None = None,
    ) -> None:
        self.slots = slots
        self._default = default
        self._rules = tuple(rules)
        self._ready_after_s = ready_after_s
        self._window_tokens = window_tokens
        self._fingerprint = self._as_told()
        # Reentrant: a forgotten iterator may be collected, and tidied up, anywhere.
        self._lock = threading.RLock()
        self._prepared_at_s: float | None = None
        self._closed = False
        self._running: set[threading.Event] = set()

    @classmethod
    def from_file(cls, path: Path) -> ScriptedBackend:
        """Read `{"default": {…}, "rules": [{"when": "…", …}], …}`, with the arguments of this class.

        A script's keys are the arguments of `Script`; `text_file`, relative to the file, may
        stand for `text`. Every top-level key may be left out.

        Raises:
            SettingsError: naming the place in the file and what is wrong there.
        """
        told = read_script_file(path)
        return cls(
            told.default,
            told.rules,
            slots=told.slots,
            ready_after_s=told.ready_after_s,
            window_tokens=told.window_tokens,
        )

    @classmethod
    def from_settings(cls, settings: Settings) -> ScriptedBackend:
        """The backend of `scripts_file`, or the demo where there is none."""
        return cls.from_file(settings.scripts_file) if settings.scripts_file else cls()

    @property
    def running(self) -> int:
        """How many answers are being given now."""
        with self._lock:
            return len(self._running)

    def status(self) -> BackendStatus:
        if self._closed:
            return BackendStatus("failed", self.name, error=ShuttingDownError())
        prepared_at_s = self._prepared_at_s
        if prepared_at_s is None:
            phase: Literal["idle", "ready"] = "idle" if self._ready_after_s > 0 else "ready"
            return BackendStatus(phase, self.name)
        passed_s = time.monotonic() - prepared_at_s
        if passed_s < self._ready_after_s:
            progress = passed_s / self._ready_after_s
            return BackendStatus("loading", self.name, progress, elapsed_s=passed_s)
        return BackendStatus("ready", self.name, elapsed_s=passed_s - self._ready_after_s)

    def prepare(self) -> None:
        with self._lock:
            if self._prepared_at_s is None:
                self._prepared_at_s = time.monotonic()

    def window_tokens(self, request: GenerationRequest) -> int | None:
        return self._window_tokens

    def count_tokens(self, request: GenerationRequest, cancel: CancelToken) -> int | None:
        return _prompt_tokens(request)

    def fingerprint(self, request: GenerationRequest) -> Fingerprint | None:
        return self._fingerprint if self.status().ready else None

    def stream(self, request: GenerationRequest, cancel: CancelToken) -> Generator[Delta | Finish]:
        wake = threading.Event()
        with self._lock:
            if self._closed:
                raise ShuttingDownError()
            self._running.add(wake)
        forget = cancel.on_cancel(wake.set)
        try:
            yield from self._answer(request, cancel, wake)
        finally:
            forget()
            with self._lock:
                self._running.discard(wake)

    def close(self) -> None:
        with self._lock:
            self._closed = True
            for wake in self._running:
                wake.set()

    def _answer(
        self, request: GenerationRequest, cancel: CancelToken, wake: threading.Event
    ) -> Iterator[Delta | Finish]:
        """The answer itself; `wake` is set when it is no longer wanted."""
        self.prepare()
        prompt_tokens, window = _prompt_tokens(request), self._window_tokens
        if window is not None and prompt_tokens >= window:
            over = max(1, prompt_tokens - window)
            raise ContextOverflowError(prompt_tokens=prompt_tokens, limit=window, over=over)
        question = _last_question(request.messages)
        script = self._choose(question)
        now_s = time.monotonic
        ready_at_s = (self._prepared_at_s or now_s()) + self._ready_after_s
        begun_s = max(now_s(), ready_at_s)
        shortest_s = SHORTEST_WAIT_S if script.due_s(1) - script.due_s(0) < SHORTEST_WAIT_S else 0.0
        told = 0
        cutter = StopStrings(request.params.stop)
        last_kind: DeltaKind = "text"
        reason: Literal["stop", "length", "abort"] = script.finish_reason
        wake.wait(max(0.0, begun_s + script.due_s(0) - now_s()))
        for kind, piece in script.pieces(question, len(request.start_text or "")):
            # Each piece has its own hour, so that the pace doesn't drift; a late one is not
            # waited for, so that a reader who was slow catches up.
            if (ahead_s := begun_s + script.due_s(told) - now_s()) > 0:
                wake.wait(max(ahead_s, shortest_s))
            self._mishap(script, told, wake)
            if wake.is_set():
                break
            if told == request.params.max_tokens:
                reason = "length"
                break
            if kind != last_kind and (held := cutter.flush()):
                yield Delta(held, last_kind)
            last_kind = kind
            if certain := cutter.push(piece):
                yield Delta(certain, kind)
            told += 1
            if cutter.found:
                reason = "stop"
                break
        else:
            self._mishap(script, told, wake)
        if wake.is_set():
            if not cancel.cancelled:
                raise ShuttingDownError()
            reason = "abort"
        elif held := cutter.flush():
            yield Delta(held, last_kind)
        usage = Usage(prompt_tokens, told) if script.usage else Usage()
        yield Finish(reason, usage, None if reason == "abort" else self._fingerprint)

    def _as_told(self) -> Fingerprint:
        # A script's fields are strings and numbers, so what it looks like is all that it says.
        scripts = (self._default or (DEMO, DEMO_ZH), self._rules)
        return Fingerprint(
            kind=self.name,
            server="",
            model=self.name,
            revision=hashlib.sha256(repr(scripts).encode("utf-8", "surrogatepass")).hexdigest(),
            template="",
            numerics=f"window_tokens={self._window_tokens}",
        )

    def _choose(self, question: str) -> Script:
        for needle, script in self._rules:
            if needle in question:
                return script
        return self._default or (DEMO_ZH if _CHINESE.search(question) else DEMO)

    @staticmethod
    def _mishap(script: Script, told: int, wake: threading.Event) -> None:
        """What the script lets go wrong after `told` pieces, if anything."""
        if wake.is_set():
            return
        if script.stall_after == told:
            wake.wait()
        elif script.fail_after == told:
            raise script.failure()
        elif script.die_after == told:
            raise RuntimeError("the script dies here")


def _prompt_tokens(request: GenerationRequest) -> int:
    return sum(1 + len(message.content) // 4 for message in request.messages)


def _last_question(messages: Sequence[Message]) -> str:
    return next((m.content for m in reversed(messages) if m.role == "user"), "")
