"""What this installation is: backends, model, and every setting in force."""

from __future__ import annotations

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from llm.settings import Settings
from llm.types import Backend
from ui.backend_status import draw_phases, watch
from ui.language import say


def draw(settings: Settings, backend: Backend, backend_status: DeltaGenerator) -> None:
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
            say("setup-value"): list(shown.values()),
        },
        hide_index=True,
    )
    if not (status.ready or status.phase == "failed"):
        watch(backend, backend_status, place)


if __name__ == "__main__":
    # Somebody came by this file's own address, before Streamlit knew of the real pages.
    st.switch_page("streamlit_app.py")
