from __future__ import annotations

import threading

import pytest
import torch

from llm.errors import ContextOverflowError
from llm.local_backend import LocalBackend
from llm.local_streamer import REPLACEMENT
from llm.types import CancelToken
from tests.local_answers import TIMEOUT_S, ask, model_of, read
from tests.tiny_model import WINDOW_TOKENS

pytest_plugins = "tests.local_fixtures"
pytestmark = pytest.mark.usefixtures("no_generating_thread_is_left")


def test_an_answer_is_deltas_and_one_finish_with_exact_counts(shared: LocalBackend) -> None:
    request = ask(max_tokens=7, temperature=0)
    text, finish = read(shared, request)
    assert text
    assert finish.reason == "length"
    assert finish.usage.completion_tokens == 7
    assert finish.usage.prompt_tokens == shared.count_tokens(request, CancelToken())


def test_status_says_ready_and_the_models_name(shared: LocalBackend) -> None:
    read(shared, ask(max_tokens=1))
    status = shared.status()
    assert (status.phase, status.model, status.error) == ("ready", "Tiny-Instruct", None)
    assert (shared.name, shared.slots, shared.window_tokens(ask())) == (
        "local",
        8 if status.batched else 2,
        WINDOW_TOKENS,
    )


def test_greedy_is_what_the_bare_model_says(shared: LocalBackend) -> None:
    model = model_of(shared)
    tokenizer = shared._loaded.tokenizer  # type: ignore[union-attr]
    inputs = tokenizer.apply_chat_template(
        [{"role": "user", "content": "Hello"}],
        add_generation_prompt=True,
        return_dict=True,
        return_tensors="pt",
    )
    out = model.generate(**inputs, max_new_tokens=60, do_sample=False)
    expected = tokenizer.decode(out[0, inputs["input_ids"].shape[1] :], skip_special_tokens=True)
    text, _ = read(shared, ask(max_tokens=60, temperature=0))
    assert text == expected.replace(REPLACEMENT, "")


def test_random_nonsense_never_shows_a_replacement_mark(shared: LocalBackend) -> None:
    texts = [read(shared, ask(max_tokens=80, temperature=2, seed=seed))[0] for seed in range(8)]
    assert len(set(texts)) == 8
    assert REPLACEMENT not in "".join(texts)


def test_an_answer_that_ends_by_itself_finishes_with_stop(shared: LocalBackend) -> None:
    model_of(shared)
    loaded = shared._loaded
    assert loaded is not None
    _, finish = read(shared, ask(max_tokens=30, temperature=0))
    first = None
    for seed in range(200):
        _, finish = read(shared, ask(max_tokens=400, temperature=2, seed=seed))
        if finish.reason == "stop":
            first = finish
            break
    assert first is not None
    assert first.usage.completion_tokens is not None
    assert first.usage.completion_tokens < 400


def test_the_models_own_generation_config_is_never_changed(shared: LocalBackend) -> None:
    model = model_of(shared)
    before = model.generation_config.to_json_string()
    read(shared, ask(max_tokens=3, temperature=1.3, top_p=0.5, seed=1))
    assert model.generation_config.to_json_string() == before


# Seeds


def test_a_seed_repeats_the_answer_and_another_seed_does_not(shared: LocalBackend) -> None:
    first, _ = read(shared, ask(max_tokens=40, seed=5))
    assert read(shared, ask(max_tokens=40, seed=5))[0] == first
    assert read(shared, ask(max_tokens=40, seed=6))[0] != first


def test_without_a_seed_answers_differ_and_torchs_own_generator_is_untouched(
    shared: LocalBackend,
) -> None:
    model_of(shared)
    state = torch.random.get_rng_state()
    first, _ = read(shared, ask(max_tokens=40, temperature=1))
    assert read(shared, ask(max_tokens=40, temperature=1))[0] != first
    assert torch.equal(torch.random.get_rng_state(), state)


def test_two_answers_at_once_are_what_each_would_be_alone(shared: LocalBackend) -> None:
    requests = [ask("Hello", max_tokens=120, seed=1), ask("你好", max_tokens=120, seed=2)]
    alone = [read(shared, request)[0] for request in requests]
    together: dict[int, str] = {}
    barrier = threading.Barrier(2)

    def run(number: int) -> None:
        barrier.wait(TIMEOUT_S)
        together[number] = read(shared, requests[number])[0]

    threads = [threading.Thread(target=run, args=(number,)) for number in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(TIMEOUT_S)
    assert [together[0], together[1]] == alone


def test_gumbel_noise_samples_the_distribution() -> None:
    from llm.local_sampling import GumbelSampler

    probabilities = torch.tensor([0.5, 0.3, 0.15, 0.05, 0.0])
    scores = probabilities.log().expand(40_000, 5)
    chosen = GumbelSampler(3)(None, scores).argmax(dim=-1)
    shares = torch.bincount(chosen, minlength=5) / len(chosen)
    assert shares[4] == 0
    assert torch.allclose(shares, probabilities, atol=0.01)


def test_top_p_keeps_only_the_nucleus(shared: LocalBackend) -> None:
    greedy, _ = read(shared, ask(max_tokens=30, temperature=0))
    assert read(shared, ask(max_tokens=30, temperature=2, top_p=1e-6, seed=1))[0] == greedy
    assert read(shared, ask(max_tokens=30, temperature=2, top_p=1.0, seed=1))[0] != greedy


# The window


def test_a_prompt_that_leaves_no_room_is_refused_with_the_numbers(shared: LocalBackend) -> None:
    request = ask("x" * 600)
    tokens = model_of(shared) and shared.count_tokens(request, CancelToken())
    assert tokens is not None
    with pytest.raises(ContextOverflowError) as caught:
        read(shared, request)
    assert caught.value.values == {
        "prompt_tokens": tokens,
        "limit": WINDOW_TOKENS,
        "over": tokens - WINDOW_TOKENS,
    }


def test_max_tokens_are_fitted_to_the_room_that_is_left(shared: LocalBackend) -> None:
    request = ask("x" * 460, max_tokens=1_000_000, temperature=0)
    model_of(shared)
    prompt = shared.count_tokens(request, CancelToken())
    assert prompt is not None
    _, finish = read(shared, request)
    assert finish.reason == "length"
    assert finish.usage.completion_tokens == WINDOW_TOKENS - prompt


def test_the_last_token_that_fits_is_used(shared: LocalBackend) -> None:
    model_of(shared)
    bare = shared.count_tokens(ask(""), CancelToken())
    assert bare is not None
    fits = "x" * (WINDOW_TOKENS - 1 - bare)
    assert read(shared, ask(fits))[1].usage.completion_tokens == 1
    with pytest.raises(ContextOverflowError):
        read(shared, ask(fits + "x"))
