"""What is taken as a question, whichever face it comes from."""

from __future__ import annotations

from llm.errors import EmptyQuestionError, QuestionTooLongError
from llm.served_values import whole_text


def typed(text: str) -> str:
    """As any database can keep it: a paste may hold NUL or half a character."""
    return whole_text(text.replace("\0", ""))


def usable_question(text: str, most_chars: int) -> str:
    """The question as it is asked and kept.

    Raises:
        EmptyQuestionError: nothing but white space.
        QuestionTooLongError: more characters than allowed.
    """
    question = typed(text)
    if not question.strip():
        raise EmptyQuestionError
    if (over := len(question) - most_chars) > 0:
        raise QuestionTooLongError(chars=len(question), limit=most_chars, over=over)
    return question
