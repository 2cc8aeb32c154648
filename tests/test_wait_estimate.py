"""How long somebody in line has yet to wait: what is expected, and what is told of it."""

from __future__ import annotations

import random
from itertools import pairwise
from statistics import fmean

import pytest

from llm.wait_estimate import FEW, REMEMBERED, Asked, Countdown, RecentAnswers

MUCH = 100_000  # tokens: no limit


def recent(
    *taken_s: float, ttft_s: float | None = None, speed: float | None = None
) -> RecentAnswers:
    """Each as often as it takes to be more than a few."""
    made = RecentAnswers()
    for each in taken_s:
        for _ in range(FEW):
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


def test_few_answers_say_little_and_the_next_may_take_twice_the_longest() -> None:
    few = RecentAnswers()
    for taken_s in (3, 10, 4):
        few.learn(taken_s)
    assert few.wait_s(running(0), [], 1) == 20
    assert few.wait_s(running(15), in_line(1), 1) == 25
    few.learn(2, ttft_s=1, tokens_per_s=10)
    assert few.wait_s(running(0, max_tokens=90), [], 1) == 10, "no longer than it may be"


def test_beside_others_an_answer_takes_as_long_as_the_longer_ones_did() -> None:
    answers = recent(4, 4, 12, 12)
    assert answers.wait_s(running(0), [], 1) == 8
    assert answers.wait_s(running(0, 0), [], 2) == 12


# What is told


def test_the_figure_goes_down_with_the_clock() -> None:
    countdown = Countdown()
    told = [countdown.left_s(20 - passed, passed) for passed in range(5)]
    assert told == [20, 19, 18, 17, 16]


def test_a_figure_rises_once_and_then_only_when_it_has_run_out() -> None:
    countdown = Countdown()
    assert countdown.left_s(10, 0) == 10
    assert countdown.left_s(32, 1) == 40
    assert countdown.left_s(80, 2) == 39
    assert countdown.left_s(80, 39) == 2
    assert countdown.left_s(80, 40) == 100


def test_small_changes_of_mind_are_not_told() -> None:
    countdown = Countdown()
    assert countdown.left_s(20, 0) == 20
    assert countdown.left_s(23, 1) == 19
    assert countdown.left_s(8, 2) == 18
    assert countdown.left_s(30, 3) == 17


@pytest.mark.parametrize(("expected_s", "told_s"), [(40, 50), (5, 5)])
def test_a_figure_that_is_clearly_wrong_is_corrected(expected_s: float, told_s: float) -> None:
    countdown = Countdown()
    countdown.left_s(20, 0)
    assert countdown.left_s(expected_s, 1) == told_s


def test_a_figure_that_has_run_out_is_corrected_upward() -> None:
    countdown = Countdown()
    countdown.left_s(10, 0)
    assert countdown.left_s(4, 10) == 0, "any moment now"
    assert countdown.left_s(8, 11) == 10


def test_any_moment_now_is_not_said_for_ever() -> None:
    countdown = Countdown()
    countdown.left_s(10, 0)
    assert countdown.left_s(4, 19) == -9
    assert countdown.left_s(4, 21) == 5


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


class Line:
    """A line before a batch, second by quarter of a second, with a clock of its own.

    All answers that run get slower with their number, and how long each is drawn by lot.
    """

    STEP_S = 0.25

    def __init__(self, slots: int, seed: int) -> None:
        self._lot = random.Random(seed)
        self._slots = slots
        self._answers, self._now_s = RecentAnswers(), 0.0
        self._running: dict[int, tuple[float, float]] = {}  # since when, and the work that is left
        self._waiting: dict[int, Countdown] = {}
        self.told: dict[int, list[tuple[float, float]]] = {}
        self.taken: dict[int, float] = {}

    def live(self, people: int, between_s: float) -> None:
        comes_s = 0.0
        while people or self._waiting or self._running:
            if people and self._now_s >= comes_s:
                people -= 1
                self._waiting[people] = Countdown()
                self.told[people] = []
                comes_s += self._lot.expovariate(1 / between_s)
            self._step()

    def _step(self) -> None:
        while self._waiting and len(self._running) < self._slots:
            who = next(iter(self._waiting))
            del self._waiting[who]
            self.taken[who] = self._now_s
            self._running[who] = self._now_s, self._lot.lognormvariate(2, 0.6)
        asked = [Asked(MUCH, self._now_s - since_s) for since_s, _ in self._running.values()]
        for ahead, (who, countdown) in enumerate(self._waiting.items()):
            expected_s = self._answers.wait_s(asked, in_line(ahead), self._slots)
            left_s = countdown.left_s(expected_s, self._now_s)
            if left_s is not None:
                self.told[who].append((self._now_s, left_s))
        done = self.STEP_S / (1 + 0.3 * (len(self._running) - 1))
        self._now_s += self.STEP_S
        for who, (since_s, work_s) in list(self._running.items()):
            self._running[who] = since_s, work_s - done
            if work_s <= done:
                del self._running[who]
                self._answers.learn(self._now_s - since_s)


@pytest.mark.parametrize("slots", [1, 2, 8])
def test_in_a_line_figures_seldom_rise_and_seldom_promise_too_much(slots: int) -> None:
    rises, early, waits = [], [], 0
    for seed in range(5):
        line = Line(slots, seed)
        line.live(people=60, between_s=8 / slots)
        for who, told in line.told.items():
            if not told or line.taken[who] - told[0][0] < 5:
                continue  # too short to see a figure change
            waits += 1
            figures = [left_s for _, left_s in told]
            rises.append(sum(after > before + 1 for before, after in pairwise(figures)))
            at_s, left_s = told[0]
            early.append(left_s < 0.6 * (line.taken[who] - at_s))
    assert waits > 200
    assert fmean(rises) < 1  # each correction of what had become wrong by a quarter: 1.5 to 3.4
    assert max(rises) <= 7
    assert fmean(early) < 0.15
