"""A text that a server says once more, in front of what is new, is left out."""

from __future__ import annotations

import pytest

from llm.repeated_start import LEAST_CHARS, RepeatedStart

START = "Once upon a time, 很久以前, there was 🙂 "
NEW = "a lighthouse. Once upon a time"


def given_out(start: str, *pieces: str) -> list[str]:
    """What comes out with each piece, and at the end."""
    cutter = RepeatedStart(start)
    return [*map(cutter.push, pieces), cutter.flush()]


@pytest.mark.parametrize("size", [1, 2, 7, 1000])
def test_a_repeated_start_is_left_out_however_it_is_cut(size: int) -> None:
    text = START + NEW
    pieces = [text[at : at + size] for at in range(0, len(text), size)]
    assert "".join(given_out(START, *pieces)) == NEW


def test_it_is_left_out_once() -> None:
    assert "".join(given_out(START, START + START, START)) == START + START


def test_what_differs_is_given_out_at_once_and_whole() -> None:
    assert given_out(START, "a ", "light") == ["a ", "light", ""]
    assert given_out(START, "Once ", "upon ", "this", " time") == [
        "",
        "",
        "Once upon this",
        " time",
        "",
    ]


@pytest.mark.parametrize("start", ["", "ha", "no " * 5])
def test_a_short_text_may_come_again(start: str) -> None:
    assert len(start) < LEAST_CHARS
    assert given_out(start, start, "!") == [start, "!", ""]


def test_an_answer_that_ends_within_the_start_says_it_only_where_that_may_be_chance() -> None:
    assert given_out(START, "Once", " upon") == ["", "", "Once upon"]
    assert given_out(START, START[:LEAST_CHARS]) == ["", ""]
