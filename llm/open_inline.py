"""Closes inline markup that has begun, and holds back what cannot be told yet.

The text is that of one paragraph, heading or table cell, cut off anywhere.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from llm.markdown_inline import Constructs, link_resource_end, run_length

MAX_HELD_DOLLAR_CHARS = 120
MAX_HELD_FORMULA_CHARS = 200
MAX_OPEN_BRACKET_CHARS = 200
MAX_OPEN_MARKS = 32

_SPECIAL = re.compile(r"[\\`$<\[\]*_~!&]|(?<![A-Za-z])[hH](?=ttp)|(?<![A-Za-z0-9])[wW](?=ww\.)")
_ENTITY_BEGINNING = re.compile(r"&#?[A-Za-z0-9]{0,9}$")
_ADDRESS_BEGINNING = re.compile(r"<[A-Za-z][A-Za-z0-9+.\-]{0,31}(?::[^\s<>]{0,200})?$")
_FOOTNOTE_BEGINNING = re.compile(r"\[\^[^\]\s]{0,100}$")

_ZWJ = "\u200d"
_EMOJI = (
    "[\u00a9\u00ae\u203c\u2049\u2122\u2139\u2194-\u21aa\u231a-\u23ff\u24c2\u25aa-\u25fe"
    "\u2600-\u27bf\u2934\u2935\u2b05-\u2b55\u3030\u303d\u3297\u3299\U0001f000-\U0001faff]"
)
_EMOJI_PART = f"{_EMOJI}[\ufe0f\U0001f3fb-\U0001f3ff\U000e0020-\U000e007f]*"
_LAST_EMOJI = re.compile(
    f"(?:{_EMOJI_PART}{_ZWJ})*{_EMOJI_PART}{_ZWJ}?$|[0-9#*]\ufe0f\u20e3?$|[\U0001f1e6-\U0001f1ff]+$"
)
_MAX_EMOJI_CHARS = 32


def without_half_emoji(text: str) -> str:
    """Hold back an emoji at the very end: what follows may still be part of it.

    A family, a flag or a skin tone is several characters; half of it is another picture.
    """
    tail_start = max(0, len(text) - _MAX_EMOJI_CHARS)
    match = _LAST_EMOJI.search(text, tail_start)
    if match is None:
        return text
    if "\U0001f1e6" <= match[0][0] <= "\U0001f1ff":
        return text[: -(2 - len(match[0]) % 2)]
    return text[: match.start()]


@dataclass(slots=True)
class _Open:
    mark: str
    start: int
    count: int


def close_inline(text: str) -> str:
    """Return `text` as if it were finished: marks closed, half-written pieces taken off the end."""
    return _Closer(text).run()


class _Closer:
    def __init__(self, text: str) -> None:
        self.text = text
        self.constructs = Constructs(text)
        self.open: list[_Open] = []
        self.cuts: list[tuple[int, int]] = []

    def run(self) -> str:
        text, position, end = self.text, 0, len(self.text)
        closing = ""
        while position < len(text) and (match := _SPECIAL.search(text, position)):
            at = match.start()
            brackets = any(item.mark == "[" for item in self.open)
            found = self.constructs.at(at, in_brackets=brackets)
            if found is not None and not (found.kind == "escape" and self.held(at)):
                position = found.end
                continue
            if self.held(at):
                end = at
                break
            char = text[at]
            if char == "`":
                count = run_length(text, at)
                if at + count == len(text):
                    end = at
                    break
                inner = text[at + count :].rstrip("`").rstrip()
                end = at + count + len(inner) if inner else at
                closing = "`" * count if inner else ""
                break
            position = self.mark(at)
        return self.finish(end, closing)

    def held(self, at: int) -> bool:
        """Whether what begins at `at` is half-written and is to be held back."""
        text = self.text
        rest = len(text) - at
        char = text[at]
        if char == "\\":
            if text[at + 1 : at + 2] in ("(", "["):
                return rest <= MAX_HELD_FORMULA_CHARS
            return rest == 1
        if char == "$":
            count = run_length(text, at)
            following = text[at + count : at + count + 1]
            if not following:
                return True
            if count >= 2:
                return rest <= MAX_HELD_FORMULA_CHARS and text.find("$$", at + count) < 0
            if rest > MAX_HELD_DOLLAR_CHARS or following.isspace() or following.isdecimal():
                return False
            return "$" not in text[at + 1 :].rstrip("$") and not text.endswith(" $")
        if char == "&":
            return _ENTITY_BEGINNING.match(text, at) is not None
        if char == "<":
            return rest == 1 or _ADDRESS_BEGINNING.match(text, at) is not None
        return False

    def mark(self, at: int) -> int:
        text, char = self.text, self.text[at]
        if char in "*_~":
            return self.emphasis(at)
        if char == "[":
            if _FOOTNOTE_BEGINNING.match(text, at):
                self.cuts.append((at, len(text)))
                return len(text)
            self.begin(_Open("[", at, 1))
        elif char == "]":
            return self.bracket_end(at)
        return at + (run_length(text, at) if char == "$" else 1)

    def emphasis(self, at: int) -> int:
        """Match a run of `*`, `_` or `~` against what is open, by CommonMark's flanking rules."""
        text = self.text
        char, count = text[at], run_length(text, at)
        end = at + count
        before, after = text[at - 1 : at] or " ", text[end : end + 1] or " "
        left = not after.isspace() and (
            not _punctuation(after) or before.isspace() or _punctuation(before)
        )
        right = not before.isspace() and (
            not _punctuation(before) or after.isspace() or _punctuation(after)
        )
        can_open = left and (char != "_" or not right or _punctuation(before))
        can_close = right and (char != "_" or not left or _punctuation(after))
        if char == "~" and count > 2:
            return end
        if end == len(text) and not (can_close and self.closes(char, count)):
            self.cuts.append((at, end))
            return end
        while can_close and count:
            place = self.opener(char)
            if place is None:
                break
            opener = self.open[place]
            used = min(opener.count, count) if char != "~" else opener.count
            if used > count:
                break
            opener.count -= used
            count -= used
            del self.open[place + 1 if opener.count else place :]
        if can_open and count:
            self.begin(_Open(char, end - count, count))
        return end

    def begin(self, item: _Open) -> None:
        if len(self.open) == MAX_OPEN_MARKS:
            del self.open[0]
        self.open.append(item)

    def opener(self, mark: str) -> int | None:
        places = reversed(range(len(self.open)))
        return next((place for place in places if self.open[place].mark == mark), None)

    def closes(self, mark: str, count: int) -> bool:
        """Whether a run at the very end is a whole closing run and not the first half of one."""
        place = self.opener(mark)
        return place is not None and count >= self.open[place].count

    def bracket_end(self, at: int) -> int:
        """Deal with a `]`: a whole link stays, half of one shows its text only."""
        text = self.text
        place = self.opener("[")
        if place is None:
            return at + 1
        opener = self.open[place]
        following = text[at + 1 : at + 2]
        if following == "(":
            end = link_resource_end(text, at + 1)
            if end is None and text.find(")", at) < 0:
                self.cuts += [(opener.start, opener.start + 1), (at, len(text))]
                end = len(text)
        elif following == "[":
            closing = text.find("]", at + 2)
            end = closing + 1 if closing >= 0 else len(text)
            if closing < 0:
                self.cuts += [(opener.start, opener.start + 1), (at, len(text))]
        else:
            end = at + 1
            if not following:
                self.cuts += [(opener.start, opener.start + 1), (at, len(text))]
        del self.open[place]
        return end if end is not None else at + 1

    def finish(self, end: int, closing: str) -> str:
        cuts = [(start, min(stop, end)) for start, stop in self.cuts if start < end]
        for item in self.open:
            if item.mark == "[" and end - item.start <= MAX_OPEN_BRACKET_CHARS:
                cuts.append((item.start, item.start + 1))
        marks = [item for item in self.open if item.mark != "[" and item.start < end]
        for item in reversed(marks):
            if self.kept(item.start + item.count, end, cuts).strip() or closing:
                closing += item.mark * item.count
            else:
                cuts.append((item.start, item.start + item.count))
        shown = self.kept(0, end, cuts)
        if not self.text[end:] and not closing and not cuts:
            return shown
        return (shown if closing[:1] == "`" else shown.rstrip()) + closing

    def kept(self, start: int, end: int, cuts: list[tuple[int, int]]) -> str:
        """What is left of the text from `start` to `end` without `cuts`."""
        pieces: list[str] = []
        for cut_start, cut_end in sorted(cuts):
            if cut_start >= start:
                pieces.append(self.text[start:cut_start])
            start = max(start, cut_end)
        return "".join([*pieces, self.text[start:end]])


def _punctuation(char: str) -> bool:
    return not char.isalnum() and not char.isspace()
