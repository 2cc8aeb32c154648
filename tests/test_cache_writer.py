"""Nobody waits for what is written to the cache, and it is written in order."""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from llm import cache_writer
from llm.cache_contents import CacheContents
from llm.cache_guard import CacheGuard
from llm.cache_key import person_scope
from llm.cache_sqlite import SqliteAnswerStore
from llm.cache_types import SHARED, AnswerStore, CacheStoreError
from llm.cache_writer import CacheWriter
from tests.cached_answers import NOW_S, answer_of, decision_of
from tests.driven_backend import PATIENCE_S

ANN = "ann"
KEPT = answer_of("a", scope=person_scope(ANN))


class SlowPut:
    """A write that the test lets go on."""

    def __init__(self) -> None:
        self.began = threading.Event()
        self.may = threading.Event()

    def __call__(self, store: AnswerStore) -> None:
        self.began.set()
        assert self.may.wait(PATIENCE_S)
        store.put(KEPT)


@pytest.fixture
def guard(tmp_path: Path) -> Iterator[CacheGuard]:
    made = CacheGuard(lambda: SqliteAnswerStore(tmp_path / "answers.sqlite3", 2**26), pause_s=0.0)
    made.ask(lambda store: None, PATIENCE_S)
    yield made
    made.close()


@pytest.fixture
def writer(guard: CacheGuard) -> Iterator[CacheWriter]:
    made = CacheWriter(guard)
    yield made
    made.close()


@pytest.fixture
def put() -> Iterator[SlowPut]:
    made = SlowPut()
    yield made
    made.may.set()


@pytest.fixture
def contents(guard: CacheGuard, writer: CacheWriter) -> CacheContents:
    return CacheContents(guard, writer, shared=False, clock=lambda: NOW_S)


def in_background(what: Callable[[], object]) -> threading.Thread:
    thread = threading.Thread(target=what)
    thread.start()
    return thread


def begins(put: SlowPut, writer: CacheWriter) -> None:
    writer.later(put)
    assert put.began.wait(PATIENCE_S)


