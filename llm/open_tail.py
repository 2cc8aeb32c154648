"""What to show of a block that is still being written.

Markdown in the middle of being written says something else than when it is finished: `**bo` shows
its asterisks, a `-` under a paragraph makes it a heading for one frame, half a formula is an error
in red. Here what has begun is closed, and what cannot be told yet is held back. What is held back
is never more than about a line, but for formulas and the head of a table.
"""

from __future__ import annotations

import re

from markdown_it.token import Token

from llm.markdown_grammar import parse_blocks
from llm.open_inline import close_inline, without_half_emoji

MAX_PARSED_CHARS = 8_000
"""Of a longer tail only the end is looked at, from a line's beginning on."""

MAX_HELD_HEADER_CHARS = 200

_BEGINNING_OF_MARKUP = re.compile(
    r"[ \t>]*(?:(?:[-+*]|\d{1,9}[.)])[ \t]+)*"
    r"(?:[-+*=#>|:~`$_!<&\\ \t]*|\d{1,9}[.)]?|[-+*][ \t]+\[[ xX]?\]?|\[[ xX]?\]?|\\[(\[]?)[ \t]*"
)
_DEFINITION_BEGINNING = re.compile(r"[ \t>]*\[[^\]\n]{1,200}\]:[^\n]*")
_DELIMITER_ROW_BEGINNING = re.compile(r"[ \t>]*[|:\-][ \t|:\-]*")
_INNER_BORDER = re.compile(r"[ \t]+\|(?=[ \t]|$)")
_LEAVES = ("inline", "fence", "math_block", "html_block", "code_block", "hr", "definition")


def presentable(tail: str) -> str:
    """The Markdown to draw for `tail`, whose last character may be the middle of anything.

    Args:
        tail: source of the open block, as `BlockSplitter` gives it.

    Returns:
        Markdown that is as good as finished; give it to `plain` as you would a settled block. It
        can be empty.
    """
    tail = without_half_emoji(tail.replace("\r\n", "\n").replace("\r", "\n"))
    start = _parsed_from(tail)
    head, text = tail[:start], tail[start:]
    return head + _shown(text)


def _parsed_from(tail: str) -> int:
    if len(tail) <= MAX_PARSED_CHARS or tail.lstrip().startswith(("```", "~~~")):
        return 0
    return tail.find("\n", len(tail) - MAX_PARSED_CHARS) + 1


def _shown(text: str, *, may_be_header: bool = True) -> str:
    tokens, _ = parse_blocks(text, final=False)
    leaf = next((t for t in reversed(tokens) if t.type in _LEAVES and t.map), None)
    if leaf is None or leaf.map is None:
        return _without_undecided_line(text)
    lines = text.split("\n")
    first, last = leaf.map
    reaches_end = last >= len(lines) or (last == len(lines) - 1 and not lines[-1].strip())
    if leaf.type == "math_block" and leaf.meta["open"]:
        return text[: _line_start(text, first)]
    if leaf.type == "fence" and reaches_end:
        return _fence(text, leaf, lines)
    if leaf.type in ("html_block", "code_block", "math_block") and reaches_end:
        return text
    if leaf.type == "definition" and reaches_end and not text.endswith("\n"):
        return text[: _line_start(text, first)]
    shown = _without_undecided_line(text)
    if shown != text:
        return _shown(shown) if shown.strip() else ""
    if leaf.type != "inline" or not reaches_end:
        return text
    in_table = tokens[-1].type == "table_close"
    if may_be_header and tokens[tokens.index(leaf) - 1].type == "paragraph_open":
        held = _held_table(text, lines, first)
        if held < len(text):
            return _shown(text[:held], may_be_header=False) if text[:held].strip() else ""
    if in_table:
        return _last_cell(text, lines)
    return _paragraph(text, leaf)


def _line_start(text: str, line: int) -> int:
    position = 0
    for _ in range(line):
        position = text.find("\n", position) + 1
    return position


def _without_undecided_line(text: str) -> str:
    """Hold back a last line that may be text, a list, a heading, an underline, a table, a formula."""
    start = text.rfind("\n") + 1
    line = text[start:]
    if not line.strip() or _BEGINNING_OF_MARKUP.fullmatch(line):
        return text[:start] if line.strip() else text
    return text[:start] if _DEFINITION_BEGINNING.fullmatch(line) else text


def _fence(text: str, fence: Token, lines: list[str]) -> str:
    opening = fence.map[0] if fence.map else 0
    start = text.rfind("\n") + 1
    if opening == len(lines) - 1:
        return text[:start]
    marker = re.escape(fence.markup[0])
    last = lines[-1].lstrip(" \t>")
    if re.fullmatch(rf"{marker}+", last) and len(last) < len(fence.markup):
        return text[:start]
    return text


def _held_table(text: str, lines: list[str], first: int) -> int:
    """Where the lines begin that may turn out to be the head of a table; the length if none do."""
    last = len(lines) - 1 if lines[-1].strip() else len(lines) - 2
    row = last
    if row > first and _DELIMITER_ROW_BEGINNING.fullmatch(lines[row]):
        row -= 1
        if "|" not in lines[row] and "|" not in lines[last]:
            return len(text)
    line = lines[row].lstrip(" \t>")
    if line.startswith("|"):
        return _row_start(text, row)
    border = _INNER_BORDER.search(lines[row])
    if border is None or len(line) > MAX_HELD_HEADER_CHARS or (row == last and "`" in line):
        return len(text)
    return _line_start(text, row) + border.start()


def _row_start(text: str, row: int) -> int:
    start = _line_start(text, row)
    mark = re.compile(r"[ \t>]*(?:(?:[-+*]|\d{1,9}[.)])[ \t]+)*").match(text, start)
    return mark.end() if mark and mark[0].strip() else start


def _last_cell(text: str, lines: list[str]) -> str:
    if text.endswith("\n"):
        return text
    start = text.rfind("\n") + 1
    border = max((m.end() for m in re.finditer(r"(?<!\\)\|", lines[-1])), default=0)
    cell = lines[-1][border:]
    return text[: start + border] + close_inline(cell)


def _paragraph(text: str, leaf: Token) -> str:
    """Close what is open in the last paragraph or heading, whose lines may stand in containers."""
    spans: list[tuple[int, int]] = leaf.meta["spans"]
    content = "\n".join(text[start:end] for start, end in spans)
    if text[spans[-1][1] :].strip():
        return text
    shown = close_inline(content)
    if shown == content:
        return text
    pieces = shown.split("\n")
    result = [text[: spans[0][0]]]
    for number, piece in enumerate(pieces):
        if number:
            result.append(text[spans[number - 1][1] : spans[number][0]])
        result.append(piece)
    return "".join(result)
