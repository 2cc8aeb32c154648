"""What this installation is: backends, model, and every setting in force."""

from __future__ import annotations

import streamlit as st

from llm.settings import Settings
from llm.types import Backend
from ui.backend_status import StatusPlace, draw_phases, watch
from ui.inline_code import inline_code
from ui.language import say


def draw(settings: Settings, backend: Backend, backend_status: StatusPlace) -> None:
    """Draw the page."""
    st.title(say("page-setup"))
    place = st.empty()
    status = backend.status()
    if status.error is not None:
        draw_phases(place, status)
    st.caption(say("setup-explain"))
    shown = settings.shown()
    st.table(
        {
            say("setup-name"): [f"STEADY_CHAT_{name.upper()}" for name in shown],
            # As code: a table's cells are Markdown.
            say("setup-value"): [inline_code(value) for value in shown.values()],
        },
        hide_index=True,
    )
    if not status.settled:
        watch(backend, backend_status, place)
