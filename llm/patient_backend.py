"""What is done where a server doesn't answer at once: wait as long as it asks, wait for it to
start, or ask the next one. All of it before the first text, and all of it said.
"""

from __future__ import annotations

import math
import time
from collections.abc import Generator, Sequence
from contextlib import closing
from dataclasses import replace
from typing import TYPE_CHECKING

from llm.errors import (
    ConnectionLostError,
    LLMError,
    Reason,
    ServerBusyError,
    ServerHostUnknownError,
)
from llm.server_state import may_come, spoken
from llm.types import BackendStatus, CancelToken, Delta, Finish, GenerationRequest, Notice

if TYPE_CHECKING:
    from llm.model_list import ModelInfo
    from llm.vllm_backend import VllmBackend

BUSY_TRIES = 5
"""How often a busy server is asked in all."""

LONGEST_PAUSE_S = 120
"""A busy server that wants a longer pause is taken at its word: the question fails."""

LOOK_S = 0.2
"""How often to see whether the server that is waited for is there."""

WORTH_SAYING_S = 2.0
"""An estimate below this is read no sooner than it is over."""


class PatientBackend:
    """Asks one server, and where it is gone and others are given, the next.

    Once text or reasoning has come nothing is asked a second time.

    Args:
        server: who is asked first, for each question anew.
        others: who is asked where that one is gone, in their order; those that have the same
            model before those that haven't. They are not closed with this one.
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

    def stream(
        self, request: GenerationRequest, cancel: CancelToken
    ) -> Generator[Delta | Notice | Finish]:
        if cancel.cancelled:
            yield Finish("abort")
            return
        give_up_s = time.monotonic() + self._wait_s
        pauses = 0
        while True:
            failures = yield from self._ask_in_turn(request, cancel)
            if not failures:
                return
            server, last = failures[-1]
            if isinstance(last, ServerBusyError):
                pauses += 1
                pause_s = _told_s(last) or 2 ** (pauses - 1)
                if pauses == BUSY_TRIES or pause_s > LONGEST_PAUSE_S:
                    raise last
                yield from _pause(server, pause_s, pauses + 1, cancel)
            elif all(may_come(failure) for _, failure in failures):
                yield from self._await_one(failures[0][1], give_up_s, cancel)
            else:
                raise failures[0][1] if _gone(last) else last
            if cancel.cancelled:
                yield Finish("abort")
                return

    def _ask_in_turn(
        self, request: GenerationRequest, cancel: CancelToken
    ) -> Generator[Delta | Notice | Finish, None, list[tuple[VllmBackend, LLMError]]]:
        """Ask until one answers; returns who didn't and why, nothing where one did."""
        model = request.model or _first_model(self._server)
        others = sorted(self._others, key=lambda other: not _has(other, model))
        failures: list[tuple[VllmBackend, LLMError]] = []
        for server in (self._server, *others):
            named = request.model if server is self._server or _has(server, model) else ""
            asked = replace(request, model=named)
            yield _about(server, asked, *failures[-1:])
            failure = yield from _ask(server, asked, cancel)
            if failure is None:
                return []
            failures.append((server, failure))
            if not _gone(failure):
                break
        return failures

    def _await_one(
        self, failure: LLMError, give_up_s: float, cancel: CancelToken
    ) -> Generator[Notice]:
        """Wait until one of the servers is there, or it is clear that none will be.

        Raises:
            LLMError: the newest reason why the first of them isn't.
        """
        told: type[LLMError] | None = None
        while not any(server.status().ready for server in (self._server, *self._others)):
            status = self._server.status()
            failure = status.error or failure
            hopeless = not (may_come(failure) or status.phase == "starting")
            if hopeless or time.monotonic() >= give_up_s:
                raise failure
            if type(failure) is not told:
                told = type(failure)
                yield Notice(Reason("notice-away", {"why": failure.reason}), self.server)
            if cancel.wait(LOOK_S):
                return


def _ask(
    server: VllmBackend, request: GenerationRequest, cancel: CancelToken
) -> Generator[Delta | Finish, None, LLMError | None]:
    """Ask one server; returns why it didn't answer.

    Raises:
        LLMError: it failed in mid-answer.
    """
    said = False
    try:
        with closing(server.stream(request, cancel)) as stream:
            for item in stream:
                said = True
                yield item
    except LLMError as failure:
        if said:
            raise
        return failure
    return None


def _about(
    server: VllmBackend,
    request: GenerationRequest,
    gone: tuple[VllmBackend, LLMError] | None = None,
) -> Notice:
    """What there is to say while the server reads the prompt.

    Args:
        gone: who was asked before, and why in vain.
    """
    reason = None
    about_s = server.expect_prefill_s(request)
    if gone is not None:
        before, failure = gone
        names = {"server": before.server, "next": server.server}
        reason = Reason("notice-next", {**names, "why": failure.reason})
    elif about_s is not None and about_s >= WORTH_SAYING_S:
        reason = Reason("notice-reading", {"about": round(about_s)})
    return Notice(reason, server.server, spoken(request.model or _first_model(server)))


def _pause(server: VllmBackend, pause_s: int, again: int, cancel: CancelToken) -> Generator[Notice]:
    """Wait as long as a busy server asks; `again` is the try that comes next."""
    for left in range(pause_s, 0, -1):
        values: dict[str, str | int] = {"server": server.server, "left": left, "try": again}
        yield Notice(Reason("notice-busy", values), server.server)
        if cancel.wait(1):
            return


def _told_s(busy: ServerBusyError) -> int:
    seconds = busy.values.get("seconds", 0)
    return math.ceil(seconds) if isinstance(seconds, (int, float)) else 0


def _gone(failure: LLMError) -> bool:
    """Whether there is nobody to wait for, as far as one can tell from here."""
    return may_come(failure) or isinstance(failure, (ServerHostUnknownError, ConnectionLostError))


def _first_model(server: VllmBackend) -> str:
    return next((model.name for model in server.models()), "")


def _has(server: VllmBackend, model: str) -> bool:
    return any(known.name == model for known in server.models())
