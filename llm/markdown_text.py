"""The words of a piece of Markdown, without its marks: for a line that shows how an answer begins."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.token import Token

from llm.markdown_grammar import parse_blocks
from llm.open_tail import presentable

_INLINE = MarkdownIt("commonmark").enable("strikethrough")


def words_of(source: str, *, cut: bool = False) -> str:
    """One line of plain text.

    Formulas and raw HTML stay as they were written: the page shows HTML as text, too.

    Args:
        cut: more follows, so that the end may be the middle of anything.

    Thread-safety: any thread.
    """
    source = source.replace("\r\n", "\n").replace("\r", "\n")
    tokens, env = parse_blocks(presentable(source) if cut else source)
    return " ".join(" ".join(_texts(tokens, env)).split())


def _texts(tokens: list[Token], env: dict[str, Any]) -> Iterator[str]:
    for token in tokens:
        if token.type == "inline":
            (parsed,) = _INLINE.parseInline(token.content, env)
            yield "".join(map(_said, parsed.children or ()))
        elif token.type == "math_block":
            yield from token.meta["lines"]
        elif token.content and token.type != "definition":
            yield token.content  # code, raw HTML


def _said(token: Token) -> str:
    return " " if token.type in ("softbreak", "hardbreak") else token.content
