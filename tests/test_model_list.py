"""What is read from a list of models, whoever wrote it."""

from __future__ import annotations

import pytest

from llm.model_list import ModelInfo, read_model_list


def listed(**entry: object) -> object:
    return {"object": "list", "data": [{"id": "m", **entry}]}


@pytest.mark.parametrize(
    ("entry", "window"),
    [
        ({"max_model_len": 2048}, 2048),  # vLLM
        ({"context_length": 32768}, 32768),  # gateways
        ({"context_window": 131072}, 131072),
        ({"meta": {"n_ctx": 4096, "n_ctx_train": 32768}}, 4096),  # llama.cpp
        ({"meta": {"n_ctx_train": 32768}}, None),
        ({"meta": None}, None),
        ({"max_model_len": None, "context_length": 8192}, 8192),
        ({"max_model_len": "2048"}, None),
        ({"max_model_len": True}, None),
        ({"max_model_len": 0}, None),
        ({}, None),
    ],
)
def test_the_window_is_read_by_the_names_that_servers_give_it(
    entry: dict[str, object], window: int | None
) -> None:
    assert read_model_list(listed(**entry)) == (ModelInfo("m", window),)


def test_what_is_no_model_is_passed_over_and_nothing_is_there_twice() -> None:
    data = [{"id": "a"}, None, 3, {"id": 5}, {"id": ""}, {}, {"id": "b"}, {"id": "a"}]
    models = read_model_list({"data": data})
    assert models == (ModelInfo("a"), ModelInfo("b"))


@pytest.mark.parametrize("told", [None, [], "x", {}, {"data": None}, {"data": {"id": "m"}}])
def test_what_is_no_list_is_none(told: object) -> None:
    assert read_model_list(told) is None


def test_an_empty_list_is_a_list() -> None:
    assert read_model_list({"data": []}) == ()
