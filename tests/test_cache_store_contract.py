"""What every store of the answer cache does, on a real SQLite file and a real Redis."""

from __future__ import annotations

import dataclasses
import random
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import redis
import sqlalchemy as sa

from llm.cache_packing import DECISION_CHARS, OPENING_CHARS
from llm.cache_redis import PREFIX
from llm.cache_types import (
    CLEARING_KEPT_S,
    CLOCK_AHEAD_S,
    DECISIONS_KEPT,
    DECISIONS_KEPT_S,
    REJECTIONS_KEPT,
    REJECTIONS_KEPT_S,
    SHARED,
    AnswerStore,
    CacheKey,
    CacheStoreError,
    CacheTotals,
    Candidate,
    Decision,
    DecisionCount,
    Rejection,
)
from llm.types import Delta, Usage
from tests.cached_answers import (
    DAY_S,
    LARGE,
    NOW_S,
    PARTITION,
    Opens,
    Place,
    answer_of,
    decision_of,
    digest_of,
    vector_of,
)

ROOT = Path(__file__).parent.parent
ME, HER = "person-1", "person-2"


@pytest.fixture(params=["sqlite", "redis"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    url = request.getfixturevalue("redis_url") if request.param == "redis" else ""
    return Place(url, tmp_path / "folder" / "answers.sqlite3")


@pytest.fixture
def opens(place: Place) -> Iterator[Opens]:
    with ExitStack() as stack:

        def opened(*arguments: Any, **named: Any) -> AnswerStore:
            store = place.opened(*arguments, **named)
            stack.callback(store.close)
            return store

        yield opened


@pytest.fixture
def store(opens: Opens) -> AnswerStore:
    return opens()


def names(store: AnswerStore, scope: str = SHARED, now_s: float = NOW_S) -> list[str]:
    return [entry.question for entry in store.entries(scope, now_s, 1000)]


def rejection_of(number: int, at_s: float = NOW_S) -> Rejection:
    return Rejection(vector_of(number, 8), "minilm", number / 2000, at_s)


# -- answers --


def test_what_is_kept_comes_back_piece_by_piece(store: AnswerStore) -> None:
    kept = dataclasses.replace(
        answer_of("a"),
        question="Wer?\0 \ud83d 谁\n🙂",
        pieces=(Delta("hm", "reasoning"), Delta("", "recast"), Delta("Ja\ud83d"), Delta("。\0🙂")),
        usage=Usage(None, 3),
        model='it\'s "quoted"; DROP TABLE entries; --',
    )
    store.put(kept, vector_of("a"), "minilm")
    assert store.get(kept.key.digest, SHARED, NOW_S) == kept
    assert store.get(digest_of("b"), SHARED, NOW_S) is None


def test_another_store_on_the_same_place_has_it(opens: Opens) -> None:
    opens().put(answer_of("a"))
    assert opens().get(digest_of("a"), SHARED, NOW_S) == answer_of("a")


def test_what_is_kept_again_is_there_once(store: AnswerStore) -> None:
    other = digest_of("other partition")
    store.put(answer_of("a", "first"), vector_of("a"), "minilm")
    store.used(digest_of("a"), SHARED, NOW_S + 5)
    store.put(answer_of("a", "second", partition=other), vector_of("b"), "minilm")
    assert store.get(digest_of("a"), SHARED, NOW_S) == answer_of("a", "second", partition=other)
    assert [entry.hits for entry in store.entries(SHARED, NOW_S, 10)] == [0]
    assert store.totals(SHARED, NOW_S).entries == 1
    assert not store.candidates(PARTITION, SHARED, NOW_S)
    assert [each.vector for each in store.candidates(other, SHARED, NOW_S)] == [vector_of("b")]
    store.put(answer_of("a", "third", partition=other))
    assert [each.vector for each in store.candidates(other, SHARED, NOW_S)] == [b""]


def test_an_answer_is_given_until_it_expires(store: AnswerStore) -> None:
    store.put(answer_of("a", lives_s=60), vector_of("a"), "minilm")
    for now_s, there in ((NOW_S + 59.9, 1), (NOW_S + 60, 0), (NOW_S + 61, 0)):
        assert (store.get(digest_of("a"), SHARED, now_s) is not None) == bool(there)
        assert len(store.candidates(PARTITION, SHARED, now_s)) == there
        assert len(store.entries(SHARED, now_s, 10)) == there
        assert store.totals(SHARED, now_s).entries == there
        assert (store.totals(SHARED, now_s).size > 0) == bool(there)


YEAR_S = 365 * DAY_S


def test_what_a_clock_that_was_ahead_made_is_not_given(store: AnswerStore) -> None:
    store.put(answer_of("later", created_s=NOW_S + YEAR_S), vector_of("later"), "minilm")
    store.put(answer_of("soon", created_s=NOW_S + YEAR_S + CLOCK_AHEAD_S), vector_of("soon"), "m")
    for now_s, found in (
        (NOW_S, []),
        (NOW_S + YEAR_S - CLOCK_AHEAD_S - 1, []),
        (NOW_S + YEAR_S, ["soon", "later"]),
    ):
        for name in ("later", "soon"):
            assert (store.get(digest_of(name), SHARED, now_s) is not None) is (name in found)
        texts = [f"What is {name}?" for name in found]
        assert [each.question for each in store.candidates(PARTITION, SHARED, now_s)] == texts
        assert names(store, now_s=now_s) == texts
        assert [e.question for e in store.entries(SHARED, now_s, 9, text="what")] == texts
        totals = store.totals(SHARED, now_s)
        assert totals.entries == len(found)
        assert (totals.size > 0) is bool(found)


def test_what_a_clock_that_was_ahead_made_or_gave_leaves_with_the_next_that_is_kept(
    store: AnswerStore,
) -> None:
    store.put(answer_of("later", created_s=NOW_S + YEAR_S))
    store.put(answer_of("given", lives_s=2 * YEAR_S))
    store.used(digest_of("given"), SHARED, NOW_S + YEAR_S)
    store.put(answer_of("now", created_s=NOW_S))
    assert names(store) == ["What is now?"]
    assert names(store, now_s=NOW_S + YEAR_S) == []
    for name in ("later", "given"):
        assert store.get(digest_of(name), SHARED, NOW_S + YEAR_S) is None
    assert store.totals(SHARED, NOW_S).entries == 1
    assert store.clear(SHARED, NOW_S) == 1


def test_what_expired_leaves_with_the_next_that_is_kept(store: AnswerStore) -> None:
    for number in range(5):
        store.put(answer_of(number, lives_s=60, scope=HER), vector_of(number), "minilm")
    store.put(answer_of("late", created_s=NOW_S + 61))
    assert store.totals(HER, NOW_S) == CacheTotals(0, 0)
    assert not store.entries(HER, NOW_S, 10)
    assert not store.candidates(PARTITION, HER, NOW_S)


@pytest.mark.parametrize("lives_s", [0.0, -5.0])
def test_what_has_expired_already_is_not_kept(store: AnswerStore, lives_s: float) -> None:
    store.put(answer_of("a", "old"))
    store.put(answer_of("a", lives_s=lives_s))
    assert store.get(digest_of("a"), SHARED, NOW_S - 10) is None
    assert store.totals(SHARED, NOW_S - 10) == CacheTotals(0, 0)


def test_what_never_expires_stays(store: AnswerStore) -> None:
    kept = answer_of("a", lives_s=float("inf"))
    store.put(kept)
    assert store.get(digest_of("a"), SHARED, NOW_S * 10) == kept


def test_giving_it_is_counted(store: AnswerStore) -> None:
    for name in "abc":
        store.put(answer_of(name))
    for second in (3, 2):
        store.used(digest_of("a"), SHARED, NOW_S + second)
    store.used(digest_of("nothing"), SHARED, NOW_S + 9)
    first, *others = store.entries(SHARED, NOW_S, 10)
    assert (first.key.digest, first.hits, first.used_s) == (digest_of("a"), 2, NOW_S + 3)
    assert [(entry.hits, entry.used_s) for entry in others] == [(0, NOW_S)] * 2


def test_an_answer_can_be_forgotten(store: AnswerStore) -> None:
    store.put(answer_of("a"), vector_of("a"), "minilm")
    store.put(answer_of("b"))
    assert store.delete(digest_of("a"), SHARED)
    assert not store.delete(digest_of("a"), SHARED)
    assert store.get(digest_of("a"), SHARED, NOW_S) is None
    assert [each.digest for each in store.candidates(PARTITION, SHARED, NOW_S)] == [digest_of("b")]
    assert names(store) == ["What is b?"]
    assert store.totals(SHARED, NOW_S).entries == 1


def test_candidates_are_the_partitions_questions(store: AnswerStore) -> None:
    odd = "ä\ud83d\0谁?"
    store.put(answer_of("a", question=odd), vector_of("a"), "minilm")
    store.put(answer_of("b"), vector_of("b", 8), "模型")
    store.put(answer_of("without"))
    store.put(answer_of("elsewhere", partition=digest_of("else")), vector_of("c"), "minilm")
    found = sorted(store.candidates(PARTITION, SHARED, NOW_S), key=lambda each: each.embedding)
    assert [(each.digest, each.question, each.vector, each.embedding) for each in found] == [
        (digest_of("without"), "What is without?", b"", ""),
        (digest_of("a"), odd, vector_of("a"), "minilm"),
        (digest_of("b"), "What is b?", vector_of("b", 8), "模型"),
    ]


def test_candidates_come_newest_first(store: AnswerStore) -> None:
    ages = list(range(100))
    random.Random(7).shuffle(ages)
    for age in ages:
        store.put(answer_of(age, created_s=NOW_S - age), vector_of(age), "minilm")
    # Put once more, as what gets its vector later: it is as old as it was.
    store.put(answer_of(99, created_s=NOW_S - 99), vector_of(99), "minilm")
    found = [each.question for each in store.candidates(PARTITION, SHARED, NOW_S)]
    assert found == [f"What is {age}?" for age in range(100)]


def test_a_question_is_given_its_vector_later(store: AnswerStore) -> None:
    odd = "ä\ud83d\0谁?" * 50
    store.put(answer_of("a", question=odd))
    store.put(answer_of("hers", scope=HER))
    store.used(digest_of("a"), SHARED, NOW_S + 5)
    bare, hers = store.totals(SHARED, NOW_S), store.totals(HER, NOW_S)
    for vector, model in ((vector_of(1), "minilm"), (vector_of(2, 8), "模型"), (b"", "minilm")):
        wanted = Candidate(digest_of("a"), odd, vector, model)
        store.embed(PARTITION, SHARED, wanted)
        assert list(store.candidates(PARTITION, SHARED, NOW_S)) == [wanted]
        (entry,) = store.entries(SHARED, NOW_S, 10)
        assert (entry.hits, entry.used_s) == (1, NOW_S + 5)
        assert store.totals(SHARED, NOW_S) == CacheTotals(1, entry.size)
        if len(vector) > 1000:
            assert entry.size > bare.size
    assert store.totals(HER, NOW_S) == hers
    assert store.get(digest_of("a"), SHARED, NOW_S) == answer_of("a", question=odd)
    store.delete(digest_of("a"), SHARED)
    assert store.totals(SHARED, NOW_S) == CacheTotals(0, 0)


def test_a_size_is_the_same_whenever_the_vector_came(store: AnswerStore) -> None:
    for number, length in enumerate((1, 100, 300, 4000)):
        question = "q" * length
        store.put(answer_of(number, question=question), vector_of(1), "minilm")
        at_once = store.totals(SHARED, NOW_S).size
        store.put(answer_of(number, question=question))
        store.embed(
            PARTITION, SHARED, Candidate(digest_of(number), question, vector_of(1), "minilm")
        )
        assert store.totals(SHARED, NOW_S).size == at_once


def test_what_is_not_there_is_given_no_vector(store: AnswerStore) -> None:
    store.put(answer_of("a"))
    before = store.candidates(PARTITION, SHARED, NOW_S), store.totals(SHARED, NOW_S)
    vector = Candidate(digest_of("a"), "What is a?", vector_of(1), "minilm")
    store.embed(PARTITION, HER, vector)
    store.embed(digest_of("else"), SHARED, vector)
    store.embed("*", SHARED, vector)
    store.embed(PARTITION, SHARED, dataclasses.replace(vector, digest=digest_of("b")))
    store.embed(PARTITION, SHARED, dataclasses.replace(vector, digest="*"))
    assert (store.candidates(PARTITION, SHARED, NOW_S), store.totals(SHARED, NOW_S)) == before
    assert not store.candidates(digest_of("else"), SHARED, NOW_S)
    assert store.totals(HER, NOW_S) == CacheTotals(0, 0)


# -- whose it is --


def test_nothing_of_another_scope_can_be_had_by_any_digest(store: AnswerStore) -> None:
    for scope in (HER, SHARED):
        store.put(answer_of("a", scope, scope=scope), vector_of(scope), "minilm")
        store.reject(PARTITION, scope, rejection_of(1))
        store.note(decision_of("a", scope=scope))
    digest, before = digest_of("a"), store.entries(HER, NOW_S, 10)
    # Also what looks like a part of another's key, or like a pattern.
    for scope in (
        ME,
        "",
        "person",
        f"{HER}:",
        f"{HER}:{digest}",
        "*",
        "%",
        "person-_",
        HER.upper(),
    ):
        assert store.get(digest, scope, NOW_S) is None
        assert not store.delete(digest, scope)
        assert not store.candidates(PARTITION, scope, NOW_S)
        assert not store.rejections(PARTITION, scope)
        assert not store.entries(scope, NOW_S, 10)
        assert store.totals(scope, NOW_S) == CacheTotals(0, 0)
        assert not store.decisions(scope)
        store.used(digest, scope, NOW_S + 5)
        store.judge("decision a", scope, True)
        assert store.clear(scope, NOW_S) == 0
        assert store.clear(scope, NOW_S, model="a model") == 0
    assert store.entries(HER, NOW_S, 10) == before
    assert store.get(digest, HER, NOW_S) == answer_of("a", HER, scope=HER)
    assert [each.judged for each in store.decisions(HER)] == [None]
    assert len(store.rejections(PARTITION, HER)) == 1
    store.judge("decision a", HER, False)
    assert store.delete(digest, HER)
    assert store.clear(HER, NOW_S) == 0
    assert store.get(digest, SHARED, NOW_S) == answer_of("a", SHARED)
    assert [each.vector for each in store.candidates(PARTITION, SHARED, NOW_S)] == [
        vector_of(SHARED)
    ]
    assert [each.judged for each in store.decisions(SHARED)] == [None]
    assert len(store.rejections(PARTITION, SHARED)) == 1


ODD = ["", "*", "%", "a" * 129, "AB", "' OR 1=1 --", "ab:cd", "ab\0", "ab\n", "\ud83d", "谁"]


@pytest.mark.parametrize("odd", ODD)
def test_what_can_be_no_digest_holds_nothing(store: AnswerStore, odd: str) -> None:
    store.put(answer_of("a"), vector_of("a"), "minilm")
    assert store.get(odd, SHARED, NOW_S) is None
    assert not store.delete(odd, SHARED)
    assert not store.candidates(odd, SHARED, NOW_S)
    assert not store.rejections(odd, SHARED)
    store.used(odd, SHARED, NOW_S)
    for key in (CacheKey(odd, PARTITION, SHARED), CacheKey(digest_of("b"), odd, SHARED)):
        with pytest.raises(CacheStoreError):
            store.put(dataclasses.replace(answer_of("b"), key=key))
    with pytest.raises(CacheStoreError):
        store.reject(odd, SHARED, rejection_of(1))
    assert names(store) == ["What is a?"]


@pytest.mark.parametrize("odd", ["", "a" * 256, "\0", "\ud83d"])
def test_what_can_be_no_scope_holds_nothing(store: AnswerStore, odd: str) -> None:
    assert store.get(digest_of("a"), odd, NOW_S) is None
    assert store.totals(odd, NOW_S) == CacheTotals(0, 0)
    assert not store.entries(odd, NOW_S, 10)
    assert not store.decisions(odd)
    assert store.clear(odd, NOW_S) == 0
    for keep in (
        lambda: store.put(answer_of("a", scope=odd)),
        lambda: store.note(decision_of("a", scope=odd)),
        lambda: store.reject(PARTITION, odd, rejection_of(1)),
    ):
        with pytest.raises(CacheStoreError):
            keep()


def test_any_other_text_is_a_scope(store: AnswerStore) -> None:
    odd = [":", "a:b", "a:", ":b", "a b", "' --", "ä谁🙂", "%", "*", "a" * 255, "[a]", "\n"]
    for scope in odd:
        store.put(answer_of("a", scope, scope=scope), vector_of(scope), "minilm")
        store.note(decision_of("a", scope=scope))
    for scope in odd:
        assert store.get(digest_of("a"), scope, NOW_S) == answer_of("a", scope, scope=scope)
        assert [each.vector for each in store.candidates(PARTITION, scope, NOW_S)] == [
            vector_of(scope)
        ]
        assert store.totals(scope, NOW_S).entries == 1
        assert len(store.decisions(scope)) == 1
        assert store.clear(scope, NOW_S) == 1
        assert not store.decisions(scope)


# -- what a person sees --


def test_entries_are_listed_last_used_first(store: AnswerStore) -> None:
    for number in range(6):
        store.put(answer_of(number, created_s=NOW_S + number))
    store.put(answer_of("hers", scope=HER))
    store.put(answer_of("gone", created_s=NOW_S + 4, lives_s=1))
    store.used(digest_of(1), SHARED, NOW_S + 50)
    wanted = [f"What is {name}?" for name in (1, 5, 4, 3, 2, 0)]
    now_s = NOW_S + 60
    assert names(store, now_s=now_s) == wanted
    assert [entry.question for entry in store.entries(SHARED, now_s, 2, 3)] == wanted[3:5]
    assert not store.entries(SHARED, now_s, 5, 6)
    assert not store.entries(SHARED, now_s, 0)
    assert not store.entries(SHARED, now_s, -1)
    assert len(store.entries(SHARED, now_s, 10**30, -(10**30))) == 6


QUESTIONS = (
    "How do I reverse a LIST?",
    "a list of 100% cotton shirts",
    "a_b is no axb",
    "怎么把列表倒过来？用 Python",
    "Größe und ÄPFEL",
    "[a-c]* or . or \\d or 'quoted' \"so\"",
    "line\nbreak",
)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("list", [1, 0]),
        ("LIST OF", [1]),
        ("列表", [3]),
        ("列倒", []),
        ("python", [3]),
        ("äpfel", [4]),
        ("GRÖSSE", [4]),
        ("%", [1]),
        ("1%0", []),
        ("_", [2]),
        ("a_b", [2]),
        ("*", [5]),
        (".", [5]),
        ("[a-c]", [5]),
        ("?", [0]),
        ("\\d", [5]),
        ("'", [5]),
        ('"so"', [5]),
        ("\n", [6]),
        (" ", [5, 4, 3, 2, 1, 0]),
        ("a model", []),
        ("answer", []),
    ],
)
def test_entries_are_found_by_what_their_question_has(
    store: AnswerStore, text: str, wanted: list[int]
) -> None:
    for number, question in enumerate(QUESTIONS):
        store.put(answer_of(number, question=question, created_s=NOW_S + number), vector_of(number))
        store.put(answer_of(number, question=f"{question}!", scope=HER))
        store.put(answer_of(f"old {number}", question=question, lives_s=100.5))
    now_s = NOW_S + 200
    found = store.entries(SHARED, now_s, 10, text=text)
    assert [each.question for each in found] == [QUESTIONS[number] for number in wanted]
    in_all = {each.key.digest: each for each in store.entries(SHARED, now_s, 100)}
    assert [in_all[each.key.digest] for each in found] == list(found)


