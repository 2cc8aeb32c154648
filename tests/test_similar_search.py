"""Vectors that are missing are made where somebody searches: real embedding, real store."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from llm import similar_search
from llm.cache_guard import CacheGuard
from llm.cache_key import person_scope
from llm.cache_log import CacheLog
from llm.cache_sqlite import SqliteAnswerStore
from llm.cache_types import CacheKey, Candidate
from llm.cache_writer import CacheWriter
from llm.cached_question import CachedQuestion
from llm.embedding import EmbeddingModel
from llm.minilm import fetch_minilm
from llm.seeking import Seeking
from llm.settings import Settings
from llm.similar_answers import SimilarAnswers
from llm.similar_search import SimilarSearch
from llm.types import CacheUse, CancelToken, GenerationRequest, Message, SamplingParams
from tests.cached_answers import NOW_S, PARTITION, answer_of, digest_of
from tests.model_data import model_data_dir

pytestmark = pytest.mark.model

SCOPE = person_scope("ann")
QUESTION = "How do I reverse a list in Python?"
ALIKE = "How can I reverse a list in Python?"
OTHERS = ("What is a heat pump?", "What is the capital of Peru?", "什么是热泵？")
PATIENCE_S = 120.0


@pytest.fixture(scope="module")
def model() -> Iterator[EmbeddingModel]:
    folder = fetch_minilm(model_data_dir() / "embeddings", CancelToken())
    made = EmbeddingModel.from_settings(Settings(embedding_model=str(folder)))
    assert made is not None
    assert made.wait(PATIENCE_S) is not None
    yield made
    made.close()


class Searched:
    """A search over a real store, in which answers were kept without vectors."""

    def __init__(self, file: Path, model: EmbeddingModel) -> None:
        store = SqliteAnswerStore(file, 2**26)
        self.guard = CacheGuard(lambda: store, limit_s=PATIENCE_S)
        self.writer = CacheWriter(self.guard)
        log = CacheLog(self.writer, lambda: NOW_S)
        similar = SimilarAnswers(self.guard, model)
        self.search = SimilarSearch(similar, self.writer, log, lambda: NOW_S)
        for age, question in enumerate((*OTHERS, QUESTION)):
            kept = answer_of(question, question=question, scope=SCOPE, created_s=NOW_S - age)
            self.guard.ask(lambda store, kept=kept: store.put(kept))

    def begun(self, question: str = ALIKE) -> Seeking:
        request = GenerationRequest((Message("user", question),), SamplingParams())
        key = CacheKey(digest_of("asked"), PARTITION, SCOPE)
        use = CacheUse("ann", similar=True)
        self.search.begin(CachedQuestion(use, request, key))
        seeking = self.search.of(request.request_id)
        assert seeking is not None
        self.search._thread.submit(lambda: None).result(PATIENCE_S)
        return seeking

    def candidates(self) -> dict[str, Candidate]:
        assert self.writer.flush(PATIENCE_S)
        found = self.guard.ask(lambda store: store.candidates(PARTITION, SCOPE, NOW_S))
        return {each.question: each for each in found}

    def seen(self) -> set[str]:
        """The questions that the model has looked at, once it has nothing to do."""
        until(lambda: not self.search._makes_missing)
        return {question for question, each in self.candidates().items() if each.embedding}

    def close(self) -> None:
        self.search.close()
        self.writer.close()
        self.guard.close()


def until(so: Callable[[], bool]) -> None:
    end_s = time.monotonic() + PATIENCE_S
    while not so():
        assert time.monotonic() < end_s
        time.sleep(0.005)


@pytest.fixture
def searched(tmp_path: Path, model: EmbeddingModel) -> Iterator[Searched]:
    made = Searched(tmp_path / "answers.sqlite3", model)
    yield made
    made.close()


def test_what_was_kept_without_a_vector_is_found_by_the_next_search(searched: Searched) -> None:
    first = searched.begun()
    assert first.found is None
    until(lambda: len(searched.seen()) == 4)
    second = searched.begun()
    assert second.found is not None
    assert second.found.answer.question == QUESTION
    vectors = searched.candidates()
    assert [len(vectors[each].vector) for each in (*OTHERS, QUESTION)] == [1536, 1536, 0, 1536]


def test_while_a_model_is_at_work_no_vectors_are_made(searched: Searched) -> None:
    with searched.search.model_at_work():
        with searched.search.model_at_work():
            searched.begun()
        searched.search._thread.submit(lambda: None).result(PATIENCE_S)
        assert searched.seen() == set()
        assert len(searched.search._missing) == 4
    until(lambda: len(searched.seen()) == 4)


def test_each_search_has_so_many_made_and_the_next_goes_on(
    searched: Searched, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(similar_search, "MISSING_AT_ONCE", 2)
    searched.begun()
    until(lambda: len(searched.seen()) == 2)
    assert searched.seen() == set(OTHERS[:2]), "the newest first"
    searched.begun()
    until(lambda: len(searched.seen()) == 4)
    searched.begun()
    assert searched.search._missing == {}, "what can't be read isn't tried again"


def test_a_search_stands_behind_one_vector_at_most(
    searched: Searched, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, began, may = [], threading.Event(), threading.Event()

    def slow(similar: SimilarAnswers, place: object, candidate: Candidate) -> None:
        made.append(candidate.question)
        began.set()
        assert may.wait(PATIENCE_S)

    monkeypatch.setattr(searched.search, "_make_vector", slow)
    searched.begun()
    assert began.wait(PATIENCE_S)
    before: list[int] = []
    searched.search._aside(lambda: before.append(len(made)))
    may.set()
    until(lambda: len(made) == 4)
    assert before == [1]
