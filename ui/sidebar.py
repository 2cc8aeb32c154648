"""The sidebar: conversations, backend, parameters, Clear history, language. On every page."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict
from typing import Any, TypedDict

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from llm.catalogue import LANGUAGES
from llm.conversation_tree import ConversationKey
from llm.errors import InvalidParameterError
from llm.named_backends import server_id
from llm.plain_markdown import plain
from llm.settings import Settings
from llm.stop_strings import read_lines, write_lines
from llm.types import (
    MAX_PENALTY,
    MAX_REPETITION_PENALTY,
    MAX_SEED,
    MAX_TOP_K,
    Backend,
    SamplingParams,
)
from llm.usual_params import usual_temperature
from ui import resources
from ui.account import draw_account
from ui.at_rest import Seen, look_at_rest, look_meanwhile
from ui.backend_status import StatusPlace, short_status
from ui.cache_pick import draw_cache_pick, set_cache_defaults
from ui.callback import callback
from ui.conversation_list import draw_conversation_list
from ui.language import KEY as LANGUAGE_KEY
from ui.language import first_language, say, say_error
from ui.model_pick import draw_model_pick
from ui.presets import Asked, Controls, begin, draw_presets, recognise
from ui.presets import picked as picked_preset
from ui.server_pick import draw_pick, pick_as, picked

_SLIDERS = ("temperature", "top_p")
"""A slider always has a value: whether it is left out stands in the state's `left_out`."""
_NUMBERS = (
    "seed",
    "top_k",
    "min_p",
    "repetition_penalty",
    "presence_penalty",
    "frequency_penalty",
)
"""An empty field is left out."""
_CONTROLS = (*_SLIDERS, *_NUMBERS, "left_out", "stop_lines", "system_prompt", "max_tokens")
_SAID_AGAIN = 3
"""Runs in which the browser is told what these hold: some are ended before they draw them."""


class Choices(TypedDict):
    """What the sidebar says now: the arguments of `Chat.ask`."""

    backend: str
    model: str
    system_prompt: str
    params: SamplingParams


def choices() -> Choices:
    """Read the sidebar.

    From the session's state: a callback runs before the sidebar is drawn anew, and what was drawn
    last may be a click behind.

    Raises:
        InvalidParameterError: something typed can't be used.
    """
    backend, model = _chosen_backend()
    asked = _asked()
    return Choices(
        backend=backend, model=model, system_prompt=asked.system_prompt, params=asked.params
    )


def leave_out(names: Iterable[str]) -> None:
    """Have the sidebar leave these parameters out, until somebody sets them again."""
    state = st.session_state
    for name in names:
        if name in _SLIDERS:
            state.left_out = [each for each in _SLIDERS if each in (*_held("left_out"), name)]
        elif name == "stop":
            state.stop_lines = ""
        else:
            state[name] = None


def _chosen_backend() -> tuple[str, str]:
    """The chosen backend's id, and which of its models is wanted."""
    kind = str(_held("backend"))
    if kind != "vllm":
        return kind, ""
    server, model = picked()
    return server_id(server), model


def set_defaults(settings: Settings, here: ConversationKey) -> None:
    """Fill the controls when a conversation is opened, before they are drawn.

    As its last question was asked; a new one as its person's default preset says, else as the
    settings say.
    """
    state = st.session_state
    state.setdefault(LANGUAGE_KEY, first_language(settings.language))
    state.setdefault("backend", settings.backends[0])
    set_cache_defaults(settings)
    # What the controls hold at first is an argument of theirs too, for the browser: what is set in
    # the state alone doesn't reach it where the run that sets it is ended before it draws them.
    state.setdefault("first", {"language": state[LANGUAGE_KEY], "backend": state.backend})
    for name in _SLIDERS:  # one that is left out has a value, too
        state.setdefault(name, getattr(settings, name))
        state.first.setdefault(name, state[name])
    # Streamlit forgets what a run sets that is ended before it draws the controls.
    if state.get("controls_of") == here and all(name in state for name in _CONTROLS):
        # Another may have had another model loaded meanwhile.
        if _usual_temperature(settings, _held("backend")) != state.usual_temperature:
            _follow_temperature(settings)
        return
    state.controls_of = here
    turns = resources.chat().turns(here)
    if turns and (kind := turns[-1].backend.partition("/")[0]) in settings.backends:
        state.backend = state.first["backend"] = kind
        pick_as(turns[-1])
        params = turns[-1].params.at_most(settings.max_answer_tokens)
        asked = Asked(turns[-1].system_prompt, params)
        _fill(asked)
        recognise(asked)
    else:
        begin(_controls(settings))
    state.usual_temperature = _usual_temperature(settings, state.backend)