def test_what_is_found_is_listed_as_the_rest_is(store: AnswerStore) -> None:
    for number in range(450):
        question = f"Even {number}" if number % 2 == 0 else f"odd {number}"
        store.put(answer_of(number, question=question, created_s=NOW_S + number))
    store.used(digest_of(2), SHARED, NOW_S + 1000)

    def found(limit: int, skip: int = 0) -> list[str]:
        entries = store.entries(SHARED, NOW_S + 1000, limit, skip, text="even")
        return [each.question for each in entries]

    wanted = ["Even 2", *(f"Even {number}" for number in range(448, 2, -2)), "Even 0"]
    assert found(1000) == wanted
    assert found(3, 200) == wanted[200:203]
    assert found(5, 223) == wanted[223:]
    assert not found(0)
    assert not found(-1)
    assert store.entries(SHARED, NOW_S + 1000, 1, text="even")[0].hits == 1


def test_an_entry_shows_how_the_answer_began(store: AnswerStore) -> None:
    text = "谁" * 300
    pieces = (Delta("thinks"), Delta("", "recast"), Delta("more", "reasoning"), Delta(text))
    kept = dataclasses.replace(answer_of("a", question="q\0\ud83d"), pieces=pieces)
    store.put(kept, vector_of("a"), "minilm")
    (entry,) = store.entries(SHARED, NOW_S, 10)
    assert (entry.opening, entry.chars) == (text[:OPENING_CHARS], 300)
    assert entry.question == "q\ufffd\ufffd"
    assert (entry.key, entry.model, entry.server) == (kept.key, "a model", "a server")
    assert (entry.created_s, entry.expires_s, entry.used_s) == (NOW_S, NOW_S + DAY_S, NOW_S)
    assert store.totals(SHARED, NOW_S) == CacheTotals(1, entry.size)


