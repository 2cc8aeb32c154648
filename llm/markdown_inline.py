"""Inline constructs that are read as one piece: escapes, code, formulas, addresses, tags.

The rewriting and the open tail both walk over a paragraph's text with this; neither may look for
markup inside of such a piece.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass
from typing import Literal

from markdown_it.common.html_re import HTML_TAG_RE
from markdown_it.helpers import parseLinkDestination, parseLinkTitle

Kind = Literal["escape", "code", "formula", "autolink", "html", "url", "entity"]

MAX_INLINE_FORMULA_CHARS = 1_000

_AUTOLINK = re.compile(
    r"<(?:[a-zA-Z][a-zA-Z0-9+.\-]{1,31}:[^<>\x00-\x20]*"
    r"|[a-zA-Z0-9.!#$%&'*+/=?^_`{|}~-]+@[a-zA-Z0-9][a-zA-Z0-9.-]*)>"
)
_URL = re.compile(r"(?:https?://|www\.)(?=[^\W_])([\w.\-]+)[^\s<\]]*", re.IGNORECASE)
_ENTITY = re.compile(r"&(?:#[xX][0-9a-fA-F]{1,6}|#\d{1,7}|[a-zA-Z][a-zA-Z0-9]{1,31});")
_RUN = {"`": re.compile("`+"), "$": re.compile(r"\$+")}
_UNESCAPED_DOLLARS = re.compile(r"\\[\s\S]|(\$+)")
_WORDY = re.compile(r"[A-Za-z]{2}|[\u3040-\u30ff\u4e00-\u9fff]")
_LONG_WORD = re.compile(r"[A-Za-z]{3}|[\u3040-\u30ff\u4e00-\u9fff]")
_TEX = re.compile(r"[\\^_{}=]")


@dataclass(frozen=True, slots=True)
class Construct:
    """A piece of text from `start` to `end`, whose content is `inner` (empty for most kinds)."""

    kind: Kind
    start: int
    end: int
    inner: str = ""


class Constructs:
    """Finds the constructs of one paragraph's text, each in constant or amortised linear time.

    Thread-safety: none; one for each text.
    """

    def __init__(self, text: str) -> None:
        self._text = text
        self._ticks: dict[int, list[int]] | None = None
        self._dollars: list[tuple[int, int]] | None = None
        self._no_end: set[str] = set()

    def at(self, start: int, *, in_brackets: bool = False) -> Construct | None:
        """The construct that begins at `start`, if one does.

        Args:
            start: characters from the beginning.
            in_brackets: whether a `[` before it is still open; bare addresses do not count there
                (Source: micromark-extension-gfm-autolink-literal, `previousUnbalanced`).
        """
        char = self._text[start]
        if char == "\\":
            return self._backslash(start)
        if char == "`":
            return self._code(start)
        if char == "$":
            return self._dollar(start)
        if char == "<":
            return self._angle(start)
        if char == "&":
            return self._match("entity", _ENTITY, start)
        if char in "hHwW" and not in_brackets:
            return self._url(start)
        return None

    def _match(self, kind: Kind, pattern: re.Pattern[str], start: int) -> Construct | None:
        match = pattern.match(self._text, start)
        return Construct(kind, start, match.end()) if match else None

    def _backslash(self, start: int) -> Construct | None:
        text = self._text
        mark = text[start + 1 : start + 2]
        closing = {"(": "\\)", "[": "\\]"}.get(mark)
        if closing and closing not in self._no_end:
            end = self._find_closing(closing, start + 2)
            inner = text[start + 2 : end] if end is not None else ""
            if end is not None and _is_bracketed_formula(inner):
                return Construct("formula", start, end + 2, inner)
        if mark and (mark == "\n" or (mark.isascii() and not mark.isalnum() and mark > " ")):
            return Construct("escape", start, start + 2)
        return None

    def _find_closing(self, closing: str, start: int) -> int | None:
        end = self._text.find(closing, start, start + MAX_INLINE_FORMULA_CHARS)
        while end >= 0 and _escaped(self._text, end, start):
            end = self._text.find(closing, end + 1, start + MAX_INLINE_FORMULA_CHARS)
        if end < 0:
            if self._text.find(closing, start) < 0:
                self._no_end.add(closing)
            return None
        opening = "\\" + {"\\)": "(", "\\]": "["}[closing]
        return None if self._text.find(opening, start, end) >= 0 else end

    def _code(self, start: int) -> Construct | None:
        if self._ticks is None:
            self._ticks = {}
            for run in _RUN["`"].finditer(self._text):
                self._ticks.setdefault(run.end() - run.start(), []).append(run.start())
        length = run_length(self._text, start)
        places = self._ticks.get(length, [])
        after = bisect_right(places, start)
        if after == len(places):
            return None
        end = places[after]
        return Construct("code", start, end + length, self._text[start + length : end])

    def _dollar(self, start: int) -> Construct | None:
        if self._dollars is None:
            self._dollars = [
                match.span(1)
                for match in _UNESCAPED_DOLLARS.finditer(self._text)
                if match[1] is not None
            ]
        length = run_length(self._text, start)
        after = bisect_right(self._dollars, (start, len(self._text)))
        if after == len(self._dollars):
            return None
        end, stop = self._dollars[after]
        inner = self._text[start + length : end]
        if stop - end != length or not is_formula(inner, length, self._text[stop : stop + 1]):
            return None
        return Construct("formula", start, stop, inner)

    def _angle(self, start: int) -> Construct | None:
        autolink = self._match("autolink", _AUTOLINK, start)
        if autolink is not None:
            return autolink
        for opening, closing in (("<!--", "-->"), ("<?", "?>"), ("<![CDATA[", "]]>"), ("<!", ">")):
            if self._text.startswith(opening, start):
                if closing in self._no_end or self._text.find(closing, start) < 0:
                    self._no_end.add(closing)
                    return None
                break
        return self._match("html", HTML_TAG_RE, start)

    def _url(self, start: int) -> Construct | None:
        match = _URL.match(self._text, start)
        if match is None:
            return None
        before = self._text[start - 1 : start]
        if self._text[start] in "hH":
            if before.isascii() and before.isalpha():
                return None
        elif before and not before.isspace() and before not in "(*_[]~":
            return None
        if any("_" in part for part in match[1].rstrip(".").split(".")[-2:]):
            return None
        return Construct("url", start, match.end())


def is_formula(inner: str, dollars: int, following: str) -> bool:
    """Whether `inner`, between `dollars` dollar signs each side, is meant as a formula.

    Pandoc's rule, and two of our own against prices and shell variables: words without any sign of
    TeX after a leading digit are a price, and a letter may follow only what ends like a term.

    Source: https://pandoc.org/MANUAL.html#extension-tex_math_dollars
    """
    if not inner.strip() or "`" in inner or len(inner) > MAX_INLINE_FORMULA_CHARS:
        return False
    if dollars > 1:
        return dollars == 2
    if inner[0].isspace() or inner[-1].isspace() or following.isdecimal():
        return False
    if inner[0].isdecimal() and _WORDY.search(inner) and not _TEX.search(inner):
        return False
    letter_follows = following.isascii() and following.isalpha()
    return not letter_follows or inner[-1].isalnum() or inner[-1] in ")}]'"


def _is_bracketed_formula(inner: str) -> bool:
    """Whether what stands between escaped brackets is TeX rather than words or a reference number."""
    if not inner.strip() or inner.strip().isdecimal():
        return False
    return _TEX.search(inner) is not None or _LONG_WORD.search(inner) is None


def run_length(text: str, start: int) -> int:
    """How often the character at `start` stands there in a row."""
    end = start
    while end < len(text) and text[end] == text[start]:
        end += 1
    return end - start


def link_resource_end(text: str, start: int) -> int | None:
    """The end of the `(address "title")` that begins at `start`, None where it is not one."""
    end = len(text)
    position = _skip_spaces(text, start + 1)
    destination = parseLinkDestination(text, position, end)
    if destination.ok:
        position = destination.pos
        title_at = _skip_spaces(text, position)
        if title_at > position and title_at < end and text[title_at] in "\"'(":
            title = parseLinkTitle(text, title_at, end)
            if title.ok:
                title_at = _skip_spaces(text, title.pos)
        position = title_at
    return position + 1 if text[position : position + 1] == ")" else None


def _skip_spaces(text: str, position: int) -> int:
    while position < len(text) and text[position] in " \t\n":
        position += 1
    return position


def _escaped(text: str, position: int, start: int) -> bool:
    slashes = 0
    while position - slashes > start and text[position - slashes - 1] == "\\":
        slashes += 1
    return slashes % 2 == 1
