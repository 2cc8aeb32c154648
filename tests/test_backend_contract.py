"""What every backend promises, held by one suite that runs over all of them.

`make test` runs it over the backends alone, `make test-vllm` over real servers.
"""

from __future__ import annotations

import gc
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import replace
from itertools import dropwhile
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import pytest

from llm.errors import LLMError, ServerParameterError, ShuttingDownError
from llm.patient_backend import PatientBackend
from llm.script import Script
from llm.scripted_backend import ScriptedBackend
from llm.types import (
    OPTIONAL_PARAMS,
    Backend,
    CancelToken,
    Delta,
    Fingerprint,
    Finish,
    GenerationRequest,
    Message,
    Notice,
    SamplingParams,
)
from llm.vllm_backend import VllmBackend
from tests.local_answers import Dictation
from tests.protocol_server import MODEL, Exchange, ProtocolServer, refusing, saying
from tests.servers.real_server import RealServer
from tests.tiny_model import make_tiny_model

if TYPE_CHECKING:
    from llm.local_backend import LocalBackend

pytest_plugins = "tests.servers.fixtures"

THOUGHT = "hm, a < b"
TAGGED = f"<think>{THOUGHT}</think>42"
TRICKY = "你好，世界！🙂 👨‍👩‍👧 é ไทย"
LONG = "Tell me a long story about a lighthouse."
SILENT = "silent " * 60
ASK_TRICKY = f"Repeat this tricky text: {TRICKY}"
AT_ONCE_S = 1.0


class Case(ABC):
    """A backend, and questions that bring it into each situation."""

    backend: Backend
    model: str
    """What the status must call it: each of these has a name of its own."""
    tricky_is_said = True
    refused: frozenset[str] = frozenset()
    """Parameters that whatever answers doesn't take."""
    goes_on = True
    """Whether whatever answers can go on with a text that was cut."""
    has_tokens = False
    """Whether a model reads the text that it goes on with: cut between other tokens than it chose
    by itself, it may say something else."""

    ready_at_once = False
    """Whether a new backend needs no getting ready."""

    @abstractmethod
    def another(self) -> Backend:
        """A second backend of the same configuration, which has done nothing yet."""

    @abstractmethod
    def failing(self) -> GenerationRequest:
        """A request that can't be answered."""

    @abstractmethod
    def thinking(self, *, closed: bool = True) -> GenerationRequest:
        """A request whose answer is THOUGHT and then 42, or ends before it has an answer."""

    def busy(self) -> int | None:
        """How many requests are held by whatever answers; None where that can't be seen."""
        return None

    def close(self) -> None:
        self.backend.close()


class ScriptedCase(Case):
    model = "scripted"
    ready_at_once = True

    def __init__(self) -> None:
        self.backend = self.scripted = self.another()

    def another(self) -> ScriptedBackend:
        slow = {"tokens_per_s": 200.0, "chunk_chars": 4}
        return ScriptedBackend(
            Script("{question} " * 3),
            [
                ("long", Script("{question} " * 999, **slow)),  # type: ignore[arg-type]
                ("silent", Script("x", prefill_s=60)),
                ("tricky", Script(TRICKY, chunk_chars=1)),
                ("fail", Script("x", fail_after=1)),
                ("think", Script("42", reasoning=THOUGHT)),
                ("unclosed", Script(reasoning=THOUGHT)),
            ],
        )

    def failing(self) -> GenerationRequest:
        return ask("fail")

    def thinking(self, *, closed: bool = True) -> GenerationRequest:
        return ask("think" if closed else "unclosed")

    def busy(self) -> int:
        return self.scripted.running