def test_totals_are_those_of_the_entries(store: AnswerStore) -> None:
    rng = random.Random(1)
    for number in range(60):
        scope = rng.choice((ME, HER))
        store.put(answer_of(number % 40, "x" * rng.randrange(3000), scope=scope))
        if number % 7 == 0:
            store.delete(digest_of(rng.randrange(40)), scope)
    for scope in (ME, HER):
        entries = store.entries(scope, NOW_S, 100)
        assert entries
        sizes = sum(entry.size for entry in entries)
        assert store.totals(scope, NOW_S) == CacheTotals(len(entries), sizes)


def test_a_scope_is_cleared_with_its_log_and_rejections(store: AnswerStore) -> None:
    for scope in (ME, HER):
        for number in range(450):
            store.put(answer_of(number, scope=scope), vector_of(number, 8), "minilm")
        store.note(decision_of("a", scope=scope))
        store.reject(PARTITION, scope, rejection_of(1))
    assert store.clear(ME, NOW_S) == 450
    assert store.totals(ME, NOW_S) == CacheTotals(0, 0)
    assert not store.entries(ME, NOW_S, 10)
    assert not store.candidates(PARTITION, ME, NOW_S)
    assert not store.decisions(ME)
    assert not store.rejections(PARTITION, ME)
    assert store.totals(HER, NOW_S).entries == 450
    assert len(store.candidates(PARTITION, HER, NOW_S)) == 450
    assert len(store.decisions(HER)) == len(store.rejections(PARTITION, HER)) == 1


