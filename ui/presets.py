"""The sidebar's presets: pick one, save what the controls say, choose the default."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from llm.errors import LLMError, StoreError
from llm.plain_markdown import plain
from llm.presets import MAX_NAME_CHARS, Preset
from llm.types import SamplingParams
from ui import resources
from ui.callback import callback
from ui.language import say, say_error
from ui.owner import owner

LOOK_S = 2.0
"""How old the list may be: another tab may have changed it."""
LOOK_AGAIN_S = 10.0
"""The same while it can't be read, which takes its time to find out."""

_PICK = "preset"
_PICKED = "preset_picked"
_NAME = "preset_name"
_KNOWN = "presets_known"
_TROUBLE = "preset_trouble"
_DELETED = "preset_deleted"
_NONE = ""


@dataclass(frozen=True, slots=True)
class Asked:
    """What the controls say."""

    system_prompt: str
    params: SamplingParams


@dataclass(frozen=True, slots=True)
class Controls:
    """The controls that a preset is of.

    Args:
        read: what they say.
        fill: has them say something else, before they are drawn.
        reset: has them say what the settings say.

    Raises:
        LLMError: `read`, where what they say can't be used.
    """

    read: Callable[[], Asked]
    fill: Callable[[Asked], None]
    reset: Callable[[], None]


@dataclass(frozen=True, slots=True)
class _Known:
    """The list as it was read last."""

    owner: str
    presets: tuple[Preset, ...] = ()
    until_s: float = 0.0
    trouble: StoreError | None = None


# -- for whoever fills the controls --


def picked() -> Preset | None:
    """The preset that was picked, though the controls may say something else by now."""
    wanted = st.session_state.get(_PICKED, _NONE)
    return next((each for each in _known().presets if each.preset_id == wanted), None)


def begin(controls: Controls) -> None:
    """Fill the controls for a new conversation: from the default preset, else from the settings."""
    usual = next((each for each in _known().presets if each.usual), None)
    _take(usual, controls)


def recognise(asked: Asked) -> None:
    """The controls were filled with what a conversation was asked with: pick the preset it was."""
    _pick(next((each for each in _known().presets if _asks(each) == asked), None))


# -- drawing --


def draw_presets(controls: Controls) -> None:
    """Draw the list and what can be done with it. Of few elements, each in its place."""
    known, present = _known(), picked()
    changed = present is not None and _changed(present, controls)
    names = {each.preset_id: each.name for each in known.presets}
    # Set anew each time: the browser knows the presets by their names, which change.
    st.session_state[_PICK] = present.preset_id if present else _NONE
    with st.container(key="presets", horizontal=True, vertical_alignment="bottom", gap="small"):
        st.selectbox(
            # Above the name and not behind it, where it would be cut off.
            say("preset-changed" if changed else "preset"),
            [_NONE, *names],
            key=_PICK,
            format_func=lambda preset_id: names.get(preset_id) or say("preset-none"),
            on_change=callback(_picked_another),
            args=(controls,),
        )
        with st.popover(say("preset-manage")):
            _draw_actions(present, changed, controls)
    undo_place, trouble_place = st.empty(), st.empty()
    if _DELETED in st.session_state:
        undo_place.button(
            say("preset-undo"),
            key="preset_undo",
            icon=":material/undo:",
            on_click=callback(_undo),
            width="stretch",
        )
    trouble = st.session_state.get(_TROUBLE) or known.trouble
    if trouble is not None:
        trouble_place.caption(plain(say_error(trouble)))


def _draw_actions(present: Preset | None, changed: bool, controls: Controls) -> None:
    st.text_input(say("preset-name"), key=_NAME, max_chars=MAX_NAME_CHARS)
    with st.container(key="preset_actions", gap=None):
        _draw_buttons(present, changed, controls)


def _draw_buttons(present: Preset | None, changed: bool, controls: Controls) -> None:
    _button("new", ":material/add:", _save_new, controls)
    places = [st.empty() for _ in range(5)]
    if present is None:
        return
    if changed:
        _button("update", ":material/save:", _update, controls, place=places[0])
        _button("revert", ":material/undo:", _revert, controls, place=places[1])
    _button("rename", ":material/edit:", _rename, place=places[2])
    _button("unusual" if present.usual else "usual", ":material/star:", _flip, place=places[3])
    _button("delete", ":material/delete:", _delete, place=places[4])


