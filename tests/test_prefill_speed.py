"""How fast a server reads, as far as its answers tell."""

from __future__ import annotations

import pytest

from llm.prefill_speed import LEAST_BYTES, REMEMBERED, PrefillSpeed
from llm.types import Message


def question(size: int) -> list[Message]:
    return [Message("user", "x" * size)]


def test_nothing_is_expected_before_anything_was_learned() -> None:
    assert PrefillSpeed().expect_s(question(10_000)) is None


def test_a_prompt_twice_as_long_takes_twice_as_long() -> None:
    speed = PrefillSpeed()
    speed.learn(question(10_000), ttft_s=2)
    assert speed.expect_s(question(20_000)) == pytest.approx(4)


def test_one_answer_that_stood_in_a_line_does_not_spoil_the_estimate() -> None:
    speed = PrefillSpeed()
    for ttft_s in (2, 2, 60, 2, 2):
        speed.learn(question(10_000), ttft_s)
    assert speed.expect_s(question(10_000)) == pytest.approx(2)


def test_a_server_that_has_changed_is_learned_anew() -> None:
    speed = PrefillSpeed()
    for ttft_s in [2] * 20 + [8] * REMEMBERED:
        speed.learn(question(10_000), ttft_s)
    assert speed.expect_s(question(10_000)) == pytest.approx(8)


def test_a_short_prompt_and_one_that_lies_in_the_cache_teach_nothing() -> None:
    speed = PrefillSpeed()
    speed.learn(question(LEAST_BYTES - 1), ttft_s=1)
    history = [Message("user", "x" * 9000), Message("assistant", "y"), Message("user", "z")]
    speed.learn(history, ttft_s=0.01)
    speed.learn(question(10_000), ttft_s=0)
    assert speed.expect_s(question(10_000)) is None


def test_what_is_read_is_counted_alike_in_every_script() -> None:
    speed = PrefillSpeed()
    speed.learn([Message("system", "简" * 1000), Message("user", "x" * 3000)], ttft_s=3)
    assert speed.expect_s([Message("user", "体" * 1000)]) == pytest.approx(1.5)
    assert speed.expect_s([Message("user", "half a pair \ud83d")]) is not None