def test_only_one_models_or_only_older_entries_are_cleared(store: AnswerStore) -> None:
    for number in range(8):
        model = f"m\0{number % 2}"
        store.put(answer_of(number, model=model, created_s=NOW_S + number))
    store.note(decision_of("a"))
    store.reject(PARTITION, SHARED, rejection_of(1))
    assert store.clear(SHARED, NOW_S, model="m\0001", before_s=NOW_S + 3) == 1
    assert store.clear(SHARED, NOW_S, model="m\0001") == 3
    assert store.clear(SHARED, NOW_S, model="m") == 0
    assert store.clear(SHARED, NOW_S, before_s=NOW_S + 4) == 2
    assert names(store) == ["What is 6?", "What is 4?"]
    assert store.decisions(SHARED)
    assert store.rejections(PARTITION, SHARED)


def test_what_a_model_was_busy_with_when_it_was_cleared_is_not_kept(opens: Opens) -> None:
    """In whichever process."""
    store, other = opens(), opens()
    store.put(answer_of("kept before", scope=HER))
    store.clear(ME, NOW_S)
    for later_s, there in ((-2.5, False), (0, False), (0.1, True)):
        kept = answer_of(later_s, scope=ME, created_s=NOW_S + 9)
        other.put(kept, vector_of(1), "m", begun_s=NOW_S + later_s)
        found = other.get(digest_of(later_s), ME, NOW_S)
        assert (found is not None) == there, later_s
    assert store.totals(ME, NOW_S).entries == 1
    assert len(store.candidates(PARTITION, ME, NOW_S)) == 1
    other.put(answer_of("hers", scope=HER))
    assert store.totals(HER, NOW_S).entries == 2, "another's"


