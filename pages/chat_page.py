"""The conversation."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from llm.conversation_tree import ConversationKey, ConversationState, Turn
from llm.errors import LLMError, ServerParameterError
from llm.job import GenerationJob
from llm.stored_answer import StoredAnswer
from llm.types import OPTIONAL_PARAMS, Backend, BackendStatus
from ui import resources
from ui.answer_view import AnswerView
from ui.asking import ask, ask_again, ask_again_without, go_on
from ui.backend_status import StatusPlace, draw_phases, watch
from ui.callback import callback, undisturbed
from ui.context_meter import draw_context_meter, keep_context_meter
from ui.conversation_id import conversation, meant, was_lost
from ui.export_menu import draw_export_menu
from ui.language import say
from ui.live_answer import draw_so_far, follow
from ui.model_trouble import draw_model_trouble
from ui.note import draw_note, draw_undo
from ui.other_branch import draw_way_there, look_there
from ui.paint_probe import screen
from ui.reasoning_view import ReasoningView
from ui.scroll_follower import follow_the_end
from ui.sidebar import choices
from ui.turn_actions import may_go_on
from ui.turn_places import places
from ui.turns import draw_answer, draw_question, forget_blocks_except, was_interrupted

SHOWN_TURNS = 15
"""Turns drawn at first; earlier ones on demand, so a long conversation opens quickly."""
MOST_TURNS = 2 * SHOWN_TURNS
"""A conversation that has grown past this on the page is cut to SHOWN_TURNS again."""
FEWEST_TURNS = 5
"""Where a branch is shown that has fewer than this from there on, its own end is shown."""
EARLIER_TURNS = 50
"""Turns that one press of “Show earlier” adds."""
BETWEEN_TURNS_S = 0.1
"""How soon to look again when one answer has just ended and the next has not begun."""


def _ask_what_was_sent(here: ConversationKey) -> None:
    """Ask before anything is drawn: drawn at once with its answer, it needs no second run."""
    question = st.session_state.question
    st.session_state.question = None  # or the run that follows would ask it again
    if question:
        ask(meant(here), question)


def _first_shown(turns: int, *, at_rest: bool) -> int:
    """The index of the first turn drawn.

    It stays while an answer runs: moved turns would all be built anew in the middle of it.
    """
    first = st.session_state.get("first_shown")
    few = first is not None and first > 0 and turns - first < FEWEST_TURNS
    if first is None or few or (at_rest and turns - first > st.session_state.most_turns):
        first = max(0, turns - SHOWN_TURNS)
        st.session_state.most_turns = MOST_TURNS
    st.session_state.first_shown = first
    return first


def _show_earlier() -> None:
    st.session_state.first_shown = max(0, st.session_state.first_shown - EARLIER_TURNS)
    st.session_state.most_turns += EARLIER_TURNS


@dataclass(frozen=True, slots=True)
class Running:
    """The running turn, with the places to follow it in."""

    turn: Turn
    view: AnswerView
    reasoning: ReasoningView
    status_place: DeltaGenerator

    def is_of(self, job: GenerationJob | StoredAnswer) -> bool:
        """Whether the job answers this turn: read at two moments, they may speak of two."""
        return job.request.request_id == self.turn.turn_id


@dataclass(frozen=True, slots=True)
class Standing:
    """What a run has drawn of the conversation, and what it drew it from.

    Args:
        running: the running turn, where it is shown.
        elsewhere: the conversation, where what runs is on a branch that isn't shown.
        setup_place: an empty placeholder above the turns.
        to_be_read: whether there is more to read than questions.
    """

    here: ConversationKey
    job: GenerationJob | StoredAnswer | None
    turns: tuple[Turn, ...]
    status: BackendStatus
    running: Running | None
    elsewhere: ConversationState | None
    setup_place: DeltaGenerator
    to_be_read: bool


def draw_standing(place: DeltaGenerator, backend: Backend) -> Standing:
    """Draw the turns as they stand: before the sidebar, where they are what has changed.

    Everything keeps its place from run to run, filled or empty: until a run ends, Streamlit leaves
    in the page whatever the run hasn't drawn over, and this one may take minutes.

    Args:
        place: an empty container that other pages leave empty.
    """
    chat, here = resources.chat(), conversation()
    job = chat.job(here)
    state = _with_what_was_seen(here, chat.state(here))
    turns = state.path() if state else ()
    status = backend.status()
    elsewhere = state if job is not None and _is_elsewhere(job.request.request_id, state) else None
    at_rest = job is None or elsewhere is not None

    with place:
        st.title(say("app-title"))
        export_place = st.empty()
        setup_place, earlier_place = st.empty(), st.empty()
        history, again_place = st.container(key="history"), st.empty()
    variants = state.variants() if state else {}
    running = _draw_history(here, history, earlier_place, turns, variants, at_rest=at_rest)
    to_be_read = bool(turns) and running is None
    if running is not None and job is not None and running.is_of(job):
        to_be_read = draw_so_far(job, running.view, running.reasoning, screen())
    if at_rest and turns and _worth_another_try(turns[-1]):
        _offer_another_try(again_place, here, turns[-1])
    if state is not None and turns:
        draw_export_menu(export_place, state)
    else:
        _draw_beginning(setup_place, state, status)
    return Standing(here, job, turns, status, running, elsewhere, setup_place, to_be_read)


def draw(
    standing: Standing, backend: Backend, backend_status: StatusPlace, stamp_place: DeltaGenerator
) -> None:
    """Draw the rest of the page; while an answer runs or a model loads, until that is over.

    Args:
        stamp_place: an empty placeholder out of sight, for the stamps of frames.
    """
    here, job, turns, running = standing.here, standing.job, standing.turns, standing.running
    phases_place = st.empty()
    running_turn = job.request.request_id if job is not None else None
    context_place = _draw_bottom(
        here,
        running_turn,
        standing.status,
        elsewhere=standing.elsewhere is not None,
        empty=not turns,
    )
    follow_the_end(st.session_state.get("asked", 0))

    if standing.elsewhere is not None and running_turn is not None:
        look_there(here, running_turn)
    elif running is not None or job is not None:
        keep_context_meter(context_place, len(turns))
        if running is not None and job is not None and running.is_of(job):
            follow(
                job,
                running.view,
                running.reasoning,
                running.status_place,
                screen(),
                stamp_place,
                place=lambda: resources.chat().place_of(job),
                look=backend_status.update,
            )
            st.rerun()
        time.sleep(BETWEEN_TURNS_S)
        st.rerun()
    try:
        request = resources.chat().standing_request(here, **choices())
        draw_context_meter(context_place, backend, request, len(turns))
    except LLMError:  # what the sidebar holds can't be sent; who asks is told so
        keep_context_meter(context_place, len(turns))
    if not standing.status.settled:
        # Whoever reads a conversation is at its end.
        watch(backend, backend_status, phases_place if turns else standing.setup_place)


def _with_what_was_seen(
    here: ConversationKey, state: ConversationState | None
) -> ConversationState | None:
    """Keep how an answer went on this screen, once it has ended, however that was.

    A slow browser's word may come only after that: then a later run keeps it.
    """
    turn_id = screen().turn_id
    turn = state.turns.get(turn_id) if state else None
    if turn is None or turn.state != "ended":
        return state
    resources.chat().seen(here, screen())
    if screen().credit.is_painted():
        screen().let_go()
    return resources.chat().state(here)


def _is_elsewhere(running_turn: str, state: ConversationState | None) -> bool:
    """Whether the running answer is on a branch that isn't shown."""
    turn = state.turns.get(running_turn) if state else None
    if state is None or turn is None or turn.deleted_s is not None:
        return False
    return all(shown.turn_id != running_turn for shown in state.path())


