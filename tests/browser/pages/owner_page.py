"""Says who is here, for the tests: the app itself never shows it."""

from __future__ import annotations

import streamlit as st

from llm.settings import Settings
from ui.account import draw_account
from ui.conversation_id import person
from ui.owner import needs_sign_in, owner
from ui.sign_in import draw_sign_in

if needs_sign_in():
    draw_sign_in(Settings())
else:
    st.session_state.setdefault("language", "en")
    with st.sidebar:
        draw_account()
    st.code(owner())
    st.code(person())
