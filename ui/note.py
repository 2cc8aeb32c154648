"""What is said above the input until the next action: a refusal, an undo, a text to copy.

One at a time, and always in the same place, where it is seen wherever the reader is.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Literal

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from llm.conversation_tree import ConversationKey
from llm.errors import LLMError
from llm.plain_markdown import plain
from ui import resources
from ui.callback import callback
from ui.clipboard import new_mark, put_on_clipboard
from ui.language import say, say_error

_KEY = "note"
BY_HAND_PX = 200
"""How high a text to copy by hand is at most, about; a longer one scrolls."""
BY_HAND_CHARS = 300
"""A text up to this is as high as it is."""


@dataclass(frozen=True)
class Refused:
    """Why something wasn't done."""

    error: LLMError


@dataclass(frozen=True)
class Deleted:
    """A turn that can be brought back."""

    deleted_s: float


@dataclass(frozen=True)
class Copied:
    """A text for the clipboard.

    Args:
        text: "" once it is there.
        mark: another for every copy, so that the same text can be copied twice.
        by_hand: whether the browser has refused.
    """

    text: str
    mark: str
    by_hand: bool = False


Note = Refused | Deleted | Copied


def put_note(here: ConversationKey, note: Note | None) -> None:
    """Have this said in this conversation from now on; None says nothing more."""
    st.session_state[_KEY] = (here, note)


def copy(here: ConversationKey, text: str) -> None:
    """Have the browser copy this."""
    put_note(here, Copied(text, new_mark()))


def draw_note(place: DeltaGenerator, here: ConversationKey, *, undo_stands: bool) -> None:
    """Say it in this placeholder.

    Args:
        place: an empty placeholder.
        undo_stands: whether the page offers an undo already, of all that is gone.
    """
    match _note(here):
        case Refused(error):
            place.warning(plain(say_error(error)))
        case Deleted(deleted_s) if not undo_stands:
            with place.container(horizontal=True, vertical_alignment="center"):
                st.caption(say("turn-deleted"), width="content")
                draw_undo(here, deleted_s)
        case Copied(text, _, by_hand=True):
            with place.container():
                st.caption(say("copy-by-hand"))
                long = len(text) > BY_HAND_CHARS
                height: int | Literal["content"] = BY_HAND_PX if long else "content"
                st.code(text, language=None, wrap_lines=True, height=height)
                st.button(
                    say("copy-close"),
                    key="copy_close",
                    on_click=callback(put_note),
                    args=(here, None),
                )
        case Copied(text, mark):
            with place.container(key="clipboard"):
                put_on_clipboard(
                    text,
                    mark,
                    say("copy-done"),
                    copied=partial(_copied, here),
                    refused=partial(_refused, here),
                )


def draw_undo(here: ConversationKey, deleted_s: float) -> None:
    """The button that brings back what was deleted at that moment."""
    st.button(
        say("undo"),
        key="undo",
        icon=":material/undo:",
        type="tertiary",
        on_click=callback(_bring_back),
        args=(here, deleted_s),
    )


def _note(here: ConversationKey) -> Note | None:
    where, note = st.session_state.get(_KEY, (None, None))
    return note if where == here else None


def _bring_back(here: ConversationKey, deleted_s: float) -> None:
    put_note(here, None)
    resources.chat().bring_back(here, deleted_s)


def _copied(here: ConversationKey) -> None:
    """The text has gone where it was to go; what is said of it stays until it fades."""
    note = _note(here)
    if isinstance(note, Copied):
        put_note(here, replace(note, text=""))


def _refused(here: ConversationKey) -> None:
    note = _note(here)
    if isinstance(note, Copied):
        put_note(here, replace(note, by_hand=True))