def _draw_beginning(
    place: DeltaGenerator, state: ConversationState | None, status: BackendStatus
) -> None:
    """What stands where there is no turn."""
    deleted_s = state.last_deleted_s() if state else None
    if state is not None and deleted_s is not None:
        with place.container(horizontal=True, vertical_alignment="center"):
            st.caption(say("history-cleared"), width="content")
            draw_undo(state.head.key, deleted_s)
    elif was_lost():
        place.info(say("chat-lost"), icon=":material/info:")
    elif (status.ready or status.phase == "unloaded") and status.fetch_bytes:
        place.caption(say("chat-welcome-embedded"))
    elif status.ready or status.phase == "unloaded":
        place.caption(say("chat-welcome"))
    elif status.error is not None:
        draw_phases(place, status)


def _draw_history(
    here: ConversationKey,
    place: DeltaGenerator,
    earlier_place: DeltaGenerator,
    turns: tuple[Turn, ...],
    variants: Mapping[str, Sequence[str]],
    *,
    at_rest: bool,
) -> Running | None:
    """Draw the turns; returns the running one."""
    first = _first_shown(len(turns), at_rest=at_rest)
    if first:
        earlier_place.button(
            say("chat-earlier", turns=first), key="earlier", on_click=callback(_show_earlier)
        )
    shown = turns[first:]
    forget_blocks_except(shown)
    whose, used = places(
        st.session_state.get("places", ()), [turn.turn_id for turn in shown], at_rest=at_rest
    )
    # Kept before they are drawn: a run may end anywhere.
    st.session_state.places = whose
    running = None
    # What went is emptied before anything is drawn: two versions of a turn are never seen at once.
    with place:
        frames = [
            st.container(key=f"turn-{turn_id}") if number in used else st.empty()
            for number, turn_id in enumerate(whose)
        ]
    standing = (frame for number, frame in enumerate(frames) if number in used)
    for index, (turn, frame) in enumerate(zip(shown, standing, strict=True), first):
        alike = variants.get(turn.turn_id, ())
        with frame:
            draw_question(here, turn, alike)
            if turn.state == "queued":
                continue
            before = turns[index - 1] if index else None
            view, reasoning, status_place = draw_answer(here, turn, alike, before)
            if turn.state == "running":
                running = Running(turn, view, reasoning, status_place)
    return running


