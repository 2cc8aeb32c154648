"""The line below the input: how full the model's window is before the next question."""

from __future__ import annotations

import html
import time
from concurrent.futures import Future

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from llm.context_meter import ContextUse
from llm.types import Backend, GenerationRequest
from ui import resources
from ui.language import say
from ui.live_answer import TICK_S, yield_to_rerun

PATIENCE_S = 1.5
"""How long the line waits for an exact count before it says an estimate."""
_KEY = "context_use"


def keep_context_meter(place: DeltaGenerator, turns: int) -> None:
    """Show what was said last, for while an answer runs; nothing where turns have gone since."""
    use, of_turns = st.session_state.get(_KEY, (None, 0))
    _draw(place, use if of_turns <= turns else None)


def draw_context_meter(
    place: DeltaGenerator, backend: Backend, request: GenerationRequest, turns: int
) -> None:
    """Count and show. The last thing a run does: it may wait a moment for the count.

    Args:
        request: what would be sent now, but for the question.
        turns: how many turns the conversation has.
    """
    use = resources.context_meter().use(backend, request, _wait)
    st.session_state[_KEY] = (use, turns)
    _draw(place, use)


def _wait(counting: Future[int | None]) -> None:
    end_s = time.monotonic() + PATIENCE_S
    while not counting.done() and time.monotonic() < end_s:
        yield_to_rerun()
        time.sleep(TICK_S)


def _draw(place: DeltaGenerator, use: ContextUse | None) -> None:
    if use is None or (not use.tokens and use.window is None):
        place.empty()
        return
    words, bar = html.escape(sentence(use)), ""
    if use.share is not None:
        percent, name = round(100 * min(1.0, use.share)), html.escape(say("context"))
        bar = (
            f'<span role="meter" aria-label="{name}" aria-valuemin="0" aria-valuemax="100" '
            f'aria-valuenow="{percent}"><i style="width: {percent}%"></i></span>'
        )
    place.html(f'<div class="steady-context">{bar}{words}</div>')


def sentence(use: ContextUse) -> str:
    """What the line says."""
    how = "exact" if use.exact else "about"
    if use.window is None:
        return say(f"context-no-window-{how}", tokens=use.tokens)
    if use.tokens >= use.window:
        return say("context-full", window=use.window)
    return say(f"context-{how}", tokens=use.tokens, window=use.window)
