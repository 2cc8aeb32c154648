"""What is taken as a question."""

from __future__ import annotations

import pytest

from llm.errors import EmptyQuestionError, QuestionTooLongError
from llm.question import usable_question


def test_a_question_is_what_can_be_kept_of_it() -> None:
    assert usable_question("a\0b \ud83d\ude00 c\ud83d", 7) == "ab 😀 c"


@pytest.mark.parametrize("blank", ["", " \n\t", "\0", "\ud83d"])
def test_a_question_of_nothing_is_refused(blank: str) -> None:
    with pytest.raises(EmptyQuestionError):
        usable_question(blank, 10)


def test_a_question_that_is_too_long_says_by_how_much() -> None:
    assert usable_question("x" * 10, 10) == "x" * 10
    with pytest.raises(QuestionTooLongError) as raised:
        usable_question("x" * 13, 10)
    assert raised.value.reason.values == {"chars": 13, "limit": 10, "over": 3}
