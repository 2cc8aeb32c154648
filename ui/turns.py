"""Questions and answers as they stand in the conversation."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from llm.conversation_tree import ConversationKey, Turn
from llm.plain_markdown import plain
from ui import resources
from ui.answer_details import are_shown, draw_details
from ui.answer_view import AnswerView, finished_blocks
from ui.cache_doubts import draw_cache_doubts
from ui.callback import callback
from ui.language import say, say_error
from ui.question_edit import draw_question_edit, is_edited
from ui.reasoning_view import ReasoningView
from ui.receipt_line import receipt_line
from ui.time_zone import moment
from ui.turn_actions import draw_menu, draw_variants, other_variants

LONG_QUESTION_CHARS = 3000
"""A longer question is shown by its beginning: a pasted book must not be the page."""


def draw_question(here: ConversationKey, turn: Turn, variants: Sequence[str]) -> None:
    """The question, letter by letter as it was typed; a queued one can be taken back."""
    with st.chat_message("user", avatar=":material/person:"):
        long = len(turn.question) > LONG_QUESTION_CHARS
        if turn.state == "ended" and is_edited(turn.turn_id):
            draw_question_edit(here, turn, long=long)
            if long:
                st.empty()
        else:
            _draw_as_typed(turn.question[:LONG_QUESTION_CHARS] + " …" * long, turn.created_s)
            if long:
                st.caption(say("question-long", chars=len(turn.question)))
        queued_place = st.empty()
        # What stood here while it was queued goes only when something takes its place: it may have
        # been this page that showed it, in a run or a process before.
        if turn.state == "queued":
            _draw_queued(queued_place, here, turn, variants)


def _draw_queued(
    place: DeltaGenerator, here: ConversationKey, turn: Turn, variants: Sequence[str]
) -> None:
    with place.container():
        st.caption(say("question-queued"))
        with st.container(horizontal=True, vertical_alignment="center"):
            st.button(
                say("question-withdraw"),
                key=f"withdraw-{turn.turn_id}",
                on_click=callback(resources.chat().withdraw),
                args=(here, turn.turn_id),
                type="tertiary",
            )
            if other_variants(turn, variants):
                draw_variants(here, turn, variants)


def _draw_as_typed(question: str, asked_s: float) -> None:
    # Not st.text, which takes indentation away. Escaped, it is text and nothing else.
    asked = f' title="{moment(asked_s)}"' if asked_s else ""
    st.html(f'<div class="steady-question"{asked}>{html.escape(question)}</div>')


def draw_answer(
    here: ConversationKey, turn: Turn, variants: Sequence[str], before: Turn | None
) -> tuple[AnswerView, ReasoningView, DeltaGenerator]:
    """The answer's frame; a finished answer with all that belongs above and below it.

    Args:
        variants: the ids of all turns in its place, itself among them.
        before: the turn before it.

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
            elif was_interrupted(turn):
                begun = turn.text.strip() or turn.reasoning.strip()
                said = say("answer-interrupted" if begun else "answer-interrupted-before")
                st.warning(said, icon=":material/power_off:")
            elif missing := _why_no_answer(turn):
                st.caption(say(missing))
        receipt = plain(receipt_line(turn, before)) if turn.state == "ended" else ""
        if other_variants(turn, variants):
            with st.container(horizontal=True, vertical_alignment="center", gap="small"):
                draw_variants(here, turn, variants)
                if receipt:
                    st.caption(receipt, width="stretch")
        elif turn.state == "ended":
            st.caption(receipt)
        if turn.state == "ended":
            if turn.receipt is not None and turn.receipt.cached is not None:
                draw_cache_doubts(here, turn, turn.receipt.cached)
            draw_menu(here, turn)
            if are_shown(turn.turn_id):
                draw_details(turn)
    return view, reasoning, status


def was_interrupted(turn: Turn) -> bool:
    """Whether the process that gave the answer died in the middle of it."""
    return turn.receipt is not None and turn.receipt.finish.reason == "interrupted"


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
    """The answer's blocks and its reasoning's, split once a session, and again where they changed.

    An answer that is over may still change: another process took it for interrupted, or goes on.
    """
    cache: dict[str, tuple[str, str, tuple[tuple[str, ...], tuple[str, ...]]]]
    cache = st.session_state.setdefault("blocks", {})
    thought = turn.reasoning if turn.reasoning.strip() else ""
    text, reasoning, blocks = cache.get(turn.turn_id, ("", "", ((), ())))
    if (text, reasoning) != (turn.text, thought):
        blocks = finished_blocks(turn.text), finished_blocks(thought)
        cache[turn.turn_id] = (turn.text, thought, blocks)
    return blocks
