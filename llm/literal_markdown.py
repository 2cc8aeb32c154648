"""What a person typed, or a name that somebody gave, as Markdown that shows just that."""

from __future__ import annotations

import re

from llm.seen_text import seen

_JOINER = "\u2060"
# Between letters these are no markup, and a name that is copied is to be just the name.
_PUNCTUATION = re.compile(
    r"(?P<within>(?<=\w)[-./_](?=\w)|(?<=\w):(?=\d+(?![\w:+-])))"  # the latter before a port
    r"|[!-/:-@\[-`{-~]|\b[wW]{3}(?=\.)"
)
_BRACKETS = "()[]"
"""As entities: with a backslash they would be a formula's to `llm.plain_markdown`."""
_CHANGED_LATER = ":-<>=~@w"
"""Streamlit changes names between colons and arrows, and makes addresses links, in finished text,
where no escape is left."""


def literal(text: str) -> str:
    """One line of Markdown for a label, or within a sentence, in which nothing of `text` is markup.

    What can't be seen, or would turn the text around it, is left out. An invisible word joiner
    (U+2060) stands after what Streamlit would change in spite of a backslash before it. The result
    stays as it is in `llm.plain_markdown.plain`.
    """
    return _PUNCTUATION.sub(_escaped, " ".join(seen(text).split()))


def _escaped(match: re.Match[str]) -> str:
    found = match[0]
    if match["within"]:
        return found
    joiner = _JOINER if found[0].lower() in _CHANGED_LATER else ""
    if found.isalpha():
        return found + joiner
    return (f"&#{ord(found)};" if found in _BRACKETS else f"\\{found}") + joiner
