"""For comparison: `st.write_stream`, from inside the script run."""

from __future__ import annotations

import streamlit as st

from benchmarks.pages.plain_chat import deltas, history, question_asked, sidebar

sidebar()
history()
if question := question_asked():
    with st.chat_message("assistant"):
        text = st.write_stream(deltas(question))
    st.session_state.messages.append(("assistant", text))