class VllmCase(Case):
    model = MODEL

    def __init__(self) -> None:
        self.server = ProtocolServer()
        self.server.__enter__()
        self.server.when("", self._echo)
        self.server.when("long", self._echo_slowly)
        self.server.when("silent", self._silence)
        self.server.when("tricky", saying(list(TRICKY)))
        self.server.when("fail", refusing(500, {}))
        self.server.when("think", saying(list(TAGGED)))
        self.server.when("unclosed", saying(list(TAGGED.partition("/")[0])))
        self.server.tokenize_handler = refusing(200, {"count": 3, "tokens": [1, 2, 3]})
        self.backend = self.another()

    def another(self) -> Backend:
        return VllmBackend(self.server.url)

    def failing(self) -> GenerationRequest:
        return ask("fail")

    def thinking(self, *, closed: bool = True) -> GenerationRequest:
        return ask("think" if closed else "unclosed")

    def busy(self) -> int:
        return sum(not exchange.over.is_set() for exchange in self.server.exchanges)

    def close(self) -> None:
        super().close()
        self.server.stop()

    @staticmethod
    async def _echo(exchange: Exchange) -> None:
        await saying([exchange.question, " "] * 3)(exchange)

    @staticmethod
    async def _echo_slowly(exchange: Exchange) -> None:
        await saying([exchange.question, " "] * 999, gap_s=0.005)(exchange)

    @staticmethod
    async def _silence(exchange: Exchange) -> None:
        await exchange.head()
        await exchange.hold()


class PatientCase(VllmCase):
    def another(self) -> Backend:
        return PatientBackend(VllmBackend(self.server.url))


class LocalCase(Case):
    tricky_is_said = False  # its weights are random
    has_tokens = True

    def __init__(self, folder: Path, data_dir: Path, batching: Literal["on", "off"]) -> None:
        from llm.local_backend import LocalOptions

        self.options = LocalOptions(data_dir, str(folder), slots=4, threads=1, batching=batching)
        self.backend = self.local = self.another()
        self.model = folder.name

    def another(self) -> LocalBackend:
        from llm.local_backend import LocalBackend

        return LocalBackend(self.options)

    def failing(self) -> GenerationRequest:
        return ask("far too long " * 999)

    def thinking(self, *, closed: bool = True) -> GenerationRequest:
        Dictation(self.local, TAGGED if closed else TAGGED.partition("/")[0])
        return ask("think")


class RealCase(Case):
    """A real server with a real model, which can't be told what to say."""

    tricky_is_said = False
    has_tokens = True

    def thinking(self, *, closed: bool = True) -> GenerationRequest:
        pytest.skip("its model doesn't reason")


class RealVllmCase(RealCase):
    def __init__(self, server: RealServer) -> None:
        self.server = server
        self.model = server.model
        self.backend = self.another()

    def another(self) -> Backend:
        return VllmBackend(self.server.url, api_key=self.server.key)

    def failing(self) -> GenerationRequest:
        return ask("far too long " * 2000)

    def busy(self) -> int:
        return self.server.requests_held()


class TransformersServeCase(RealCase):
    refused = frozenset({"top_k", "min_p", "repetition_penalty"})
    goes_on = False  # it always opens a new turn, and refuses the fields that ask it not to

    def __init__(self, server: RealServer) -> None:
        self.server = server
        self.model = Path(server.model).name  # it goes by its folder's whole path
        self.backend = self.another()

    def another(self) -> Backend:
        return VllmBackend(self.server.url)

    def failing(self) -> GenerationRequest:
        # It refuses little: it goes on past the window, too.
        return GenerationRequest(())


KINDS = [
    "scripted",
    "vllm",
    "patient",
    "local-batched",
    "local-plain",
    pytest.param("real-vllm", marks=pytest.mark.vllm),
    pytest.param("transformers-serve", marks=pytest.mark.vllm),
]


@pytest.fixture(scope="session")
def tiny_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_tiny_model(tmp_path_factory.mktemp("tiny"))


@pytest.fixture(params=KINDS)
def case(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Case]:
    made: Case
    if request.param == "scripted":
        made = ScriptedCase()
    elif request.param == "vllm":
        made = VllmCase()
    elif request.param == "patient":
        made = PatientCase()
    elif request.param in ("local-batched", "local-plain"):
        batching: Literal["on", "off"] = "on" if request.param == "local-batched" else "off"
        made = LocalCase(request.getfixturevalue("tiny_folder"), tmp_path, batching)
    elif request.param == "real-vllm":
        made = RealVllmCase(request.getfixturevalue("vllm"))
    elif request.param == "transformers-serve":
        made = TransformersServeCase(request.getfixturevalue("transformers_serve"))
    else:
        raise AssertionError(f"no case for {request.param}")
    # What a first answer starts for good, such as an event loop, is no leak of a later one.
    list(made.backend.stream(ask("first", max_tokens=1), CancelToken()))
    yield made
    made.close()


