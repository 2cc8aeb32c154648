from __future__ import annotations

import gc
import threading
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from llm.errors import Reason, ShuttingDownError
from llm.local_backend import LocalBackend
from llm.types import CancelToken, Delta, Finish, Notice
from tests.local_answers import TIMEOUT_S, Gate, ask, begun, generating, model_of, read

pytest_plugins = "tests.local_fixtures"
pytestmark = pytest.mark.usefixtures("no_generating_thread_is_left")


def test_cancelled_before_it_begins_is_one_abort(shared: LocalBackend) -> None:
    model_of(shared)
    cancel = CancelToken()
    cancel.cancel()
    assert list(shared.stream(ask(), cancel)) == [Finish("abort", why=Reason("finish-not-begun"))]


def test_cancelled_while_the_prompt_is_prepared_is_an_abort(
    shared: LocalBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    import llm.local_generation

    model_of(shared)
    cancel = CancelToken()
    encode = llm.local_generation.encode

    def cancelled(*args: Any) -> Any:
        cancel.cancel()
        return encode(*args)

    monkeypatch.setattr(llm.local_generation, "encode", cancelled)
    (end,) = begun(shared, ask(), cancel)
    assert isinstance(end, Finish)
    assert end.reason == "abort"
    assert end.usage.completion_tokens == 0


def test_cancelled_in_mid_answer_ends_within_one_token(shared: LocalBackend) -> None:
    cancel = CancelToken()
    items = begun(shared, ask(max_tokens=400), cancel)
    first = next(items)
    assert isinstance(first, Delta)
    cancel.cancel()
    cancel.cancel()
    rest = list(items)
    assert len(rest) == 1
    finish = rest[0]
    assert isinstance(finish, Finish)
    assert finish.reason == "abort"
    assert finish.usage.completion_tokens is not None
    assert 0 < finish.usage.completion_tokens < 400
    assert generating() == []


def test_cancelled_while_the_prompt_is_read_ends_there(shared: LocalBackend) -> None:
    model = model_of(shared)
    gate = Gate(model)
    cancel = CancelToken()
    got: list[Delta | Notice | Finish] = []
    reader = threading.Thread(target=lambda: got.extend(begun(shared, ask(), cancel)))
    reader.start()
    assert gate.reached.wait(TIMEOUT_S)
    cancel.cancel()
    gate.open.set()
    reader.join(TIMEOUT_S)
    gate.hook.remove()
    assert [item.reason for item in got if isinstance(item, Finish)] == ["abort"]
    assert len(got) == 1
    # It ended between two layers: no token was made.
    assert isinstance(got[0], Finish)
    assert got[0].usage.completion_tokens == 0


def test_cancelled_after_the_end_changes_nothing(shared: LocalBackend) -> None:
    cancel = CancelToken()
    *_, finish = shared.stream(ask(max_tokens=3, temperature=0), cancel)
    cancel.cancel()
    assert isinstance(finish, Finish)
    assert finish.reason == "length"
    assert read(shared, ask(max_tokens=3))[1].usage.completion_tokens == 3


def test_a_closed_iterator_frees_its_thread(shared: LocalBackend) -> None:
    items = begun(shared, ask(max_tokens=400))
    next(items)
    assert len(generating()) == 1
    items.close()
    assert generating() == []


def test_a_dropped_iterator_frees_its_thread(shared: LocalBackend) -> None:
    items = begun(shared, ask(max_tokens=400))
    next(items)
    assert len(generating()) == 1
    del items
    assert generating() == []


def test_an_iterator_that_was_never_read_starts_nothing(shared: LocalBackend) -> None:
    items = shared.stream(ask(max_tokens=400), CancelToken())
    assert generating() == []
    del items


def test_stopping_one_answer_leaves_the_other_alone(shared: LocalBackend) -> None:
    request = ask("Hello", max_tokens=60, seed=4)
    alone, _ = read(shared, request)
    cancel = CancelToken()
    stopped = begun(shared, ask("World", max_tokens=400), cancel)
    next(stopped)
    other = begun(shared, request)
    first = next(other)
    cancel.cancel()
    assert [item.reason for item in stopped if isinstance(item, Finish)] == ["abort"]
    *rest, finish = other
    assert isinstance(finish, Finish)
    assert finish.reason == "length"
    assert "".join(d.text for d in [first, *rest] if isinstance(d, Delta)) == alone


# Closing


def test_closing_stops_running_answers_and_refuses_new_ones(
    tiny_folder: Path, make_backend: Callable[..., LocalBackend]
) -> None:
    backend = make_backend(tiny_folder)
    items = begun(backend, ask(max_tokens=400))
    next(items)
    backend.close()
    assert [item.reason for item in items if isinstance(item, Finish)] == ["abort"]
    with pytest.raises(ShuttingDownError):
        read(backend, ask())


def test_closing_frees_the_model(
    tiny_folder: Path, make_backend: Callable[..., LocalBackend]
) -> None:
    backend = make_backend(tiny_folder)
    model = weakref.ref(model_of(backend))
    backend.close()
    gc.collect()
    assert model() is None
