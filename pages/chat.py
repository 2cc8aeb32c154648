"""The conversation."""

from __future__ import annotations

import streamlit as st

from llm.errors import LLMError
from ui import resources
from ui.backend_status import draw_phases, watch
from ui.conversation_id import conversation_id, person, show_in_address
from ui.language import say, say_error
from ui.live_answer import follow
from ui.paint_probe import paint_meter
from ui.sidebar import Choices
from ui.turns import draw_answer, draw_question

SHOWN_TURNS = 15
"""Turns drawn at first; earlier ones on demand, so a long conversation opens quickly."""


def _ask(choices: Choices) -> None:
    question = st.session_state.question
    try:
        resources.chat().ask(
            conversation_id(),
            question,
            person=person(),
            backend=choices.backend_name,
            params=choices.params,
            system_prompt=choices.system_prompt,
        )
    except LLMError as error:
        st.session_state.refused = error
        # Back into the field: a refused question isn't a lost one.
        st.session_state.question = question


def _show_more() -> None:
    st.session_state.shown_turns = st.session_state.get("shown_turns", SHOWN_TURNS) + 50


def draw(choices: Choices) -> None:
    """Draw the page; while an answer runs or a model loads, until that is over."""
    chat, here = resources.chat(), conversation_id()
    show_in_address()
    job = chat.job(here)
    turns = chat.turns(here)

    st.title(say("app-title"))
    setup_place = st.empty()
    status = choices.backend.status()
    if status.error is not None and not turns:
        draw_phases(setup_place, status)
    if not turns and status.ready:
        setup_place.caption(say("chat-welcome"))

    shown = st.session_state.get("shown_turns", SHOWN_TURNS)
    history = st.container(key="history")
    with history:
        if len(turns) > shown:
            st.button(
                say("chat-earlier", turns=len(turns) - shown), key="earlier", on_click=_show_more
            )
        running = None
        for turn in turns[-shown:]:
            withdraw = None
            if turn.state == "queued":
                withdraw = lambda turn_id: chat.withdraw(here, turn_id)  # noqa: E731
            with st.container(key=f"turn-{turn.turn_id}"):
                draw_question(turn, withdraw)
                if turn.state == "queued":
                    continue
                view, status_place = draw_answer(turn)
                if turn.state == "running":
                    running = (view, status_place)
        last = turns[-1] if turns else None
        if last is not None and last.state == "ended" and _worth_another_try(last):
            st.button(
                say("chat-ask-again"),
                key="ask_again",
                icon=":material/refresh:",
                on_click=lambda: chat.ask_again(here, last.turn_id, person=person()),
            )

    with st.bottom:
        refused = st.session_state.pop("refused", None)
        if refused is not None:
            st.warning(say_error(refused))
        if job is not None:
            st.button(
                say("chat-stop"),
                key="stop",
                icon=":material/stop_circle:",
                on_click=chat.stop,
                args=(here,),
            )
    # Outside `st.bottom`: only a chat input that Streamlit places there itself makes the page
    # follow its end.
    st.chat_input(say("chat-input"), key="question", on_submit=_ask, args=(choices,))

    if running is not None and job is not None:
        view, status_place = running
        follow(job, view, status_place, paint_meter(), lambda: chat.ahead_of(job))
        st.rerun()
    if job is not None or running is not None:
        st.rerun()
    if not (status.ready or status.phase == "failed"):
        watch(choices.backend, choices.status_place, setup_place)


def _worth_another_try(turn) -> bool:
    return turn.error is not None and turn.error.retryable
