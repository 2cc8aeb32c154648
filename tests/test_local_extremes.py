"""Parameters at the ends of their ranges: an answer or an error of that one request."""

from __future__ import annotations

import itertools
import random
from typing import Any

import pytest

from llm.local_backend import LocalBackend
from llm.types import MAX_SEED, MAX_TOP_K
from tests.local_answers import ask, read

pytest_plugins = "tests.local_fixtures"
pytestmark = pytest.mark.usefixtures("no_generating_thread_is_left")

TOKENS = 6
ENDS: dict[str, tuple[Any, ...]] = {
    "temperature": (0, 1e-38, 2),
    "top_p": (1e-38, 1),
    "top_k": (0, 1, MAX_TOP_K),
    "min_p": (0, 1),
    "repetition_penalty": (1e-38, 10),
    "presence_penalty": (-2, 2),
    "frequency_penalty": (-2, 2),
    "seed": (0, MAX_SEED),
}


@pytest.mark.parametrize(
    ("name", "value"), [(name, value) for name, values in ENDS.items() for value in values]
)
def test_each_end_of_each_range_gives_an_answer(
    shared: LocalBackend, name: str, value: float
) -> None:
    params = {"seed": 7, "temperature": 0.7, name: value}
    text, finish = read(shared, ask(max_tokens=TOKENS, **params))
    assert finish.usage.completion_tokens is not None
    assert finish.usage.completion_tokens == TOKENS or finish.reason == "stop"
    assert "\ufffd" not in text


def test_ends_of_several_ranges_together_give_an_answer(shared: LocalBackend) -> None:
    every = list(itertools.product(*ENDS.values()))
    for values in random.Random(5).sample(every, 60):
        params = dict(zip(ENDS, values, strict=True))
        _, finish = read(shared, ask(max_tokens=TOKENS, **params))
        assert finish.reason in ("stop", "length"), params


def test_hardly_any_temperature_is_greedy(shared: LocalBackend) -> None:
    greedy, _ = read(shared, ask(max_tokens=TOKENS, temperature=0))
    assert read(shared, ask(max_tokens=TOKENS, temperature=1e-38, seed=1))[0] == greedy


def test_the_most_tokens_that_can_be_asked_for_end_with_the_window(shared: LocalBackend) -> None:
    request = ask(max_tokens=1_000_000)
    window = shared.window_tokens(request)
    assert window is not None
    _, finish = read(shared, request)
    assert finish.usage.prompt_tokens is not None
    assert finish.usage.completion_tokens is not None
    used = finish.usage.prompt_tokens + finish.usage.completion_tokens
    assert used == window or finish.reason == "stop"
