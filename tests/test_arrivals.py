"""When pieces came: noted as they come, bounded, and percentiles by one stated method."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from llm import arrivals
from llm.arrivals import Arrivals, nearest_rank


def noted(*pieces: tuple[float, int]) -> Arrivals:
    made = Arrivals()
    for offset_s, chars in pieces:
        made.note(offset_s, chars)
    return made


def test_gaps_are_between_neighbours() -> None:
    told = noted((0.5, 3), (0.75, 2), (1.75, 5))
    assert told.gaps_s() == [0.25, 1.0]
    assert told.total_chars() == 10
    assert noted((0.5, 3)).gaps_s() == []


def test_a_copy_stays_as_it_is() -> None:
    told = noted((0.5, 3))
    copy = told.copy()
    told.note(0.6, 1)
    assert (list(copy.offsets_s), list(copy.chars)) == ([0.5], [3])


@pytest.mark.parametrize("most", [4, 5])
def test_too_many_are_joined_and_no_character_is_lost(
    monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    monkeypatch.setattr(arrivals, "MOST_PIECES", most)
    told = Arrivals()
    for number in range(101):
        told.note(float(number), number)
        assert len(told.offsets_s) == len(told.chars) <= most
    assert told.total_chars() == sum(range(101))
    assert told.offsets_s[0] == 0
    assert all(before < after for before, after in pairwise(told.offsets_s))
    assert told.joined
    assert told.copy().joined
    assert told.gaps_s() == [], "gaps between joined pieces are no inter-token latencies"


def test_a_hundred_thousand_pieces_take_little_memory() -> None:
    told = Arrivals()
    for number in range(arrivals.MOST_PIECES + 1):
        told.note(number / 100, 4)
    held = told.offsets_s.buffer_info()[1] * 8 + told.chars.buffer_info()[1] * 8
    assert held < 1_000_000
    assert told.total_chars() == 4 * (arrivals.MOST_PIECES + 1)


@pytest.mark.parametrize("count", [1, 2, 3, 10, 99, 100, 101, 1000])
@pytest.mark.parametrize("share", [0.5, 0.75, 0.95, 0.99, 1.0])
def test_a_percentile_is_the_nearest_rank(count: int, share: float) -> None:
    values = sorted(np.random.default_rng(count).random(count).tolist())
    told = nearest_rank(values, share)
    assert told is not None
    at_or_below = sum(value <= told for value in values) / count
    below = sum(value < told for value in values) / count
    assert below < share <= at_or_below + 1e-12
    assert told == np.percentile(values, round(share * 100), method="inverted_cdf")


def test_there_is_no_percentile_of_nothing() -> None:
    assert nearest_rank([], 0.5) is None