@pytest.fixture
def backend(case: Case) -> Backend:
    return case.backend


def ask(
    question: str, *, max_tokens: int = 400, temperature: float = 0.0, stop: tuple[str, ...] = ()
) -> GenerationRequest:
    params = SamplingParams(temperature=temperature, max_tokens=max_tokens, seed=7, stop=stop)
    return GenerationRequest((Message("user", question),), params)


def going_on(request: GenerationRequest, text: str, *, max_tokens: int) -> GenerationRequest:
    """The request for what comes after that text in the request's answer."""
    return replace(
        request,
        messages=(*request.messages, Message("assistant", text)),
        params=replace(request.params, max_tokens=max_tokens),
    )


def text_of(items: list[Delta | Notice | Finish]) -> str:
    return "".join(item.text for item in items if isinstance(item, Delta))


def threads() -> set[threading.Thread]:
    return set(threading.enumerate())


def becomes(condition: object, timeout_s: float = AT_ONCE_S) -> bool:
    """Wait for what other threads and processes do, which have no event to wait on."""
    deadline_s = time.monotonic() + timeout_s
    while not condition():  # type: ignore[operator]
        if time.monotonic() > deadline_s:
            return False
        time.sleep(0.005)
    return True


def all_is_freed(case: Case, before: set[threading.Thread]) -> bool:
    """No thread of ours is left, and nothing is held where that can be seen."""
    return becomes(lambda: not case.busy() and threads() <= before)


def is_worked_on(case: Case) -> bool:
    """Whether one request is held: else that none is, a moment later, would prove nothing.

    `transformers serve` tells nobody what it works on, so with it only our side of a stop is held
    by these tests. The local model works on a thread of ours, which `all_is_freed` looks for.
    """
    return case.busy() is None or becomes(lambda: case.busy() == 1)


def assert_is_an_answer(items: list[Delta | Notice | Finish]) -> Finish:
    """Notices, then zero or more deltas, none empty, all of whole characters, then one finish."""
    *before, finish = items
    assert isinstance(finish, Finish)
    deltas = list(dropwhile(lambda item: isinstance(item, Notice), before))
    for delta in deltas:
        assert isinstance(delta, Delta)
        assert delta.text
        assert "\ufffd" not in delta.text
        delta.text.encode("utf-8")
    return finish


def test_it_has_a_name_and_slots(case: Case) -> None:
    backend = case.backend
    assert backend.name in ("scripted", "vllm", "local")
    assert backend.slots >= 1
    assert backend.status().ready
    assert backend.status().model == case.model


def test_an_answer_is_deltas_and_then_one_finish(backend: Backend) -> None:
    finish = assert_is_an_answer(list(backend.stream(ask("hello", max_tokens=20), CancelToken())))
    assert finish.reason in ("stop", "length")
    assert finish.usage.completion_tokens is not None
    assert 0 < finish.usage.completion_tokens <= 20
    assert finish.usage.prompt_tokens is not None
    assert finish.usage.prompt_tokens > 0


@pytest.mark.parametrize("limit", [1, 5])
def test_max_tokens_is_the_most_there_is(backend: Backend, limit: int) -> None:
    items = list(backend.stream(ask(LONG, max_tokens=limit), CancelToken()))
    finish = assert_is_an_answer(items)
    assert finish.reason == "length"
    assert finish.usage.completion_tokens == limit
    pieces = [item for item in items if not isinstance(item, Notice)]
    assert len(pieces) <= limit + 1 + 1  # a held-back character may come by itself


