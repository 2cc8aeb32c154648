"""Each sampling parameter on the local model, and answers that end before a stop string."""

from __future__ import annotations

import threading
from collections import Counter
from typing import Any

import pytest
import torch
from transformers import TopPLogitsWarper

from llm.local_backend import LocalBackend
from llm.local_sampling import NucleusWarper, PenaltyProcessor
from llm.local_streamer import REPLACEMENT, BoundedTextStreamer
from llm.types import CancelToken, Delta, GenerationRequest
from tests.local_answers import TIMEOUT_S, Gate, ask, generating, model_of, read

pytest_plugins = "tests.local_fixtures"
pytestmark = pytest.mark.usefixtures("no_generating_thread_is_left")


def prompt_ids(backend: LocalBackend) -> Any:
    model_of(backend)
    tokenizer = backend._loaded.tokenizer  # type: ignore[union-attr]
    return tokenizer.apply_chat_template(
        [{"role": "user", "content": "Hello"}],
        add_generation_prompt=True,
        return_dict=True,
        return_tensors="pt",
    )


def text_of(backend: LocalBackend, ids: Any) -> str:
    tokenizer = backend._loaded.tokenizer  # type: ignore[union-attr]
    said: str = tokenizer.decode(ids, skip_special_tokens=True)
    return said.replace(REPLACEMENT, "")


@pytest.fixture
def greedy(shared: LocalBackend) -> str:
    return read(shared, ask(max_tokens=40))[0]


@pytest.mark.parametrize("narrow", [{"top_k": 1}, {"min_p": 1}])
def test_a_choice_of_one_is_greedy(
    shared: LocalBackend, greedy: str, narrow: dict[str, float]
) -> None:
    hot = {"temperature": 2, "top_p": 1, "seed": 1, "max_tokens": 40}
    assert read(shared, ask(**hot, **narrow))[0] == greedy
    assert read(shared, ask(**hot))[0] != greedy


