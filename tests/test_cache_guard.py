"""A store that is slow, stuck or broken costs a question little, and then nothing."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from llm.cache_guard import SLOW_TIMES, CacheGuard
from llm.cache_types import CacheStoreError
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


def test_a_store_that_is_slow_now_and_then_is_no_failure(guard: CacheGuard, store: Store) -> None:
    for _ in range(SLOW_TIMES):
        store.stuck.clear()
        with pytest.raises(CacheStoreError):
            work(guard, None)
        store.stuck.set()
        work(guard)
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