@pytest.mark.parametrize(("at", "length"), [(0, 1), (1, 4), (5, 2), (9, 6)])
def test_an_answer_ends_before_a_stop_string(backend: Backend, at: int, length: int) -> None:
    whole = text_of(list(backend.stream(ask("hello there", max_tokens=30), CancelToken())))
    stop = whole[at : at + length]
    assert len(stop) == length
    request = ask("hello there", max_tokens=30, stop=("never said", stop))
    items = list(backend.stream(request, CancelToken()))
    finish = assert_is_an_answer(items)
    assert text_of(items) == whole[: whole.index(stop)]
    assert finish.reason == "stop"


def test_a_stop_string_that_never_comes_changes_nothing(backend: Backend) -> None:
    whole = text_of(list(backend.stream(ask("hello there", max_tokens=30), CancelToken())))
    request = ask("hello there", max_tokens=30, stop=(whole[-2:] + "§", "never said"))
    assert text_of(list(backend.stream(request, CancelToken()))) == whole


def test_every_parameter_is_taken_or_named(case: Case) -> None:
    params = SamplingParams(
        temperature=1.0,
        top_p=0.9,
        max_tokens=5,
        seed=1,
        top_k=20,
        min_p=0.01,
        repetition_penalty=1.1,
        presence_penalty=0.5,
        frequency_penalty=0.5,
        stop=("never said",),
    )
    if case.refused:
        with pytest.raises(ServerParameterError) as caught:
            list(case.backend.stream(asking(params), CancelToken()))
        assert set(caught.value.parameters) == case.refused
        params = replace(params, **dict.fromkeys(case.refused))
    assert_is_an_answer(list(case.backend.stream(asking(params), CancelToken())))
    left_out: dict[str, object] = dict.fromkeys(OPTIONAL_PARAMS) | {"stop": ()}
    bare = SamplingParams(max_tokens=5, **left_out)  # type: ignore[arg-type]
    assert_is_an_answer(list(case.backend.stream(asking(bare), CancelToken())))


def asking(params: SamplingParams) -> GenerationRequest:
    return GenerationRequest((Message("user", "hello"),), params)


def test_characters_arrive_whole(case: Case) -> None:
    items = list(case.backend.stream(ask(ASK_TRICKY, max_tokens=100), CancelToken()))
    assert_is_an_answer(items)
    if case.tricky_is_said:
        assert text_of(items) == TRICKY


@pytest.mark.parametrize("tokens", [1, 2, 3, 4, 7])
def test_an_answer_that_was_cut_goes_on_without_a_seam(case: Case, tokens: int) -> None:
    request = ask("hello there", max_tokens=24)
    whole = text_of(list(case.backend.stream(request, CancelToken())))
    cut = replace(request, params=replace(request.params, max_tokens=tokens))
    start = text_of(list(case.backend.stream(cut, CancelToken())))
    assert whole.startswith(start)
    rest = going_on(request, start, max_tokens=24 - tokens)
    items = list(case.backend.stream(rest, CancelToken()))
    finish = assert_is_an_answer(items)
    assert finish.usage.completion_tokens is not None
    assert finish.usage.completion_tokens <= 24 - tokens
    if case.goes_on and cut_between_its_tokens(case, request, start, tokens):
        assert start + text_of(items) == whole
    elif tokens <= 2:
        assert not (case.goes_on and case.has_tokens), "no cut came between its tokens"


def cut_between_its_tokens(case: Case, request: GenerationRequest, start: str, tokens: int) -> bool:
    """Whether the model reads the text as just the tokens that it had chosen."""
    if not case.has_tokens:
        return True
    counts = [
        case.backend.count_tokens(going_on(request, text, max_tokens=1), CancelToken())
        for text in ("", start)
    ]
    assert counts[0] is not None
    assert counts[1] is not None
    return counts[1] - counts[0] == tokens


@pytest.mark.parametrize("tail", ["", " ", "\n\n", "    ", "wor", "你好", "🙂", "`", "<thi"])
def test_it_goes_on_whatever_the_text_ends_in(case: Case, tail: str) -> None:
    start = f"As I said before, {tail}"
    request = going_on(ask("hello there"), start, max_tokens=8)
    items = list(case.backend.stream(request, CancelToken()))
    assert_is_an_answer(items)
    assert {item.kind for item in items if isinstance(item, Delta)} == {"text"}
    assert not text_of(items).startswith(start)


