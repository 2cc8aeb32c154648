"""The conversation."""

from __future__ import annotations

import time

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from llm.conversation_tree import ConversationKey, Turn
from llm.errors import LLMError, ServerParameterError
from llm.plain_markdown import plain
from llm.types import OPTIONAL_PARAMS, Backend
from ui import resources
from ui.answer_view import AnswerView
from ui.backend_status import StatusPlace, draw_phases, watch
from ui.context_meter import draw_context_meter, keep_context_meter
from ui.conversation_id import conversation, person, was_lost
from ui.language import say, say_error
from ui.live_answer import follow
from ui.paint_probe import paint_meter
from ui.reasoning_view import ReasoningView
from ui.scroll_follower import follow_the_end
from ui.sidebar import choices, leave_out
from ui.turns import draw_answer, draw_question, forget_blocks_except

SHOWN_TURNS = 15
"""Turns drawn at first; earlier ones on demand, so a long conversation opens quickly."""
MOST_TURNS = 2 * SHOWN_TURNS
"""A conversation that has grown past this on the page is cut to SHOWN_TURNS again."""
EARLIER_TURNS = 50
"""Turns that one press of “Show earlier” adds."""
BETWEEN_TURNS_S = 0.1
"""How soon to look again when one answer has just ended and the next has not begun."""


def _ask(question: str) -> None:
    try:
        resources.chat().ask(conversation(), question, person=person(), **choices())
        _accepted()
    except LLMError as error:
        st.session_state.refused = error
        # Back into the field: a refused question isn't a lost one.
        st.session_state.refused_question = question


def _ask_what_was_sent() -> None:
    """Ask before anything is drawn: drawn at once with its answer, it needs no second run."""
    question = st.session_state.question
    st.session_state.question = None  # or the run that follows would ask it again
    if question:
        _ask(question)


def _ask_again(turn_id: str) -> None:
    chat = resources.chat()
    try:
        chat.ask_again(conversation(), turn_id, person=person(), **choices())
        _accepted()
    except LLMError as error:
        st.session_state.refused = error


def _ask_again_without(turn_id: str, names: tuple[str, ...]) -> None:
    leave_out(names)
    _ask_again(turn_id)


def _accepted() -> None:
    st.session_state.refused = None
    st.session_state.asked = st.session_state.get("asked", 0) + 1


def _first_shown(turns: int, *, at_rest: bool) -> int:
    """The index of the first turn drawn.

    It stays while an answer runs: moved turns would all be built anew in the middle of it.
    """
    first = st.session_state.get("first_shown")
    if first is None or first > turns or (at_rest and turns - first > st.session_state.most_turns):
        first = max(0, turns - SHOWN_TURNS)
        st.session_state.most_turns = MOST_TURNS
    st.session_state.first_shown = first
    return first


def _show_earlier() -> None:
    st.session_state.first_shown = max(0, st.session_state.first_shown - EARLIER_TURNS)
    st.session_state.most_turns += EARLIER_TURNS


def draw(backend: Backend, backend_status: StatusPlace) -> None:
    """Draw the page; while an answer runs or a model loads, until that is over.

    Everything keeps its place from run to run, filled or empty: until a run ends, Streamlit leaves
    in the page whatever the run hasn't drawn over, and this one may take minutes.
    """
    chat, here = resources.chat(), conversation()
    job = chat.job(here)
    turns = chat.turns(here)
    status = backend.status()

    st.title(say("app-title"))
    setup_place, earlier_place = st.empty(), st.empty()
    history, again_place = st.container(key="history"), st.empty()
    if was_lost():
        setup_place.info(say("chat-lost"), icon=":material/info:")
    elif not turns:
        if status.ready and status.fetch_bytes:
            setup_place.caption(say("chat-welcome-embedded"))
        elif status.ready:
            setup_place.caption(say("chat-welcome"))
        elif status.error is not None:
            draw_phases(setup_place, status)
    running = _draw_history(history, earlier_place, turns, at_rest=job is None)
    if job is None and turns and _worth_another_try(turns[-1]):
        _offer_another_try(again_place, turns[-1])
    context_place = _draw_bottom(here, job.request.request_id if job is not None else None)
    follow_the_end(st.session_state.get("asked", 0))

    if running is not None or job is not None:
        keep_context_meter(context_place, len(turns))
        if running is not None and job is not None:
            turn, view, reasoning, status_place = running
            # Read at two moments, they may speak of two turns.
            if job.request.request_id == turn.turn_id:
                follow(
                    job,
                    view,
                    reasoning,
                    status_place,
                    paint_meter(),
                    ahead=lambda: chat.ahead_of(job),
                    look=backend_status.update,
                )
                st.rerun()
        time.sleep(BETWEEN_TURNS_S)
        st.rerun()
    try:
        request = chat.standing_request(here, **choices())
        draw_context_meter(context_place, backend, request, len(turns))
    except LLMError:  # what the sidebar holds can't be sent; who asks is told so
        keep_context_meter(context_place, len(turns))
    if not status.settled:
        watch(backend, backend_status, setup_place)