@pytest.mark.parametrize("how", ["clear", "forget"])
def test_what_is_being_written_is_forgotten_too_however_slow(
    writer: CacheWriter,
    contents: CacheContents,
    put: SlowPut,
    how: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(cache_writer, "WRITE_LIMIT_S", 0.01)  # the guard gives it up, it goes on
    monkeypatch.setattr(cache_writer, "END_LIMIT_S", PATIENCE_S)
    monkeypatch.setattr("llm.cache_contents.CLEAR_LIMIT_S", PATIENCE_S)
    begins(put, writer)
    monkeypatch.setattr(cache_writer, "WRITE_LIMIT_S", PATIENCE_S)
    forgets = in_background(
        lambda: contents.clear(ANN) if how == "clear" else contents.forget(ANN, KEPT.key.digest)
    )
    forgets.join(0.2)  # time enough to overtake it
    put.may.set()
    forgets.join(PATIENCE_S)
    assert writer.flush(PATIENCE_S)
    assert contents.entries(ANN, 10) == []


def test_while_a_write_is_stuck_nothing_is_written_and_nothing_said_to_be_forgotten(
    guard: CacheGuard,
    writer: CacheWriter,
    contents: CacheContents,
    put: SlowPut,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(cache_writer, "WRITE_LIMIT_S", 0.01)
    monkeypatch.setattr(cache_writer, "END_LIMIT_S", 0.01)
    begins(put, writer)
    monkeypatch.setattr(cache_writer, "WRITE_LIMIT_S", PATIENCE_S)
    assert writer.flush(PATIENCE_S)
    assert guard.in_trouble
    with pytest.raises(CacheStoreError):
        contents.clear(ANN)
    put.may.set()
    while True:  # until it has ended
        try:
            contents.clear(ANN)
            break
        except CacheStoreError:
            continue
    assert contents.entries(ANN, 10) == []
    assert not guard.in_trouble


def test_a_flush_waits_for_what_was_to_be_written_before_it_only(
    writer: CacheWriter, put: SlowPut
) -> None:
    first, flushed = SlowPut(), threading.Event()
    begins(first, writer)
    flushes = in_background(lambda: flushed.set() if writer.flush(PATIENCE_S) else None)
    waits_for(writer)
    writer.later(put)  # there is always more
    first.may.set()
    assert put.began.wait(PATIENCE_S)
    assert flushed.wait(PATIENCE_S)
    assert not put.may.is_set()
    flushes.join(PATIENCE_S)


def waits_for(writer: CacheWriter) -> None:
    """Until somebody waits in `flush`: beside the writer itself, which is busy."""
    while True:
        with writer._changed:
            if writer._changed._waiters:  # type: ignore[attr-defined]
                return


def test_what_a_write_says_comes_back_and_so_does_its_failure(writer: CacheWriter) -> None:
    def fails(store: AnswerStore) -> None:
        raise ValueError

    assert writer.in_order(lambda store: 7, PATIENCE_S) == 7
    with pytest.raises(CacheStoreError):
        writer.in_order(fails, PATIENCE_S)
    assert writer.in_order(lambda store: 7, PATIENCE_S) == 7


def test_closed_it_writes_no_more_and_says_so(guard: CacheGuard) -> None:
    writer = CacheWriter(guard)
    writer.close()
    writer._thread.join(PATIENCE_S)
    assert not writer._thread.is_alive()
    with pytest.raises(CacheStoreError):
        writer.in_order(lambda store: 7, PATIENCE_S)


def test_what_waits_is_written_together_and_in_order(
    writer: CacheWriter, put: SlowPut, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[object] = []
    together = SqliteAnswerStore.together

    def counted(store: SqliteAnswerStore, writes: list[Callable[[AnswerStore], object]]) -> None:
        done.append(len(writes))
        together(store, writes)

    monkeypatch.setattr(SqliteAnswerStore, "together", counted)
    begins(put, writer)
    for number in range(40):
        writer.later(lambda store, number=number: store.note(decision_of(number)))
    noted = in_background(
        lambda: done.append(writer.in_order(lambda store: len(store.decisions(SHARED)), PATIENCE_S))
    )
    until(lambda: len(writer._writes) == 41)
    writer.later(lambda store: store.note(decision_of("last")))
    put.may.set()
    assert writer.flush(PATIENCE_S)
    noted.join(PATIENCE_S)
    assert done[:4] == [1, 16, 16, 8]
    assert sorted(done[4:]) == [1, 40], "nobody's wait for a result is put among others'"


def test_what_it_cannot_keep_up_with_is_dropped(
    guard: CacheGuard, writer: CacheWriter, put: SlowPut, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cache_writer, "MOST_UNWRITTEN", 3)
    begins(put, writer)
    for number in range(5):
        writer.later(lambda store, number=number: store.note(decision_of(number)))
    with pytest.raises(CacheStoreError):
        writer.in_order(lambda store: 7, PATIENCE_S)
    put.may.set()
    assert writer.flush(PATIENCE_S)
    assert len(guard.ask(lambda store: store.decisions(SHARED), PATIENCE_S)) == 3


def test_that_writes_are_dropped_is_said_when_it_begins_and_when_it_is_over(
    writer: CacheWriter, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(cache_writer, "MOST_UNWRITTEN", 3)
    for _ in range(2):
        caplog.clear()
        put = SlowPut()
        begins(put, writer)
        for number in range(10):
            writer.later(lambda store, number=number: store.note(decision_of(number)))
        assert len(caplog.messages) == 1
        put.may.set()
        assert writer.flush(PATIENCE_S)
        assert len(caplog.messages) == 2
        assert " 7 " in caplog.messages[1]


def test_while_others_write_for_long_answers_are_still_looked_up(
    tmp_path: Path, guard: CacheGuard, writer: CacheWriter
) -> None:
    writer.in_order(lambda store: store.put(KEPT), PATIENCE_S)
    holder = sqlite3.connect(tmp_path / "answers.sqlite3", isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")
    for number in range(5):
        writer.later(lambda store, number=number: store.note(decision_of(number)))
        assert writer.flush(PATIENCE_S)
    assert not guard.in_trouble
    holder.close()


def test_what_a_person_wants_forgotten_is_tried_after_a_failure_too(tmp_path: Path) -> None:
    guard = CacheGuard(lambda: SqliteAnswerStore(tmp_path / "answers.sqlite3", 2**26), pause_s=1e9)
    writer = CacheWriter(guard)
    contents = CacheContents(guard, writer, shared=False, clock=lambda: NOW_S)
    writer.in_order(lambda store: store.put(KEPT), PATIENCE_S)
    guard.leave_alone("its disk is full")
    with pytest.raises(CacheStoreError):
        contents.totals(ANN)
    assert contents.clear(ANN) == 1
    writer.close()
    guard.close()


def test_a_write_that_fails_is_not_the_next_ones(
    guard: CacheGuard, writer: CacheWriter, put: SlowPut
) -> None:
    def fails(store: AnswerStore) -> None:
        store.note(decision_of("half"))
        raise ValueError

    begins(put, writer)
    writer.later(fails)
    put.may.set()
    assert writer.flush(PATIENCE_S)
    assert writer.in_order(lambda store: len(store.decisions(SHARED)), PATIENCE_S) == 0
    writer.later(lambda store: store.note(decision_of(1)))
    assert writer.in_order(lambda store: len(store.decisions(SHARED)), PATIENCE_S) == 1


def until(so: Callable[[], bool]) -> None:
    end_s = time.monotonic() + PATIENCE_S
    while not so():
        assert time.monotonic() < end_s
        time.sleep(0.005)
