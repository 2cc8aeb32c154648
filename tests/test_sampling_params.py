"""What may be asked for is checked before it reaches a backend."""

from __future__ import annotations

import math

import pytest

from llm.errors import InvalidParameterError, StopStringsError
from llm.types import MAX_STOP_CHARS, MAX_STOP_STRINGS, OPTIONAL_PARAMS, SamplingParams


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("temperature", [0, 2]),
        ("top_p", [0.01, 1]),
        ("max_tokens", [1, 1_000_000]),
        ("seed", [0, 2**32 - 1]),
        ("top_k", [0, 1, 1_000_000]),
        ("min_p", [0, 1]),
        ("repetition_penalty", [0.01, 10]),
        ("presence_penalty", [-2, 2]),
        ("frequency_penalty", [-2, 2]),
        ("stop", [("x",) * MAX_STOP_STRINGS, ("x" * MAX_STOP_CHARS,)]),
    ],
)
def test_the_ends_of_every_range_are_taken(name: str, values: list[object]) -> None:
    for value in values:
        params = SamplingParams(**{name: value})  # type: ignore[arg-type]
        assert params.given()[name] == value


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("temperature", -0.1),
        ("temperature", 2.1),
        ("temperature", math.nan),
        ("top_p", 0),
        ("top_p", 1.1),
        ("max_tokens", 0),
        ("seed", -1),
        ("top_k", -1),
        ("min_p", -0.1),
        ("min_p", 1.1),
        ("repetition_penalty", 0),
        ("repetition_penalty", math.inf),
        ("presence_penalty", -2.1),
        ("frequency_penalty", 2.1),
    ],
)
def test_what_is_out_of_range_is_named(name: str, value: float) -> None:
    with pytest.raises(InvalidParameterError) as caught:
        SamplingParams(**{name: value})  # type: ignore[arg-type]
    assert caught.value.values["parameter"] == name


@pytest.mark.parametrize("stop", [("a", "b", "c", "d", "e"), ("x" * 201,), ("a", "")])
def test_stop_strings_are_few_and_short_and_never_empty(stop: tuple[str, ...]) -> None:
    with pytest.raises(StopStringsError, match="4 stop strings"):
        SamplingParams(stop=stop)


def test_only_what_is_not_left_out_is_given() -> None:
    assert SamplingParams().given() == {"temperature": 0.7, "top_p": 0.95, "max_tokens": 512}
    bare = SamplingParams(**dict.fromkeys(OPTIONAL_PARAMS[:-1]))  # type: ignore[arg-type]
    assert OPTIONAL_PARAMS[-1] == "stop"
    assert bare.given() == {"max_tokens": 512}


def test_a_value_without_effect_is_still_a_value() -> None:
    params = SamplingParams(temperature=0, top_k=0, min_p=0, presence_penalty=0, seed=0)
    assert {"temperature", "top_k", "min_p", "presence_penalty", "seed"} <= set(params.given())
