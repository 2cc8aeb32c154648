"""A store that is slow, stuck or broken costs a question little, and then nothing."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest

from llm.cache_guard import SLOW_TIMES, CacheGuard
from llm.cache_types import CacheBusyError, CacheStoreError
from tests.driven_backend import PATIENCE_S, ManualClock

PAUSE_S = 5.0


class Store:
    """A store that does what the test says."""

    def __init__(self) -> None:
        self.asked = 0
        self.closed = False
        self.error: Exception | None = None
        self.stuck = threading.Event()
        self.stuck.set()

    def work(self) -> str:
        self.asked += 1
        assert self.stuck.wait(PATIENCE_S)
        if self.error is not None:
            raise self.error
        return "done"

    def totals(self, scope: str, now_s: float) -> None:
        """What the guard opens it with."""

    def close(self) -> None:
        self.closed = True


@pytest.fixture
def store() -> Iterator[Store]:
    made = Store()
    yield made
    made.stuck.set()


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def guard(store: Store, clock: ManualClock) -> Iterator[CacheGuard]:
    made = CacheGuard(lambda: store, limit_s=0.05, pause_s=PAUSE_S, clock=clock)  # type: ignore[arg-type, return-value]
    made.ask(lambda store: None, PATIENCE_S)
    yield made
    made.close()


def work(guard: CacheGuard, limit_s: float | None = PATIENCE_S) -> str:
    return guard.ask(lambda store: store.work(), limit_s)  # type: ignore[attr-defined, no-any-return]


def test_what_the_store_says_is_passed_on(guard: CacheGuard) -> None:
    assert work(guard) == "done"
    assert not guard.in_trouble


@pytest.mark.parametrize("error", [CacheStoreError("down"), ValueError("a defect")])
def test_after_a_failure_it_is_left_alone_for_a_while(
    guard: CacheGuard,
    store: Store,
    clock: ManualClock,
    error: Exception,
    caplog: pytest.LogCaptureFixture,
) -> None:
    store.error = error
    for _ in range(10):
        with pytest.raises(CacheStoreError):
            work(guard)
    assert store.asked == 1
    assert guard.in_trouble
    clock.advance(PAUSE_S)
    with pytest.raises(CacheStoreError):
        work(guard)
    assert store.asked == 2
    assert len([r for r in caplog.records if r.levelname == "WARNING"]) == 1
    store.error = None
    clock.advance(PAUSE_S)
    assert work(guard) == "done"
    assert not guard.in_trouble


def test_a_stuck_store_holds_nobody_up_and_then_is_left_alone(
    guard: CacheGuard, store: Store
) -> None:
    store.stuck.clear()
    for _ in range(SLOW_TIMES):
        assert not guard.in_trouble
        with pytest.raises(CacheStoreError):
            work(guard, None)
    assert guard.in_trouble
    asked = store.asked
    with pytest.raises(CacheStoreError):
        work(guard, None)
    assert store.asked == asked


def test_a_store_that_is_slow_now_and_then_is_no_failure(
    guard: CacheGuard, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(SLOW_TIMES):
        store.stuck.clear()
        monkeypatch.setattr(guard, "_limit_s", 0.05)
        with pytest.raises(CacheStoreError):
            work(guard, None)
        store.stuck.set()
        monkeypatch.setattr(guard, "_limit_s", PATIENCE_S)
        work(guard, None)
    assert not guard.in_trouble


def test_a_store_that_opens_slowly_is_a_miss_until_then_and_no_failure(store: Store) -> None:
    opens = threading.Event()

    def make() -> Store:
        assert opens.wait(PATIENCE_S)
        return store

    guard = CacheGuard(make, limit_s=0.01)  # type: ignore[arg-type]
    guard.open()
    for _ in range(2 * SLOW_TIMES):
        with pytest.raises(CacheStoreError):
            work(guard, None)
    assert not guard.in_trouble
    opens.set()
    assert work(guard) == "done"
    guard.close()


def test_a_store_that_could_not_be_opened_is_opened_later(store: Store, clock: ManualClock) -> None:
    tries: list[Exception] = [OSError(), OSError()]

    def make() -> Store:
        if tries:
            raise tries.pop()
        return store

    guard = CacheGuard(make, pause_s=PAUSE_S, clock=clock)  # type: ignore[arg-type]
    for _ in range(2):
        with pytest.raises(CacheStoreError):
            work(guard)
        assert guard.in_trouble
        clock.advance(PAUSE_S)
    assert work(guard) == "done"
    guard.close()


def test_closed_it_frees_the_store_and_answers_no_more(guard: CacheGuard, store: Store) -> None:
    guard.close()
    assert store.closed
    with pytest.raises(CacheStoreError):
        work(guard)


def test_what_no_answer_waits_for_may_take_long_and_find_it_busy(
    guard: CacheGuard, store: Store
) -> None:
    store.stuck.clear()
    for _ in range(2 * SLOW_TIMES):
        with pytest.raises(CacheStoreError):
            work(guard, 0.01)
    store.stuck.set()
    store.error = CacheBusyError("somebody writes")
    for _ in range(2 * SLOW_TIMES):
        with pytest.raises(CacheStoreError):
            work(guard, PATIENCE_S)
    assert not guard.in_trouble
    store.error = CacheStoreError("down")
    with pytest.raises(CacheStoreError):
        work(guard, PATIENCE_S)
    assert guard.in_trouble


def test_a_store_that_is_always_busy_for_answers_is_left_alone(
    guard: CacheGuard, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(guard, "_limit_s", PATIENCE_S)
    store.error = CacheBusyError("somebody writes")
    for _ in range(SLOW_TIMES):
        assert not guard.in_trouble
        with pytest.raises(CacheStoreError):
            work(guard, None)
    assert guard.in_trouble


def test_who_insists_is_heard_though_the_store_is_left_alone(
    guard: CacheGuard, store: Store
) -> None:
    store.error = CacheStoreError("full")
    with pytest.raises(CacheStoreError):
        work(guard)
    store.error = None
    with pytest.raises(CacheStoreError):
        work(guard)
    assert guard.ask(lambda store: store.work(), PATIENCE_S, insist=True) == "done"  # type: ignore[attr-defined]


def test_a_store_that_fails_again_and_again_is_told_of_once(
    guard: CacheGuard, store: Store, clock: ManualClock, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    for _ in range(20):  # a full disk: what is read is there, and nothing can be written
        store.error = CacheStoreError("full")
        with pytest.raises(CacheStoreError):
            work(guard)
        store.error = None
        clock.advance(PAUSE_S)
        work(guard)
        assert not guard.in_trouble
    assert [each.levelname for each in caplog.records] == ["WARNING"]
    clock.advance(60)
    work(guard)
    work(guard)
    assert [each.levelname for each in caplog.records] == ["WARNING", "INFO"]


class Making:
    """Makes stores when the test lets it."""

    def __init__(self, *errors: Exception) -> None:
        self.errors = list(errors)
        self.may = threading.Event()
        self.began = threading.Event()
        self.made: list[Store] = []

    def __call__(self) -> Store:
        self.began.set()
        assert self.may.wait(PATIENCE_S)
        if self.errors:
            raise self.errors.pop()
        self.made.append(Store())
        return self.made[-1]


def test_a_store_that_opens_just_after_the_limit_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    make = Making()
    guard = CacheGuard(make, limit_s=0.01)  # type: ignore[arg-type]
    real, tried = guard._result, []

    def opens_after_all(future: Any, limit_s: float) -> Any:
        try:
            return real(future, limit_s)
        except CacheStoreError as error:
            tried.append(error)
            make.may.set()
            future.result(PATIENCE_S)  # before its waiter looks at it again
            raise

    monkeypatch.setattr(guard, "_result", opens_after_all)
    with pytest.raises(CacheStoreError):
        work(guard, None)
    monkeypatch.undo()
    assert tried
    assert not guard.in_trouble
    assert work(guard) == "done"
    guard.close()
    assert [store.closed for store in make.made] == [True]


def test_closed_while_it_opens_the_store_is_freed() -> None:
    make = Making()
    guard = CacheGuard(make, limit_s=0.01)  # type: ignore[arg-type]
    guard.open()
    assert make.began.wait(PATIENCE_S)
    opening = guard._opening
    assert opening is not None
    guard.close()
    freed = threading.Event()
    opening.add_done_callback(lambda _: freed.set())  # after the guard's own
    make.may.set()
    assert freed.wait(PATIENCE_S)
    assert [store.closed for store in make.made] == [True]


def test_a_store_that_fails_its_first_use_is_freed(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    def damaged(scope: str, now_s: float) -> None:
        raise CacheStoreError("damaged")

    monkeypatch.setattr(store, "totals", damaged)
    guard = CacheGuard(lambda: store)  # type: ignore[arg-type, return-value]
    with pytest.raises(CacheStoreError):
        work(guard)
    assert store.closed
    guard.close()


def test_two_that_wait_for_a_failed_opening_leave_the_next_one_be(clock: ManualClock) -> None:
    make = Making(OSError())
    guard = CacheGuard(make, pause_s=PAUSE_S, clock=clock)  # type: ignore[arg-type]
    real, waits = guard._result, threading.Event()
    late, failed = threading.Event(), threading.Event()

    def result(future: Any, limit_s: float) -> Any:
        if threading.current_thread() is second:
            waits.set()
        try:
            return real(future, limit_s)
        except CacheStoreError:
            if threading.current_thread() is second:
                failed.set()
                assert late.wait(PATIENCE_S)
            raise

    def asks() -> None:
        with pytest.raises(CacheStoreError):
            work(guard)

    second = threading.Thread(target=asks)
    guard._result = result  # type: ignore[method-assign]
    guard.open()
    second.start()
    assert waits.wait(PATIENCE_S)
    first = threading.Thread(target=asks)
    first.start()
    make.may.set()
    first.join(PATIENCE_S)
    assert failed.wait(PATIENCE_S)
    clock.advance(PAUSE_S)
    assert work(guard) == "done"  # a third opened it anew
    late.set()
    second.join(PATIENCE_S)
    assert not guard.in_trouble
    assert work(guard) == "done"
    guard.close()
    assert [store.closed for store in make.made] == [True]
