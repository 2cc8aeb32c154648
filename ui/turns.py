"""Questions and answers as they stand in the conversation."""

from __future__ import annotations

from collections.abc import Callable

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from llm.conversations import Turn
from llm.plain_markdown import plain
from ui.answer_view import AnswerView
from ui.language import say, say_error

LONG_QUESTION_CHARS = 3000
"""A longer question is shown by its beginning: a pasted book must not be the page."""


def draw_question(turn: Turn, withdraw: Callable[[str], None]) -> None:
    """The question, letter by letter as it was typed; a queued one can be taken back."""
    with st.chat_message("user", avatar=":material/person:"):
        if len(turn.question) <= LONG_QUESTION_CHARS:
            st.text(turn.question)
        else:
            st.text(turn.question[:LONG_QUESTION_CHARS] + " …")
            st.caption(say("question-long", chars=len(turn.question)))
        if turn.state == "queued":
            st.caption(say("question-queued"))
            st.button(
                say("question-withdraw"),
                key=f"withdraw-{turn.turn_id}",
                on_click=withdraw,
                args=(turn.turn_id,),
                type="tertiary",
            )
        elif turn.state == "running":
            # What it said while queued, if it was, goes only when something takes its place.
            st.empty()
            st.empty()


def draw_answer(turn: Turn) -> tuple[AnswerView, DeltaGenerator]:
    """The answer's frame; a finished answer with all that belongs below it.

    Returns:
        The view and the status placeholder, for a running answer to be followed in.
    """
    with st.chat_message("assistant", avatar=":material/forum:"):
        view = AnswerView(st.container(key=f"answer-{turn.turn_id}"))
        status = st.empty()
        if turn.state == "ended":
            view.draw_finished(turn.text)
            if turn.error is not None:
                st.error(plain(say_error(turn.error)), icon=":material/error:")
            elif not turn.text.strip() and turn.receipt and turn.receipt.finish.reason != "abort":
                st.caption(say("answer-empty"))
            st.caption(plain(receipt_line(turn)))
    return view, status


def receipt_line(turn: Turn) -> str:
    """Model, how it ended, tokens, TTFT and speed, as far as they're known."""
    receipt = turn.receipt
    if receipt is None:
        return ""
    parts = [
        receipt.model or say(f"backend-{turn.backend}"),
        say(f"finish-{receipt.finish.reason}"),
    ]
    if receipt.finish.usage.completion_tokens is not None:
        parts.append(say("receipt-tokens", tokens=receipt.finish.usage.completion_tokens))
    if receipt.ttft_s is not None:
        parts.append(say("receipt-ttft", seconds=receipt.ttft_s))
    if receipt.tokens_per_s is not None:
        parts.append(say("receipt-speed", speed=receipt.tokens_per_s))
    return " · ".join(parts)
