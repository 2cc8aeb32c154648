from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import dropwhile

import pytest

from llm import prefill_progress
from llm.job import GenerationJob
from llm.local_backend import LocalBackend, LocalOptions
from llm.local_streamer import REPLACEMENT
from llm.registry import JobRegistry
from llm.types import CancelToken, Delta, Finish, Notice
from tests.driven_backend import NEVER, Saves, at_once
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


@pytest.fixture(scope="session")
def exact() -> Iterator[LocalBackend]:
    """The same in float32: in bfloat16 rounding, which company changes, may tip a choice."""
    backend = LocalBackend(LocalOptions(model_data_dir(), dtype="float32", batching="on"))
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
def test_the_embedded_model_obeys_a_seed_beside_another_answer(exact: LocalBackend) -> None:
    request = ask("Name three colours.", max_tokens=15, seed=11)
    alone, _ = read(exact, request)
    beside = exact.stream(ask("Tell me a story.", max_tokens=200), CancelToken())
    next(dropwhile(lambda item: isinstance(item, Notice), beside))
    assert read(exact, replace(request, request_id="again"))[0] == alone
    beside.close()


@pytest.mark.model
def test_a_long_prompt_is_told_as_it_is_read(
    embedded: LocalBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("LONG_S", "FIRST_S", "EVERY_S"):
        monkeypatch.setattr(prefill_progress, name, 0.0)  # however quick this machine is
    items = list(embedded.stream(ask("and so on " * 200, max_tokens=4), CancelToken()))
    notices = [item for item in items if isinstance(item, Notice)]
    assert items[: len(notices)] == notices, "it goes on after the first text"
    told = [notice.reason.values["percent"] for notice in notices if notice.reason]
    assert told == sorted(set(told))
    assert len(told) > 5, "the model has thirty layers"
    assert 0 <= told[0] < told[-1] < 100


WORDS = [
    "apple",
    "river",
    "stone",
    "cloud",
    "tiger",
    "bread",
    "music",
    "garden",
    "silver",
    "window",
    "summer",
    "ocean",
]


@pytest.mark.model
def test_twelve_people_at_once_each_get_the_answer_that_they_would_get_alone(
    exact: LocalBackend,
) -> None:
    requests = {
        word: ask(f"Write one short sentence with the word {word}.", max_tokens=12)
        if number % 2
        else ask(f"Name two things about: {word}.", max_tokens=12, seed=number)
        for number, word in enumerate(WORDS)
    }
    alone = {word: read(exact, request) for word, request in requests.items()}
    assert len({text for text, _ in alone.values()}) > 6, "they can hardly be told apart"
    registry = JobRegistry()
    jobs: dict[str, GenerationJob] = {}
    with_everybody: dict[str, tuple[str, Finish | None]] = {}

    def ask_one(word: str) -> None:
        request = replace(requests[word], request_id=word)
        jobs[word] = registry.submit(word, word, exact, request, save=Saves())

    at_once(*[lambda word=word: ask_one(word) for word in WORDS])
    for word, job in jobs.items():
        answer = job.wait(NEVER, 600)
        with_everybody[word] = (answer.text, answer.finish)
    registry.close()
    assert with_everybody == alone
