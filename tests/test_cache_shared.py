"""Shared answers are nobody's own: who may forget them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from llm.answer_cache import AnswerCache
from llm.cache_key import person_scope
from llm.cache_rules import CacheRules
from llm.cache_sqlite import SqliteAnswerStore
from llm.cache_types import SHARED, AnswerStore
from llm.types import FromCache
from tests.cached_answers import NOW_S, answer_of, digest_of
from tests.driven_backend import PATIENCE_S

ANN, BOB = "ann", "bob"
EVERYBODYS = FromCache("similar", digest_of("all"), NOW_S, "What is all?", 0.9)


@pytest.fixture(params=[False, True])
def allowed(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)


@pytest.fixture
def cache(tmp_path: Path, allowed: bool) -> Iterator[AnswerCache]:
    made = AnswerCache(
        lambda: SqliteAnswerStore(tmp_path / "answers.sqlite3", 2**26),
        CacheRules(shared=True, shared_clear=allowed),
        clock=lambda: NOW_S,
        limit_s=PATIENCE_S,
    )

    def keep(store: AnswerStore) -> None:
        store.put(answer_of("all"))
        for owner in (ANN, BOB):
            store.put(answer_of(owner, scope=person_scope(owner)))

    made._guard.ask(keep, PATIENCE_S)
    yield made
    made.close()


def seen(cache: AnswerCache, owner: str) -> set[str]:
    return {entry.question for entry in cache.contents.entries(owner, 10)}


def test_a_shared_answer_is_read_by_all_and_an_own_one_by_its_owner(cache: AnswerCache) -> None:
    for owner, other in ((ANN, BOB), (BOB, ANN)):
        assert seen(cache, owner) == {"What is all?", f"What is {owner}?"}
        assert cache.contents.answer(owner, digest_of("all")) == answer_of("all")
        assert cache.contents.answer(owner, digest_of(owner)) is not None
        assert cache.contents.answer(owner, digest_of(other)) is None


def test_one_shared_answer_is_forgotten_where_that_is_allowed(
    cache: AnswerCache, allowed: bool
) -> None:
    may = {
        entry.key.scope: cache.contents.may_forget(entry)
        for entry in cache.contents.entries(ANN, 9)
    }
    assert may == {SHARED: allowed, person_scope(ANN): True}
    cache.contents.forget(ANN, digest_of("all"))
    assert ("What is all?" in seen(cache, BOB)) is not allowed
    cache.contents.forget(ANN, digest_of(ANN))
    assert "What is ann?" not in seen(cache, ANN)


@pytest.mark.parametrize("which", [{}, {"model": "a model"}, {"before_s": NOW_S + 1}])
def test_shared_answers_are_cleared_where_that_is_allowed(
    cache: AnswerCache, allowed: bool, which: dict[str, object]
) -> None:
    assert cache.contents.clear(ANN, **which) == (2 if allowed else 1)  # type: ignore[arg-type]
    assert seen(cache, ANN) == (set() if allowed else {"What is all?"})
    assert seen(cache, BOB) == ({"What is bob?"} | (set() if allowed else {"What is all?"}))


def test_a_wrong_match_takes_a_shared_answer_from_others_only_where_that_is_allowed(
    cache: AnswerCache, allowed: bool
) -> None:
    cache.doubt(ANN, EVERYBODYS, "What is everything?", wrong=True)
    assert ("What is all?" in seen(cache, BOB)) is not allowed


def test_without_sharing_nothing_shared_can_be_cleared(tmp_path: Path) -> None:
    cache = AnswerCache(
        lambda: SqliteAnswerStore(tmp_path / "answers.sqlite3", 2**26),
        CacheRules(shared_clear=True),
        clock=lambda: NOW_S,
        limit_s=PATIENCE_S,
    )
    cache._guard.ask(lambda store: store.put(answer_of("all")), PATIENCE_S)
    assert seen(cache, ANN) == set()
    assert cache.contents.clear(ANN) == 0
    cache.close()
