"""The block grammar that the splitter, the rewriting and the open tail agree on.

CommonMark's blocks by markdown-it-py, GFM tables, and display formulas. Only blocks are parsed, no
inline content: that is what makes it cheap enough for every frame.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.ruler import RuleOptionsType
from markdown_it.rules_block import (
    StateBlock,
    fence,
    heading,
    lheading,
    paragraph,
    reference,
    table,
)
from markdown_it.token import Token

Rule = Callable[[StateBlock, int, int, bool], bool]

MAX_FORMULA_CHARS = 4_000
"""A display formula that has not ended after this many characters is text."""

_PROSE = re.compile(r"(?:\b[A-Za-z]{2,}[ ,.]+){3}[A-Za-z]{2}|[\u3040-\u30ff\u4e00-\u9fff]{6}")
_NOTED = ("inline", "tr_open", "fence")
_DISPLAY_OPENING = re.compile(r"\$\$+|\\\[")


def parse_blocks(source: str, *, final: bool = True) -> tuple[list[Token], dict[str, Any]]:
    """Parse `source` into markdown-it's block tokens.

    Tokens of inline content and table rows carry `meta["spans"]`, one `(start, end)` in characters
    of `source` for each of their lines, without the marks of the containers around them. Display
    formulas are `math_block` tokens, link definitions `definition` tokens.

    Args:
        source: Markdown with "\\n" as its only line break.
        final: False where more text may follow: a display formula that is open at the very end is
            then a `math_block` too, with `meta["open"]` set.

    Returns:
        The tokens and markdown-it's environment, whose "references" holds the link definitions.
    """
    tokens: list[Token] = []
    env: dict[str, Any] = {"final": final}
    _PARSER.block.parse(source, _PARSER, env, tokens)
    return tokens, env


def _with_spans(rule: Rule) -> Rule:
    """Let `rule` note where its inline content stands in the source."""

    def noting(state: StateBlock, start_line: int, end_line: int, silent: bool) -> bool:
        first = len(state.tokens)
        matched = rule(state, start_line, end_line, silent)
        if matched and not silent:
            for token in state.tokens[first:]:
                if token.type in _NOTED and token.map:
                    token.meta["spans"] = [_line_span(state, n) for n in range(*token.map)]
        return matched

    return noting


def _no_footnote(rule: Rule) -> Rule:
    """Let `rule` leave `[^name]:` alone: neither a link definition nor, here, a footnote."""

    def without(state: StateBlock, start_line: int, end_line: int, silent: bool) -> bool:
        start, end = _line_span(state, start_line)
        is_footnote = state.src.startswith("[^", start, end)
        return not is_footnote and rule(state, start_line, end_line, silent)

    return without


def _line_span(state: StateBlock, line: int) -> tuple[int, int]:
    end = state.eMarks[line]
    return min(state.bMarks[line] + state.tShift[line], end), end


def _display_formula(state: StateBlock, start_line: int, end_line: int, silent: bool) -> bool:
    r"""Match `$$ … $$` and `\[ … \]` that stand on lines of their own.

    Wider than remark-math, which drops what follows the opening `$$` on its line and swallows the
    rest of the document where the closing `$$` does not stand alone; `plain` rewrites what is found
    here into the form that remark-math reads.

    Source: micromark-extension-math, `math-flow`.
    """
    if state.is_code_block(start_line):
        return False
    start, end = _line_span(state, start_line)
    opening = _DISPLAY_OPENING.match(state.src, start, end)
    if opening is None:
        return False
    closing = "\\]" if opening[0] == "\\[" else opening[0]
    first = state.src[opening.end() : end].strip()
    lines = [first] if first else []
    line = start_line + 1
    still_open = False
    if closing in first:
        body = first.removesuffix(closing)
        if body == first or closing in body or not body.strip():
            return False
        lines = [body.strip()]
    elif _is_prose(first) or ("$" in first and closing != "\\]"):
        return False
    else:
        close_line = _closing_line(state, line, end_line, opening[0], closing, lines)
        if close_line is None:
            return False
        still_open = close_line == state.lineMax
        if still_open and (state.env["final"] or state.lineMax != len(state.bMarks) - 1):
            return False
        if not still_open and not any(text.strip() for text in lines):
            return False
        line = min(close_line + 1, state.lineMax)
    if silent:
        return True
    state.line = line
    token = state.push("math_block", "math", 0)
    token.map = [start_line, line]
    token.meta = {"open": still_open, "lines": lines, "span": (start, state.eMarks[line - 1])}
    return True


def _closing_line(
    state: StateBlock, line: int, end_line: int, opening: str, closing: str, lines: list[str]
) -> int | None:
    """Find the line on which the formula ends, collecting its content in `lines`.

    Returns:
        That line, `state.lineMax` where the text ends first, None where this is no formula.
    """
    size = sum(map(len, lines))
    for number in range(line, min(end_line, state.lineMax)):
        if not state.isEmpty(number) and state.sCount[number] < state.blkIndent:
            return None
        text = state.getLines(number, number + 1, state.blkIndent, False)
        stripped = text.strip()
        size += len(text) + 1
        if size > MAX_FORMULA_CHARS or stripped.startswith(("```", "~~~", "\\[")):
            return None
        if closing in stripped:
            body = stripped.removesuffix(closing)
            if body == stripped or closing in body or body.endswith("\\") or "$$" in body:
                return None
            if body.strip():
                lines.append(body)
            return number
        if _is_prose(stripped) or ("$$" in stripped and opening != "\\["):
            return None
        lines.append(text)
    return state.lineMax


def _is_prose(line: str) -> bool:
    """Whether a line reads as language, so that a stray `$$` does not swallow an answer."""
    return "\\" not in line and _PROSE.search(line) is not None


def _parser() -> MarkdownIt:
    parser = MarkdownIt("commonmark", {"maxNesting": 100, "inline_definitions": True})
    parser.enable("table")
    # As micromark: such a definition counts, and the front end defuses its address.
    parser.validateLink = lambda url: True  # type: ignore[method-assign]
    ruler = parser.block.ruler
    interrupting: RuleOptionsType = {"alt": ["paragraph", "reference", "blockquote", "list"]}
    ruler.before("fence", "display_formula", _display_formula, interrupting)
    ruler.at("fence", _with_spans(fence), interrupting)
    ruler.at("table", _with_spans(table), {"alt": ["paragraph", "reference"]})
    ruler.at("heading", _with_spans(heading), {"alt": ["paragraph", "reference", "blockquote"]})
    ruler.at("lheading", _with_spans(lheading))
    ruler.at("paragraph", _with_spans(paragraph))
    ruler.at("reference", _no_footnote(reference))
    return parser


_PARSER = _parser()
