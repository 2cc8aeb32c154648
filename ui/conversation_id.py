"""Which conversation this page shows. Its id is in the address, so a refresh finds it again."""

from __future__ import annotations

import secrets

import streamlit as st

from ui import resources

KEY = "conversation_id"
PARAM = "c"


def conversation_id() -> str:
    """The present conversation's id; a new one for a new visit."""
    if KEY not in st.session_state:
        wanted = st.query_params.get(PARAM)
        st.session_state[KEY] = resources.chat().open(wanted)
        st.session_state.lost = wanted is not None and wanted != st.session_state[KEY]
    return str(st.session_state[KEY])


def was_lost() -> bool:
    """Whether the address named a conversation that isn't here any more."""
    return bool(st.session_state.get("lost"))


def person() -> str:
    """Who asks, for the fairness of the queue: this browser session."""
    return str(st.session_state.setdefault("person", secrets.token_hex(8)))


def show_in_address() -> None:
    """Write the id into the address, once there is something to come back to."""
    wanted = conversation_id()
    if resources.chat().turns(wanted) and st.query_params.get(PARAM) != wanted:
        st.query_params[PARAM] = wanted
