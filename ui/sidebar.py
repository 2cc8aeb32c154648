"""The sidebar: language, backend, parameters, Clear history. The same on every page."""

from __future__ import annotations

from dataclasses import dataclass

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from llm.catalogue import LANGUAGES
from llm.settings import Settings
from llm.types import MAX_SEED, Backend, SamplingParams
from ui import resources
from ui.backend_status import short_status
from ui.language import KEY as LANGUAGE_KEY
from ui.language import first_language, say


@dataclass(frozen=True, slots=True)
class Choices:
    """What the sidebar says now."""

    backend_name: str
    backend: Backend
    system_prompt: str
    params: SamplingParams
    status_place: DeltaGenerator


def set_defaults(settings: Settings) -> None:
    """Fill the controls from the settings, once a session."""
    defaults = {
        LANGUAGE_KEY: first_language(settings.language),
        "backend": settings.backends[0],
        "system_prompt": settings.system_prompt,
        "temperature": settings.temperature,
        "top_p": settings.top_p,
        "max_tokens": settings.max_tokens,
        "seed": settings.seed,
    }
    for key, value in defaults.items():
        st.session_state.setdefault(key, value)


def draw_sidebar(settings: Settings, conversation_id: str) -> Choices:
    """Draw the sidebar and read it."""
    with st.sidebar:
        backend_name = st.radio(
            say("sidebar-backend"),
            settings.backends,
            key="backend",
            format_func=lambda name: say(f"backend-{name}"),
            horizontal=True,
        )
        backend = resources.BACKENDS[backend_name]()
        if backend.status().phase == "idle":
            backend.prepare()
        status_place = st.empty()
        status_place.markdown(short_status(backend.status()))
        if backend.status().phase == "failed":
            st.button(say("sidebar-retry"), on_click=backend.prepare, key="prepare_again")

        system_prompt = st.text_area(
            say("sidebar-system-prompt"),
            key="system_prompt",
            placeholder=say("sidebar-system-prompt-hint"),
            max_chars=None,
            height=96,
        )
        temperature = st.slider(
            say("sidebar-temperature"),
            0.0,
            2.0,
            step=0.05,
            key="temperature",
            help=say("sidebar-temperature-help"),
        )
        top_p = st.slider(
            say("sidebar-top-p"), 0.05, 1.0, step=0.05, key="top_p", help=say("sidebar-top-p-help")
        )
        left, right = st.columns(2)
        max_tokens = left.number_input(
            say("sidebar-max-tokens"), 1, 1_000_000, step=64, key="max_tokens"
        )
        seed = right.number_input(
            say("sidebar-seed"),
            0,
            MAX_SEED,
            step=1,
            key="seed",
            placeholder=say("sidebar-seed-hint"),
            help=say("sidebar-seed-help"),
        )
        _clear_history(conversation_id)
        st.selectbox(
            "Language / 语言",
            list(LANGUAGES),
            key=LANGUAGE_KEY,
            format_func=LANGUAGES.__getitem__,
        )
    params = SamplingParams(
        temperature, top_p, int(max_tokens), None if seed is None else int(seed)
    )
    return Choices(backend_name, backend, system_prompt or "", params, status_place)


def _clear_history(conversation_id: str) -> None:
    """Clear history, which asks first when there is something to lose.

    In place, not in a dialog: a dialog is a fragment and would wait while an answer streams.
    """
    chat = resources.chat()
    if not st.session_state.get("clear_asked"):
        st.button(
            say("sidebar-clear"),
            key="clear",
            icon=":material/delete:",
            on_click=_ask_to_clear,
            args=(conversation_id,),
            width="stretch",
        )
        return
    st.warning(say("clear-question", turns=len(chat.turns(conversation_id))))
    left, right = st.columns(2)
    left.button(
        say("clear-yes"),
        key="clear_yes",
        type="primary",
        on_click=_clear,
        args=(conversation_id,),
        width="stretch",
    )
    right.button(say("clear-no"), key="clear_no", on_click=_keep, width="stretch")


def _ask_to_clear(conversation_id: str) -> None:
    if resources.chat().turns(conversation_id):
        st.session_state.clear_asked = True


def _clear(conversation_id: str) -> None:
    resources.chat().clear(conversation_id)
    st.session_state.clear_asked = False


def _keep() -> None:
    st.session_state.clear_asked = False
