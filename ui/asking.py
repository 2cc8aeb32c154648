"""Asking from this page: a question, the same again, another in its place, an answer's rest.

Each is a callback or is called like one, and reads the sidebar as it stands then. What is refused
is told above the input (`ui/note.py`).
"""

from __future__ import annotations

from collections.abc import Callable

import streamlit as st

from llm.conversation_tree import ConversationKey
from llm.errors import LLMError
from ui import resources
from ui.cache_pick import cache_use, fresh_is_used
from ui.conversation_id import person
from ui.note import Refused, put_note
from ui.sidebar import choices, leave_out


def ask(here: ConversationKey, question: str) -> None:
    """Ask; a refused question is put back into the field: it isn't a lost one."""
    chat = resources.chat()
    if not _asked(
        here,
        lambda: chat.ask(here, question, person=person(), cache=cache_use(), **choices()),
    ):
        st.session_state.refused_question = question


def ask_again(here: ConversationKey, turn_id: str, question: str | None = None) -> bool:
    """Another answer beside the turn's, to another question if one is given.

    Returns:
        Whether it was taken.
    """
    chat = resources.chat()
    return _asked(
        here,
        lambda: chat.ask_again(
            here, turn_id, question=question, person=person(), cache=cache_use(), **choices()
        ),
    )


def ask_again_without(here: ConversationKey, turn_id: str, names: tuple[str, ...]) -> None:
    """Another answer, without what the server refused."""
    leave_out(names)
    ask_again(here, turn_id)


def go_on(here: ConversationKey, turn_id: str) -> None:
    """The rest of an answer, in a turn beside it."""
    chat = resources.chat()
    _asked(here, lambda: chat.go_on(here, turn_id, person=person(), **choices()))


def _asked(here: ConversationKey, act: Callable[[], None]) -> bool:
    try:
        act()
    except LLMError as error:
        put_note(here, Refused(error))
        return False
    put_note(here, None)
    fresh_is_used()
    st.session_state.asked = st.session_state.get("asked", 0) + 1
    return True