def test_one_models_clearing_is_no_others(store: AnswerStore) -> None:
    store.clear(ME, NOW_S, model="=m\0")
    for model, there in (("=m\0", False), ("m", True), ("", True)):
        store.put(answer_of(model, scope=ME, model=model))
        assert (store.get(digest_of(model), ME, NOW_S) is not None) == there, model


def test_where_only_old_answers_are_cleared_new_ones_are_kept(store: AnswerStore) -> None:
    store.clear(ME, NOW_S, before_s=NOW_S - 3600)
    store.put(answer_of("a", scope=ME))
    store.put(answer_of("late", scope=ME, created_s=NOW_S - 3601))
    assert names(store, ME) == ["What is a?"]


def test_a_clearing_counts_for_a_day(store: AnswerStore) -> None:
    """Also where a clock was wrong by years."""
    store.clear(ME, NOW_S + 1e9)
    store.put(answer_of("a", scope=ME))
    assert store.get(digest_of("a"), ME, NOW_S) is not None


# -- rejections and the log --


def test_the_newest_rejections_of_a_partition_are_kept(store: AnswerStore) -> None:
    for number in range(REJECTIONS_KEPT + 5):
        store.reject(PARTITION, SHARED, rejection_of(number, NOW_S + number))
    store.reject(digest_of("else"), SHARED, rejection_of(0))
    found = store.rejections(PARTITION, SHARED)
    assert list(found) == [
        rejection_of(number, NOW_S + number) for number in range(REJECTIONS_KEPT + 4, 4, -1)
    ]
    assert list(store.rejections(digest_of("else"), SHARED)) == [rejection_of(0)]


def test_rejections_are_kept_for_a_year(store: AnswerStore) -> None:
    store.reject(PARTITION, SHARED, rejection_of(1))
    store.reject(PARTITION, SHARED, rejection_of(2, NOW_S + REJECTIONS_KEPT_S + 1))
    assert [each.at_s for each in store.rejections(PARTITION, SHARED)] == [
        NOW_S + REJECTIONS_KEPT_S + 1
    ]


def test_the_log_is_read_newest_first(store: AnswerStore) -> None:
    noted = [
        decision_of(1, at_s=NOW_S + 1, question="\0谁\ud83d" * 10),
        decision_of(2, at_s=NOW_S + 2),
        dataclasses.replace(decision_of(0), kind="miss", similarity=None, digest="", saved_s=0),
    ]
    for decision in noted:
        store.note(decision)
    assert list(store.decisions(SHARED)) == [noted[1], noted[0], noted[2]]
    assert list(store.decisions(SHARED, 1)) == [noted[1]]
    assert not store.decisions(SHARED, 0)
    assert not store.decisions(SHARED, -1)


