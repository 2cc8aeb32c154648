"""How full the window is, counted in the background."""

from __future__ import annotations

import gc
import threading
import weakref
from collections.abc import Iterator
from concurrent.futures import Future, wait

import pytest

from llm.context_meter import ContextMeter, ContextUse
from llm.scripted_backend import ScriptedBackend
from llm.types import BackendStatus, CancelToken, GenerationRequest, Message

REQUEST = GenerationRequest((Message("user", "x" * 40), Message("assistant", "y" * 400)))
PATIENCE_S = 10


class Counted(ScriptedBackend):
    """Counts when it is let, and notes how often."""

    def __init__(self, tokens: int | None = 99) -> None:
        super().__init__(window_tokens=1000)
        self.tokens = tokens
        self.let = threading.Event()
        self.times = 0

    def count_tokens(self, request: GenerationRequest, cancel: CancelToken) -> int | None:
        self.times += 1
        forget = cancel.on_cancel(self.let.set)
        assert self.let.wait(PATIENCE_S)
        forget()
        return self.tokens


@pytest.fixture
def meter() -> Iterator[ContextMeter]:
    made = ContextMeter()
    yield made
    made.close()


def patiently(counting: Future[int | None]) -> None:
    wait([counting], PATIENCE_S)


def not_at_all(counting: Future[int | None]) -> None:
    pass


def test_an_estimate_until_the_count_is_there_which_is_made_once(meter: ContextMeter) -> None:
    backend = Counted()
    assert meter.use(backend, REQUEST, not_at_all) == ContextUse(118, False, 1000)
    assert meter.use(backend, REQUEST, not_at_all) == ContextUse(118, False, 1000)
    backend.let.set()
    assert meter.use(backend, REQUEST, patiently) == ContextUse(99, True, 1000)
    assert meter.use(backend, REQUEST, not_at_all) == ContextUse(99, True, 1000)
    assert backend.times == 1


def test_other_messages_and_other_models_are_counted_anew(meter: ContextMeter) -> None:
    backend = Counted()
    backend.let.set()
    meter.use(backend, REQUEST, patiently)
    meter.use(backend, GenerationRequest(REQUEST.messages, model="other"), patiently)
    meter.use(backend, GenerationRequest(REQUEST.messages[:1]), patiently)
    assert backend.times == 3


def test_what_couldnt_be_counted_is_tried_again(meter: ContextMeter) -> None:
    backend = Counted(tokens=None)
    backend.let.set()
    assert meter.use(backend, REQUEST, patiently) == ContextUse(118, False, 1000)
    backend.tokens = 99
    assert meter.use(backend, REQUEST, patiently) == ContextUse(99, True, 1000)


def test_nothing_said_is_nothing_used(meter: ContextMeter) -> None:
    backend = Counted()
    assert meter.use(backend, GenerationRequest(()), not_at_all) == ContextUse(0, True, 1000)
    assert backend.times == 0


def test_closing_ends_a_count_under_way(meter: ContextMeter) -> None:
    backend = Counted()
    meter.use(backend, REQUEST, not_at_all)
    meter.close()
    assert backend.let.wait(PATIENCE_S)
    assert meter.use(backend, GenerationRequest(REQUEST.messages[:1]), not_at_all).exact is False


def test_a_backend_that_fails_at_counting_is_an_estimate(meter: ContextMeter) -> None:
    class Broken(ScriptedBackend):
        def count_tokens(self, request: GenerationRequest, cancel: CancelToken) -> int | None:
            raise RuntimeError("broken")

    assert meter.use(Broken(), REQUEST, patiently) == ContextUse(118, False, None)


def test_another_model_behind_the_same_name_is_counted_anew(meter: ContextMeter) -> None:
    class Renamed(Counted):
        called = "one"

        def status(self) -> BackendStatus:
            return BackendStatus("ready", self.called)

    backend = Renamed()
    backend.let.set()
    meter.use(backend, REQUEST, patiently)
    backend.called = "two"
    meter.use(backend, REQUEST, patiently)
    assert backend.times == 2


def test_nothing_of_a_conversation_is_kept(meter: ContextMeter) -> None:
    class Words(str):
        """A text that can be watched."""

    backend = Counted()
    backend.let.set()
    text = Words("secret " * 10)
    watched = weakref.ref(text)
    meter.use(backend, GenerationRequest((Message("user", text),)), patiently)
    del text
    gc.collect()
    assert watched() is None
