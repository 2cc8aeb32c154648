"""What can be done with a turn: walk its variants, copy, ask again, go on, delete.

Plain widgets with callbacks: they work in the middle of another answer. One menu a turn, since
every element is sent again by every run.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import streamlit as st

from llm.conversation_tree import ConversationKey, Turn
from ui import resources
from ui.answer_details import show_details
from ui.asking import ask_again, go_on
from ui.callback import callback
from ui.language import say
from ui.note import Deleted, copy, put_note
from ui.question_edit import edit_question


def may_go_on(turn: Turn) -> bool:
    """Whether an answer was cut off and has something to go on from."""
    cut = turn.receipt is not None and turn.receipt.finish.reason != "stop"
    return turn.state == "ended" and cut and bool(turn.text.strip())


def other_variants(turn: Turn, variants: Sequence[str]) -> bool:
    """Whether others stand in this turn's place, and can be gone to from here."""
    return len(variants) > 1 and turn.turn_id in variants


def draw_variants(here: ConversationKey, turn: Turn, variants: Sequence[str]) -> None:
    """‹ 2/3 ›, into a row."""
    at, count = variants.index(turn.turn_id), len(variants)
    # At an end the button has nowhere to go; its name still says where it leads from.
    before, after = max(at - 1, 0), min(at + 1, count - 1)
    st.button(
        say("variant-previous", at=before + 1, count=count),
        key=f"quiet-previous-{turn.turn_id}",
        icon=":material/chevron_left:",
        type="tertiary",
        disabled=before == at,
        on_click=callback(_show),
        args=(here, variants[before]),
    )
    st.caption(f"{at + 1}/{count}", width="content")
    st.button(
        say("variant-next", at=after + 1, count=count),
        key=f"quiet-next-{turn.turn_id}",
        icon=":material/chevron_right:",
        type="tertiary",
        disabled=after == at,
        on_click=callback(_show),
        args=(here, variants[after]),
    )


def draw_menu(here: ConversationKey, turn: Turn) -> None:
    """The menu of a turn that is over."""
    st.menu_button(
        say("turn-menu"),
        [name for name in _ACTIONS if _offered(name, turn)],
        key=_menu(turn.turn_id),
        icon=":material/more_horiz:",
        type="tertiary",
        format_func=_label,
        on_click=callback(_chosen),
        args=(here, turn),
    )


def _show(here: ConversationKey, turn_id: str) -> None:
    put_note(here, None)
    resources.chat().show(here, turn_id)


def _delete(here: ConversationKey, turn: Turn) -> None:
    put_note(here, Deleted(resources.chat().delete_turn(here, turn.turn_id)))


_ACTIONS: dict[str, tuple[str, Callable[[ConversationKey, Turn], object]]] = {
    "copy": (":material/content_copy:", lambda here, turn: copy(here, turn.text)),
    "copy-question": (":material/content_copy:", lambda here, turn: copy(here, turn.question)),
    "regenerate": (":material/refresh:", lambda here, turn: ask_again(here, turn.turn_id)),
    "edit": (":material/edit:", lambda _, turn: edit_question(turn.turn_id)),
    "continue": (":material/play_arrow:", lambda here, turn: go_on(here, turn.turn_id)),
    "details": (":material/timer:", lambda _, turn: show_details(turn.turn_id)),
    "delete": (":material/delete:", _delete),
}
"""By its name its icon and what it does."""


def _offered(name: str, turn: Turn) -> bool:
    if name == "copy":
        return bool(turn.text.strip())
    if name == "continue":
        return may_go_on(turn)
    if name == "details":
        return turn.receipt is not None
    # A model that spoke first, in an imported conversation, was asked nothing.
    return name in ("delete", "edit") or bool(turn.question.strip())


def _label(name: str) -> str:
    return f"{_ACTIONS[name][0]} {say(f'turn-{name}')}"


def _menu(turn_id: str) -> str:
    return f"quiet-menu-{turn_id}"


def _chosen(here: ConversationKey, turn: Turn) -> None:
    name = st.session_state[_menu(turn.turn_id)]
    if name in _ACTIONS:
        put_note(here, None)
        _ACTIONS[name][1](here, turn)