def test_the_log_shows_how_long_questions_began(store: AnswerStore) -> None:
    store.note(decision_of(1, question="谁" * 100_000))
    assert [each.question for each in store.decisions(SHARED)] == ["谁" * DECISION_CHARS]


def test_a_decision_with_the_same_id_takes_its_place(store: AnswerStore) -> None:
    store.note(decision_of(1))
    store.judge("decision 1", SHARED, True)
    store.note(decision_of(1, at_s=NOW_S + 1))
    assert list(store.decisions(SHARED)) == [decision_of(1, at_s=NOW_S + 1)]


def test_a_decision_is_judged_and_judged_again(store: AnswerStore) -> None:
    for number in range(3):
        store.note(decision_of(number, at_s=NOW_S - number))
    store.judge("decision 0", SHARED, True)
    store.judge("decision 0", SHARED, False)
    store.judge("decision 1", SHARED, True)
    store.judge("decision 9", SHARED, True)
    assert [each.judged for each in store.decisions(SHARED)] == [False, True, None]


@pytest.mark.slow
def test_the_newest_decisions_of_a_scope_are_kept(store: AnswerStore) -> None:
    store.note(decision_of("hers", scope=HER, at_s=NOW_S))
    for number in range(DECISIONS_KEPT + 5):
        store.note(decision_of(number, at_s=NOW_S + number))
    found = store.decisions(SHARED)
    assert [each.at_s for each in found] == [
        NOW_S + number for number in range(DECISIONS_KEPT + 4, 4, -1)
    ]
    assert len(store.decisions(HER)) == 1


def test_the_log_is_kept_for_ninety_days(store: AnswerStore) -> None:
    for second in (0, 5, DECISIONS_KEPT_S + 3):
        store.note(decision_of(second, at_s=NOW_S + second))
    assert [each.at_s - NOW_S for each in store.decisions(SHARED)] == [DECISIONS_KEPT_S + 3, 5]


def missed(number: int, **changed: Any) -> Decision:
    plain = dataclasses.replace(decision_of(number), kind="miss", reason="", model="", digest="")
    return dataclasses.replace(plain, saved_tokens=0, saved_s=0.0, **changed)


def test_the_log_is_counted(store: AnswerStore) -> None:
    assert not store.counts(SHARED)
    hit = dataclasses.replace(decision_of("hit"), kind="exact", reason="", model="m\n\0 'x'")
    store.note(hit)
    store.note(dataclasses.replace(hit, decision_id="another", saved_tokens=10**6, saved_s=0.25))
    store.note(missed(1))
    store.note(missed(2, reason="fresh"))
    store.note(decision_of("hers", scope=HER))
    model = "m\n\ufffd 'x'"
    wanted = {
        DecisionCount("exact", "", model, 2, 1_000_007, 1.75),
        DecisionCount("miss", "", "", 1, 0, 0.0),
        DecisionCount("miss", "fresh", "", 1, 0, 0.0),
    }

    def counted() -> set[DecisionCount]:
        told = store.counts(SHARED)
        return {
            dataclasses.replace(each, model=each.model.replace("\0", "\ufffd")) for each in told
        }

    assert counted() == wanted
    store.note(missed(2))  # in place of the one that was fresh
    store.judge("decision 1", SHARED, True)
    assert counted() == {
        DecisionCount("exact", "", model, 2, 1_000_007, 1.75),
        DecisionCount("miss", "", "", 2, 0, 0.0),
    }
    assert store.counts("*") == []
    assert len(store.counts(HER)) == 1
    store.clear(SHARED, NOW_S)
    assert not store.counts(SHARED)


def test_what_is_dropped_from_the_log_is_not_counted(store: AnswerStore) -> None:
    for second in (0, 5, DECISIONS_KEPT_S + 3):
        store.note(decision_of(second, at_s=NOW_S + second))
    assert list(store.counts(SHARED)) == [DecisionCount("near", "number", "a model", 2, 14, 3.0)]
    assert len(store.near(SHARED, 10)) == 2


def test_near_misses_are_listed_until_something_is_said_of_them(store: AnswerStore) -> None:
    for number in range(5):
        store.note(decision_of(number, at_s=NOW_S + number))
    store.note(missed(9))
    store.note(decision_of("hers", scope=HER))
    store.judge("decision 3", SHARED, True)
    store.judge("decision 1", SHARED, False)
    assert [each.decision_id for each in store.near(SHARED, 2)] == ["decision 4", "decision 2"]
    assert [each.at_s - NOW_S for each in store.near(SHARED, 10)] == [4, 2, 0]
    assert not store.near(SHARED, 0)
    assert not store.near("*", 10)
    store.note(dataclasses.replace(decision_of(4, at_s=NOW_S + 4), judged=True))
    assert [each.at_s - NOW_S for each in store.near(SHARED, 10)] == [2, 0]


def test_several_writes_are_done_together_and_in_order(store: AnswerStore) -> None:
    store.together(
        [
            lambda each: each.put(answer_of("a", "first")),
            lambda each: each.put(answer_of("b")),
            lambda each: each.put(answer_of("a", "second")),
            lambda each: each.embed(
                PARTITION, SHARED, Candidate(digest_of("a"), "What is a?", vector_of(1), "m")
            ),
            lambda each: each.used(digest_of("a"), SHARED, NOW_S + 1),
            lambda each: each.delete(digest_of("b"), SHARED),
            lambda each: each.note(decision_of(1)),
            lambda each: each.judge("decision 1", SHARED, True),
            lambda each: each.reject(PARTITION, SHARED, rejection_of(1)),
        ]
    )
    assert store.get(digest_of("a"), SHARED, NOW_S) == answer_of("a", "second")
    assert [each.hits for each in store.entries(SHARED, NOW_S, 10)] == [1]
    assert [each.vector for each in store.candidates(PARTITION, SHARED, NOW_S)] == [vector_of(1)]
    assert [each.judged for each in store.decisions(SHARED)] == [True]
    assert len(store.rejections(PARTITION, SHARED)) == 1
    with pytest.raises(CacheStoreError):
        store.together([lambda each: each.put(answer_of("c", scope=""))])
    store.note(decision_of(2))
    assert len(store.decisions(SHARED)) == 2, "it writes one by one again"
    store.together([])


