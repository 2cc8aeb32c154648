"""A question in a field, to be asked otherwise. The old one and its answer stay beside the new."""

from __future__ import annotations

import streamlit as st

from llm.conversation_tree import ConversationKey, Turn
from ui.asking import ask_again
from ui.callback import callback
from ui.language import say

_KEY = "edited"
LONG_FIELD_PX = 400
"""The field of a long question scrolls; another is as high as its text."""


def edit_question(turn_id: str) -> None:
    """Have this turn's question in a field from the next run on."""
    st.session_state[_KEY] = turn_id


def is_edited(turn_id: str) -> bool:
    """Whether this turn's question is in a field."""
    return bool(st.session_state.get(_KEY) == turn_id)


def draw_question_edit(here: ConversationKey, turn: Turn, *, long: bool) -> None:
    """The field with its buttons.

    A form: what is being typed is the browser's alone, whatever else is clicked meanwhile, and
    Ctrl+Enter presses its first button.
    """
    with st.form(f"edit-{turn.turn_id}", border=False):
        st.text_area(
            say("edit-label"),
            turn.question,
            key=_field(turn.turn_id),
            height=LONG_FIELD_PX if long else "content",
            label_visibility="collapsed",
        )
        with st.container(horizontal=True):
            st.form_submit_button(
                say("edit-save"),
                key=f"edit-save-{turn.turn_id}",
                type="primary",
                on_click=callback(_save),
                args=(here, turn.turn_id),
            )
            st.form_submit_button(
                say("edit-cancel"),
                key=f"edit-cancel-{turn.turn_id}",
                on_click=callback(edit_question),
                args=("",),
            )


def _field(turn_id: str) -> str:
    return f"edited-{turn_id}"


def _save(here: ConversationKey, turn_id: str) -> None:
    if ask_again(here, turn_id, st.session_state[_field(turn_id)]):
        edit_question("")
