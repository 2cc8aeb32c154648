"""Questions and answers as they stand in the conversation."""

from __future__ import annotations

import html
from collections.abc import Callable, Iterable

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from llm.conversation_tree import Turn
from llm.plain_markdown import plain
from ui.answer_view import AnswerView, finished_blocks
from ui.language import say, say_error
from ui.reasoning_view import ReasoningView

LONG_QUESTION_CHARS = 3000
"""A longer question is shown by its beginning: a pasted book must not be the page."""


def draw_question(turn: Turn, withdraw: Callable[[str], None]) -> None:
    """The question, letter by letter as it was typed; a queued one can be taken back."""
    with st.chat_message("user", avatar=":material/person:"):
        if len(turn.question) <= LONG_QUESTION_CHARS:
            _draw_as_typed(turn.question)
        else:
            _draw_as_typed(turn.question[:LONG_QUESTION_CHARS] + " …")
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


def _draw_as_typed(question: str) -> None:
    # Not st.text, which takes indentation away. Escaped, it is text and nothing else.
    st.html(f'<div class="steady-question">{html.escape(question)}</div>')


def draw_answer(turn: Turn) -> tuple[AnswerView, ReasoningView, DeltaGenerator]:
    """The answer's frame; a finished answer with all that belongs above and below it.

    Returns:
        The views and the status placeholder, for a running answer to be followed in.
    """
    with st.chat_message("assistant", avatar=":material/forum:"):
        reasoning = ReasoningView(st.container(key=f"reasoning-{turn.turn_id}"), turn.turn_id)
        view = AnswerView(st.container(key=f"answer-{turn.turn_id}"))
        status = st.empty()
        if turn.state == "ended":
            blocks, reasoning_blocks = _blocks(turn)
            reasoning_s = turn.receipt.reasoning_s if turn.receipt else None
            reasoning.draw_finished(reasoning_blocks, reasoning_s)
            view.draw_finished(blocks)
            if turn.error is not None:
                st.error(plain(say_error(turn.error)), icon=":material/error:")
            elif missing := _why_no_answer(turn):
                st.caption(say(missing))
            st.caption(plain(receipt_line(turn)))
    return view, reasoning, status


def _why_no_answer(turn: Turn) -> str:
    """The sentence to say where an answer that didn't fail has no text; "" where it has."""
    reason = turn.receipt.finish.reason if turn.receipt else "abort"
    if turn.text.strip():
        return ""
    if turn.reasoning.strip():
        return "answer-only-reasoning-length" if reason == "length" else "answer-only-reasoning"
    return "" if reason == "abort" else "answer-empty"


def forget_blocks_except(turns: Iterable[Turn]) -> None:
    """Keep the split answers of these turns only; what isn't shown isn't held."""
    kept = {turn.turn_id for turn in turns}
    cache = st.session_state.get("blocks", {})
    st.session_state.blocks = {key: blocks for key, blocks in cache.items() if key in kept}


def _blocks(turn: Turn) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The answer's blocks and its reasoning's, split once a session."""
    cache: dict[str, tuple[tuple[str, ...], tuple[str, ...]]]
    cache = st.session_state.setdefault("blocks", {})
    if turn.turn_id not in cache:
        thought = turn.reasoning if turn.reasoning.strip() else ""
        cache[turn.turn_id] = finished_blocks(turn.text), finished_blocks(thought)
    return cache[turn.turn_id]


def receipt_line(turn: Turn) -> str:
    """Model, how it ended, tokens, TTFT and speed, as far as they're known."""
    receipt = turn.receipt
    if receipt is None:
        return ""
    kind = turn.backend.partition("/")[0]  # none where the conversation was imported
    parts = [
        *([receipt.model or say(f"backend-{kind}")] if receipt.model or kind else []),
        *([receipt.server] if receipt.server else []),
        say(f"finish-{receipt.finish.reason}"),
    ]
    if receipt.finish.usage.completion_tokens is not None:
        parts.append(say("receipt-tokens", tokens=receipt.finish.usage.completion_tokens))
    if receipt.ttft_s is not None:
        parts.append(say("receipt-ttft", seconds=receipt.ttft_s))
    if receipt.tokens_per_s is not None:
        parts.append(say("receipt-speed", speed=receipt.tokens_per_s))
    if receipt.left_out and turn.error is None:
        parts.append(say("receipt-left-out", questions=receipt.left_out))
    return " · ".join(parts)