# -- the size cap --


def test_the_least_recently_used_leave_first(opens: Opens) -> None:
    store = opens()
    store.put(answer_of(0, "x" * 400))
    size = store.totals(SHARED, NOW_S).size
    store = opens(round(10.5 * size))
    for number in range(1, 10):
        scope = HER if number % 2 else SHARED
        store.put(answer_of(number, "x" * 400, created_s=NOW_S + number, scope=scope))
    store.used(digest_of(0), SHARED, NOW_S + 20)
    store.used(digest_of(1), HER, NOW_S + 21)
    for number in range(30, 33):
        store.put(answer_of(number, "x" * 400, created_s=NOW_S + number))
    there = {entry.question for scope in (SHARED, HER) for entry in store.entries(scope, NOW_S, 99)}
    assert there == {f"What is {number}?" for number in (0, 1, 5, 6, 7, 8, 9, 30, 31, 32)}


def test_what_has_just_been_kept_is_not_the_first_to_leave(opens: Opens) -> None:
    """Where the clocks of two machines differ."""
    store = opens(20_000)
    for number in range(60):
        store.put(answer_of(number, "x" * 2000))
    store.put(answer_of("behind", created_s=NOW_S - 300))
    assert store.get(digest_of("behind"), SHARED, NOW_S) is not None


def test_an_answer_over_the_cap_is_not_kept_and_drives_nobody_out(opens: Opens) -> None:
    store = opens(20_000)
    store.put(answer_of("a"))
    store.put(answer_of("b"))
    huge = random.Random(1).randbytes(40_000).hex()
    store.put(answer_of("b", huge))
    assert names(store) == ["What is a?"], "nor is what it was to replace"


def test_a_smaller_cap_is_reached_step_by_step(opens: Opens) -> None:
    store = opens()
    for number in range(500):
        store.put(answer_of(number, created_s=NOW_S + number))
    half = store.totals(SHARED, NOW_S + 1000).size // 2
    smaller = opens(half)
    for number in range(3):
        smaller.put(answer_of(f"new {number}", created_s=NOW_S + 1000))
    assert half * 0.98 < smaller.totals(SHARED, NOW_S + 1000).size <= half
    assert len(names(smaller, now_s=NOW_S + 1000)) > 200


def bytes_taken(place: Place) -> int:
    if place.url:
        with redis.Redis.from_url(place.url) as admin:
            return int(admin.info("memory")["used_memory"])
    engine = sa.create_engine(f"sqlite:///{place.file}")
    with engine.connect() as connection:
        pages, free, page = (
            int(connection.exec_driver_sql(f"PRAGMA {name}").scalar_one())
            for name in ("page_count", "freelist_count", "page_size")
        )
    engine.dispose()
    return (pages - free) * page


def test_sizes_are_what_the_store_takes(place: Place, opens: Opens) -> None:
    """Also after as many have left as there are. Real answers differ in length."""
    store, rng = opens(4_500_000), random.Random(1)
    words = [rng.randbytes(rng.randrange(1, 5)).hex() for _ in range(5000)]
    store.put(answer_of("first"))
    before = bytes_taken(place) - store.totals(SHARED, NOW_S).size
    for number in range(3000):
        text = " ".join(rng.choice(words) for _ in range(rng.randrange(20, 500)))
        kept = answer_of(number, text, created_s=NOW_S + number)
        store.put(kept, vector_of(number), "minilm")
        if number % 3 == 0:
            store.used(digest_of(rng.randrange(number + 1)), SHARED, NOW_S + number)
    totals = store.totals(SHARED, NOW_S + 3000)
    assert 500 < totals.entries < 2000, "many have left"
    assert 4_450_000 < totals.size <= 4_500_000
    assert (bytes_taken(place) - before) / totals.size == pytest.approx(1, abs=0.08)
    if not place.url:
        assert place.file.stat().st_size < 4_500_000 * 1.15
    store.clear(SHARED, NOW_S)
    assert bytes_taken(place) < before + 500_000, "what is cleared is given back"


# -- many at once --