def _draw_history(
    place: DeltaGenerator, earlier_place: DeltaGenerator, turns: tuple[Turn, ...], *, at_rest: bool
) -> tuple[Turn, AnswerView, ReasoningView, DeltaGenerator] | None:
    """Draw the turns; returns the running one with the places to follow it in."""
    chat, here = resources.chat(), conversation()
    first = _first_shown(len(turns), at_rest=at_rest)
    if first:
        earlier_place.button(
            say("chat-earlier", turns=first), key="earlier", on_click=_show_earlier
        )
    forget_blocks_except(turns[first:])
    running = None
    with place:
        for turn in turns[first:]:
            with st.container(key=f"turn-{turn.turn_id}"):
                draw_question(turn, lambda turn_id: chat.withdraw(here, turn_id))
                if turn.state == "queued":
                    continue
                view, reasoning, status_place = draw_answer(turn)
                if turn.state == "running":
                    running = (turn, view, reasoning, status_place)
        drawn = len(turns) - first
        for _ in range(st.session_state.get("drawn_turns", 0) - drawn):
            st.empty()  # in the place of a question that was taken back
        st.session_state.drawn_turns = drawn
    return running


def _draw_bottom(here: ConversationKey, running_turn: str | None) -> DeltaGenerator:
    """What stands at the lower edge: a refusal, Stop, the input; below it a place is left."""
    with st.bottom:
        refusal_place, stop_place = st.empty(), st.empty()
        if "refused_question" in st.session_state:
            st.session_state.question = st.session_state.pop("refused_question")
        # Its value as well: a tab whose connection was lost asks in a session that has drawn
        # nothing yet and so knows no callback.
        question = st.chat_input(say("chat-input"), key="question", on_submit=_ask_what_was_sent)
        context_place = st.empty()
    if question:
        _ask(question)
        st.rerun()
    refused = st.session_state.get("refused")
    if refused is not None:
        refusal_place.warning(plain(say_error(refused)))
    if running_turn is not None:
        stop_place.button(
            say("chat-stop"),
            key="stop",
            icon=":material/stop_circle:",
            on_click=resources.chat().stop,
            args=(here, running_turn),
        )
    return context_place


def _worth_another_try(turn: Turn) -> bool:
    """Whatever went wrong: the sidebar may say something else now."""
    return turn.state == "ended" and turn.error is not None


def _refused_params(turn: Turn) -> tuple[str, ...]:
    """The parameters that the server refused and that may be left out."""
    if not isinstance(turn.error, ServerParameterError):
        return ()
    return tuple(name for name in turn.error.parameters if name in OPTIONAL_PARAMS)


def _offer_another_try(place: DeltaGenerator, turn: Turn) -> None:
    """Ask again as the sidebar stands, or without what the server refused."""
    refused = _refused_params(turn)
    with place.container(horizontal=True):
        if refused:
            st.button(
                say("chat-ask-again-without", parameter=", ".join(refused)),
                key="ask_again_without",
                icon=":material/refresh:",
                on_click=_ask_again_without,
                args=(turn.turn_id, refused),
            )
        st.button(
            say("chat-ask-again"),
            key="ask_again",
            icon=None if refused else ":material/refresh:",
            on_click=_ask_again,
            args=(turn.turn_id,),
        )
