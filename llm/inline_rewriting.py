"""Rewrites the text of one paragraph, heading or table cell for Streamlit's Markdown.

See `llm.plain_markdown` for what is rewritten and why.
"""

from __future__ import annotations

import re
from collections.abc import Container
from typing import NamedTuple

from markdown_it.common.utils import normalizeReference

from llm.markdown_inline import Construct, Constructs, link_resource_end, run_length

NOTHING = ":small[]"
"""A Streamlit directive that draws an empty, invisible span.

Streamlit replaces emoji names, icons and arrows in finished text nodes, where no Markdown escape is
left to see; an element in between is what stops it.
"""

_SPECIAL = re.compile(r"[\\`$<>&\[\]!:~\-]|(?<![A-Za-z])[hH](?=ttp)|(?<![A-Za-z0-9])[wW](?=ww\.)")
_NAMED = re.compile(r":([\w+-]+)\\?:")
_HARMLESS_NUMBER = re.compile(r"(?!100\b|1234\b)\d+")
_ICON = ":material"
_LESS, _MORE, _DASH = r"(?:\\?<|&lt;)", r"(?:\\?>|&gt;)", r"\\?-"
_ARROW = re.compile(
    rf"({_LESS})({_DASH})({_MORE})|({_DASH})({_MORE})|({_LESS})({_DASH})|({_DASH})({_DASH})"
    rf"|({_MORE})(\\?=)|({_LESS})(\\?=)|(\\?~)(\\?=)"
)
_LABEL = re.compile(r"\[((?:[^\[\]\\]|\\[\s\S]){1,999})\]")
_ESCAPED_DOLLAR = re.compile(r"\\\$")


class Edit(NamedTuple):
    """Replace the characters from `start` to `end`."""

    start: int
    end: int
    new: str


class _Bracket(NamedTuple):
    start: int
    image: bool
    edit: int


def inline_edits(text: str, labels: Container[str] = ()) -> list[Edit]:
    """Say what to change in `text`, in order of place.

    Args:
        text: inline content; its line breaks are "\\n" and its containers' marks are taken off.
        labels: normalised labels of the link definitions that count here.
    """
    return _Rewriter(text, labels).run()


