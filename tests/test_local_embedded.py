from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from llm.local_backend import LocalBackend, LocalOptions
from llm.local_streamer import REPLACEMENT
from llm.types import CancelToken, Delta
from tests.local_answers import ask, read
from tests.model_data import model_data_dir

pytest_plugins = "tests.local_fixtures"
pytestmark = pytest.mark.usefixtures("no_generating_thread_is_left")


@pytest.fixture(scope="session")
def embedded() -> Iterator[LocalBackend]:
    """The real model; what was fetched and converted is kept for the next run of the tests."""
    backend = LocalBackend(LocalOptions(model_data_dir()))
    yield backend
    backend.close()


@pytest.mark.model
def test_the_embedded_model_knows_the_capital_of_france(embedded: LocalBackend) -> None:
    question = "What is the capital of France?"
    text, finish = read(embedded, ask(question, max_tokens=40, temperature=0))
    assert "Paris" in text
    assert finish.reason == "stop"
    assert embedded.status().model == "SmolLM2-135M-Instruct"
    assert embedded.window_tokens(ask("hi")) == 8192


@pytest.mark.model
def test_the_embedded_model_streams_whole_characters(embedded: LocalBackend) -> None:
    request = ask("Repeat exactly: 你好，世界！🙂 👨‍👩‍👧 é ไทย", max_tokens=40, seed=3)
    pieces = [d.text for d in embedded.stream(request, CancelToken()) if isinstance(d, Delta)]
    assert len(pieces) > 1
    assert REPLACEMENT not in "".join(pieces)


@pytest.mark.model
def test_the_embedded_model_obeys_a_seed_beside_another_answer(embedded: LocalBackend) -> None:
    request = ask("Name three colours.", max_tokens=15, seed=11)
    alone, _ = read(embedded, request)
    beside = embedded.stream(ask("Tell me a story.", max_tokens=200), CancelToken())
    next(beside)
    assert read(embedded, replace(request, request_id="again"))[0] == alone
    beside.close()
