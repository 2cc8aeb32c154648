"""Which conversation this page shows. Its id is in the address, so a refresh finds it again."""

from __future__ import annotations

import secrets

import streamlit as st

from llm.conversation_tree import ConversationKey
from ui import resources
from ui.owner import LOCAL, owner

KEY = "conversation"
PARAM = "c"


def conversation() -> ConversationKey:
    """The present conversation; a new one for a new visit, and where the address has none."""
    here = owner()
    present = st.session_state.get(KEY)
    if not isinstance(present, ConversationKey) or present.owner != here:
        wanted = st.query_params.get(PARAM)
        present = resources.chat().open(here, wanted)
        st.session_state[KEY] = present
        st.session_state.lost = wanted is not None and wanted != present.conversation_id
    return present


def was_lost() -> bool:
    """Whether the address named a conversation that isn't here any more."""
    return bool(st.session_state.get("lost"))


def person() -> str:
    """Who asks, for the fairness of the queue: who is signed in, else this browser session.

    Raises:
        NotSignedInError: a sign-in is needed, and there is none any more.
    """
    if (here := owner()) != LOCAL:
        return here
    return str(st.session_state.setdefault("person", secrets.token_hex(8)))


def show_in_address() -> None:
    """Write the id into the address, once there is something to come back to."""
    here = conversation()
    known = resources.chat().state(here) is not None
    if known and st.query_params.get(PARAM) != here.conversation_id:
        st.query_params[PARAM] = here.conversation_id
