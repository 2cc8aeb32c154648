"""What the comparison pages share: a chat as Streamlit's tutorial builds it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import streamlit as st

from llm.scripted_backend import ScriptedBackend
from llm.types import CancelToken, Delta, GenerationRequest, Message, SamplingParams

MAX_TOKENS = 1_000_000


def sidebar() -> None:
    """A button that becomes another when it is clicked: the click's effect."""
    hide, show = st.sidebar.empty(), st.sidebar.empty()
    if not st.session_state.get("hidden"):
        hide.button("Hide", on_click=_set_hidden, args=(True,))
    else:
        show.button("Show", on_click=_set_hidden, args=(False,))


def _set_hidden(value: bool) -> None:
    st.session_state.hidden = value


def history() -> None:
    """The conversation so far."""
    for role, text in st.session_state.setdefault("messages", []):
        st.chat_message(role).markdown(text)


def question_asked() -> str | None:
    """The question, if one was just asked; it is drawn and kept."""
    question = st.chat_input("Ask")
    if question:
        st.chat_message("user").markdown(question)
        st.session_state.messages.append(("user", question))
    return question


def deltas(question: str) -> Iterator[str]:
    """The scripted answer, piece by piece."""
    backend = ScriptedBackend.from_file(Path(os.environ["STEADY_CHAT_SCRIPTS_FILE"]))
    request = GenerationRequest((Message("user", question),), SamplingParams(max_tokens=MAX_TOKENS))
    for item in backend.stream(request, CancelToken()):
        if isinstance(item, Delta):
            yield item.text
