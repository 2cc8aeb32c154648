"""What is done where a server doesn't answer at once: wait as long as it asks, wait for it to
start, or ask the next one. All of it before the first text, and all of it said.
"""

from __future__ import annotations

import math
import time
from collections.abc import Generator, Sequence
from contextlib import closing
from dataclasses import replace
from typing import TYPE_CHECKING, TypeAlias

from llm.errors import (
    ConnectionLostError,
    LLMError,
    Reason,
    ServerBusyError,
    ServerHostUnknownError,
)
from llm.server_state import may_come, spoken
from llm.types import (
    BackendStatus,
    CancelToken,
    Delta,
    Fingerprint,
    Finish,
    GenerationRequest,
    Notice,
)

if TYPE_CHECKING:
    from llm.model_list import ModelInfo
    from llm.vllm_backend import VllmBackend

BUSY_TRIES = 5
"""How often a busy server is asked in all."""

LONGEST_PAUSE_S = 120
"""A busy server that wants a longer pause is taken at its word: the question fails."""

LOOK_S = 0.2
"""How often to see whether the server that is waited for is there."""

AGAIN_S = 1.0
"""No sooner than this after it failed is a question asked again, whatever is known of the server.

Doubled for each time, up to `LONGEST_AGAIN_S`: a gateway can be there and its model not.
"""

LONGEST_AGAIN_S = 10.0

WORTH_SAYING_S = 2.0
"""An estimate below this is read no sooner than it is over."""


_Failures: TypeAlias = "list[tuple[VllmBackend, LLMError]]"


class PatientBackend:
    """Asks one server, and where it is gone and others are given, the next.

    Once text or reasoning has come nothing is asked a second time.

    Args:
        server: who is asked first, for each question anew.
        others: who is asked where that one is gone, in their order; those that have the same
            model before those that haven't, which are asked for their own. They are not closed
            with this one.
        wait_s: how long a question waits for servers that aren't up yet.

    Thread-safety: every method may be called from any thread.
    """

    name = "vllm"

    def __init__(
        self, server: VllmBackend, others: Sequence[VllmBackend] = (), *, wait_s: float = 600.0
    ) -> None:
        self.slots = server.slots
        self.server = server.server
        self._server = server
        self._others = tuple(others)
        self._wait_s = wait_s

    def status(self) -> BackendStatus:
        return self._server.status()

    def prepare(self) -> None:
        self._server.prepare()

    def close(self) -> None:
        self._server.close()

    def models(self) -> tuple[ModelInfo, ...]:
        """The server's models to choose from, the one asked by default first."""
        return self._server.models()

    def context_tokens(self, model: str = "") -> int | None:
        """A model's window, prompt and answer together; None where the server doesn't tell."""
        return self._server.context_tokens(model)

    def window_tokens(self, request: GenerationRequest) -> int | None:
        """That of the server that is asked first."""
        return self._server.window_tokens(request)

    def count_tokens(self, request: GenerationRequest, cancel: CancelToken) -> int | None:
        """By the server that is asked first."""
        return self._server.count_tokens(request, cancel)

    def fingerprint(self, request: GenerationRequest) -> Fingerprint | None:
        """That of the server that is asked first; where another answers, `Finish` tells its own."""
        return self._server.fingerprint(request)

    def stream(
        self, request: GenerationRequest, cancel: CancelToken
    ) -> Generator[Delta | Notice | Finish]:
        if cancel.cancelled:
            yield Finish("abort")
            return
        give_up_s = time.monotonic() + self._wait_s
        pauses, again_s = 0, AGAIN_S
        servers = self._in_turn(request)
        failures: _Failures = []
        while True:
            failures = yield from self._ask_in_turn(request, servers, failures, cancel)
            if not failures:
                return
            server, last = failures[-1]
            servers = self._in_turn(request)
            if isinstance(last, ServerBusyError):
                pauses += 1
                pause_s = _told_s(last) or 2 ** (pauses - 1)
                if pauses == BUSY_TRIES or pause_s > LONGEST_PAUSE_S:
                    raise last
                asked = self._as_asked(server, request)
                yield from _pause(server, asked, pause_s, pauses + 1, cancel)
            elif _worth_waiting(failures):
                servers = yield from self._await_some(request, failures, again_s, give_up_s, cancel)
                again_s = min(2 * again_s, LONGEST_AGAIN_S)
            else:
                raise failures[0][1] if _gone(last) else last
            if cancel.cancelled:
                yield Finish("abort")
                return

    def _in_turn(self, request: GenerationRequest) -> list[VllmBackend]:
        """All servers in the order in which they are asked."""
        model = request.model or _first_model(self._server)
        return [self._server, *sorted(self._others, key=lambda other: not _has(other, model))]

    def _as_asked(self, server: VllmBackend, request: GenerationRequest) -> GenerationRequest:
        """What this server is asked: for the first one's model, where it has that."""
        if server is self._server:
            return request
        model = request.model or _first_model(self._server)
        return replace(request, model=model if _has(server, model) else "")

    def _ask_in_turn(
        self,
        request: GenerationRequest,
        servers: Sequence[VllmBackend],
        before: _Failures,
        cancel: CancelToken,
    ) -> Generator[Delta | Notice | Finish, None, _Failures]:
        """Ask until one answers; returns who didn't and why, nothing where one did.

        Args:
            before: who was asked in vain the last time.
        """
        failures: _Failures = []
        for server in servers:
            asked = self._as_asked(server, request)
            gone = failures or [pair for pair in before if pair[0] is not server]
            about = _about(server, asked, None if server is self._server else gone)
            yield about
            failure = yield from _ask(server, asked, about, cancel)
            if failure is None:
                return []
            failures.append((server, failure))
            if not _gone(failure):
                break
        return failures

    def _await_some(
        self,
        request: GenerationRequest,
        failures: _Failures,
        pause_s: float,
        give_up_s: float,
        cancel: CancelToken,
    ) -> Generator[Notice, None, list[VllmBackend]]:
        """Wait until some of the servers are there, or it is clear that none will be.

        Args:
            failures: who was asked just now, and why in vain.
            pause_s: to wait at least.
            give_up_s: when to wait no more, by the monotonic clock.

        Returns:
            Those that are there, in the order in which they are asked.

        Raises:
            LLMError: the newest reason why the first of them isn't.
        """
        known = dict(failures)
        not_before_s = time.monotonic() + pause_s
        told: tuple[str, type[LLMError]] | None = None
        while True:
            states = {server: server.status() for server in self._in_turn(request)}
            hopeful = [server for server, status in states.items() if _may_answer(status)]
            now_s = time.monotonic()
            if not hopeful or now_s >= give_up_s:
                first = self._server
                raise states[first].error or known.get(first) or failures[0][1]
            there = [server for server in hopeful if states[server].ready]
            if there and now_s >= not_before_s:
                return there
            one = hopeful[0]
            why = states[one].error or known.get(one) or failures[0][1]
            if (one.server, type(why)) != told:
                told = (one.server, type(why))
                model = _model_said(one, self._as_asked(one, request))
                yield Notice(Reason("notice-away", {"why": why.reason}), one.server, model)
            if cancel.wait(LOOK_S):
                return []