def _controls(settings: Settings) -> Controls:
    """The controls that a preset is of."""

    def reset() -> None:
        values = {name: getattr(settings, name) for name in _NUMBERS}
        temperature = _usual_temperature(settings, st.session_state.backend)
        params = SamplingParams(
            temperature=temperature,
            top_p=settings.top_p,
            max_tokens=settings.max_tokens,
            stop=settings.stop,
            **values,
        ).at_most(settings.max_answer_tokens)
        _fill(Asked(settings.system_prompt, params))

    return Controls(_asked, _fill, reset)


def _asked() -> Asked:
    """What the controls say.

    Raises:
        InvalidParameterError: something typed can't be used.
    """
    left_out = _held("left_out")
    params = SamplingParams(
        max_tokens=int(_held("max_tokens")),
        stop=read_lines(_held("stop_lines") or ""),
        **{name: None if name in left_out else _held(name) for name in _SLIDERS},
        **{name: _held(name) for name in _NUMBERS},
    )
    return Asked(_held("system_prompt") or "", params)


def _params_now() -> SamplingParams | None:
    """What would be asked with; None where something typed can't be used."""
    try:
        return _asked().params
    except InvalidParameterError:
        return None


def _held(name: str) -> Any:
    """What a control holds; what it was filled with, where Streamlit has forgotten it.

    It does where the browser hasn't told it yet, as after a lost connection, and where a run was
    ended before it drew the control.
    """
    state = st.session_state
    return state[name] if name in state else state.first[name]


def _fill(asked: Asked) -> None:
    """Have the controls say this. A slider that is left out stays as it is."""
    values = asdict(asked.params)
    left_out = [name for name in _SLIDERS if values[name] is None]
    values |= {
        "left_out": left_out,
        "stop_lines": write_lines(values.pop("stop")),
        "system_prompt": asked.system_prompt,
    }
    filled = {name: each for name, each in values.items() if name not in left_out}
    st.session_state.update(filled)
    st.session_state.first |= filled
    st.session_state.say_numbers = _SAID_AGAIN


def _say_numbers_again() -> None:
    """Have the browser told what the fields that may be empty hold, in the first runs.

    Streamlit tells it in the run that sets them, which may be ended before it draws them. These
    fields can't have their first value as an argument: emptied, they would return to it.
    """
    state = st.session_state
    if state.say_numbers:
        state.say_numbers -= 1
        for name in _NUMBERS:
            state[name] = state[name]


def _usual_temperature(settings: Settings, kind: str) -> float:
    model = resources.local_backend().chosen.model if kind == "local" else ""
    return usual_temperature(settings, model)


def _follow_temperature(settings: Settings) -> None:
    """With another backend, its usual temperature, where nobody has moved the slider."""
    state = st.session_state
    usual = _usual_temperature(settings, _held("backend"))
    if _held("temperature") == state.usual_temperature and picked_preset() is None:
        state.temperature = usual
    state.usual_temperature = usual


def chosen_backend() -> Backend:
    """The chosen backend, which from now on gets ready if it hasn't begun to."""
    backend = resources.backends()[_chosen_backend()[0]]()
    if backend.status().phase == "idle":
        backend.prepare()
    return backend


