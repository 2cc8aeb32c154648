"""Frames come as fast as the screen can bear, and no faster."""

from __future__ import annotations

import math
from itertools import pairwise

import pytest

from llm.frame_credit import FrameCredit
from llm.pacing import (
    DUTY,
    MIN_INTERVAL_S,
    FramePacer,
    PaintMeter,
    frame_cost_ms,
    interval_s,
)
from tests.driven_backend import ManualClock, at_once

ROUNDING_S = 1e-6


class Screen:
    """A browser on which a frame costs so many times what it should.

    Args:
        slowness: how many times; None says nothing, as a browser without the probe.
    """

    def __init__(self, slowness: float | None = None) -> None:
        self.slowness = slowness
        self.busy_ms = 0.0
        self.meter = PaintMeter()
        self.clock = ManualClock()
        self.pacer = FramePacer(self.meter, FrameCredit(self.clock), self.clock)

    def watch(self, seconds: float, tail_chars: int = 500) -> list[float]:
        """Draw whenever it may be, reporting twice a second; the times of the frames."""
        end_s, report_s = self.clock() + seconds, self.clock() + 0.5
        frames = []
        while self.clock() < end_s:
            if (delay_s := self.pacer.delay_s()) > 0:
                self.clock.advance(max(delay_s, ROUNDING_S / 10))
                continue
            self.pacer.drawn(tail_chars)
            frames.append(self.clock())
            self.busy_ms += frame_cost_ms(tail_chars) * (self.slowness or 0)
            if self.slowness is not None and self.clock() >= report_s:
                self.meter.report(self.busy_ms)
                self.busy_ms, report_s = 0.0, self.clock() + 0.5
        return frames


def gaps(frames: list[float]) -> list[float]:
    return [after - before for before, after in pairwise(frames)]


def fps(frames: list[float]) -> float:
    return (len(frames) - 1) / (frames[-1] - frames[0])


def test_the_first_frame_may_be_drawn_at_once() -> None:
    screen = Screen()
    screen.meter.frame_drawn(100)
    screen.meter.report(4000)
    assert screen.pacer.delay_s() == 0


def test_the_next_frame_waits_for_its_interval_and_no_longer() -> None:
    screen = Screen()
    screen.pacer.drawn(0)
    delay_s = screen.pacer.delay_s()
    assert delay_s > 0
    screen.clock.advance(delay_s / 2)
    assert screen.pacer.delay_s() == pytest.approx(delay_s / 2)
    screen.clock.advance(delay_s)
    assert screen.pacer.delay_s() == 0
    screen.clock.advance(3600)
    assert screen.pacer.delay_s() == 0, "no debt and no credit is left from a pause"
    screen.pacer.drawn(0)
    assert screen.pacer.delay_s() == pytest.approx(delay_s)


@pytest.mark.parametrize("slowness", [None, 0.0, 0.1, 1.0, 4.0, 1000.0])
@pytest.mark.parametrize("tail_chars", [0, 100, 3000, 60_000])
def test_no_screen_gets_more_than_twenty_frames_a_second_or_less_than_one(
    slowness: float | None, tail_chars: int
) -> None:
    frames = Screen(slowness).watch(20, tail_chars)
    assert min(gaps(frames)) >= MIN_INTERVAL_S - ROUNDING_S
    assert max(gaps(frames)) <= 1 + ROUNDING_S


@pytest.mark.parametrize("slowness", [None, 0.2, 1.0])
@pytest.mark.parametrize("tail_chars", [0, 100, 1000, 4000])
def test_a_quick_screen_gets_at_least_ten_frames_a_second(
    slowness: float | None, tail_chars: int
) -> None:
    frames = Screen(slowness).watch(10, tail_chars)
    assert max(gaps(frames)) <= 0.1 + ROUNDING_S


def test_a_screen_that_says_nothing_is_taken_for_the_one_that_was_measured() -> None:
    silent, average = Screen(None), Screen(1.0)
    assert silent.watch(5) == pytest.approx(average.watch(5))
    assert silent.meter.slowness == 1


def test_a_slow_screen_gets_fewer_frames_and_more_again_when_it_is_quick() -> None:
    screen = Screen(1.0)
    quick = fps(screen.watch(5))
    screen.slowness = 6.0
    screen.watch(5)
    slow = fps(screen.watch(5))
    screen.slowness = 1.0
    screen.watch(5)
    quick_again = fps(screen.watch(5))
    assert slow < quick / 2
    assert quick_again == pytest.approx(quick, rel=0.1)


