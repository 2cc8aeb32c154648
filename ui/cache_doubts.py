"""What can be said against an answer from the cache."""

from __future__ import annotations

import streamlit as st

from llm.cache_types import CacheStoreError
from llm.conversation_tree import ConversationKey, Turn
from llm.types import FromCache
from ui import resources
from ui.asking import ask_again
from ui.callback import callback
from ui.language import say
from ui.note import put_note
from ui.owner import owner


def draw_cache_doubts(here: ConversationKey, turn: Turn, cached: FromCache) -> None:
    """“Ask the model anyway”, and for a similar question “Wrong match”."""
    contents = resources.cache().contents
    stays = contents.shared and not contents.shared_clear
    with st.container(horizontal=True, gap="small"):
        st.button(
            say("cache-ask-anyway"),
            key=f"anyway-{turn.turn_id}",
            icon=":material/refresh:",
            type="tertiary",
            help=say(f"cache-ask-anyway-{cached.kind}-help"),
            on_click=callback(_ask_anyway),
            args=(here, turn, cached),
            kwargs={"wrong": False},
        )
        if cached.kind == "similar":
            st.button(
                say("cache-wrong"),
                key=f"wrong-{turn.turn_id}",
                icon=":material/thumb_down:",
                type="tertiary",
                help=say("cache-wrong-shared-help" if stays else "cache-wrong-help"),
                on_click=callback(_ask_anyway),
                args=(here, turn, cached),
                kwargs={"wrong": True},
            )


def _ask_anyway(here: ConversationKey, turn: Turn, cached: FromCache, *, wrong: bool) -> None:
    put_note(here, None)
    try:
        resources.cache().doubt(owner(), cached, turn.question, wrong=wrong)
    except CacheStoreError:
        st.toast(say("cache-in-trouble"))
    ask_again(here, turn.turn_id)
