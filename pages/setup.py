"""What this installation is: backends, model, and every setting in force."""

from __future__ import annotations

import streamlit as st

from llm.settings import Settings
from ui.backend_status import draw_phases, watch
from ui.language import say
from ui.sidebar import Choices


def draw(choices: Choices, settings: Settings) -> None:
    """Draw the page."""
    st.title(say("page-setup"))
    place = st.empty()
    status = choices.backend.status()
    if status.error is not None:
        draw_phases(place, status)
    st.caption(say("setup-explain"))
    st.table(
        {
            say("setup-name"): [f"STEADY_CHAT_{name.upper()}" for name in Settings.model_fields],
            say("setup-value"): [_shown(getattr(settings, name)) for name in Settings.model_fields],
        },
        hide_index=True,
    )
    if not (status.ready or status.phase == "failed"):
        watch(choices.backend, choices.status_place, place)


def _shown(value: object) -> str:
    """A setting's value without secrets; pydantic's SecretStr prints asterisks."""
    if value is None:
        return ""
    if isinstance(value, tuple):
        return ",".join(map(str, value))
    return str(value)
