"""A turn's values as JSON and back: the same again, and never a failure for what is odd."""

from __future__ import annotations

import json
from typing import Any

import pytest

from llm import errors
from llm.conversation_json import (
    error_from_json,
    error_to_json,
    params_from_json,
    params_to_json,
    receipt_from_json,
    receipt_to_json,
)
from llm.conversation_tree import Receipt
from llm.errors import InternalError, LLMError, Reason, ServerUnreachableError
from llm.types import NOT_BEGUN, Finish, SamplingParams, Usage

HUGE = 10**400


def through_text(values: dict[str, Any]) -> Any:
    return json.loads(json.dumps(values))


@pytest.mark.parametrize(
    "params",
    [
        SamplingParams(),
        SamplingParams(temperature=None, top_p=None),
        SamplingParams(temperature=0, seed=0, top_k=0, min_p=0.0, max_tokens=1),
        SamplingParams(repetition_penalty=1.1, presence_penalty=-2, frequency_penalty=2),
        SamplingParams(stop=("\0", "\ud83d", "</s>", "再见")),
    ],
)
def test_parameters_come_back_as_they_were(params: SamplingParams) -> None:
    assert params_from_json(through_text(params_to_json(params))) == params


@pytest.mark.parametrize("odd", [None, [], "x", 3, {"unknown": 1}, {}])
def test_what_is_no_parameters_is_the_usual_ones(odd: object) -> None:
    assert params_from_json(odd) == SamplingParams()


@pytest.mark.parametrize(
    "values",
    [
        {"temperature": "hot"},
        {"temperature": 3},
        {"temperature": HUGE},
        {"temperature": float("nan")},
        {"temperature": True},
        {"seed": -1},
        {"seed": 1.5},
        {"max_tokens": None},
        {"max_tokens": {}},
        {"stop": "end"},
        {"stop": ["a"] * 99},
        {"stop": [1]},
        {"stop": [["a"]]},
    ],
)
def test_one_odd_parameter_doesnt_take_the_others_along(values: dict[str, object]) -> None:
    assert params_from_json({**values, "top_p": 0.5}) == SamplingParams(top_p=0.5)


@pytest.mark.parametrize(
    "receipt",
    [
        Receipt("m", Finish("stop")),
        Receipt("", Finish("interrupted")),
        Receipt(
            "模型",
            Finish("length", Usage(0, 12)),
            server="a",
            ttft_s=0.25,
            tokens_per_s=1e9,
            left_out=3,
            reasoning_s=0.0,
            waited_s=76.5,
        ),
        Receipt("", Finish("abort", why=NOT_BEGUN)),
        Receipt("m", Finish("abort", why=Reason("finish-model-changed", {"model": "新"}))),
    ],
)
def test_a_receipt_comes_back_as_it_was(receipt: Receipt) -> None:
    assert receipt_from_json(through_text(receipt_to_json(receipt))) == receipt


@pytest.mark.parametrize(
    "why",
    [
        "finish-not-begun",
        {"reason": "finish-nowhere", "values": {}},
        {"reason": "finish-model-changed", "values": {}},
        {"reason": "clear-yes", "values": {}},
    ],
)
def test_why_an_answer_ended_is_left_out_where_it_cannot_be_said(why: object) -> None:
    receipt = receipt_from_json({"model": "m", "finish": "abort", "why": why})
    assert receipt == Receipt("m", Finish("abort"))


def test_an_odd_receipt_is_read_as_far_as_it_can_be() -> None:
    odd = {
        "model": 3,
        "finish": "exploded",
        "usage": {"prompt_tokens": -1, "completion_tokens": HUGE},
        "ttft_s": HUGE,
        "tokens_per_s": float("inf"),
        "left_out": True,
        "reasoning_s": "long",
    }
    assert receipt_from_json(odd) == Receipt("", Finish("stop"))
    assert receipt_from_json({"usage": 3}) == Receipt("", Finish("stop"))
    assert receipt_from_json(None) is None
    assert receipt_from_json("x") is None


def test_errors_within_errors_come_back_with_all_their_values() -> None:
    inner = Reason("error-stalled", {"seconds": Reason("reason-at-most", {"limit": 0.5})})
    error = ServerUnreachableError(url="http://x/\0\ud83d", why=inner, n=7)
    back = error_from_json(through_text(error_to_json(error)))
    assert type(back) is ServerUnreachableError
    assert back.values == error.values


def error_kinds() -> list[type[LLMError]]:
    return [
        kind
        for kind in vars(errors).values()
        if isinstance(kind, type) and issubclass(kind, LLMError)
    ]


@pytest.mark.parametrize("kind", error_kinds())
def test_an_error_of_any_kind_is_read_even_without_its_values(kind: type[LLMError]) -> None:
    back = error_from_json({"kind": kind.__name__, "values": {}})
    assert isinstance(back, kind | InternalError)
    assert str(back)


@pytest.mark.parametrize(
    "odd",
    [
        {"kind": "os.system", "values": {"x": 1}},
        {"kind": "LLMError", "values": 3},
        {"kind": ["x"], "values": {}},
        {"kind": "StalledError", "values": {"seconds": {"reason": 3, "values": [1]}}},
        {"kind": "StalledError", "values": {"self": 1}},
        {},
    ],
)
def test_an_odd_error_is_some_error_that_can_be_told(odd: object) -> None:
    assert str(error_from_json(odd))


def test_sentences_within_sentences_without_end_are_cut() -> None:
    values: dict[str, object] = {"x": 1}
    for _ in range(400):
        values = {"seconds": {"reason": "error-stalled", "values": values}}
    assert str(error_from_json({"kind": "StalledError", "values": values}))


def test_no_error_is_none() -> None:
    assert error_from_json(None) is None
    assert error_from_json("StalledError") is None
