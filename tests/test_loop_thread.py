"""The event loop on its own thread, and the hand-over from it."""

from __future__ import annotations

import asyncio
import gc
import threading
import time

import anyio
import pytest

from llm.loop_thread import Handover, LoopThread


async def nothing() -> None:
    """No farewell."""


class Outcome:
    """Keeps what it was told, and says when."""

    def __init__(self) -> None:
        self.told: list[tuple[object, BaseException | None]] = []
        self.came = threading.Event()

    def __call__(self, result: object, error: BaseException | None) -> None:
        self.told.append((result, error))
        self.came.set()


def test_an_errand_tells_its_result() -> None:
    thread, outcome = LoopThread("t", nothing), Outcome()

    async def work() -> int:
        return 3

    thread.submit(work(), outcome)
    assert outcome.came.wait(5)
    thread.close()
    assert outcome.told == [(3, None)]


def test_an_errand_tells_what_it_raised() -> None:
    thread, outcome = LoopThread("t", nothing), Outcome()

    async def work() -> int:
        raise ValueError("x")

    thread.submit(work(), outcome)
    assert outcome.came.wait(5)
    thread.close()
    assert [type(error) for _, error in outcome.told] == [ValueError]


def test_a_cancel_before_the_first_step_is_told_too() -> None:
    thread, outcome = LoopThread("t", nothing), Outcome()
    ran = threading.Event()

    async def work() -> None:
        ran.set()
        await asyncio.sleep(60)

    errand = thread.submit(work(), outcome)
    errand.cancel()
    errand.cancel()
    assert outcome.came.wait(5)
    thread.close()
    assert [type(error) for _, error in outcome.told] == [asyncio.CancelledError]


def test_closing_tells_everyone_once_says_farewell_and_ends_the_thread() -> None:
    said = threading.Event()

    async def farewell() -> None:
        said.set()

    thread, outcomes = LoopThread("to-be-closed", farewell), [Outcome(), Outcome()]
    for outcome in outcomes:
        thread.submit(asyncio.sleep(60), outcome)
    thread.close()
    thread.close()
    assert said.is_set()
    assert [len(outcome.told) for outcome in outcomes] == [1, 1]
    assert "to-be-closed" not in {one.name for one in threading.enumerate()}
    with pytest.raises(RuntimeError):
        thread.submit(asyncio.sleep(0), Outcome())


def test_closing_ends_the_wait_for_a_task_that_will_not_go() -> None:
    thread, outcome = LoopThread("t", nothing), Outcome()
    began = threading.Event()

    async def stubborn() -> None:
        began.set()
        while True:
            try:
                await asyncio.sleep(60)
            except asyncio.CancelledError:
                if outcome.came.is_set():
                    raise

    thread.submit(stubborn(), outcome)
    assert began.wait(5)
    thread.close()
    assert [type(error) for _, error in outcome.told] == [asyncio.CancelledError]


def test_a_farewell_that_fails_does_not_matter() -> None:
    async def farewell() -> None:
        raise ValueError("x")

    thread = LoopThread("bad-farewell", farewell)
    thread.submit(asyncio.sleep(0), Outcome())
    thread.close()
    assert "bad-farewell" not in {one.name for one in threading.enumerate()}


def test_a_task_group_whose_children_have_not_begun_is_closed_without_a_trace() -> None:
    """anyio, and so every connection that is being made, warns of a coroutine never awaited where
    such a child is cancelled from outside; pytest makes that an error."""
    thread = LoopThread("t", nothing)
    outcome, ready, go_on = Outcome(), threading.Event(), threading.Event()

    async def connect() -> None:
        woken = asyncio.Event()
        asyncio.get_running_loop().call_soon(woken.set)
        asyncio.get_running_loop().call_soon(hold)
        await woken.wait()
        async with anyio.create_task_group() as group:
            group.start_soon(anyio.sleep_forever)
            await anyio.sleep_forever()

    def hold() -> None:
        ready.set()
        go_on.wait(5)

    thread.submit(connect(), outcome)
    assert ready.wait(5)
    closing = threading.Thread(target=thread.close)
    closing.start()
    while not thread._closed:
        time.sleep(0.001)
    with thread._lock:  # by now the loop is told to stop, while it still holds
        go_on.set()
    closing.join(5)
    assert outcome.came.wait(1)
    assert type(outcome.told[0][1]) is asyncio.CancelledError
    gc.collect()


def test_a_full_hand_over_holds_back_the_task_and_drops_nothing() -> None:
    thread = LoopThread("t", nothing)
    pieces: Handover[int, str] = Handover(4)
    put = 0
    held = threading.Event()

    async def work() -> str:
        nonlocal put
        for number in range(100):
            if pieces.full:
                held.set()
            await pieces.put(number)
            put = number + 1
        return "end"

    thread.submit(work(), pieces.end)
    assert held.wait(5)
    assert put == 4
    taken = []
    while (piece := pieces.get()) is not None:
        taken.append(piece)
    thread.close()
    assert taken == list(range(100))
    assert pieces.result() == "end"


def test_get_waits_for_what_is_not_there_yet_and_ends_with_the_task() -> None:
    pieces: Handover[int, str] = Handover(4)
    threading.Timer(0.05, pieces.end, (None, ValueError("x"))).start()
    began_s = time.monotonic()
    assert pieces.get() is None
    assert time.monotonic() - began_s < 5
    with pytest.raises(ValueError, match="x"):
        pieces.result()
