"""What the chosen backend is doing about being ready, in words and bars."""

from __future__ import annotations

import time
from dataclasses import replace

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from llm.plain_markdown import plain
from llm.types import Backend, BackendStatus
from ui.language import say, say_error
from ui.live_answer import TICK_S, yield_to_rerun

WATCH_INTERVAL_S = 0.25


def short_status(status: BackendStatus) -> str:
    """One line for the sidebar: the model's name and its state."""
    name = status.model or say("model-unnamed")
    phase = "asking" if status.phase == "loading" and not status.steps else status.phase
    return f"**{plain(name)}**  \n{_dot(status)} {say(f'phase-{phase}')}"


class StatusPlace:
    """The sidebar's line about the backend, sent again only when it says something else."""

    def __init__(self, place: DeltaGenerator, backend: Backend) -> None:
        self._place = place
        self._backend = backend
        self._shown = ""
        self.update()

    def update(self) -> None:
        """Say what the backend is doing now."""
        line = short_status(self._backend.status())
        if line != self._shown:
            self._place.markdown(line)
            self._shown = line


def _dot(status: BackendStatus) -> str:
    if status.ready:
        return "●"
    return "✕" if status.phase == "failed" else "◌"


def draw_phases(place: DeltaGenerator, status: BackendStatus) -> None:
    """The first visit's steps with their progress, or the reason why it failed."""
    with place.container():
        if status.error is not None:
            st.error(plain(say_error(status.error)), icon=":material/error:")
            return
        if status.phase not in status.steps:
            return
        at = status.steps.index(status.phase)
        megabytes = round(status.fetch_bytes / 1e6)
        lines = []
        for index, phase in enumerate(status.steps):
            mark = "✓" if index < at else ("◌" if index == at else "·")
            lines.append(f"{mark} {say(f'step-{phase}', megabytes=megabytes)}")
        st.markdown("  \n".join(lines))
        st.progress(
            status.progress if status.progress is not None else at / len(status.steps),
            text=say("step-elapsed", seconds=int(status.elapsed_s)),
        )


def watch(backend: Backend, sidebar: StatusPlace, main: DeltaGenerator) -> None:
    """Keep both places true until the backend is ready or has failed. Then the page reruns."""
    shown: BackendStatus | None = None
    waited_s = WATCH_INTERVAL_S
    while True:
        status = backend.status()
        settled = status.ready or status.phase == "failed"
        if settled:
            st.rerun()
        status = replace(status, elapsed_s=float(int(status.elapsed_s)))
        if waited_s >= WATCH_INTERVAL_S and status != shown:
            sidebar.update()
            draw_phases(main, status)
            shown, waited_s = status, 0.0
        yield_to_rerun()
        time.sleep(TICK_S)
        waited_s += TICK_S
