"""What a person typed, as Markdown that shows just that."""

from __future__ import annotations

import re

_JOINER = "\u2060"
_PUNCTUATION = re.compile(r"[!-/:-@\[-`{-~]")
_CHANGED_LATER = ":-<>=~"
"""Streamlit changes names between colons and arrows in finished text, where no escape is left."""


def literal(text: str) -> str:
    """One line of Markdown for a label, in which nothing of `text` is markup.

    An invisible word joiner (U+2060) stands after what Streamlit would change in spite of a
    backslash before it.
    """
    return _PUNCTUATION.sub(_escaped, " ".join(text.split()))


def _escaped(match: re.Match[str]) -> str:
    char = match[0]
    return f"\\{char}{_JOINER if char in _CHANGED_LATER else ''}"
