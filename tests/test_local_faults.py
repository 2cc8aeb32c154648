from __future__ import annotations

import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from llm.catalogue import catalogue
from llm.errors import InternalError, LLMError, OutOfMemoryError
from llm.local_backend import LocalBackend
from llm.local_memory import forget_frames
from llm.types import Delta, Finish, Notice
from tests.local_answers import TIMEOUT_S, Trouble, ask, begun, model_of, read
from tests.tiny_model import make_tiny_model

pytest_plugins = "tests.local_fixtures"
pytestmark = pytest.mark.usefixtures("no_generating_thread_is_left")


@pytest.mark.parametrize(
    "error",
    [
        torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2 GiB"),
        MemoryError(),
        RuntimeError("[enforce fail at alloc_cpu.cpp] DefaultCPUAllocator: can't allocate memory"),
        RuntimeError("CUDA error: out of memory"),
    ],
)
def test_out_of_memory_keeps_the_text_so_far_and_the_next_question_works(
    shared: LocalBackend, error: BaseException
) -> None:
    request = ask(max_tokens=40, temperature=0)
    whole, _ = read(shared, request)
    Trouble(model_of(shared), error, at_token=20)
    got: list[Delta | Notice | Finish] = []
    with pytest.raises(OutOfMemoryError) as caught:
        got.extend(begun(shared, request))
    assert got
    assert whole.startswith("".join(item.text for item in got if isinstance(item, Delta)))
    assert not any(isinstance(item, Finish) for item in got)
    assert caught.value.values == {"model": "Tiny-Instruct"}
    assert read(shared, request)[0] == whole


def test_after_out_of_memory_nothing_holds_the_answers_memory(shared: LocalBackend) -> None:
    model = model_of(shared)
    caches: list[weakref.ref[Any]] = []

    def remember(_module: Any, _args: Any, kwargs: dict[str, Any]) -> None:
        if (cache := kwargs.get("cache")) is not None:
            caches.append(weakref.ref(cache))

    hook = model.register_forward_pre_hook(remember, with_kwargs=True)
    Trouble(model, MemoryError(), at_token=5)
    with pytest.raises(OutOfMemoryError) as caught:
        read(shared, ask(max_tokens=40))
    hook.remove()
    assert len(caches) >= 3
    assert [cache() for cache in caches] == [None] * len(caches)
    assert caught.value is not None  # the error is still held, the cache is not


def test_any_other_failure_is_told_by_its_kind_and_logged_without_the_conversation(
    shared: LocalBackend, caplog: pytest.LogCaptureFixture
) -> None:
    Trouble(model_of(shared), KeyError("my secret question"), at_token=3)
    with pytest.raises(InternalError) as caught:
        read(shared, ask("my secret question", max_tokens=10))
    assert caught.value.values == {"kind": "KeyError"}
    assert "secret" not in str(caught.value)
    assert "KeyError" in caplog.text
    assert "secret" not in caplog.text
    assert read(shared, ask(max_tokens=3))[1].reason == "length"


def test_a_template_that_refuses_is_a_request_that_cannot_be_answered(
    tmp_path: Path, make_backend: Callable[..., LocalBackend]
) -> None:
    template = "{{ raise_exception('System role not supported') }}"
    backend = make_backend(make_tiny_model(tmp_path / "m", chat_template=template))
    with pytest.raises(LLMError) as caught:
        read(backend, ask())
    assert "System role not supported" in str(caught.value)
    assert "System role not supported" in caught.value.sentence(catalogue("zh"))


def in_every_pass(model: Any) -> None:
    def fails(*_: Any) -> None:
        raise KeyError("in the warm-up")

    model.register_forward_pre_hook(fails)


def in_a_batched_answer(model: Any) -> None:
    # Whether answers can be batched is tried with five passes before.
    Trouble(model, KeyError("in the warm-up"), at_token=6)


def before_the_answer(model: Any) -> None:
    def fails() -> None:
        raise KeyError

    model.modules = fails


@pytest.mark.parametrize("trouble", [in_every_pass, in_a_batched_answer, before_the_answer])
def test_a_failed_warm_up_leaves_no_model_in_memory(
    tiny_folder: Path,
    make_backend: Callable[..., LocalBackend],
    monkeypatch: pytest.MonkeyPatch,
    trouble: Callable[[Any], None],
) -> None:
    import llm.local_loader

    models: list[weakref.ref[Any]] = []
    load_model = llm.local_loader.load_model

    def loaded_with_trouble(*args: Any) -> Any:
        loaded = load_model(*args)
        models.append(weakref.ref(loaded.model))
        trouble(loaded.model)
        return loaded

    backend = make_backend(tiny_folder)
    with monkeypatch.context() as patch:
        patch.setattr(llm.local_loader, "load_model", loaded_with_trouble)
        backend.prepare()
        with backend._changed:
            assert backend._changed.wait_for(lambda: not backend.status().preparing, TIMEOUT_S)
    assert backend.status().phase == "failed"
    assert backend.status().error is not None  # it is kept, the model is not
    assert [model() for model in models] == [None]
    assert read(backend, ask(max_tokens=2))[1].reason == "length"


def test_an_error_kept_for_long_keeps_nothing_alive() -> None:
    class Weights:
        pass

    kept: list[weakref.ref[Weights]] = []

    def fails() -> None:
        weights = Weights()
        kept.append(weakref.ref(weights))
        raise KeyError

    def fails_again() -> None:
        weights = Weights()
        kept.append(weakref.ref(weights))
        try:
            fails()
        except KeyError as error:
            raise ValueError from error

    try:
        try:
            fails_again()
        except ValueError:
            fails()
    except KeyError as error:
        held = error
    assert [ref() is not None for ref in kept] == [True] * 3
    forget_frames(held)
    assert [ref() for ref in kept] == [None] * 3
    assert isinstance(held.__context__, ValueError)