@pytest.mark.parametrize("slowness", [2.0, 4.0, 8.0])
def test_drawing_takes_no_more_than_its_share_of_a_slow_screen(slowness: float) -> None:
    screen = Screen(slowness)
    screen.watch(5)
    frames = screen.watch(10)
    busy_s = fps(frames) * frame_cost_ms(500) * slowness / 1000
    assert busy_s <= DUTY * 1.1


def test_a_quick_screen_is_not_buried_under_one_huge_paragraph() -> None:
    frames = Screen(1.0).watch(20, tail_chars=60_000)
    assert fps(frames) == pytest.approx(1, rel=0.05)


def test_a_dearer_frame_never_comes_sooner() -> None:
    for slowness in (0.5, 1.0, 1.5, 1.6, 4.0, 40.0):
        intervals = [interval_s(frame_cost_ms(chars), slowness) for chars in range(0, 70_000, 50)]
        assert intervals == sorted(intervals)


def test_a_slower_screen_never_gets_more_frames() -> None:
    for tail_chars in (0, 500, 4000, 60_000):
        intervals = [interval_s(frame_cost_ms(tail_chars), tenths / 10) for tenths in range(5, 400)]
        assert intervals == sorted(intervals)


def test_one_wild_report_does_not_decide() -> None:
    screen = Screen(1.0)
    screen.watch(5)
    screen.meter.frame_drawn(100)
    screen.meter.report(60_000)
    screen.watch(15)
    assert screen.meter.slowness == pytest.approx(1, rel=0.05)


def test_a_report_about_hardly_any_drawing_is_not_heard() -> None:
    meter = PaintMeter()
    meter.report(5000)
    meter.frame_drawn(1)
    meter.report(2)
    assert meter.slowness == 1


def test_reports_about_little_drawing_add_up() -> None:
    meter = PaintMeter()
    for _ in range(2):
        meter.frame_drawn(19)
        meter.report(19 * 8)
    # Halfway from 1 to 8.
    assert meter.slowness == 4.5, "not half of it, as if only the last report counted"


def test_a_screen_kept_busy_by_something_else_is_not_taken_for_slow() -> None:
    meter = PaintMeter()
    for _ in range(10):
        meter.report(500)
    meter.frame_drawn(100)
    meter.report(100)
    assert meter.slowness == 1


@pytest.mark.parametrize(
    "busy_ms", [math.nan, math.inf, -math.inf, -1.0, -1e308, 1e308, 10**400], ids=str
)
def test_a_report_that_cannot_be_so_is_not_heard(busy_ms: float) -> None:
    meter = PaintMeter()
    meter.frame_drawn(100)
    meter.report(busy_ms)
    meter.report(200)
    assert meter.slowness == 1.5, "a true report after it counts as if nothing had been"


@pytest.mark.parametrize("busy_ms", [0, 0.0, 1e-300, 600_000])
def test_an_extreme_report_stays_within_bounds(busy_ms: float) -> None:
    meter = PaintMeter()
    for _ in range(100):
        meter.frame_drawn(100)
        meter.report(busy_ms)
        assert PaintMeter.FLOOR <= meter.slowness <= PaintMeter.CEILING
        assert MIN_INTERVAL_S <= interval_s(frame_cost_ms(500), meter.slowness) <= 1


def test_rubbish_from_the_browser_leaves_the_pace_alone() -> None:
    plain, pestered = Screen(), Screen()
    frames = []
    for _ in range(50):
        frames += pestered.watch(0.2)
        for busy_ms in (math.nan, -5.0, math.inf):
            pestered.meter.report(busy_ms)
    assert fps(frames) == pytest.approx(fps(plain.watch(10)), rel=0.05)


def test_no_frame_is_lost_that_several_threads_note() -> None:
    meter = PaintMeter()

    def draw() -> None:
        for _ in range(5000):
            meter.frame_drawn(1.0)

    at_once(*[draw] * 4)
    meter.report(40_000)
    assert meter.slowness == 1.5  # halfway from 1 to 2


def test_reports_and_frames_from_several_threads_keep_within_bounds() -> None:
    meter = PaintMeter()

    def draw() -> None:
        for _ in range(3000):
            meter.frame_drawn(30.0)
            assert PaintMeter.FLOOR <= meter.slowness <= PaintMeter.CEILING

    def report() -> None:
        for number in range(3000):
            meter.report(float(number % 300))

    at_once(draw, draw, report, report)
    for _ in range(30):
        meter.frame_drawn(100)
        meter.report(300)
    assert meter.slowness == pytest.approx(3), "it still hears and still learns"
