"""Several answers in one batch: each is what it would be alone, whatever befalls the others."""

from __future__ import annotations

import gc
import threading
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from llm.errors import InternalError, LLMError, MemoryWindowError, OutOfMemoryError
from llm.local_backend import LocalBackend, LocalOptions
from llm.local_batch import Batch
from llm.local_ragged import Part
from llm.types import CancelToken, Delta, Finish, GenerationRequest, Notice
from tests.local_answers import (
    TIMEOUT_S,
    Gate,
    Outcome,
    Trouble,
    ask,
    at_once,
    begun,
    generating,
    model_of,
    outcome_of,
    read,
)

pytest_plugins = "tests.local_fixtures"
pytestmark = pytest.mark.usefixtures("no_generating_thread_is_left")

QUESTIONS = ["Hello", "你好，世界！", "What is the capital of France?", "The quick brown fox " * 5]
Items = list[Delta | Finish]


@pytest.fixture(scope="module")
def batched(tiny_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalBackend]:
    """Four places in the batch; more than four ask."""
    options = LocalOptions(
        tmp_path_factory.mktemp("data"), str(tiny_folder), slots=4, batching="on"
    )
    backend = LocalBackend(options)
    yield backend
    backend.close()


@pytest.fixture
def batch(batched: LocalBackend) -> Batch:
    model_of(batched)
    assert batched._loaded is not None
    assert batched._loaded.batch is not None
    return batched._loaded.batch


class Passes:
    """Writes down what each pass reads: how many tokens of each answer."""

    def __init__(self, batch: Batch, monkeypatch: pytest.MonkeyPatch) -> None:
        self.counts: list[list[int]] = []
        self.fails: Callable[[list[Part]], BaseException | None] = lambda parts: None
        logits = batch._model.logits

        def watched(parts: list[Part], wanted: list[int]) -> Any:
            self.counts.append([len(part.ids) for part in parts])
            if (error := self.fails(parts)) is not None:
                raise error
            return logits(parts, wanted)

        monkeypatch.setattr(batch._model, "logits", watched)


@pytest.fixture
def passes(batch: Batch, monkeypatch: pytest.MonkeyPatch) -> Passes:
    return Passes(batch, monkeypatch)


def requests(count: int, *, sampled: bool = False) -> list[GenerationRequest]:
    """Different prompts of different lengths, with answers of different lengths."""
    return [
        ask(
            f"{number} {QUESTIONS[number % len(QUESTIONS)]}",
            max_tokens=20 + 3 * number,
            **({"seed": number, "temperature": 1.2} if sampled else {}),
        )
        for number in range(count)
    ]


def alone(backend: LocalBackend, asked: list[GenerationRequest]) -> list[Outcome]:
    return [read(backend, request) for request in asked]


# In company


@pytest.mark.parametrize("sampled", [False, True])
def test_twelve_at_once_are_each_what_they_are_alone(
    batched: LocalBackend, passes: Passes, sampled: bool
) -> None:
    asked = requests(12, sampled=sampled)
    expected = alone(batched, asked)
    assert len({text for text, _ in expected}) == 12
    assert max(map(len, passes.counts)) == 1
    assert at_once(batched, asked) == expected
    assert max(map(len, passes.counts)) == 4


def test_each_has_its_own_parameters(batched: LocalBackend, passes: Passes) -> None:
    asked = [
        ask(max_tokens=40, temperature=0),
        ask(max_tokens=40, seed=1, temperature=2, top_p=1),
        ask(max_tokens=40, seed=1, temperature=2, top_k=3),
        ask(max_tokens=40, temperature=0, repetition_penalty=1.5),
        ask(max_tokens=40, temperature=0, presence_penalty=2, frequency_penalty=1),
        ask(max_tokens=40, temperature=0, stop=("owowo",)),
        ask(max_tokens=40, seed=1, temperature=2, min_p=0.9),
    ]
    expected = alone(batched, asked)
    assert len({text for text, _ in expected}) == len(asked)
    assert at_once(batched, asked) == expected
    assert max(map(len, passes.counts)) == 4


