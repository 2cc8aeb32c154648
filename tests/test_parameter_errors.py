"""Refusals as servers word them, and the parameters that they are about."""

from __future__ import annotations

import pytest

from llm.errors import LLMError, NotAllowedError, ServerParameterError
from llm.server_errors import ServerErrors

URL = "http://127.0.0.1:8000/v1"
QUESTION = "What do temperature, top_k and seed mean? Is it not allowed to 'stop'?"
ASKED = {
    "model": "m",
    "messages": [{"role": "user", "content": QUESTION}],
    "max_tokens": 512,
    "temperature": 0.2,
    "top_p": 0.95,
    "seed": 1,
    "top_k": 20,
    "min_p": 0.1,
    "repetition_penalty": 1.1,
    "presence_penalty": 1.0,
    "frequency_penalty": 1.0,
    "stop": ["###"],
    "stream": True,
    "stream_options": {"include_usage": True},
}


def refusal(body: object, status: int = 400, asked: dict[str, object] | None = None) -> LLMError:
    errors = ServerErrors(URL, (), 5)
    return errors.from_status(status, body, None, ASKED if asked is None else asked)


def openai(message: str, param: str | None = None) -> dict[str, object]:
    return {"message": message, "type": "invalid_request_error", "param": param, "code": None}


NAMED = {
    "openai, unsupported": (
        openai(
            "Unsupported parameter: 'temperature' is not supported with this model.", "temperature"
        ),
        "temperature",
    ),
    "openai, a value": (
        openai("Unsupported value: 'temperature' does not support 0.2 with this model."),
        "temperature",
    ),
    "openai, unknown": (openai("Unrecognized request argument supplied: top_k"), "top_k"),
    "openai, several": (
        openai("Unrecognized request arguments supplied: min_p, top_k"),
        "top_k, min_p",
    ),
    "openai, stop": (
        openai("Unsupported parameter: 'stop' is not supported with this model.", "stop"),
        "stop",
    ),
    "openai, stop in words": (openai("Unrecognized request argument supplied: stop"), "stop"),
    "openai, the limit's name": (
        openai(
            "Unsupported parameter: 'max_tokens' is not supported with this model. "
            "Use 'max_completion_tokens' instead.",
            "max_tokens",
        ),
        "max_tokens",
    ),
    "vllm, a range": (
        {"message": "min_p must be in [0, 1], got 2.0.", "code": 400, "param": None},
        "min_p",
    ),
    "vllm, speculative": (
        {
            "message": "The min_p and logit_bias sampling parameters are not yet supported with "
            "speculative decoding.",
            "code": 400,
        },
        "min_p",
    ),
    "vllm, diffusion": (
        {
            "message": "The temperature, min_p, seed, min_tokens, logit_bias, bad_words, and "
            "allowed_token_ids sampling parameters are not yet supported with diffusion models.",
        },
        "temperature, seed, min_p",
    ),
    "vllm, a place": (
        {"message": "1 validation error:\n  …", "param": "body.stop", "code": 400},
        "stop",
    ),
    "vllm, old": (
        {
            "object": "error",
            "message": "[{'type': 'extra_forbidden', 'loc': ('body', 'top_k'), 'msg': 'Extra "
            "inputs are not permitted', 'input': {'content': 'the temperature must…'}}]",
        },
        "top_k",
    ),
    "fastapi": (
        {
            "detail": [
                {
                    "type": "extra_forbidden",
                    "loc": ["body", "repetition_penalty"],
                    "msg": "Extra inputs are not permitted",
                    "input": 1.1,
                },
                {"type": "extra_forbidden", "loc": ["body", "min_p"], "msg": "Extra inputs"},
            ]
        },
        "min_p, repetition_penalty",
    ),
    "a gateway's": (
        {"detail": "body -> frequency_penalty\n  Extra inputs are not permitted (type=extra)"},
        "frequency_penalty",
    ),
    "transformers serve": (
        {"detail": "Unexpected fields in the request: {'top_k', 'min_p'}"},
        "top_k, min_p",
    ),
    "text-generation-inference": (
        {"error": "Input validation error: `temperature` must be strictly positive"},
        "temperature",
    ),
    "usage in a stream": (
        {"message": "Extra inputs are not permitted", "param": "stream_options"},
        "stream_options",
    ),
}


@pytest.mark.parametrize("status", [400, 422])
@pytest.mark.parametrize(("body", "names"), NAMED.values(), ids=NAMED.keys())
def test_a_refused_parameter_is_named(body: object, names: str, status: int) -> None:
    error = refusal(body, status)
    assert type(error) is ServerParameterError
    assert error.values["parameter"] == names
    assert error.parameters == tuple(names.split(", "))
    assert names in str(error)


OTHER = {
    "another field": openai("Invalid value for 'content': temperature is not a role.", "messages"),
    "another place": {
        "detail": [{"loc": ["body", "messages", 0], "msg": "bad", "input": QUESTION}],
    },
    "no complaint": {"message": "Out of patience at temperature 0.2, seed 1"},
    "an everyday word": {"message": "The conversation must stop here"},
    "a model's name": {"message": "The tokenizer of seed-oss does not support this"},
    "the limit's value": {"message": "Invalid max_tokens value, the range is [1, 8192]"},
    "nothing": "",
}


@pytest.mark.parametrize("body", OTHER.values(), ids=OTHER.keys())
def test_other_refusals_are_not_laid_at_a_parameters_door(body: object) -> None:
    assert type(refusal(body)) is NotAllowedError


def test_only_what_was_sent_is_named() -> None:
    body = openai("Unrecognized request argument supplied: top_k")
    asked = {name: value for name, value in ASKED.items() if name != "top_k"}
    assert type(refusal(body, asked=asked)) is NotAllowedError
    limit = NAMED["openai, the limit's name"][0]
    asked = {"max_completion_tokens": 512}
    assert type(refusal(limit, asked=asked)) is NotAllowedError


def test_the_conversation_that_pydantic_repeats_is_not_shown() -> None:
    body = {"detail": [{"loc": ["body", "top_k"], "msg": "Not permitted", "input": QUESTION}]}
    error = refusal(body)
    assert error.values["reason"] == "top_k: Not permitted"
    assert QUESTION not in str(error)
