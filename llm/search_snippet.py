"""The part of a text that shows why it was found."""

from __future__ import annotations

_BEFORE = 20
"""Characters before what was found: enough to read into it, few enough to see it on a phone."""


def snippet_of(text: str, query: str, chars: int) -> str:
    """One line of the text around the first thing in it that was looked for.

    Args:
        query: as it was typed.
        chars: about how long it may be.
    """
    line = " ".join(text.split())
    lower = line.lower()
    wanted = [query.strip(), *query.replace('"', " ").split()]
    places = (lower.find(word.lower()) for word in wanted if word)
    at = next((place for place in places if place >= 0), 0)
    start = max(0, at - _BEFORE)
    part = line[start : start + chars].strip()
    return f"{'…' if start else ''}{part}{'…' if start + chars < len(line) else ''}"
