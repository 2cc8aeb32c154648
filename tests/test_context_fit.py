"""Requests fitted into a model's window."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from llm.context_fit import Fitted, estimate_tokens, fit, shorten, surely_at_most
from llm.errors import ContextOverflowError, WindowExceededError
from llm.scripted_backend import ScriptedBackend
from llm.types import CancelToken, GenerationRequest, Message, SamplingParams

LETTERS = "abcdefghijklmnopqrstuvwxyz"


def conversation(
    turns: int, *, chars: int = 400, system: str = "", question: str = "now?", max_tokens: int = 50
) -> GenerationRequest:
    messages = [Message("system", system)] if system else []
    for number in range(turns):
        messages.append(Message("user", f"{LETTERS[number]}?"))
        messages.append(Message("assistant", LETTERS[number] * chars))
    messages.append(Message("user", question))
    return GenerationRequest(tuple(messages), SamplingParams(max_tokens=max_tokens))


def fitted_into(window: int | None, request: GenerationRequest) -> Fitted:
    return fit(ScriptedBackend(window_tokens=window), request, CancelToken())


def questions(messages: Sequence[Message]) -> list[str]:
    return [message.content for message in messages if message.role == "user"]


def counted(request: GenerationRequest) -> int:
    tokens = ScriptedBackend().count_tokens(request, CancelToken())
    assert tokens is not None
    return tokens


def test_what_fits_stays_as_it_is() -> None:
    request = conversation(5, system="Be brief.")
    assert fitted_into(1000, request) == Fitted(request)
    assert fitted_into(None, request) == Fitted(request)


@pytest.mark.parametrize("window", [200, 300, 400, 1000, 2000])
def test_the_oldest_turns_go_until_the_answer_has_room(window: int) -> None:
    request = conversation(20, system="Be brief.")
    fitted = fitted_into(window, request)
    kept = fitted.request
    assert counted(kept) + 50 <= window
    assert kept.messages[0] == Message("system", "Be brief.")
    assert questions(kept.messages) == questions(request.messages)[fitted.left_out :]
    assert kept.messages[1].role == "user"
    # Not one more than had to go.
    one_more = request.messages[:1] + request.messages[1 + 2 * (fitted.left_out - 1) :]
    assert counted(GenerationRequest(one_more)) + 50 > window


def test_max_tokens_are_fitted_to_the_room_before_a_turn_goes() -> None:
    # 204 tokens and a window of 300: a quarter of it, 75, is enough room to keep everything.
    request = conversation(2, max_tokens=5000)
    fitted = fitted_into(300, request)
    assert fitted.left_out == 0
    assert fitted.request.messages == request.messages
    assert fitted.request.params.max_tokens == 300 - counted(request)


def test_the_question_and_the_system_prompt_always_stay() -> None:
    request = conversation(3, system="s" * 400, question="q" * 4000)
    fitted = fitted_into(300, request)
    assert fitted.left_out == 3
    assert fitted.request.messages == (request.messages[0], request.messages[-1])


@pytest.mark.parametrize("window", [200, 300, 1000])
def test_an_answer_that_goes_on_stays_whole_with_its_question(window: int) -> None:
    start = Message("assistant", "s" * 400)
    asked = conversation(10, system="Be brief.")
    request = GenerationRequest((*asked.messages, start), asked.params)
    fitted = fitted_into(window, request)
    assert fitted.left_out > 0
    assert counted(fitted.request) + 50 <= window
    assert fitted.request.messages[0].role == "system"
    assert fitted.request.messages[-2:] == (Message("user", "now?"), start)


def test_an_answer_that_goes_on_is_not_cut_where_nothing_else_can_go() -> None:
    messages = (Message("user", "q" * 400), Message("assistant", "s" * 4000))
    request = GenerationRequest(messages, SamplingParams(max_tokens=50))
    assert fitted_into(300, request) == Fitted(request)
    assert shorten(Fitted(request), WindowExceededError()) is None


def test_what_a_backend_refuses_is_shortened_by_its_numbers() -> None:
    request = conversation(10)
    tokens = counted(request)
    error = ContextOverflowError(prompt_tokens=tokens, limit=600, over=tokens - 600)
    shorter = shorten(Fitted(request), error)
    assert shorter is not None
    assert counted(shorter.request) + 50 <= 600
    assert questions(shorter.request.messages) == questions(request.messages)[shorter.left_out :]


def test_without_numbers_about_a_quarter_goes_each_time() -> None:
    fitted: Fitted | None = Fitted(conversation(20))
    kept = []
    while fitted is not None:
        kept.append(len(questions(fitted.request.messages)) - 1)
        fitted = shorten(fitted, WindowExceededError())
    assert kept[:3] == [20, 14, 10]
    assert kept[-1] == 0
    assert len(kept) < 12


def test_a_question_alone_cant_be_shortened() -> None:
    assert shorten(Fitted(conversation(0)), WindowExceededError()) is None


@pytest.mark.parametrize(
    ("text", "fits"), [("x" * 100, True), ("你" * 33, True), ("你" * 34, False), ("x" * 101, False)]
)
def test_only_what_fits_whatever_the_tokenizer_is_taken_uncounted(text: str, fits: bool) -> None:
    assert surely_at_most((Message("user", text),), 64 + 16 + 100) is fits


def test_the_estimate_knows_chinese_from_english() -> None:
    assert estimate_tokens((Message("user", "x" * 400),)) == 104
    assert estimate_tokens((Message("user", "你" * 400),)) == 404


def test_counting_that_is_cancelled_or_not_to_be_had_sends_all() -> None:
    class Countless(ScriptedBackend):
        def count_tokens(self, request: GenerationRequest, cancel: CancelToken) -> int | None:
            return None

    request = conversation(20)
    assert fit(Countless(window_tokens=300), request, CancelToken()) == Fitted(request)