def test_many_threads_use_one_store(store: AnswerStore) -> None:
    failures: list[BaseException] = []

    def work(worker: int) -> None:
        scope = f"person-{worker}"
        try:
            for number in range(25):
                store.put(answer_of(number, scope=scope), vector_of(number, 8), "minilm")
                store.used(digest_of(number), scope, NOW_S + 1)
                assert store.get(digest_of(number), scope, NOW_S) is not None
                store.note(decision_of(number, scope=scope))
                assert len(store.candidates(PARTITION, scope, NOW_S)) == number + 1
        except BaseException as failure:  # noqa: BLE001 - told below
            failures.append(failure)

    threads = [threading.Thread(target=work, args=(worker,)) for worker in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    for worker in range(8):
        entries = store.entries(f"person-{worker}", NOW_S, 99)
        assert [entry.hits for entry in entries] == [1] * 25


PROCESS = """
import pathlib, sys
from tests.cached_answers import *
place = Place(sys.argv[1], pathlib.Path(sys.argv[2]))
store = place.opened(60_000)
print("ready", flush=True)
sys.stdin.readline()
for number in range(150):
    store.put(answer_of(number % 90, sys.argv[3] * 50, created_s=NOW_S + number), vector_of(1, 8), "m")
    store.used(digest_of(0), SHARED, NOW_S)
    store.note(decision_of(f"{sys.argv[3]} {number}"))
    found = store.get(digest_of(number % 90), SHARED, NOW_S)
    assert found is None or len(set("".join(piece.text for piece in found.pieces))) == 1
store.close()
"""


def test_several_processes_use_one_place(place: Place, opens: Opens) -> None:
    """Opened at once, at once over the cap: nothing is lost, mixed or counted twice."""
    running = [
        subprocess.Popen(
            [sys.executable, "-c", PROCESS, place.url, str(place.file), letter],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for letter in "abc"
    ]
    for process in running:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    for process in running:
        process.communicate("go\n")
    assert [process.returncode for process in running] == [0, 0, 0]
    store = opens()
    assert len(store.decisions(SHARED)) == 450
    entries = store.entries(SHARED, NOW_S, 1000)
    assert store.totals(SHARED, NOW_S) == CacheTotals(
        len(entries), sum(entry.size for entry in entries)
    )
    assert 50_000 < store.totals(SHARED, NOW_S).size <= 60_000
    assert {entry.key.digest for entry in entries} == {
        each.digest for each in store.candidates(PARTITION, SHARED, NOW_S)
    }


# -- many entries --


def fill(place: Place, store: AnswerStore, first: int, last: int) -> None:
    """Keep many in the store's own way, but many a transaction."""
    for number in range(first, last):
        partition = digest_of(number // 10_000)
        kept = answer_of(number, partition=partition, created_s=NOW_S + number / 1000)
        store.put(kept, vector_of(number % 50), "minilm")


def took_s(work: Any) -> float:
    began_s = time.perf_counter()
    work()
    return time.perf_counter() - began_s


def medians(store: AnswerStore, there: int) -> tuple[float, float]:
    """Seconds of a `get` and of a `put`."""
    rng = random.Random(there)
    gets = [
        took_s(lambda: store.get(digest_of(rng.randrange(there)), SHARED, NOW_S))
        for _ in range(300)
    ]
    puts = [
        took_s(
            lambda number=number: store.put(
                answer_of(f"{there} {number}", partition=digest_of("else")),
                vector_of(number % 50),
                "minilm",
            )
        )
        for number in range(300)
    ]
    return statistics.median(gets), statistics.median(puts)


@pytest.mark.slow
def test_a_hundred_thousand_entries_are_as_quick_as_a_thousand(
    place: Place, opens: Opens, record_property: Any
) -> None:
    store = opens(LARGE)
    fill(place, store, 0, 1_000)
    few_get_s, few_put_s = medians(store, 1_000)
    fill(place, store, 1_000, 100_000)
    many_get_s, many_put_s = medians(store, 100_000)
    partition = digest_of(5)
    found: list[Any] = []
    candidates_s = took_s(lambda: found.extend(store.candidates(partition, SHARED, NOW_S)))
    assert len(found) == 10_000
    for name, value in {
        "get ms at 1,000": few_get_s * 1e3,
        "get ms at 100,000": many_get_s * 1e3,
        "put ms at 1,000": few_put_s * 1e3,
        "put ms at 100,000": many_put_s * 1e3,
        "candidates of 10,000, in gets": candidates_s / many_get_s,
        "bytes an entry": store.totals(SHARED, NOW_S).size / 100_600,
    }.items():
        record_property(name, value)
        print(f"{name}: {value:.2f}")
    assert many_get_s < 0.005
    assert many_get_s < 2.5 * few_get_s
    assert many_put_s < 2 * few_put_s


# -- Redis's own --


def test_redis_lets_an_answer_go_by_itself(running_redis: Any, redis_url: str) -> None:
    store = Place(redis_url, Path()).opened()
    with running_redis.admin() as admin:
        store.put(answer_of("a", lives_s=3600), vector_of("a"), "minilm")
        (answer,) = admin.keys("*:answer:*")
        (questions,) = admin.keys("*:questions:*")
        assert 3590_000 < admin.pttl(answer) <= 3600_000
        assert 3590_000 < admin.pttl(questions) <= 3600_000
        store.put(answer_of("b", lives_s=7200), vector_of("b"), "minilm")
        store.put(answer_of("c", lives_s=60), vector_of("c"), "minilm")
        assert admin.pttl(questions) > 7190_000, "the last of its questions"
        admin.pexpire(answer, 1)
        while admin.exists(answer):
            pass
        assert store.get(digest_of("a"), SHARED, NOW_S) is None
        assert not store.delete(digest_of("a"), SHARED)
        assert {key.startswith(PREFIX.encode()) for key in admin.keys("*")} == {True}
    store.close()


def test_redis_keeps_nothing_of_what_was_cleared(running_redis: Any, redis_url: str) -> None:
    store = Place(redis_url, Path()).opened()
    for number in range(5):
        store.put(answer_of(number), vector_of(number), "minilm")
    store.note(decision_of("a"))
    store.judge("decision a", SHARED, True)
    store.reject(PARTITION, SHARED, rejection_of(1))
    assert store.clear(SHARED, NOW_S) == 5
    with running_redis.admin() as admin:
        (when,) = admin.keys("*")  # it was cleared, for a day
        assert when == f"{PREFIX}cleared:{SHARED}".encode()
        assert 86_000 < admin.ttl(when) <= CLEARING_KEPT_S
    store.close()