def test_stop_strings_are_looked_for_in_what_is_new(case: Case) -> None:
    request = ask("hello there", max_tokens=30)
    start = text_of(list(case.backend.stream(request, CancelToken())))[:5]
    rest_of = going_on(request, start, max_tokens=20)
    rest = text_of(list(case.backend.stream(rest_of, CancelToken())))
    over_the_seam = start[-2:] + rest[:2]
    params = replace(rest_of.params, stop=(over_the_seam,))
    items = list(case.backend.stream(replace(rest_of, params=params), CancelToken()))
    assert text_of(items) == rest.partition(over_the_seam)[0]


def test_reasoning_comes_before_the_answer_and_apart_from_it(case: Case) -> None:
    items = list(case.backend.stream(case.thinking(), CancelToken()))
    assert assert_is_an_answer(items).reason == "stop"
    kinds = [item.kind for item in items if isinstance(item, Delta)]
    assert kinds == sorted(kinds)  # reasoning < text
    told = {
        kind: text_of([item for item in items if isinstance(item, Delta) and item.kind == kind])
        for kind in kinds
    }
    assert told == {"reasoning": THOUGHT, "text": "42"}


def test_reasoning_that_is_not_finished_is_never_the_answer(case: Case) -> None:
    items = list(case.backend.stream(case.thinking(closed=False), CancelToken()))
    assert assert_is_an_answer(items).reason == "stop"
    deltas = [item for item in items if isinstance(item, Delta)]
    assert {delta.kind for delta in deltas} == {"reasoning"}
    assert THOUGHT in text_of(items)


def test_several_answers_at_once_do_not_mix(case: Case) -> None:
    backend = case.backend
    questions = ["Name three animals.", "Name three colours.", "What is the capital of France?"]
    alone = [
        text_of(list(backend.stream(ask(question, max_tokens=40), CancelToken())))
        for question in questions
    ]
    assert len(set(alone)) == 3
    together: dict[str, str] = {}
    line = threading.Barrier(3)

    def read(question: str) -> None:
        line.wait(5)
        items = list(backend.stream(ask(question, max_tokens=40), CancelToken()))
        together[question] = text_of(items)

    readers = [threading.Thread(target=read, args=(question,)) for question in questions]
    for reader in readers:
        reader.start()
    for reader in readers:
        reader.join(30)
    assert [together.get(question) for question in questions] == alone


def test_a_failure_is_an_error_of_the_tree_and_the_next_question_works(case: Case) -> None:
    before = threads()
    with pytest.raises(LLMError) as caught:
        list(case.backend.stream(case.failing(), CancelToken()))
    assert str(caught.value)
    assert all_is_freed(case, before)
    finish = assert_is_an_answer(list(case.backend.stream(ask("hi", max_tokens=3), CancelToken())))
    assert finish.reason in ("stop", "length")


# Cancelling.


def test_a_cancel_before_the_start_asks_nothing(case: Case) -> None:
    before = threads()
    cancel = CancelToken()
    cancel.cancel()
    items = list(case.backend.stream(ask(LONG), cancel))
    finish = assert_is_an_answer(items)
    assert (finish.reason, len(items)) == ("abort", 1)
    assert all_is_freed(case, before)


def test_a_cancel_before_the_first_token_ends_at_once(case: Case) -> None:
    before = threads()
    cancel = CancelToken()
    items: list[Delta | Notice | Finish] = []
    reader = threading.Thread(target=lambda: items.extend(case.backend.stream(ask(SILENT), cancel)))
    reader.start()
    reader.join(0.03)  # on its way, or not yet: either must do
    began_s = time.monotonic()
    cancel.cancel()
    reader.join(5)
    assert time.monotonic() - began_s < AT_ONCE_S
    assert assert_is_an_answer(items).reason == "abort"
    assert all_is_freed(case, before)


