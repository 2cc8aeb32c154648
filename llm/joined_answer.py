"""One generation for several people who ask the same at the same moment.

The first is answered as ever; the others follow that answer. Each may stop for themselves: where
the first one's ends before it is whole, one of those who follow has the model go on from there, and
the others follow that.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator
from dataclasses import replace

from llm.errors import LLMError, Reason
from llm.job import GenerationJob, Snapshot
from llm.types import (
    Backend,
    BackendStatus,
    CancelToken,
    Delta,
    Fingerprint,
    Finish,
    GenerationRequest,
    Message,
    Notice,
    Usage,
)

LOOK_S = 0.1
"""How soon a follower notices that it was stopped."""
BEGIN_S = 5.0
"""How long the first may take from being routed to being in line."""

AskAlone = Callable[[GenerationRequest, str], GenerationJob]
"""Has the model asked on the follower's own account, from the text so far on."""


MOST_FOLLOWERS = 64
"""Of one answer; each has a thread. More are asked for by themselves."""


class UnderWay:
    """An answer that others may follow.

    Thread-safety: every method may be called from any thread.
    """

    def __init__(self) -> None:
        self._known = threading.Event()
        self._job: GenerationJob | None = None
        self.followers = 0

    def is_answered_by(self, job: GenerationJob | None) -> None:
        """Say which job gives it; None where it came to nothing."""
        self._job = job
        self._known.set()

    @property
    def over(self) -> bool:
        """Whether there is nothing to follow any more."""
        return self._known.is_set() and (self._job is None or self._job.snapshot().done)

    def job(self, cancel: CancelToken) -> GenerationJob | None:
        """The job, once it is known; None where there is none, or nobody wants it any more."""
        for _ in range(round(BEGIN_S / LOOK_S)):
            if cancel.cancelled or self._known.wait(LOOK_S):
                break
        return self._job


class JoinedAnswer:
    """A backend for one question: it says what another's answer says, as that is said.

    Args:
        joined: called where all of it was another's.
        next_under_way: what to follow where one ended too early; true where nobody goes on with it
            yet, and this one is to.
    """

    slots = 1

    def __init__(
        self,
        backend: Backend,
        under_way: UnderWay,
        ask_alone: AskAlone,
        joined: Callable[[Finish], None],
        next_under_way: Callable[[UnderWay], tuple[bool, UnderWay]],
    ) -> None:
        self._backend = backend
        self._next = next_under_way
        self._joined = joined
        self._under_way = under_way
        self._ask_alone = ask_alone

    @property
    def name(self) -> str:
        return self._backend.name

    def status(self) -> BackendStatus:
        return self._backend.status()

    def prepare(self) -> None:
        self._backend.prepare()

    def fingerprint(self, request: GenerationRequest) -> Fingerprint | None:
        return self._backend.fingerprint(request)

    def window_tokens(self, request: GenerationRequest) -> int | None:
        return None  # the first one's request was fitted

    def count_tokens(self, request: GenerationRequest, cancel: CancelToken) -> int | None:
        return None

    def stream(
        self, request: GenerationRequest, cancel: CancelToken
    ) -> Generator[Delta | Notice | Finish]:
        """The other's answer; where that isn't finished, the model's own from there on.

        Raises:
            LLMError: the model's own failed.
        """
        news, under_way = _News(), self._under_way
        error: LLMError | None = None
        yield _JOINED
        while True:
            job = under_way.job(cancel)
            end = (yield from self._follow(job, news, cancel)) if job is not None else None
            if cancel.cancelled:
                yield Finish("abort")
                return
            if end is not None and end.finish is not None:
                if end.finish.reason in ("stop", "length"):
                    self._joined(end.finish)
                    whole = end.finish.reason == "stop" and end.cached is None
                    yield replace(end.finish, why=_SHARED) if whole else end.finish
                    return
                if error is not None and end.error is not None:
                    raise end.error  # it was tried once more, and failed again
                error = error or end.error
            leads, under_way = self._next(under_way)
            news.begins_anew()
            if leads:
                yield from self._lead(under_way, request, news, cancel)
                return

    def _lead(
        self,
        under_way: UnderWay,
        request: GenerationRequest,
        news: _News,
        cancel: CancelToken,
    ) -> Generator[Delta | Notice | Finish]:
        """Have the model go on, for this one and for those who follow it from now on."""
        try:
            own = self._ask_alone(_from_there_on(request, news.text), news.text)
        except BaseException:
            under_way.is_answered_by(None)
            raise
        under_way.is_answered_by(own)
        begun = bool(news.text)
        try:
            end = yield from self._follow(own, news, cancel)
        finally:
            own.cancel()
        if end is None or end.finish is None:
            yield Finish("abort")
            return
        if end.error is not None:
            raise end.error
        # What the other's part took nobody knows, and a part isn't the whole.
        yield replace(end.finish, usage=Usage()) if begun else end.finish

    def close(self) -> None:
        """Nothing is held."""

    @staticmethod
    def _follow(
        job: GenerationJob, news: _News, cancel: CancelToken
    ) -> Generator[Delta | Notice | Finish, None, Snapshot | None]:
        """What a job says, to its end; None where the follower was stopped before."""
        version = -1
        while not cancel.cancelled:
            snapshot = job.wait(version, LOOK_S)
            if snapshot.version != version:
                version = snapshot.version
                yield from news.of(snapshot)
            elif snapshot.phase != "answering":
                yield news.notice  # it stands in line: the follower is as alive as that
            if snapshot.done:
                return snapshot
        return None


_JOINED = Notice(Reason("notice-joined"))
_SHARED = Reason("finish-joined")


class _News:
    """What a snapshot has that those before it hadn't."""

    def __init__(self) -> None:
        self.text = ""
        self.notice = _JOINED
        self._reasoning = ""

    def begins_anew(self) -> None:
        """Another job is followed, which has the text, and thinks for itself."""
        self._reasoning = ""

    def of(self, snapshot: Snapshot) -> Generator[Delta | Notice | Finish]:
        notice = Notice(snapshot.notice, snapshot.server, snapshot.model, snapshot.cached)
        if notice not in (Notice(), self.notice):
            self.notice = notice
            yield notice
        if not snapshot.text.startswith(self.text):
            # It turned out to be reasoning.
            yield Delta("", "recast")
            self._reasoning, self.text = self._reasoning + self.text, ""
        if len(snapshot.reasoning) > len(self._reasoning):
            yield Delta(snapshot.reasoning[len(self._reasoning) :], "reasoning")
            self._reasoning = snapshot.reasoning
        if len(snapshot.text) > len(self.text):
            yield Delta(snapshot.text[len(self.text) :])
            self.text = snapshot.text


def _from_there_on(request: GenerationRequest, text: str) -> GenerationRequest:
    alone = replace(request, cache=None)
    if not text:
        return alone
    return replace(alone, messages=(*request.messages, Message("assistant", text)))
