"""A stored answer, said again as a model would: so that nobody downstream needs to know."""

from __future__ import annotations

from collections.abc import Callable, Generator

from llm.cache_types import CachedAnswer
from llm.types import (
    BackendStatus,
    CancelToken,
    Delta,
    Fingerprint,
    Finish,
    FromCache,
    GenerationRequest,
    Notice,
)

Said = Callable[[CancelToken], Generator[Delta | Notice | Finish]]


class ReplayedAnswer:
    """A backend for one question: it says one stored answer.

    Being one of its own, it has a line of its own: nobody waits for it.

    Args:
        name: the kind of the backend that gave the answer.
        say: its stream, which `cancel` ends.
    """

    slots = 1

    def __init__(self, name: str, answer: CachedAnswer, say: Said) -> None:
        self.name = name
        self._model = answer.model
        self._say = say

    def status(self) -> BackendStatus:
        return BackendStatus("ready", self._model)

    def prepare(self) -> None:
        """Nothing is to be got ready."""

    def fingerprint(self, request: GenerationRequest) -> Fingerprint | None:
        return None

    def window_tokens(self, request: GenerationRequest) -> int | None:
        return None

    def count_tokens(self, request: GenerationRequest, cancel: CancelToken) -> int | None:
        return None

    def stream(
        self, request: GenerationRequest, cancel: CancelToken
    ) -> Generator[Delta | Notice | Finish]:
        return self._say(cancel)

    def close(self) -> None:
        """Nothing is held."""


def replay(
    answer: CachedAnswer,
    told: FromCache,
    cancel: CancelToken,
    *,
    pieces_per_s: float | None = None,
) -> Generator[Delta | Notice | Finish]:
    """The stream of a stored answer; `cancel` ends it as it would a model's.

    Args:
        told: where it was taken from.
        pieces_per_s: a typewriter's pace; None says all at once.
    """
    yield Notice(server=answer.server, model=answer.model, cached=told)
    for piece in answer.pieces:
        if cancel.cancelled or (pieces_per_s is not None and cancel.wait(1 / pieces_per_s)):
            yield Finish("abort")
            return
        yield piece
    yield Finish("stop", answer.usage)