def test_both_ways_of_answering_say_the_same(
    batched: LocalBackend, tiny_folder: Path, make_backend: Callable[..., LocalBackend]
) -> None:
    plain = make_backend(tiny_folder, batching="off")
    asked = [*requests(3), *requests(3, sampled=True), ask(max_tokens=30, stop=("e",))]
    assert alone(plain, asked) == at_once(batched, asked)
    assert batched.status().batched
    assert not plain.status().batched


def test_who_comes_later_begins_while_others_are_answered(
    batched: LocalBackend, passes: Passes
) -> None:
    first = begun(batched, ask(max_tokens=400))
    next(first)
    text, _ = read(batched, ask("Another", max_tokens=5))
    first.close()
    assert [1, 1] in passes.counts
    assert text == read(batched, ask("Another", max_tokens=5))[0]


def test_those_who_ask_at_the_same_moment_are_read_in_one_pass(
    batched: LocalBackend, batch: Batch, passes: Passes
) -> None:
    with batch.coming():
        # Whoever prepares a prompt at this moment is waited for.
        outcomes = at_once(batched, requests(3))
    assert all(text for text, _ in outcomes)
    assert len(passes.counts[0]) == 3


def test_who_reads_slowly_holds_up_nobody(batched: LocalBackend) -> None:
    slow, other = ask("Hello", max_tokens=200), ask("World", max_tokens=200)
    expected = alone(batched, [slow, other])
    unread = begun(batched, slow)
    first = next(unread)
    assert isinstance(first, Delta)
    assert read(batched, other) == expected[1]
    text, end = outcome_of(unread)
    assert (first.text + text, end) == expected[0]