class _Rewriter:
    def __init__(self, text: str, labels: Container[str]) -> None:
        self.text = text
        self.labels = labels
        self.constructs = Constructs(text)
        self.edits: list[Edit] = []
        self.brackets: list[_Bracket] = []
        self.images: list[tuple[int, int, int, int]] = []

    def run(self) -> list[Edit]:
        position = 0
        while match := _SPECIAL.search(self.text, position):
            position = self.step(match.start())
        return sorted(self.edits, key=lambda edit: edit.start)

    def edit(self, start: int, end: int, new: str) -> None:
        self.edits.append(Edit(start, end, new))

    def step(self, at: int) -> int:
        """Deal with the character at `at`; returns where to look next."""
        text = self.text
        if (end := self.arrow(at)) is not None:
            return end
        found = self.constructs.at(at, in_brackets=bool(self.brackets))
        if found is not None:
            return self.construct(found)
        char = text[at]
        if char == "`":
            length = run_length(text, at)
            if length >= 3 and text[:at].rpartition("\n")[2].strip() == "":
                self.edit(at, at, NOTHING)
            return at + length
        if char == "$":
            length = run_length(text, at)
            self.edit(at, at + length, "\\$" * length)
            return at + length
        if char == ":":
            return self.colon(at, at)
        if char == "!" and text[at + 1 : at + 2] == "[":
            self.edit(at, at, "\\")
            self.brackets.append(_Bracket(at + 1, True, len(self.edits) - 1))
            return at + 2
        if char == "[":
            return self.opening(at)
        if char == "]":
            return self.closing(at)
        return at + 1

    def construct(self, found: Construct) -> int:
        if found.kind == "formula":
            self.formula(found)
        elif found.kind == "escape" and self.text[found.start + 1] == ":":
            return self.colon(found.start, found.start + 1)
        elif found.kind == "code":
            self.code(found)
        elif found.kind in ("url", "autolink") and _NAMED.search(self.text, found.start, found.end):
            return self.address(found)
        return found.end

    def code(self, found: Construct) -> None:
        """Keep a code span of three backticks at a line's start from looking like a fence.

        Streamlit decides with a regex whether a text has formulas, and that takes it for one.
        """
        line = self.text.rfind("\n", 0, found.start) + 1
        if self.text.startswith("```", found.start) and not self.text[line : found.start].strip():
            self.edit(found.start, found.start, NOTHING)

    def address(self, found: Construct) -> int:
        """Spell a bare address that holds an emoji's name out as a link, so that it is left alone."""
        if found.kind == "url":
            shown = self.text[found.start : found.end].rstrip("?!.,:;*_~'\")&")
            target = shown if shown[:1] in "hH" else f"http://{shown}"
        else:
            shown = target = self.text[found.start + 1 : found.end - 1]
        escaped = re.sub(r"[^\w\s:]", r"\\\g<0>", shown).replace(":", "\\:" + NOTHING)
        end = found.start + len(shown) if found.kind == "url" else found.end
        self.edit(found.start, end, f"[{escaped}](<{target}>)")
        return end

    def formula(self, found: Construct) -> None:
        inner = found.inner
        opening = self.text[found.start]
        length = run_length(self.text, found.start) if opening == "$" else 2
        first = found.start + length
        display = self.text.startswith("\\[", found.start)
        trimmed = inner.strip()
        if trimmed.endswith("\\") and inner.rstrip() != inner:
            trimmed += " "
        fence = "$" if length == 1 or opening == "\\" else "$" * length
        if "$" in trimmed or trimmed.endswith(("\\", "\\ ")):
            fence = "$$$" if "$$" in trimmed else "$$"
        lead = len(inner) - len(inner.lstrip())
        self.edit(found.start, first + lead, fence + ("\\displaystyle " if display else ""))
        for match in re.finditer(r"\n", trimmed):
            place = first + lead + match.start()
            self.edit(place, place + 1, " ")
        self.edit(first + lead + len(trimmed), found.end, fence)

    def colon(self, start: int, at: int) -> int:
        """Escape the colon at `at` (its backslash, if it has one, is at `start`)."""
        text = self.text
        named = _NAMED.match(text, at)
        following = text[at + 1 : at + 2]
        breaker = ""
        if (named and not _HARMLESS_NUMBER.fullmatch(named[1])) or text.startswith(_ICON, at):
            breaker = NOTHING
        if named and text[named.end() - 2] != "\\":
            self.edit(start, at + 1, "\\:" + breaker)
            return self.closing_colon(named.end() - 1)
        if breaker or _starts_name(following):
            self.edit(start, at + 1, "\\:" + breaker)
        return at + 1

    def closing_colon(self, at: int) -> int:
        """Deal with a colon that ends a name; it may begin the next one."""
        following = self.text[at + 1 : at + 2]
        if _starts_name(following):
            return at
        self.edit(at, at + 1, "\\:")
        return at + 1

    def arrow(self, at: int) -> int | None:
        if self.text[at] not in "\\<>&-~":
            return None
        match = _ARROW.match(self.text, at)
        if match is None or not self.isolated(match.start(), match.end()):
            return None
        parts = [part for part in match.groups() if part is not None]
        place = match.start()
        for part in parts[:-1]:
            place += len(part)
            self.edit(place, place, NOTHING)
        return match.end()

    def isolated(self, start: int, end: int) -> bool:
        """Whether a text node could consist of, or be split by spaces at, these characters."""
        before, after = self.text[start - 1 : start], self.text[end : end + 1]
        return not _joins(before) and not _joins(after)

    def opening(self, at: int) -> int:
        text = self.text
        if text.startswith("[^", at) and self.begins_footnote(at):
            self.edit(at, at, "\\")
            return at + 2
        label = _LABEL.match(text, at)
        is_reference = label is not None and text[label.end() : label.end() + 1] != "("
        if label and is_reference and normalizeReference(label[1]) in self.labels:
            return label.end()
        self.brackets.append(_Bracket(at, False, -1))
        return at + 1

    def begins_footnote(self, at: int) -> bool:
        """Whether `[^` at a line's start may define a footnote.

        Footnotes are no part of GFM, and what stands in one is read by rules of its own, so that
        an image there would be fetched. Escaped, the line is what the model wrote.
        """
        if self.text[self.text.rfind("\n", 0, at) + 1 : at].strip():
            return False
        label = _LABEL.match(self.text, at)
        return label is None or self.text[label.end() : label.end() + 1] != "("

    def closing(self, at: int) -> int:
        if not self.brackets:
            return at + 1
        opener = self.brackets.pop()
        if self.text[at + 1 : at + 2] != "(":
            return at + 1
        end = link_resource_end(self.text, at + 1)
        if end is None:
            return at + 1
        if opener.image:
            if self.text[opener.start + 1 : at].strip() == "":
                self.edit(at, at, "image")
            self.images.append((opener.edit, opener.start, at, end))
        else:
            self.brackets = [b for b in self.brackets if b.image]
            self.unlink_images(opener.start)
        return end

    def unlink_images(self, start: int) -> None:
        """Leave only the alternative text of images inside a link: a link holds no other link."""
        while self.images and self.images[-1][1] > start:
            number, opening, closing, end = self.images.pop()
            self.edits[number] = Edit(opening - 1, opening + 1, "")
            self.edit(closing, end, "")


def _starts_name(char: str) -> bool:
    """Whether a directive's or an emoji's name, or another colon, may begin with `char`."""
    return (
        char != ""
        and not char.isspace()
        and (not char.isascii() or char.isalnum() or char in "+-_:")
    )


def _joins(char: str) -> bool:
    return char != "" and (char.isalnum() or char in "-<=>.,;?/'\"%&@#^{}|")