def _button(
    what: str,
    icon: str,
    action: Callable[..., None],
    *args: Controls,
    place: DeltaGenerator | None = None,
) -> None:
    (place or st).button(
        say(f"preset-{what}"),
        key=f"preset_{what}",
        icon=icon,
        on_click=callback(action),
        args=args,
        type="tertiary",
    )


# -- what the clicks do: before the script runs, so that it draws what has become of them --


def _picked_another(controls: Controls) -> None:
    wanted = st.session_state[_PICK]
    _forget_last()
    _take(next((each for each in _known().presets if each.preset_id == wanted), None), controls)


def _save_new(controls: Controls) -> None:
    def save() -> None:
        asked = controls.read()
        name = st.session_state.get(_NAME) or ""
        _pick(resources.presets().save(owner(), Preset(name, asked.system_prompt, asked.params)))

    _do(save)


def _update(controls: Controls) -> None:
    def save() -> None:
        if (present := picked()) is not None:
            asked = controls.read()
            changed = replace(present, system_prompt=asked.system_prompt, params=asked.params)
            resources.presets().save(owner(), changed)

    _do(save)


def _revert(controls: Controls) -> None:
    _forget_last()
    _take(picked(), controls)


def _rename() -> None:
    def save() -> None:
        if (present := picked()) is not None:
            name = st.session_state.get(_NAME) or ""
            _pick(resources.presets().save(owner(), replace(present, name=name)))

    _do(save)


def _flip() -> None:
    """Make the picked one the default, or have none."""

    def make() -> None:
        if (present := picked()) is not None:
            wanted = None if present.usual else present.preset_id
            resources.presets().make_usual(owner(), wanted)

    _do(make)


def _delete() -> None:
    def delete() -> None:
        if (present := picked()) is not None:
            resources.presets().delete(owner(), present.preset_id)
            st.session_state[_DELETED] = present
            _pick(None)

    _do(delete)


def _undo() -> None:
    deleted: Preset = st.session_state[_DELETED]
    _do(lambda: _pick(resources.presets().save(owner(), deleted)))


def _do(change: Callable[[], None]) -> None:
    """Change something, and say why where that isn't possible."""
    _forget_last()
    try:
        change()
    except LLMError as error:
        st.session_state[_TROUBLE] = error
    st.session_state.pop(_KNOWN, None)


def _forget_last() -> None:
    """Whatever is done next, what was said of the last thing has been read."""
    st.session_state.pop(_TROUBLE, None)
    st.session_state.pop(_DELETED, None)


# -- within --


def _take(preset: Preset | None, controls: Controls) -> None:
    _pick(preset)
    if preset is None:
        controls.reset()
    else:
        controls.fill(_asks(preset))


def _pick(preset: Preset | None) -> None:
    st.session_state[_PICKED] = preset.preset_id if preset else _NONE
    st.session_state[_NAME] = preset.name if preset else ""


def _changed(preset: Preset, controls: Controls) -> bool:
    try:
        return controls.read() != _asks(preset)
    except LLMError:  # what they say can't even be asked with
        return True


def _asks(preset: Preset) -> Asked:
    """What it has the controls say: no more tokens than answers may have here."""
    most = resources.settings().max_answer_tokens
    return Asked(preset.system_prompt, preset.params.at_most(most))


def _known() -> _Known:
    state = st.session_state
    known = state.get(_KNOWN)
    if not isinstance(known, _Known) or known.owner != owner():
        known = _Known(owner())
    if time.monotonic() >= known.until_s:
        known = _looked(known)
        state[_KNOWN] = known
    return known


def _looked(known: _Known) -> _Known:
    now_s = time.monotonic()
    try:
        found = tuple(resources.presets().listed(known.owner))
    except StoreError as error:
        return replace(known, until_s=now_s + LOOK_AGAIN_S, trouble=error)
    return _Known(known.owner, found, now_s + LOOK_S)
