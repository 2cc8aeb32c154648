"""Asking a local backend, and making trouble inside it."""

from __future__ import annotations

import threading
from collections.abc import Generator, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

from llm.errors import LLMError
from llm.local_backend import LocalBackend, LocalOptions
from llm.types import (
    CancelToken,
    Delta,
    Finish,
    GenerationRequest,
    Message,
    Notice,
    SamplingParams,
)

TIMEOUT_S = 60

Outcome = tuple[str, Finish | LLMError | None]
"""The text of an answer, and how it ended."""


def generating() -> list[str]:
    return [t.name for t in threading.enumerate() if t.name.startswith("generate-")]


def ask(question: str = "Hello", **params: Any) -> GenerationRequest:
    """Greedy unless there is a seed: an answer drawn by lot may end early by itself."""
    if "seed" not in params:
        params.setdefault("temperature", 0)
    return GenerationRequest((Message("user", question),), SamplingParams(**params))


def read(backend: LocalBackend, request: GenerationRequest) -> tuple[str, Finish]:
    items = backend.stream(request, CancelToken())
    # A busy machine may be so slow to read a prompt that it tells of it.
    *deltas, finish = [item for item in items if not isinstance(item, Notice)]
    assert all(isinstance(delta, Delta) and delta.text for delta in deltas)
    assert isinstance(finish, Finish)
    return "".join(delta.text for delta in deltas if isinstance(delta, Delta)), finish


def begun(
    backend: LocalBackend, request: GenerationRequest, cancel: CancelToken | None = None
) -> Generator[Delta | Finish]:
    """An answer without the notices before it, the model's name and how far its prompt is read."""
    with closing(backend.stream(request, cancel or CancelToken())) as items:
        for item in items:
            if not isinstance(item, Notice):
                yield item


def outcome_of(stream: Iterator[Delta | Notice | Finish]) -> Outcome:
    """All that comes of an answer, its failure too."""
    text, end = "", None
    try:
        for item in stream:
            if isinstance(item, Finish):
                end = item
            elif isinstance(item, Delta):
                text += item.text
    except LLMError as error:
        return text, error
    return text, end


def at_once(backend: LocalBackend, asked: list[GenerationRequest]) -> list[Outcome]:
    """Ask all at the same moment, each on a thread of its own."""
    line = threading.Barrier(len(asked))
    outcomes: list[Outcome] = [("", None)] * len(asked)

    def run(number: int) -> None:
        line.wait(TIMEOUT_S)
        outcomes[number] = outcome_of(backend.stream(asked[number], CancelToken()))

    threads = [threading.Thread(target=run, args=(number,)) for number in range(len(asked))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(TIMEOUT_S)
    assert not any(thread.is_alive() for thread in threads)
    return outcomes


def model_of(backend: LocalBackend) -> Any:
    backend.prepare()
    read(backend, ask(max_tokens=1))
    assert backend._loaded is not None
    return backend._loaded.model


def at_rest(data_dir: Path) -> LocalBackend:
    """One that has unloaded its model: for tests of the page, which need none."""
    backend = LocalBackend(LocalOptions(data_dir))
    with backend._changed:
        backend._enter("unloaded")
    return backend


class Trouble:
    """Raises inside `generate()` at the n-th token of the next answer."""

    def __init__(self, model: Any, error: BaseException, at_token: int) -> None:
        self._error = error
        self._left = at_token
        self._hook = model.register_forward_pre_hook(self._step)

    def _step(self, *_: Any) -> None:
        self._left -= 1
        if self._left == 0:
            self._hook.remove()
            raise self._error


class Gate:
    """Holds every forward pass from the n-th on until opened."""

    def __init__(self, model: Any, at_token: int = 1) -> None:
        self.reached = threading.Event()
        self.open = threading.Event()
        self._left = at_token
        self.hook = model.register_forward_pre_hook(self._step)

    def _step(self, *_: Any) -> None:
        self._left -= 1
        if self._left <= 0:
            self.reached.set()
            assert self.open.wait(TIMEOUT_S)


class Dictation:
    """Has the next answer be this text, whatever the weights say; it ends by itself after it."""

    def __init__(self, backend: LocalBackend, text: str) -> None:
        self._model = model_of(backend)
        assert backend._loaded is not None
        tokenizer = backend._loaded.tokenizer
        ids = tokenizer.encode(text, add_special_tokens=False)
        self._left = [*ids, tokenizer.eos_token_id]
        self._hook = self._model.register_forward_hook(self._step)

    def _step(self, _model: Any, _args: Any, output: Any) -> None:
        output.logits[:] = -1e9
        output.logits[..., self._left.pop(0)] = 0
        if not self._left:
            self._hook.remove()


def cut(path: Path) -> None:
    """Half of a file is lost."""
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
