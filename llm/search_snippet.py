"""The part of a text that shows why it was found."""

from __future__ import annotations

from bisect import bisect_right

from llm.search_words import SearchQuery, readable

_BEFORE = 20
"""Characters before what was found: enough to read into it, few enough to see it on a phone."""
_PIECE = 256
"""Characters read at once, so that a long text needn't be read again and again."""


def snippet_of(text: str, query: str, chars: int) -> str:
    """One line of the text around the first thing in it that was looked for.

    Args:
        query: as it was typed.
        chars: about how long it may be.
    """
    line = " ".join(text.split())
    start = max(0, _place(line, SearchQuery.read(query)) - _BEFORE)
    part = line[start : start + chars].strip()
    return f"{'…' if start else ''}{part}{'…' if start + chars < len(line) else ''}"


def _place(line: str, query: SearchQuery) -> int:
    """Where the first phrase that is there begins; 0 where none is."""
    read = readable(line)
    found = (phrase.pattern.search(read) for phrase in query.phrases)
    at = next((match.start() for match in found if match), 0)
    if len(read) == len(line):
        return at
    # Reading made it longer or shorter: the place is that up to which as much was read.
    start = 0
    while (chars := len(readable(line[start : start + _PIECE]))) <= at and start < len(line):
        at -= chars
        start += _PIECE
    piece = line[start : start + _PIECE]
    return (
        start + bisect_right(range(len(piece)), at, key=lambda end: len(readable(piece[:end]))) - 1
    )