def _draw_bottom(
    here: ConversationKey,
    running_turn: str | None,
    status: BackendStatus,
    *,
    elsewhere: bool,
    empty: bool,
) -> DeltaGenerator:
    """What stands at the lower edge: notes, Stop, the input; below it a place is left.

    Args:
        elsewhere: whether that turn is on a branch that isn't shown.
        empty: whether no turn is shown.
    """
    with st.bottom:
        trouble_place, note_place, stop_place = st.empty(), st.empty(), st.empty()
        with undisturbed():
            if "refused_question" in st.session_state:
                st.session_state.question = st.session_state.pop("refused_question")
            # Its value as well: a tab whose connection was lost asks in a session that has drawn
            # nothing yet and so knows no callback.
            question = st.chat_input(
                say("chat-input"),
                key="question",
                on_submit=callback(_ask_what_was_sent),
                args=(here,),
            )
            if question:
                ask(here, question)
        context_place = st.empty()
    if question:
        st.rerun()
    draw_model_trouble(trouble_place, status)
    draw_note(note_place, here, undo_stands=empty)
    if running_turn is None:
        return context_place
    place = stop_place
    if elsewhere:
        place = stop_place.container(horizontal=True, vertical_alignment="center")
    place.button(
        say("chat-stop"),
        key="stop",
        icon=":material/stop_circle:",
        on_click=callback(resources.chat().stop),
        args=(here, running_turn),
    )
    if elsewhere:
        draw_way_there(place, here, running_turn)
    return context_place


def _worth_another_try(turn: Turn) -> bool:
    """Whatever went wrong, the sidebar may say something else now; what was cut off may go on."""
    return turn.state == "ended" and (_went_wrong(turn) or may_go_on(turn))


def _went_wrong(turn: Turn) -> bool:
    """Whether it ended otherwise than by itself, or by a Stop in the middle of it."""
    why = turn.receipt.finish.why if turn.receipt is not None else None
    return turn.error is not None or was_interrupted(turn) or why is not None


def _refused_params(turn: Turn) -> tuple[str, ...]:
    """The parameters that the server refused and that may be left out."""
    if not isinstance(turn.error, ServerParameterError):
        return ()
    return tuple(name for name in turn.error.parameters if name in OPTIONAL_PARAMS)


def _offer_another_try(place: DeltaGenerator, here: ConversationKey, turn: Turn) -> None:
    """Go on with it, ask again as the sidebar stands, or without what the server refused."""
    refused = _refused_params(turn)
    with place.container(horizontal=True):
        if may_go_on(turn):
            st.button(
                say("turn-continue"),
                key="go_on",
                icon=":material/play_arrow:",
                on_click=callback(go_on),
                args=(
                    here,
                    turn.turn_id,
                ),
            )
        if refused:
            st.button(
                say("chat-ask-again-without", parameter=", ".join(refused)),
                key="ask_again_without",
                icon=":material/refresh:",
                on_click=callback(ask_again_without),
                args=(here, turn.turn_id, refused),
            )
        if _went_wrong(turn):
            st.button(
                say("chat-ask-again"),
                key="ask_again",
                icon=None if refused else ":material/refresh:",
                on_click=callback(ask_again),
                args=(
                    here,
                    turn.turn_id,
                ),
            )
