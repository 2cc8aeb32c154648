"""Which language this person reads, and the catalogue in it."""

from __future__ import annotations

from datetime import date

import streamlit as st

from llm.catalogue import LANGUAGES, Catalogue, catalogue, choose_language
from llm.errors import LLMError

KEY = "language"


def words() -> Catalogue:
    """The catalogue of the present session's language."""
    return catalogue(st.session_state.get(KEY) or first_language("auto"))


def first_language(setting: str) -> str:
    """The language before the person has chosen: the setting's, or the browser's."""
    return setting if setting in LANGUAGES else choose_language(st.context.locale)


def say(message_id: str, **values: str | int | float | date) -> str:
    """A sentence in the person's language."""
    return words().say(message_id, **values)


def say_error(error: LLMError) -> str:
    """An error's sentence in the person's language."""
    return error.sentence(words())
