"""The sidebar: language, backend, parameters, Clear history. The same on every page."""

from __future__ import annotations

from dataclasses import asdict
from typing import TypedDict

import streamlit as st

from llm.catalogue import LANGUAGES
from llm.models import EMBEDDED
from llm.plain_markdown import plain
from llm.settings import Settings
from llm.types import MAX_SEED, Backend, SamplingParams
from ui import resources
from ui.backend_status import StatusPlace
from ui.language import KEY as LANGUAGE_KEY
from ui.language import first_language, say, say_error

EMBEDDED_TEMPERATURE = 0.2
"""The embedded model is tiny: warmer than this it says whatever comes to its mind."""


class Choices(TypedDict):
    """What the sidebar says now: the arguments of `Chat.ask`."""

    backend: str
    system_prompt: str
    params: SamplingParams


def choices() -> Choices:
    """Read the sidebar.

    From the session's state: a callback runs before the sidebar is drawn anew, and what was drawn
    last may be a click behind.
    """
    state = st.session_state
    return Choices(
        backend=state.backend,
        system_prompt=state.system_prompt or "",
        params=SamplingParams(
            temperature=state.temperature,
            top_p=state.top_p,
            max_tokens=int(state.max_tokens),
            seed=None if state.seed is None else int(state.seed),
        ),
    )


def set_defaults(settings: Settings, conversation_id: str) -> None:
    """Fill the controls once a session: as the conversation left them, else from the settings."""
    embedded = settings.model == EMBEDDED and "local" in settings.backends
    tamed = embedded and "temperature" not in settings.model_fields_set
    defaults = {
        LANGUAGE_KEY: first_language(settings.language),
        "backend": settings.backends[0],
        "system_prompt": settings.system_prompt,
        "temperature": EMBEDDED_TEMPERATURE if tamed else settings.temperature,
        "top_p": settings.top_p,
        "max_tokens": settings.max_tokens,
        "seed": settings.seed,
    }
    turns = resources.chat().turns(conversation_id)
    if turns and turns[-1].backend in settings.backends:
        last = turns[-1]
        defaults |= asdict(last.params)
        defaults |= {"backend": last.backend, "system_prompt": last.system_prompt}
    defaults["first_max_tokens"] = defaults.pop("max_tokens")
    for key, value in defaults.items():
        st.session_state.setdefault(key, value)


def draw_sidebar(settings: Settings, conversation_id: str) -> tuple[Backend, StatusPlace]:
    """Draw the sidebar.

    Returns:
        The chosen backend, and the place where its state is shown.
    """
    with st.sidebar:
        name = st.radio(
            say("sidebar-backend"),
            settings.backends,
            key="backend",
            format_func=lambda name: say(f"backend-{name}"),
            horizontal=True,
        )
        backend = resources.BACKENDS[name]()
        if backend.status().phase == "idle":
            backend.prepare()
        status_place = StatusPlace(st.empty(), backend)
        # A place of its own, filled or not: while a run goes on, Streamlit leaves what it isn't
        # sent again where it was, so nothing below may move.
        retry_place = st.empty()
        if backend.status().phase == "failed":
            with retry_place.container():
                if (error := backend.status().error) is not None:
                    st.caption(plain(say_error(error)))
                st.button(say("sidebar-retry"), on_click=backend.prepare, key="prepare_again")

        st.text_area(
            say("sidebar-system-prompt"),
            key="system_prompt",
            placeholder=say("sidebar-system-prompt-hint"),
            max_chars=None,
            height=96,
        )
        st.slider(
            say("sidebar-temperature"),
            0.0,
            2.0,
            step=0.05,
            key="temperature",
            help=say("sidebar-temperature-help"),
        )
        st.slider(
            say("sidebar-top-p"), 0.01, 1.0, step=0.01, key="top_p", help=say("sidebar-top-p-help")
        )
        left, right = st.columns(2)
        # Its first value is an argument, not state: emptied, the field returns to it, not to 1.
        left.number_input(
            say("sidebar-max-tokens"),
            1,
            1_000_000,
            value=st.session_state.first_max_tokens,
            step=64,
            key="max_tokens",
        )
        right.number_input(
            say("sidebar-seed"),
            0,
            MAX_SEED,
            step=1,
            key="seed",
            placeholder=say("sidebar-seed-hint"),
            help=say("sidebar-seed-help"),
        )
        _clear_history(conversation_id)
        st.radio(
            "Language / 语言",
            list(LANGUAGES),
            key=LANGUAGE_KEY,
            format_func=LANGUAGES.__getitem__,
            horizontal=True,
        )
    return backend, status_place


def _clear_history(conversation_id: str) -> None:
    """Clear history, which asks first when there is something to lose.

    In a popover: it opens in the browser, at once, whatever the server is busy with. A dialog is a
    fragment and would wait while an answer streams.
    """
    turns = len(resources.chat().turns(conversation_id))
    if not turns:
        st.button(say("sidebar-clear"), key="clear", icon=":material/delete:", width="stretch")
        return
    with st.popover(say("sidebar-clear"), icon=":material/delete:", width="stretch"):
        st.markdown(say("clear-question", turns=turns))
        st.button(
            say("clear-yes"),
            key="clear_yes",
            type="primary",
            on_click=resources.chat().clear,
            args=(conversation_id,),
            width="stretch",
        )