def _ask(
    server: VllmBackend, request: GenerationRequest, about: Notice, cancel: CancelToken
) -> Generator[Delta | Notice | Finish, None, LLMError | None]:
    """Ask one server; returns why it didn't answer.

    Args:
        about: what was said of it. Asking may teach which model it has; then it is said anew.

    Raises:
        LLMError: it failed in mid-answer.
    """
    said = False
    try:
        with closing(server.stream(request, cancel)) as stream:
            for item in stream:
                if not said and not isinstance(item, Notice):
                    said = True
                    yield from _renamed(about, server, request)
                yield item
    except LLMError as failure:
        if said:
            raise
        yield from _renamed(about, server, request)
        return failure
    return None


def _renamed(about: Notice, server: VllmBackend, request: GenerationRequest) -> Generator[Notice]:
    model = _model_said(server, request)
    if model != about.model:
        yield replace(about, model=model, begins=False)  # it has been reading for long


def _about(
    server: VllmBackend, request: GenerationRequest, gone: _Failures | None = None
) -> Notice:
    """What there is to say while the server reads the prompt.

    Args:
        request: as this server is asked.
        gone: who was asked before, and why in vain.
    """
    reason = None
    about_s = server.expect_prefill_s(request)
    if gone:
        before, failure = gone[-1]
        names = {"server": before.server, "next": server.server}
        reason = Reason("notice-next", {**names, "why": failure.reason})
    elif about_s is not None and about_s >= WORTH_SAYING_S:
        reason = Reason("notice-reading", {"about": round(about_s)})
    return Notice(reason, server.server, _model_said(server, request), begins=True)


def _pause(
    server: VllmBackend, request: GenerationRequest, pause_s: int, again: int, cancel: CancelToken
) -> Generator[Notice]:
    """Wait as long as a busy server asks; `again` is the try that comes next."""
    for left in range(pause_s, 0, -1):
        values: dict[str, str | int] = {"server": server.server, "left": left, "try": again}
        yield Notice(Reason("notice-busy", values), server.server, _model_said(server, request))
        if cancel.wait(1):
            return


def _told_s(busy: ServerBusyError) -> int:
    seconds = busy.values.get("seconds", 0)
    return math.ceil(seconds) if isinstance(seconds, (int, float)) else 0


def _gone(failure: LLMError) -> bool:
    """Whether there is nobody to wait for, as far as one can tell from here."""
    return may_come(failure) or isinstance(failure, (ServerHostUnknownError, ConnectionLostError))


def _worth_waiting(failures: _Failures) -> bool:
    """Whether one may come, and none broke over this very question."""
    lost = any(isinstance(failure, ConnectionLostError) for _, failure in failures)
    return (
        not lost
        and all(_gone(failure) for _, failure in failures)
        and any(may_come(failure) for _, failure in failures)
    )


def _may_answer(status: BackendStatus) -> bool:
    """Whether a server is there, or may be soon, as far as is known by now."""
    return status.phase != "failed" or (status.error is not None and may_come(status.error))


def _model_said(server: VllmBackend, request: GenerationRequest) -> str:
    return spoken(request.model or _first_model(server))


def _first_model(server: VllmBackend) -> str:
    return next((model.name for model in server.models()), "")


def _has(server: VllmBackend, model: str) -> bool:
    return any(known.name == model for known in server.models())