def test_a_cancel_in_mid_answer_keeps_what_came_and_frees_the_rest(case: Case) -> None:
    before = threads()
    cancel = CancelToken()
    stream = case.backend.stream(ask(LONG), cancel)
    items: list[Delta | Notice | Finish] = [next(stream), next(stream), next(stream)]
    assert is_worked_on(case)
    began_s = time.monotonic()
    cancel.cancel()
    cancel.cancel()
    rest = list(stream)
    assert all_is_freed(case, before)
    assert time.monotonic() - began_s < AT_ONCE_S
    assert assert_is_an_answer(items + rest).reason == "abort"
    assert len(rest) <= 2, "more than one token came after the cancel"


def test_a_cancel_from_another_thread_wakes_a_waiting_reader(case: Case) -> None:
    before = threads()
    cancel = CancelToken()
    items: list[Delta | Notice | Finish] = []
    came = threading.Event()

    def read() -> None:
        for item in case.backend.stream(ask(LONG), cancel):
            items.append(item)
            if len(items) == 3:
                came.set()

    reader = threading.Thread(target=read)
    reader.start()
    assert came.wait(10)
    assert is_worked_on(case)
    cancel.cancel()
    reader.join(AT_ONCE_S)
    assert not reader.is_alive()
    assert assert_is_an_answer(items).reason == "abort"
    assert all_is_freed(case, before)


def test_a_cancel_after_the_end_changes_nothing(case: Case) -> None:
    before = threads()
    cancel = CancelToken()
    stream = case.backend.stream(ask("hello", max_tokens=3), cancel)
    items = list(stream)
    cancel.cancel()
    assert list(stream) == []
    assert assert_is_an_answer(items).reason != "abort"
    assert all_is_freed(case, before)


def test_after_a_cancel_the_next_question_works(case: Case) -> None:
    for _ in range(5):
        cancel = CancelToken()
        stream = case.backend.stream(ask(LONG), cancel)
        next(stream)
        cancel.cancel()
        list(stream)
    finish = assert_is_an_answer(list(case.backend.stream(ask("hi", max_tokens=3), CancelToken())))
    assert finish.reason in ("stop", "length")


def test_a_cancel_leaves_other_answers_alone(case: Case) -> None:
    other = list(case.backend.stream(ask(f"{LONG} One", max_tokens=60), CancelToken()))
    items: list[Delta | Notice | Finish] = []
    reader = threading.Thread(
        target=lambda: items.extend(
            case.backend.stream(ask(f"{LONG} One", max_tokens=60), CancelToken())
        )
    )
    cancel = CancelToken()
    stream = case.backend.stream(ask(f"{LONG} Two"), cancel)
    next(stream)
    reader.start()
    cancel.cancel()
    assert assert_is_an_answer(list(stream)).reason == "abort"
    reader.join(30)
    assert text_of(items) == text_of(other)
    assert assert_is_an_answer(items).reason == "length"


@pytest.mark.parametrize("how", ["close", "del"])
@pytest.mark.parametrize("pieces", [0, 3])
def test_an_abandoned_iterator_frees_what_it_holds(case: Case, how: str, pieces: int) -> None:
    before = threads()
    stream = case.backend.stream(ask(LONG), CancelToken())
    for _ in range(pieces):
        next(stream)
    assert not pieces or is_worked_on(case)
    if how == "close":
        stream.close()
    else:
        del stream
        gc.collect()
    assert all_is_freed(case, before)


def test_the_cancel_token_is_let_go_at_the_end(case: Case) -> None:
    """A token may outlive its answer: it must not keep the answer alive, or call into it."""
    cancel = CancelToken()
    list(case.backend.stream(ask("hello", max_tokens=2), cancel))
    assert cancel._callbacks == []


# What answers.


def known(backend: Backend) -> Fingerprint:
    """The fingerprint, waiting for what is learned in the background."""
    assert becomes(lambda: backend.fingerprint(ask("hi")) is not None, 60)
    told = backend.fingerprint(ask("hi"))
    assert told is not None
    return told


