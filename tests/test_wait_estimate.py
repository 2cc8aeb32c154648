"""How long somebody in line has yet to wait: what is expected, and what is told of it."""

from __future__ import annotations

import pytest

from llm.wait_estimate import REMEMBERED, Asked, Countdown, RecentAnswers

MUCH = 100_000  # tokens: no limit


def recent(
    *taken_s: float, ttft_s: float | None = None, speed: float | None = None
) -> RecentAnswers:
    made = RecentAnswers()
    for each in taken_s:
        made.learn(each, ttft_s, speed)
    return made


def running(*seconds: float, max_tokens: int = MUCH) -> list[Asked]:
    return [Asked(max_tokens, each) for each in seconds]


def in_line(number: int, max_tokens: int = MUCH) -> list[Asked]:
    return [Asked(max_tokens)] * number


# What is expected


def test_nothing_is_expected_before_an_answer_is_over() -> None:
    assert RecentAnswers().wait_s(running(5), in_line(3), 1) is None


def test_who_is_next_waits_for_what_is_left_of_the_running_answer() -> None:
    assert recent(10, 10).wait_s(running(4), [], 1) == 6


def test_who_comes_later_waits_for_a_whole_answer_of_each_before() -> None:
    assert recent(8, 12).wait_s(running(0), in_line(2), 1) == 30


def test_a_free_slot_costs_no_wait() -> None:
    assert recent(10).wait_s(running(4), [], 2) == 0
    assert recent(10).wait_s(running(4), in_line(1), 2) == 6


def test_slots_share_the_line() -> None:
    told = [recent(10).wait_s(running(9, 5), in_line(ahead), 2) for ahead in range(5)]
    assert told == [1, 5, 11, 15, 21]


def test_with_fewer_slots_than_answers_the_first_that_end_free_none() -> None:
    answers = recent(10)
    assert answers.wait_s(running(9, 8, 2), [], 1) == 8
    assert answers.wait_s(running(9, 8, 2), [], 2) == 2
    assert answers.wait_s(running(9, 8, 2), [], 3) == 1


def test_an_answer_that_has_outlived_the_short_ones_is_one_of_the_long_ones() -> None:
    answers = recent(2, 2, 2, 50)
    assert answers.wait_s(running(0), [], 1) == 14
    assert answers.wait_s(running(3), [], 1) == 47


def test_an_answer_longer_than_any_known_is_not_over_at_once() -> None:
    left_s = recent(10).wait_s(running(30), [], 1)
    assert left_s == 15


def test_no_more_is_expected_than_the_token_limit_allows() -> None:
    answers = recent(60, 60, ttft_s=1, speed=10)
    assert answers.wait_s(running(0, max_tokens=50), [], 1) == 6
    assert answers.wait_s(running(5, max_tokens=50), [], 1) == 1
    assert answers.wait_s(running(9, max_tokens=50), [], 1) == 0
    assert answers.wait_s(running(0, max_tokens=50), in_line(1, max_tokens=20), 1) == 9


def test_old_answers_count_no_more() -> None:
    answers = recent(*[1000] * 5, *[10] * REMEMBERED)
    assert answers.wait_s(running(0), [], 1) == 10


# What is told


def test_the_figure_goes_down_with_the_clock() -> None:
    countdown = Countdown()
    told = [countdown.left_s(20 - passed, passed) for passed in range(5)]
    assert told == [20, 19, 18, 17, 16]


def test_small_changes_of_mind_are_not_told() -> None:
    countdown = Countdown()
    assert countdown.left_s(20, 0) == 20
    assert countdown.left_s(23, 1) == 19
    assert countdown.left_s(15, 2) == 18


@pytest.mark.parametrize("expected_s", [40, 5])
def test_a_figure_that_is_clearly_wrong_is_corrected(expected_s: float) -> None:
    countdown = Countdown()
    countdown.left_s(20, 0)
    assert countdown.left_s(expected_s, 1) == expected_s


def test_a_figure_that_has_run_out_is_corrected_upward() -> None:
    countdown = Countdown()
    countdown.left_s(10, 0)
    left_s = countdown.left_s(5, 10)
    assert left_s == 5


def test_without_an_expectation_no_figure_is_told() -> None:
    countdown = Countdown()
    countdown.left_s(10, 0)
    assert countdown.left_s(None, 1) is None
    assert countdown.left_s(8, 2) == 8


def test_no_figure_stands_still_at_nothing() -> None:
    """An answer that takes ten times as long as those before: what is told meanwhile."""
    answers, countdown = recent(10, 10), Countdown()
    told = [
        countdown.left_s(answers.wait_s(running(second), [], 1), second) for second in range(100)
    ]
    out_s = 0
    for left_s in told:
        assert left_s is not None
        out_s = out_s + 1 if left_s < 1.5 else 0
        assert out_s <= 5, told
