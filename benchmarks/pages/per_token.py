"""For comparison: the whole text is drawn again with every token, from inside the script run."""

from __future__ import annotations

import streamlit as st

from benchmarks.pages.plain_chat import deltas, history, question_asked, sidebar

sidebar()
history()
if question := question_asked():
    with st.chat_message("assistant"):
        placeholder = st.empty()
        text = ""
        for delta in deltas(question):
            text += delta
            placeholder.markdown(text)
    st.session_state.messages.append(("assistant", text))