def test_a_long_prompt_is_read_in_pieces_while_others_are_answered(
    batched: LocalBackend, batch: Batch, passes: Passes, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = [ask("x" * 380, max_tokens=5), ask(max_tokens=60)]
    expected = alone(batched, asked)
    monkeypatch.setattr(batch, "_learn_speed", lambda took_s, read: None)
    monkeypatch.setattr(batch, "_speed", 200.0)  # tokens a second
    passes.counts.clear()
    short = begun(batched, asked[1])
    first = next(short)
    assert isinstance(first, Delta)
    assert read(batched, asked[0]) == expected[0]
    text, end = outcome_of(short)
    assert (first.text + text, end) == expected[1]
    in_company = [counts for counts in passes.counts if len(counts) == 2]
    pieces = [counts[1] for counts in in_company if counts[1] > 1]
    assert len(pieces) > 3
    assert max(pieces) == 50
    assert all(counts[0] == 1 for counts in in_company), "the other had to wait"


# Stopping


def test_a_cancel_in_the_middle_leaves_the_others_as_they_are(batched: LocalBackend) -> None:
    asked = requests(3, sampled=True)
    expected = alone(batched, asked)
    cancel = CancelToken()
    stopped = begun(batched, ask("Stop me", max_tokens=400), cancel)
    next(stopped)
    others: list[Outcome] = []

    def run() -> None:
        others.extend(at_once(batched, asked))

    reader = threading.Thread(target=run)
    reader.start()
    next(stopped)
    cancel.cancel()
    rest = list(stopped)
    reader.join(TIMEOUT_S)
    assert others == expected
    assert len(rest) == 1
    assert isinstance(rest[0], Finish)
    assert rest[0].reason == "abort"


def test_a_cancel_while_a_long_prompt_is_read_ends_there(
    batched: LocalBackend, batch: Batch, passes: Passes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batch, "_learn_speed", lambda took_s, read: None)
    monkeypatch.setattr(batch, "_speed", 32.0)
    gate = Gate(model_of(batched), at_token=4)
    passes.counts.clear()
    cancel = CancelToken()
    items: Items = []
    reader = threading.Thread(target=lambda: items.extend(begun(batched, ask("x" * 380), cancel)))
    reader.start()
    assert gate.reached.wait(TIMEOUT_S)
    cancel.cancel()
    gate.open.set()
    reader.join(TIMEOUT_S)
    gate.hook.remove()
    assert [item.reason for item in items if isinstance(item, Finish)] == ["abort"]
    assert len(items) == 1
    assert passes.counts == [[32]] * 4, "it was read to its end"


def test_who_waits_for_a_place_can_leave(batched: LocalBackend) -> None:
    gate = Gate(model_of(batched), at_token=1)
    running = [begun(batched, ask(max_tokens=400)) for _ in range(4)]
    readers = [threading.Thread(target=next, args=(stream,)) for stream in running]
    for reader in readers:
        reader.start()
    assert gate.reached.wait(TIMEOUT_S)
    cancel = CancelToken()
    items: Items = []
    fifth = threading.Thread(target=lambda: items.extend(begun(batched, ask(), cancel)))
    fifth.start()
    cancel.cancel()
    fifth.join(TIMEOUT_S)
    assert [item.reason for item in items if isinstance(item, Finish)] == ["abort"]
    gate.open.set()
    gate.hook.remove()
    for reader, stream in zip(readers, running, strict=True):
        reader.join(TIMEOUT_S)
        stream.close()


def test_a_reader_that_the_garbage_collector_ends_in_the_batchs_own_thread_stops(
    batched: LocalBackend,
) -> None:
    forgotten = begun(batched, ask(max_tokens=400))
    next(forgotten)

    def collect(*_: Any) -> None:
        hook.remove()
        forgotten.close()

    hook = model_of(batched).register_forward_pre_hook(collect)
    assert read(batched, ask("Another", max_tokens=20))[1].reason == "length"
    assert outcome_of(forgotten) == ("", None)


# Faults

KINDS = [RuntimeError("CUDA error: device-side assert"), KeyError("x"), SystemExit(1)]


@pytest.mark.parametrize("error", [*KINDS, MemoryError(), torch.OutOfMemoryError("CUDA")])
def test_a_pass_that_fails_once_in_company_ends_nobody(
    batched: LocalBackend, passes: Passes, error: BaseException
) -> None:
    asked = requests(4, sampled=True)
    expected = alone(batched, asked)
    in_company = 0

    def fails(parts: list[Part]) -> BaseException | None:
        nonlocal in_company
        in_company += len(parts) > 1
        return error if len(parts) > 1 and in_company == 5 else None

    passes.fails = fails
    assert at_once(batched, asked) == expected
    assert in_company >= 5


@pytest.mark.parametrize("error", [RuntimeError("CUDA error"), torch.OutOfMemoryError("CUDA")])
def test_tokens_that_cannot_be_read_from_the_device_are_chosen_again_as_they_were(
    batched: LocalBackend, monkeypatch: pytest.MonkeyPatch, error: BaseException
) -> None:
    asked = [
        ask(max_tokens=40, seed=1, temperature=2),
        ask(max_tokens=40, temperature=0, frequency_penalty=1),
        ask(max_tokens=40, temperature=0, repetition_penalty=1.5),
    ]
    expected = alone(batched, asked)
    stack, in_company = torch.stack, 0

    def stacked(tensors: list[Any], *args: Any, **kwargs: Any) -> Any:
        nonlocal in_company
        is_read = len(tensors) > 1 and not tensors[0].shape and not tensors[0].is_floating_point()
        in_company += is_read
        if is_read and in_company in (1, 9):
            raise error
        return stack(tensors, *args, **kwargs)

    monkeypatch.setattr(torch, "stack", stacked)
    assert at_once(batched, asked) == expected
    assert in_company >= 9


@pytest.mark.parametrize("error", KINDS)
def test_an_answer_that_the_model_fails_at_ends_alone(
    batched: LocalBackend, batch: Batch, passes: Passes, error: BaseException
) -> None:
    asked = requests(4)
    expected = alone(batched, asked)
    poisoned: dict[object, int] = {}

    def fails(parts: list[Part]) -> BaseException | None:
        if not poisoned and len(parts) == 4 and all(len(part.ids) == 1 for part in parts):
            poisoned[parts[2].memory] = parts[2].memory.length + 5
        lengths = ((part.memory.length, poisoned.get(part.memory, 1_000_000)) for part in parts)
        return error if any(length > limit for length, limit in lengths) else None

    passes.fails = fails
    outcomes = at_once(batched, asked)
    ended = [number for number in range(4) if isinstance(outcomes[number][1], LLMError)]
    assert len(ended) == 1
    text, failure = outcomes[ended[0]]
    assert isinstance(failure, InternalError)
    assert text, "what had come is lost"
    assert expected[ended[0]][0].startswith(text)
    for number in set(range(4)) - set(ended):
        assert outcomes[number] == expected[number]
    passes.fails = lambda parts: None
    assert at_once(batched, asked) == expected


@pytest.mark.parametrize("most", [1, 2])
def test_memory_that_is_enough_for_fewer_is_shared_in_turns(
    batched: LocalBackend, passes: Passes, most: int
) -> None:
    asked = requests(6, sampled=True)
    expected = alone(batched, asked)
    passes.fails = lambda parts: MemoryError() if len(parts) > most else None
    assert at_once(batched, asked) == expected


def test_without_memory_for_any_each_is_told_and_the_next_question_works(
    batched: LocalBackend, passes: Passes
) -> None:
    asked = requests(4)
    passes.fails = lambda parts: MemoryError()
    outcomes = at_once(batched, asked)
    assert {type(end) for _, end in outcomes} == {OutOfMemoryError}
    passes.fails = lambda parts: None
    assert at_once(batched, asked) == alone(batched, asked)


def test_what_one_answers_parameters_break_is_its_own_trouble(
    batched: LocalBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    import llm.local_generation

    asked = requests(4)
    expected = alone(batched, asked)
    calls: list[object] = []

    class Broken(llm.local_generation.Chooser):
        def __call__(self, logits: Any) -> Any:
            calls.append(self)
            if self is calls[0] and calls.count(self) > 5:
                raise ZeroDivisionError
            return super().__call__(logits)

    monkeypatch.setattr(llm.local_generation, "Chooser", Broken)
    outcomes = at_once(batched, asked)
    ended = [number for number in range(4) if isinstance(outcomes[number][1], LLMError)]
    assert len(ended) == 1
    text, _ = outcomes[ended[0]]
    assert text
    assert expected[ended[0]][0].startswith(text)
    for number in set(range(4)) - set(ended):
        assert outcomes[number] == expected[number]


@pytest.mark.parametrize("error", [*KINDS, MemoryError()])
def test_when_the_batchs_own_thread_breaks_everybody_hears_of_it_and_it_begins_anew(
    batched: LocalBackend,
    batch: Batch,
    monkeypatch: pytest.MonkeyPatch,
    error: BaseException,
) -> None:
    asked = requests(6)  # two of them wait for a place
    expected = alone(batched, asked)
    rounds = 0

    def breaks() -> None:
        nonlocal rounds
        rounds += 1
        if rounds == 8:
            raise error

    with monkeypatch.context() as patch:
        patch.setattr(batch, "_make_room", breaks)
        outcomes = at_once(batched, asked)
    ended = [outcome for outcome in outcomes if isinstance(outcome[1], LLMError)]
    assert len(ended) >= 4
    for outcome, (text, _) in zip(outcomes, expected, strict=True):
        assert text.startswith(outcome[0])
    assert any(text for text, _ in ended)
    assert at_once(batched, asked) == expected


def test_an_answer_alone_that_fails_keeps_its_text(batched: LocalBackend) -> None:
    request = ask(max_tokens=40)
    whole, _ = read(batched, request)
    Trouble(model_of(batched), RuntimeError("CUDA error"), at_token=20)
    text, failure = outcome_of(begun(batched, request))
    assert isinstance(failure, InternalError)
    assert text
    assert whole.startswith(text)
    assert text != whole
    assert read(batched, request)[0] == whole


# Memory


@pytest.fixture
def room(batch: Batch, monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    def set_room(tokens: int) -> None:
        monkeypatch.setattr(batch, "_free_bytes", lambda: tokens * batch._bytes_per_token)

    return set_room


def test_a_prompt_that_the_memory_has_no_room_for_is_refused_with_the_numbers(
    batched: LocalBackend, room: Callable[[int], None]
) -> None:
    room(100)
    request = ask("x" * 200)
    tokens = batched.count_tokens(request, CancelToken())
    assert tokens is not None
    with pytest.raises(MemoryWindowError) as caught:
        read(batched, request)
    assert caught.value.values == {"prompt_tokens": tokens, "limit": 100, "over": tokens - 100}


def test_an_answer_ends_where_the_memory_does(
    batched: LocalBackend, room: Callable[[int], None]
) -> None:
    room(100)
    prompt = batched.count_tokens(ask(), CancelToken())
    assert prompt is not None
    _, finish = read(batched, ask(max_tokens=400))
    assert (finish.reason, finish.usage.completion_tokens) == ("length", 100 - prompt)


def test_where_memory_is_short_the_younger_wait_and_lose_nothing(
    batched: LocalBackend,
    batch: Batch,
    room: Callable[[int], None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    import llm.local_batch

    asked = [ask(question, max_tokens=120, seed=4) for question in QUESTIONS]
    expected = alone(batched, asked)
    monkeypatch.setattr(llm.local_batch, "ROOM_TOKENS", 20)
    room(400)
    put_off = 0
    original = batch._put_off
    most = 0

    def counted() -> None:
        nonlocal put_off, most
        put_off += 1
        original()
        most = max(most, batch._taken())

    monkeypatch.setattr(batch, "_put_off", counted)
    assert at_once(batched, asked) == expected
    assert put_off > 0
    assert most <= 400


def test_one_that_gives_way_is_one_and_its_reader_hears_that_it_goes_on(
    batched: LocalBackend,
    batch: Batch,
    room: Callable[[int], None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    import llm.local_batch

    monkeypatch.setattr(llm.local_batch, "ROOM_TOKENS", 20)
    monkeypatch.setattr(llm.local_batch, "REASSURING_S", 0.0)
    prompt = batched.count_tokens(ask(), CancelToken())
    assert prompt is not None
    # Three begin, and two of them have room for all they say.
    room(2 * (prompt + 120))
    asked = [ask(max_tokens=120, seed=seed) for seed in range(3)]
    sizes: list[int] = []
    original = batch._put_off

    def counted() -> None:
        sizes.append(len(batch._running))
        original()

    monkeypatch.setattr(batch, "_put_off", counted)
    items: list[list[object]] = [[], [], []]

    def read_all(number: int) -> None:
        items[number] = list(batched.stream(asked[number], CancelToken()))

    readers = [threading.Thread(target=read_all, args=(number,)) for number in range(3)]
    for reader in readers:
        reader.start()
    for reader in readers:
        reader.join(TIMEOUT_S)
    assert sizes == [3]
    # Its name comes before all text; what is said after text is that it goes on.
    reassured = [
        any(isinstance(item, Notice) for item in each[[*map(type, each)].index(Delta) :])
        for each in items
    ]
    assert sum(reassured) == 1


def test_an_idle_batch_holds_no_thread_and_no_memory(
    batched: LocalBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    import llm.local_batch

    memories: list[weakref.ref[Any]] = []

    class Remembered(llm.local_batch.KeyValues):
        def __init__(self) -> None:
            super().__init__()
            memories.append(weakref.ref(self))

    monkeypatch.setattr(llm.local_batch, "KeyValues", Remembered)
    at_once(batched, requests(6))
    assert generating() == []
    gc.collect()
    assert len(memories) == 6
    assert [memory() for memory in memories] == [None] * 6


# Closing


def test_closing_in_the_middle_ends_all_and_a_model_that_is_loaded_anew_answers(
    tiny_folder: Path, make_backend: Callable[..., LocalBackend]
) -> None:
    backend = make_backend(tiny_folder, batching="on")
    model = weakref.ref(model_of(backend))
    loaded = backend._loaded
    assert loaded is not None
    streams = [begun(backend, ask(max_tokens=400)) for _ in range(5)]
    for stream in streams[:3]:
        next(stream)
    backend.close()
    assert generating() == []
    for stream in streams[:3]:
        _, end = outcome_of(stream)
        assert isinstance(end, Finish)
        assert end.reason == "abort"
    del loaded, stream, streams
    gc.collect()
    assert model() is None
    again = make_backend(tiny_folder, batching="on")
    assert read(again, ask(max_tokens=5))[1].reason == "length"


def test_a_batch_that_is_closed_by_itself_ends_its_answers_and_takes_no_more(
    tiny_folder: Path, make_backend: Callable[..., LocalBackend]
) -> None:
    from llm.errors import ShuttingDownError

    backend = make_backend(tiny_folder, batching="on")
    model_of(backend)
    assert backend._loaded is not None
    assert backend._loaded.batch is not None
    stream = begun(backend, ask(max_tokens=400))
    next(stream)
    backend._loaded.batch.close()
    assert generating() == []
    _, end = outcome_of(stream)
    assert isinstance(end, Finish)
    assert end.reason == "abort"
    with pytest.raises(ShuttingDownError):
        read(backend, ask())
