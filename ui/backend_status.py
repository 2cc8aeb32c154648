"""What the chosen backend is doing about being ready, in words and bars."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from llm.errors import (
    ConnectionLostError,
    LLMError,
    ServerHostUnknownError,
    ServerKeyError,
)
from llm.literal_markdown import literal
from llm.plain_markdown import plain
from llm.server_state import may_come
from llm.types import Backend, BackendStatus
from ui.language import say, say_error
from ui.live_answer import TICK_S, yield_to_rerun

WATCH_INTERVAL_S = 0.25


def short_status(status: BackendStatus) -> str:
    """Two lines for the sidebar: the model's name and its state."""
    name = literal(status.model) or say("model-unnamed")
    return f"**{name}**  \n{dot(status)} {phase_word(status)}"


def phase_word(status: BackendStatus) -> str:
    """A backend's state in a word or two."""
    phase: str = status.phase
    if phase == "loading" and not status.steps:
        phase = "asking"
    elif phase == "failed" and status.error is not None:
        phase = _failed_phase(status.error)
    return say(f"phase-{phase}")


def _failed_phase(error: LLMError) -> str:
    if isinstance(error, ServerKeyError):
        return "wrong-key"
    away = may_come(error) or isinstance(error, (ServerHostUnknownError, ConnectionLostError))
    return "unreachable" if away else "failed"


class StatusPlace:
    """The sidebar's word on the backend, sent again only when it says something else.

    Args:
        place: an empty placeholder.
        describe: what there is to say now, in Markdown.
        drawn_with: what else the page was drawn with; when that changes, it is drawn anew.
    """

    def __init__(
        self,
        place: DeltaGenerator,
        describe: Callable[[], str],
        drawn_with: Callable[[], object] = lambda: None,
    ) -> None:
        self._place = place
        self._describe = describe
        self._drawn_with = drawn_with
        self._drawn = drawn_with()
        self._shown = ""
        self._looked_s = float("-inf")
        self._changed: Callable[[], bool] = lambda: False
        self.update()

    def rerun_when(self, changed: Callable[[], bool]) -> None:
        """Have the page drawn anew when this says so; it is asked as often as the state."""
        self._changed = changed

    def update(self) -> None:
        """Say what the backend is doing now. Cheap enough for every frame."""
        now_s = time.monotonic()
        if now_s - self._looked_s < WATCH_INTERVAL_S:
            return
        self._looked_s = now_s
        if self._drawn_with() != self._drawn or self._changed():
            st.rerun()
        line = self._describe()
        if line != self._shown:
            self._place.markdown(line)
            self._shown = line


def dot(status: BackendStatus) -> str:
    """A sign for the state; its colour only says the same again."""
    if status.ready:
        return ":green[●]"
    return ":red[✕]" if status.phase == "failed" else ":orange[◌]"


def draw_phases(place: DeltaGenerator, status: BackendStatus) -> None:
    """The first visit's steps with their progress, or the reason why it failed."""
    with place.container():
        if status.error is not None:
            if status.phase == "starting":
                st.info(plain(say_error(status.error)), icon=":material/hourglass_top:")
            else:
                st.error(plain(say_error(status.error)), icon=":material/error:")
            return
        if status.phase not in status.steps:
            return
        at = status.steps.index(status.phase)
        megabytes = round(status.fetch_bytes / 1e6)
        lines = [f"**{plain(status.model)}**"] if status.model else []
        for index, phase in enumerate(status.steps):
            mark = "✓" if index < at else ("◌" if index == at else "·")
            lines.append(f"{mark} {say(f'step-{phase}', megabytes=megabytes)}")
        st.markdown("  \n".join(lines))
        st.progress(
            status.progress if status.progress is not None else at / len(status.steps),
            text=say("step-elapsed", seconds=int(status.elapsed_s)),
        )


def watch(backend: Backend, sidebar: StatusPlace, main: DeltaGenerator) -> None:
    """Keep both places true until there are no more steps to show. Then the page reruns."""
    shown: BackendStatus | None = None
    waited_s = WATCH_INTERVAL_S
    while True:
        status = backend.status()
        if status.settled:
            st.rerun()
        status = replace(status, elapsed_s=float(int(status.elapsed_s)))
        sidebar.update()
        if waited_s >= WATCH_INTERVAL_S and status != shown:
            draw_phases(main, status)
            shown, waited_s = status, 0.0
        yield_to_rerun()
        time.sleep(TICK_S)
        waited_s += TICK_S