def test_what_is_left_out_is_the_models_own_and_a_value_is_not(
    shared: LocalBackend, greedy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = model_of(shared).generation_config
    hot = {"temperature": 2, "top_p": 1, "seed": 1, "max_tokens": 40}
    monkeypatch.setattr(own, "top_k", 1)
    assert read(shared, ask(**hot))[0] == greedy
    assert read(shared, ask(**hot, top_k=0))[0] != greedy
    monkeypatch.setattr(own, "top_k", None)
    monkeypatch.setattr(own, "temperature", 1e-6)
    assert read(shared, ask(**hot | {"temperature": None}))[0] == greedy
    assert read(shared, ask(**hot))[0] != greedy
    monkeypatch.setattr(own, "temperature", None)
    monkeypatch.setattr(own, "top_p", 1e-6)
    assert read(shared, ask(**hot | {"top_p": None}))[0] == greedy
    assert read(shared, ask(**hot))[0] != greedy
    monkeypatch.setattr(own, "repetition_penalty", 3.0)
    assert read(shared, ask(max_tokens=40))[0] != greedy
    assert read(shared, ask(max_tokens=40, repetition_penalty=1))[0] == greedy


def test_the_repetition_penalty_is_transformers_own(shared: LocalBackend, greedy: str) -> None:
    inputs = prompt_ids(shared)
    bare = model_of(shared).generate(
        **inputs, max_new_tokens=40, do_sample=False, repetition_penalty=1.5
    )
    expected = text_of(shared, bare[0, inputs["input_ids"].shape[1] :])
    said, _ = read(shared, ask(max_tokens=40, repetition_penalty=1.5))
    assert said == expected != greedy


@pytest.mark.parametrize(("presence", "frequency"), [(1.5, 0.0), (0.0, 0.7), (-1.0, 0.4)])
def test_presence_and_frequency_are_counted_over_the_answer_alone(
    shared: LocalBackend, presence: float, frequency: float
) -> None:
    """Against the formula written out, one whole forward pass a token."""
    model, ids = model_of(shared), prompt_ids(shared)["input_ids"]
    answer: list[int] = []
    with torch.no_grad():
        for _ in range(30):
            scores = model(torch.cat([ids, torch.tensor([answer], dtype=ids.dtype)], 1)).logits
            last = scores[0, -1].float()
            for token, count in Counter(answer).items():
                last[token] -= presence + frequency * count
            answer.append(int(last.argmax()))
    request = ask(max_tokens=30, presence_penalty=presence, frequency_penalty=frequency)
    said, finish = read(shared, request)
    assert finish.usage.completion_tokens == 30
    assert said == text_of(shared, answer)
    assert said != read(shared, ask(max_tokens=30))[0]


def test_the_penalties_are_those_of_the_formula() -> None:
    ids = torch.tensor([[1, 1, 2, 0, 0, 3], [0, 0, 0, 4, 4, 4]])  # three of the prompt
    scores = torch.zeros(2, 5)
    out = PenaltyProcessor(3, presence=0.5, frequency=0.25)(ids, scores)
    assert out.tolist() == [[-1.0, 0, 0, -0.75, 0], [0, 0, 0, 0, -1.25]]
    assert scores.count_nonzero() == 0, "the model's own scores were changed"


@pytest.mark.parametrize("top_p", [1e-6, 0.1, 0.5, 0.95, 0.999])
@pytest.mark.parametrize("spread", [0.01, 1.0, 3.0, 30.0])
def test_the_nucleus_is_that_of_a_whole_sort(top_p: float, spread: float) -> None:
    """With a flat distribution the few likeliest don't hold it."""
    scores = spread * torch.randn(3, 5000, generator=torch.Generator().manual_seed(1))
    scores[0, 100:] = -torch.inf  # as after a top_k
    ours = NucleusWarper(top_p)(None, scores)
    assert torch.equal(ours, TopPLogitsWarper(top_p)(None, scores))


# Stop strings


def varied(**params: Any) -> GenerationRequest:
    """A greedy answer that hardly repeats itself."""
    return ask(presence_penalty=2, frequency_penalty=2, **params)


def test_the_answer_ends_before_a_stop_string_with_exact_counts(shared: LocalBackend) -> None:
    whole, whole_finish = read(shared, varied(max_tokens=60))
    assert whole_finish.usage.completion_tokens == 60
    for length in (1, 2, 5):
        for at in range(3, len(whole) - length, 13):
            stop = whole[at : at + length]
            said, finish = read(shared, varied(max_tokens=60, stop=(stop,)))
            assert said == whole[: whole.index(stop)]
            assert finish.reason == "stop"
            # As many tokens as it takes until the text holds the stop string, and not one more.
            tokens = finish.usage.completion_tokens
            assert tokens is not None
            assert stop in read(shared, varied(max_tokens=tokens))[0]
            assert tokens == 1 or stop not in read(shared, varied(max_tokens=tokens - 1))[0]


def test_a_stop_string_in_the_last_token_is_a_stop_and_not_a_cut(shared: LocalBackend) -> None:
    whole, _ = read(shared, varied(max_tokens=20))
    before, _ = read(shared, varied(max_tokens=19))
    stop = whole[len(before) :]
    assert stop
    assert stop not in before
    _, finish = read(shared, varied(max_tokens=20, stop=(stop,)))
    assert finish.reason == "stop"
    assert finish.usage.completion_tokens == 20


def test_what_was_held_back_is_said_when_no_stop_string_comes(shared: LocalBackend) -> None:
    whole, _ = read(shared, varied(max_tokens=20))
    said, finish = read(shared, varied(max_tokens=20, stop=(whole[-3:] + "§",)))
    assert said == whole
    assert finish.reason == "length"


def test_at_a_stop_string_the_model_is_freed_within_a_token(shared: LocalBackend) -> None:
    whole, _ = read(shared, varied(max_tokens=60))
    stop = whole[5:7]
    assert whole.index(stop) == 5
    _, finish = read(shared, varied(max_tokens=60, stop=(stop,)))
    tokens = finish.usage.completion_tokens
    assert tokens is not None
    # The pass after the one that completes the stop string would wait here for ever.
    gate = Gate(model_of(shared), at_token=tokens + 1)
    try:
        stream = shared.stream(varied(max_tokens=60, stop=(stop,)), CancelToken())
        items: list[object] = []
        reader = threading.Thread(target=lambda: items.extend(stream))
        reader.start()
        reader.join(TIMEOUT_S)
        assert not reader.is_alive()
        assert not gate.reached.is_set(), "a token more was computed"
        assert "".join(item.text for item in items if isinstance(item, Delta)) == whole[:5]
        assert generating() == []
    finally:
        gate.open.set()
        gate.hook.remove()


def test_a_failure_loses_nothing_that_was_held_back(shared: LocalBackend) -> None:
    model_of(shared)
    tokenizer = shared._loaded.tokenizer  # type: ignore[union-attr]
    streamer = BoundedTextStreamer(tokenizer, stop=("abcd",))
    streamer.put(torch.tensor([[0]]))
    for token in tokenizer.encode("xyzabc"):
        streamer.put(torch.tensor([token]))
    streamer.fail(RuntimeError("boom"))
    said: list[str] = []
    with pytest.raises(RuntimeError, match="boom"):
        said.extend(streamer)
    assert "".join(said) == "xyzabc"
