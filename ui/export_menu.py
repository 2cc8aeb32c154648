"""The shown conversation to take along: copied as Markdown, or downloaded."""

from __future__ import annotations

from collections.abc import Callable
from datetime import tzinfo

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from llm.conversation_export import to_json, to_markdown
from llm.conversation_tree import ConversationKey, ConversationState
from llm.export_names import file_name
from ui import resources
from ui.callback import callback
from ui.language import say, words
from ui.note import copy
from ui.owner import while_signed_in
from ui.time_zone import time_zone


def draw_export_menu(place: DeltaGenerator, state: ConversationState) -> None:
    """A popover with the three ways. A file is made when it is asked for, not before.

    Args:
        place: an empty placeholder.
    """
    name = file_name(state.head.title) or say("export-untitled")
    key, language, where = state.head.key, words().language, time_zone()
    with (
        place.container(key="export"),
        st.popover(say("export-menu"), icon=":material/ios_share:", type="tertiary"),
    ):
        st.button(
            say("export-copy"),
            key="export_copy",
            icon=":material/content_copy:",
            type="tertiary",
            on_click=callback(_copy),
            args=(key, language, where),
        )
        _download("markdown", f"{name}.md", "text/markdown", lambda: _md(key, language, where))
        _download("json", f"{name}.json", "application/json", lambda: _json(key))


def _download(kind: str, name: str, mime: str, make: Callable[[], str]) -> None:
    st.download_button(
        say(f"export-{kind}"),
        while_signed_in(make),
        name,
        mime,
        key=f"export_{kind}",
        icon=":material/download:",
        type="tertiary",
        on_click="ignore",
    )


def _copy(key: ConversationKey, language: str, where: tzinfo) -> None:
    copy(key, _md(key, language, where))


# These may run on another thread, where there is no session.


def _md(key: ConversationKey, language: str, where: tzinfo) -> str:
    state = resources.chat().state(key)
    return to_markdown(state, language, where) if state else ""


def _json(key: ConversationKey) -> str:
    state = resources.chat().state(key)
    return "".join(to_json([state] if state else []))
