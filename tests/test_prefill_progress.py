"""How far a long prompt has been read: told in time, not too often, and never of a short one."""

from __future__ import annotations

from llm.prefill_progress import EVERY_S, LONG_S, PrefillProgress
from llm.types import Notice
from tests.driven_backend import ManualClock


def told_of(steps: int, total_s: float, rounds: int = 1) -> list[int]:
    """The percentages told of a prompt that takes so long, in equal steps; `rounds` after it."""
    clock = ManualClock()
    notices: list[Notice] = []
    progress = PrefillProgress(notices.append, clock)
    for turn in range(1 + rounds):
        for step in range(steps):
            progress.reached(step / steps)
            clock.advance(total_s / steps if turn == 0 else LONG_S)
    reasons = [notice.reason for notice in notices]
    assert all(reason and reason.message_id == "notice-reading-part" for reason in reasons)
    return [int(str(reason.values["percent"])) for reason in reasons if reason]


def test_a_long_prompt_is_told_as_it_is_read() -> None:
    assert told_of(10, 10) == [10, 20, 30, 40, 50, 60, 70, 80, 90]


def test_a_short_prompt_is_not_told() -> None:
    assert told_of(30, LONG_S - 0.1) == []


def test_it_is_told_a_few_times_a_second_at_most() -> None:
    told = told_of(1000, 6)
    assert 6 / EVERY_S - 3 <= len(told) <= 6 / EVERY_S
    assert told == sorted(set(told))


def test_the_tokens_after_the_prompt_are_not_told() -> None:
    assert told_of(10, 10, rounds=0) == told_of(10, 10, rounds=20)
