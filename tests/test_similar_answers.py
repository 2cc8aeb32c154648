"""Looking for a kept answer to the same question in other words: real embedding, real store."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from llm.cache_guard import CacheGuard
from llm.cache_sqlite import SqliteAnswerStore
from llm.cache_types import CacheKey, Rejection
from llm.embedding import EmbeddingModel
from llm.minilm import fetch_minilm
from llm.settings import Settings
from llm.similar_answers import Match, NearMiss, SimilarAnswers
from llm.types import CancelToken
from tests.cached_answers import NOW_S, PARTITION, answer_of, digest_of
from tests.model_data import model_data_dir

pytestmark = pytest.mark.model

QUESTION = "How do I reverse a list in Python?"
ALIKE = "How can I reverse a list in Python?"
OTHER = "How do I reverse a string in Python?"
KEY = CacheKey(digest_of("asked"), PARTITION, "p-ann")
PATIENCE_S = 120.0


@pytest.fixture(scope="module")
def model() -> Iterator[EmbeddingModel]:
    folder = fetch_minilm(model_data_dir() / "embeddings", CancelToken())
    made = EmbeddingModel.from_settings(Settings(embedding_model=str(folder)))
    assert made is not None
    assert made.wait(PATIENCE_S) is not None
    yield made
    made.close()


@pytest.fixture
def guard(tmp_path: Path) -> Iterator[CacheGuard]:
    store = SqliteAnswerStore(tmp_path / "answers.sqlite3", 2**26)
    made = CacheGuard(lambda: store, limit_s=PATIENCE_S)
    yield made
    made.close()


@pytest.fixture
def similar(model: EmbeddingModel, guard: CacheGuard) -> SimilarAnswers:
    made = SimilarAnswers(guard, model)
    keep(guard, made, QUESTION)
    return made


def keep(guard: CacheGuard, similar: SimilarAnswers, question: str) -> str:
    told = similar.vector(question)
    assert told is not None
    answer = answer_of(question, question=question, scope="p-ann")
    guard.ask(lambda store: store.put(answer, *told))
    return answer.key.digest


def test_the_same_in_other_words_is_found(similar: SimilarAnswers) -> None:
    match = similar.search(KEY, ALIKE, NOW_S)[0]
    assert isinstance(match, Match)
    assert match.answer.question == QUESTION
    assert 0.9 < match.similarity <= 1.0


def test_what_is_much_alike_and_not_the_same_is_told_with_the_reason(
    similar: SimilarAnswers,
) -> None:
    near = similar.search(KEY, OTHER, NOW_S)[0]
    assert isinstance(near, NearMiss)
    assert (near.other.question, near.reason) == (QUESTION, "words")


@pytest.mark.parametrize(
    "key",
    [replace(KEY, scope="p-bob"), replace(KEY, partition=digest_of("another"))],
    ids=["another person", "other conditions"],
)
def test_other_peoples_and_other_conditions_are_not_looked_at(
    similar: SimilarAnswers, key: CacheKey
) -> None:
    assert similar.search(key, ALIKE, NOW_S)[0] is None


def test_what_is_unlike_or_expired_is_nothing(similar: SimilarAnswers) -> None:
    assert similar.search(KEY, "What is the capital of Peru?", NOW_S)[0] is None
    assert similar.search(KEY, ALIKE, NOW_S + 1e9)[0] is None


def test_after_a_wrong_match_more_likeness_is_wanted_nearby(
    similar: SimilarAnswers, guard: CacheGuard
) -> None:
    match = similar.search(KEY, ALIKE, NOW_S)[0]
    told = similar.vector(ALIKE)
    assert isinstance(match, Match)
    assert told is not None
    rejection = Rejection(told[0], told[1], match.similarity, NOW_S)
    guard.ask(lambda store: store.reject(PARTITION, "p-ann", rejection))
    assert similar.search(KEY, ALIKE, NOW_S)[0] is None
    elsewhere = "What is a heat pump?"
    keep(guard, similar, elsewhere)
    assert isinstance(similar.search(KEY, "what is a heat pump?", NOW_S)[0], Match)


def test_a_language_that_the_embedding_does_not_read_is_refused(
    similar: SimilarAnswers,
) -> None:
    assert similar.state == "ready"
    assert similar.why_not("怎样在 Python 中反转列表？") == "unread"
    assert similar.search(KEY, "怎样在 Python 中反转列表？", NOW_S)[0] is None
