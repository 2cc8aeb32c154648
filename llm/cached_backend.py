"""A backend with an answer cache in front of it."""

from __future__ import annotations

from collections.abc import Callable, Generator

from llm.types import (
    Backend,
    BackendStatus,
    CancelToken,
    Delta,
    Fingerprint,
    Finish,
    GenerationRequest,
    Notice,
)

CachedStream = Callable[
    [Backend, GenerationRequest, CancelToken], Generator[Delta | Notice | Finish]
]


class CachedBackend:
    """A backend whose answers are looked up first and kept after: a question's way through."""

    def __init__(self, inner: Backend, stream: CachedStream) -> None:
        self._inner = inner
        self._stream = stream

    @property
    def inner(self) -> Backend:
        """The backend that is asked where the cache has nothing."""
        return self._inner

    @property
    def name(self) -> str:
        return self._inner.name

    @property
    def slots(self) -> int:
        return self._inner.slots

    def status(self) -> BackendStatus:
        return self._inner.status()

    def prepare(self) -> None:
        self._inner.prepare()

    def fingerprint(self, request: GenerationRequest) -> Fingerprint | None:
        return self._inner.fingerprint(request)

    def window_tokens(self, request: GenerationRequest) -> int | None:
        return self._inner.window_tokens(request)

    def count_tokens(self, request: GenerationRequest, cancel: CancelToken) -> int | None:
        return self._inner.count_tokens(request, cancel)

    def stream(
        self, request: GenerationRequest, cancel: CancelToken
    ) -> Generator[Delta | Notice | Finish]:
        return self._stream(self._inner, request, cancel)

    def close(self) -> None:
        self._inner.close()
