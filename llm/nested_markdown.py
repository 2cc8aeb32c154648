"""A Markdown text made fit to stand within a larger document, under its headings."""

from __future__ import annotations

import re

from markdown_it.token import Token

from llm.markdown_grammar import parse_blocks
from llm.served_values import keepable

LOWEST_OWN = 2
"""The levels of headings that the document keeps for itself."""

_WHAT_FOLLOWS = "# Own\n\n$$\n\n\\]\n"
"""A heading, and what would end a formula that is still open."""
_HTML_ENDS = (
    "-->",
    "?>",
    "]]>",
    ">",
    "</script>",
    "</pre>",
    "</style>",
    "</textarea>",
    "$$",
    "\\]",
)


def nested(source: str) -> str:
    """The text with its headings below the document's own, and with nothing left open.

    Code is left as it is. What a text leaves open at its end (a fence, a comment, a formula) is
    closed, or else all that follows in the document would be part of it.
    """
    text = keepable(source.replace("\r\n", "\n").replace("\r", "\n"))
    text = text.strip("\n").rstrip()
    if not text:
        return ""
    tokens, _ = parse_blocks(text)
    shift = (
        LOWEST_OWN
        + 1
        - min((int(token.tag[1]) for token in tokens if token.type == "heading_open"), default=6)
    )
    if shift > 0:
        text = _lowered(text, tokens, shift)
    return _closed(text)


def quoted(text: str) -> str:
    """The text as a quote. Tabs before a line's text become the spaces that they stand for, since
    they would be narrower after the quote's mark."""
    return "\n".join(f"> {_spaced(line)}".rstrip() for line in text.split("\n"))


def _spaced(line: str) -> str:
    text = line.lstrip(" \t")
    return line[: len(line) - len(text)].expandtabs(4) + text


def _lowered(text: str, tokens: list[Token], shift: int) -> str:
    edits: list[tuple[int, int, str]] = []
    for number, token in enumerate(tokens):
        if token.type != "heading_open":
            continue
        spans = tokens[number + 1].meta.get("spans", [])
        level = int(token.tag[1])
        lower = "#" * min(6, level + shift)
        if not spans:
            continue
        start, end = spans[0][0], spans[-1][1]
        if token.markup.startswith("#"):
            edits.append((start, start + level, lower))
            continue
        # Underlined: one line with marks before it, and without the line below.
        content = " ".join(text[first:last].strip() for first, last in spans)
        below = text.find("\n", end) + 1
        line_end = text.find("\n", below) if below else -1
        edits.append((start, line_end if line_end >= 0 else len(text), f"{lower} {content}"))
    pieces: list[str] = []
    at = 0
    for start, end, new in edits:
        pieces += (text[at:start], new)
        at = end
    return "".join([*pieces, text[at:]])


def _closed(text: str) -> str:
    """The text with an end to what it leaves open."""
    if _ends(text):
        return text
    last = next((token for token in reversed(parse_blocks(text)[0]) if token.type == "fence"), None)
    ends = (last.markup, *_HTML_ENDS) if last else _HTML_ENDS
    for end in ends:
        if _ends(closed := f"{text}\n{end}"):
            return closed
    longest = max((len(run) for run in re.findall("`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}\n{text}\n{fence}"


def _ends(text: str) -> bool:
    """Whether a heading that follows would be one of the document's own."""
    tokens, _ = parse_blocks(f"{text}\n\n{_WHAT_FOLLOWS}")
    return any(
        token.tag == "h1" and token.level == 0 and tokens[number + 1].content == "Own"
        for number, token in enumerate(tokens)
        if token.type == "heading_open"
    )
