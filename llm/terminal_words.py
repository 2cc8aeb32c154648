"""The language of whoever sits at the terminal, and what is said differently there."""

from __future__ import annotations

import os
from dataclasses import replace

from llm.catalogue import LANGUAGES, Catalogue, choose_language
from llm.errors import Reason
from llm.terminal_text import clean

_SAID_HERE = {
    name: f"terminal-{name}"
    for name in (
        "error-empty-question",
        "error-internal",
        "error-model-not-found",
        "error-server-model-unknown",
        "error-server-parameter",
        "notice-away",
    )
}
"""Sentences that speak of the page, and those that stand for them."""


def language(*wanted: str | None) -> str:
    """The first of these that is a language, else that of the environment's locale."""
    for each in wanted:
        if each in LANGUAGES:
            return str(each)
    told = (os.environ.get(name) for name in ("LC_ALL", "LC_MESSAGES", "LANG"))
    return choose_language(next((locale for locale in told if locale), None))


def told(reason: Reason, words: Catalogue) -> str:
    """A sentence for the terminal. It may quote a server, which can hold anything."""
    message_id = _SAID_HERE.get(reason.message_id, reason.message_id)
    return clean(replace(reason, message_id=message_id).sentence(words))
