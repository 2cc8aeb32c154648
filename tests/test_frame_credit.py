"""Frames go out on the browser's word; a browser that says nothing isn't waited for."""

from __future__ import annotations

import pytest

from llm.frame_credit import HIDDEN_S, SILENT_S, STAMP_CHARS, STAMP_S, UNPAINTED, FrameCredit
from tests.driven_backend import ManualClock


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def credit(clock: ManualClock) -> FrameCredit:
    return FrameCredit(clock)


def fill(credit: FrameCredit, clock: ManualClock) -> int:
    """Send stamped frames, unpainted, until no more may be sent; the newest stamp."""
    newest = 0
    while credit.delay_s() == 0:
        stamp = credit.sent(STAMP_CHARS)
        assert stamp is not None
        newest = stamp
        clock.advance(0.01)
    return newest


def spoken(credit: FrameCredit) -> int:
    """A first frame whose painting the browser has told."""
    stamp = credit.sent(1)
    assert stamp is not None
    credit.painted(stamp)
    return stamp


def test_a_browser_that_never_spoke_is_not_waited_for(
    credit: FrameCredit, clock: ManualClock
) -> None:
    for _ in range(100):
        assert credit.delay_s() == 0
        credit.sent(STAMP_CHARS)
        clock.advance(0.1)
    assert not credit.heard


def test_a_couple_of_unpainted_frames_are_under_way_and_no_more(
    credit: FrameCredit, clock: ManualClock
) -> None:
    first = spoken(credit)
    newest = fill(credit, clock)
    assert newest - first == UNPAINTED
    credit.painted(newest - 1)
    assert credit.delay_s() == 0
    credit.sent(STAMP_CHARS)
    assert credit.delay_s() > 0
    credit.painted(newest + 1)
    assert credit.delay_s() == 0


def test_a_stamp_comes_with_time_and_with_size(credit: FrameCredit, clock: ManualClock) -> None:
    assert credit.sent(1) == 1
    assert credit.sent(STAMP_CHARS - 1) is None
    assert credit.sent(1) == 2
    clock.advance(STAMP_S / 2)
    assert credit.sent(1) is None
    clock.advance(STAMP_S / 2)
    assert credit.sent(1) == 3
    assert credit.sent(1, last=True) == 4


def test_a_stalled_browser_gets_a_frame_now_and_then_and_all_at_once_when_it_wakes(
    credit: FrameCredit, clock: ManualClock
) -> None:
    spoken(credit)
    newest = fill(credit, clock)
    sent = 0
    end_s = clock() + 60
    while clock() < end_s:
        clock.advance(max(credit.delay_s(), 0.01))
        newest = credit.sent(1, last=True) or newest
        sent += 1
    assert sent == pytest.approx(60 / SILENT_S, abs=1)
    credit.painted(newest)
    assert credit.delay_s() == 0


def test_a_hidden_tab_gets_almost_nothing_and_is_served_when_it_returns(
    credit: FrameCredit, clock: ManualClock
) -> None:
    stamp = spoken(credit)
    credit.painted(stamp, hidden=True)
    assert credit.delay_s() == pytest.approx(HIDDEN_S)
    clock.advance(HIDDEN_S)
    assert credit.delay_s() == 0
    credit.sent(1)
    assert credit.delay_s() == pytest.approx(HIDDEN_S)
    credit.painted(stamp, hidden=False)
    assert credit.delay_s() == 0


def test_what_was_never_sent_is_not_heard(credit: FrameCredit) -> None:
    credit.sent(1)
    for forged in (2, 10**9, -1):
        credit.painted(forged)
    assert not credit.heard
    assert not credit.is_painted()


def test_an_older_word_that_comes_late_takes_nothing_back(
    credit: FrameCredit, clock: ManualClock
) -> None:
    spoken(credit)
    newest = fill(credit, clock)
    credit.painted(newest)
    credit.painted(newest - 1)
    assert credit.is_painted()


def test_the_lag_is_from_sending_to_the_word(credit: FrameCredit, clock: ManualClock) -> None:
    assert credit.lag_s is None
    stamp = credit.sent(1, last=True)
    clock.advance(0.25)
    assert credit.lag_s is None
    credit.painted(stamp or 0)
    clock.advance(9)
    credit.painted(stamp or 0)
    assert credit.lag_s == pytest.approx(0.25)


def test_of_a_browser_that_says_nothing_no_end_of_times_is_kept(
    credit: FrameCredit, clock: ManualClock
) -> None:
    for _ in range(1000):
        credit.sent(STAMP_CHARS)
        clock.advance(1)
    credit.painted(1)
    assert credit.lag_s is None
    credit.painted(1000)
    assert credit.lag_s == pytest.approx(1)
    assert credit.newest == 1000


def test_a_word_without_a_stamp_is_a_word(credit: FrameCredit) -> None:
    credit.painted(0)
    assert credit.heard