def finish_of(backend: Backend, request: GenerationRequest) -> Finish:
    return assert_is_an_answer(list(backend.stream(request, CancelToken())))


def test_the_fingerprint_stays_from_question_to_question(case: Case) -> None:
    before = known(case.backend)
    assert before.kind == case.backend.name
    assert before.model
    assert before.revision
    for question in ("hello", "something else"):
        finish = finish_of(case.backend, ask(question, max_tokens=3))
        assert finish.fingerprint == before
        assert case.backend.fingerprint(ask(question)) == before


def test_an_answer_cut_by_a_stop_string_tells_what_gave_it(case: Case) -> None:
    before = known(case.backend)
    whole = text_of(list(case.backend.stream(ask("hello there", max_tokens=30), CancelToken())))
    finish = finish_of(case.backend, ask("hello there", max_tokens=30, stop=(whole[3:6],)))
    assert finish.reason == "stop"
    assert finish.fingerprint == before


def test_an_aborted_answer_is_nobodys(case: Case) -> None:
    known(case.backend)
    cancel = CancelToken()
    stream = case.backend.stream(ask(LONG), cancel)
    next(stream)
    cancel.cancel()
    finish = list(stream)[-1]
    assert isinstance(finish, Finish)
    assert (finish.reason, finish.fingerprint) == ("abort", None)


def test_a_backend_of_the_same_configuration_has_the_same_fingerprint(case: Case) -> None:
    second = case.another()
    try:
        told = second.fingerprint(ask("hi"))
        assert (told is not None) == case.ready_at_once
        second.prepare()
        assert known(second) == known(case.backend)
        assert finish_of(second, ask("hello", max_tokens=3)).fingerprint == known(case.backend)
    finally:
        second.close()
    assert second.fingerprint(ask("hi")) is None


def test_the_fingerprint_is_quick_while_it_answers(case: Case) -> None:
    known(case.backend)
    stream = case.backend.stream(ask(LONG), CancelToken())
    next(stream)
    took_ms = []
    for _ in range(50):
        began_s = time.perf_counter()
        assert case.backend.fingerprint(ask(LONG)) is not None
        took_ms.append(1000 * (time.perf_counter() - began_s))
    stream.close()
    assert min(took_ms) < 1


# Being ready.


def test_the_status_is_quick_while_it_answers(case: Case) -> None:
    stream = case.backend.stream(ask(LONG), CancelToken())
    next(stream)
    took_ms = []
    worked_s = time.thread_time()
    for _ in range(50):
        began_s = time.perf_counter()
        assert case.backend.status().ready
        took_ms.append(1000 * (time.perf_counter() - began_s))
    worked_s = time.thread_time() - worked_s
    stream.close()
    # A status that waits for the answer waits each time; a busy machine interrupts some only.
    assert min(took_ms) < 5
    assert worked_s / 50 < 0.005


def test_prepare_may_be_called_again_and_again(case: Case) -> None:
    before = threads()
    began_s = time.monotonic()
    for _ in range(20):
        case.backend.prepare()
    assert time.monotonic() - began_s < AT_ONCE_S
    assert case.backend.status().ready
    assert all_is_freed(case, before)


def test_after_close_nothing_hangs(case: Case) -> None:
    backend = case.backend
    outcome: list[object] = []

    def read() -> None:
        try:
            outcome.extend(backend.stream(ask(LONG), CancelToken()))
        except LLMError as error:
            outcome.append(error)

    reader = threading.Thread(target=read)
    reader.start()
    assert becomes(lambda: len(outcome) > 2, 10)
    began_s = time.monotonic()
    backend.close()
    backend.close()
    reader.join(5)
    assert not reader.is_alive()
    assert time.monotonic() - began_s < 5  # a model's memory takes its time
    last = outcome[-1]
    cut = isinstance(last, ShuttingDownError)
    cut = cut or (isinstance(last, Finish) and last.reason == "abort")
    assert cut, "an answer that was cut must not look whole"
    backend.prepare()
    assert not backend.status().ready
    with pytest.raises(ShuttingDownError):
        list(backend.stream(ask("hello"), CancelToken()))
