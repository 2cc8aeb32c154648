"""Which language this person reads, and the catalogue in it."""

from __future__ import annotations

from datetime import date

import streamlit as st

from llm.catalogue import LANGUAGES, Catalogue, catalogue, choose_language
from llm.errors import LLMError, Reason
from llm.literal_markdown import literal

KEY = "language"
PARAM = "lang"


def words() -> Catalogue:
    """The catalogue of the present session's language."""
    return catalogue(st.session_state.get(KEY) or first_language("auto"))


def first_language(setting: str) -> str:
    """The language at first: the address's, which keeps a choice, the setting's, the browser's."""
    for wanted in (st.query_params.get(PARAM), setting):
        if wanted in LANGUAGES:
            return str(wanted)
    return choose_language(st.context.locale)


def keep_in_address(setting: str) -> None:
    """Write a language that differs from what a new visit would get into the address."""
    chosen = st.session_state[KEY]
    usual = setting if setting in LANGUAGES else choose_language(st.context.locale)
    if chosen != st.query_params.get(PARAM, usual):
        st.query_params[PARAM] = chosen


def say(message_id: str, **values: str | int | float | date) -> str:
    """A sentence in the person's language."""
    return words().say(message_id, **values)


class _NamesAsTheyAre(Catalogue):
    """Sentences as Markdown, in which nothing of a name that somebody gave is markup."""

    def __init__(self, plain: Catalogue) -> None:
        super().__init__(plain.language, plain._bundle)

    def say(self, message_id: str, **values: str | int | float | date) -> str:
        told = {
            name: literal(value) if name in _NAMES and isinstance(value, str) else value
            for name, value in values.items()
        }
        return super().say(message_id, **told)


_NAMES = ("model", "name", "back")
"""What the sentences call a name."""


def say_error(error: LLMError) -> str:
    """An error's sentence in the person's language, for `plain`."""
    return say_reason(error.reason)


def say_reason(reason: Reason, **more: int) -> str:
    """A reason's sentence in the person's language, for `plain`."""
    return reason.sentence(_NamesAsTheyAre(words()), **more)