def draw_sidebar(
    settings: Settings, here: ConversationKey, seen: Seen, backend: Backend
) -> StatusPlace:
    """Draw the sidebar.

    Args:
        seen: what this page is drawn with; where that changes, it is drawn anew.
        backend: the chosen one.

    Returns:
        The place where the backend's state is shown.
    """
    with st.sidebar:
        draw_conversation_list(seen)
        first = st.session_state.first
        kind = st.radio(
            say("sidebar-backend"),
            settings.backends,
            settings.backends.index(first["backend"]),
            key="backend",
            format_func=lambda name: say(f"backend-{name}"),
            horizontal=True,
            on_change=callback(_follow_temperature),
            args=(settings,),
        )
        # Places of their own, filled or not: while a run goes on, Streamlit leaves what it isn't
        # sent again where it was, so nothing below may move.
        pick_place = st.empty()
        state_place = st.container(key="backend_state").empty()
        model_place, retry_place, look_place = st.empty(), st.empty(), st.empty()
        if kind == "vllm":
            status_place = draw_pick(pick_place, state_place)
        elif kind == "local":
            status_place = draw_model_pick(pick_place, state_place, model_place)
        else:
            status_place = StatusPlace(state_place, lambda: short_status(backend.status()))
        status_place.rerun_when(look_meanwhile(seen))
        with look_place.container():
            look_at_rest()
        if backend.status().phase == "failed":
            with retry_place.container():
                if (error := backend.status().error) is not None:
                    st.caption(plain(say_error(error)))
                st.button(
                    say("sidebar-retry"), on_click=callback(backend.prepare), key="prepare_again"
                )

        draw_presets(_controls(settings))
        st.text_area(
            say("sidebar-system-prompt"),
            first["system_prompt"],
            key="system_prompt",
            placeholder=say("sidebar-system-prompt-hint"),
            max_chars=None,
            height=96,
        )
        _slider("temperature", 0.0, 2.0, 0.05)
        # Its first value is an argument, not state: emptied, the field returns to it, not to 1.
        st.number_input(
            say("sidebar-max-tokens"),
            1,
            settings.max_answer_tokens,
            value=st.session_state.first["max_tokens"],
            step=64,
            key="max_tokens",
        )
        with st.expander(say("sidebar-more")):
            _more_parameters()
        draw_cache_pick(_params_now())
        _clear_history(here)
        st.radio(
            "Language / 语言",
            list(LANGUAGES),
            list(LANGUAGES).index(first["language"]),
            key=LANGUAGE_KEY,
            format_func=LANGUAGES.__getitem__,
            horizontal=True,
        )
        draw_account()
    return status_place


def _more_parameters() -> None:
    """What few people set."""
    _say_numbers_again()
    _slider("top_p", 0.01, 1.0, 0.01)
    # Row by row, so that they keep this order where a narrow screen puts them in one column.
    left, right = st.columns(2, vertical_alignment="bottom")
    _number(left, "top_k", 0, MAX_TOP_K, 1)
    _number(right, "min_p", 0.0, 1.0, 0.01)
    left, right = st.columns(2, vertical_alignment="bottom")
    _number(left, "presence_penalty", -float(MAX_PENALTY), float(MAX_PENALTY), 0.1)
    _number(right, "frequency_penalty", -float(MAX_PENALTY), float(MAX_PENALTY), 0.1)
    left, right = st.columns(2, vertical_alignment="bottom")
    _number(left, "repetition_penalty", 0.01, float(MAX_REPETITION_PENALTY), 0.05)
    _number(right, "seed", 0, MAX_SEED, 1)
    st.text_area(
        say("sidebar-stop"),
        st.session_state.first["stop_lines"],
        key="stop_lines",
        height=68,
        placeholder=say("sidebar-stop-hint"),
        help=say("sidebar-stop-help"),
    )
    st.pills(
        say("sidebar-left-out"),
        _SLIDERS,
        selection_mode="multi",
        default=st.session_state.first["left_out"],
        key="left_out",
        format_func=lambda name: say(_word(name)),
        help=say("sidebar-left-out-help"),
    )


def _word(name: str) -> str:
    return f"sidebar-{name.replace('_', '-')}"


def _slider(name: str, low: float, high: float, step: float) -> None:
    left_out = name in st.session_state.left_out
    label = say(_word(name))
    st.slider(
        say("sidebar-not-sent", parameter=label) if left_out else label,
        low,
        high,
        st.session_state.first[name],
        step,
        key=name,
        disabled=left_out,
        help=say("sidebar-not-sent-help" if left_out else f"{_word(name)}-help"),
    )


def _number(place: DeltaGenerator, name: str, low: float, high: float, step: float) -> None:
    """A field that may be empty; what it holds at first is in the state."""
    place.number_input(
        say(_word(name)),
        low,
        high,
        value=None,
        step=step,
        key=name,
        placeholder=say("sidebar-seed-hint" if name == "seed" else "sidebar-default-hint"),
        help=say(f"{_word(name)}-help"),
    )


def _clear_history(here: ConversationKey) -> None:
    """Clear history, which asks first when there is something to lose.

    In a popover: it opens in the browser, at once, whatever the server is busy with. A dialog is a
    fragment and would wait while an answer streams.
    """
    turns = len(resources.chat().turns(here))
    if not turns:
        st.button(say("sidebar-clear"), key="clear", icon=":material/delete:", width="stretch")
        return
    with st.popover(say("sidebar-clear"), icon=":material/delete:", width="stretch"):
        st.markdown(say("clear-question", turns=turns))
        st.button(
            say("clear-yes"),
            key="clear_yes",
            type="primary",
            on_click=callback(resources.chat().clear),
            args=(here,),
            width="stretch",
        )
