"""The entries of a large JSON document, one at a time.

A document of hundreds of megabytes is never in memory as a whole, neither as text nor as values:
one entry is read, given out and forgotten before the next. An entry that can't be read is skipped
where its end can be found, so that those after it come in.
"""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Generator, Iterator
from dataclasses import dataclass
from typing import BinaryIO, Literal

MAX_ENTRY_CHARS = 64_000_000
"""Of an entry's JSON. Values can take twenty times that in memory, but one entry at a time."""

MAX_NAMES = 1000
"""Names in an object that stands alone; no conversation has as many of its own."""

_FIRST_CHARS = 64_000
_NEAR_THE_END = 16
"""Longer than what can be torn apart by a window's end: a keyword, an escape."""
_CHUNK_BYTES = 1 << 18
_LONGEST_WHOLE = 20
_LISTS = frozenset({"conversations", "chats"})

_SPACE = re.compile(r"[ \t\r\n]*")
_OUTSIDE = re.compile(r'["\[\]{}]')
_INSIDE = re.compile(r'["\\]')


class NotJsonError(ValueError):
    """It begins like no list and no object."""


@dataclass(frozen=True, slots=True)
class Unreadable:
    """An entry that there is, but that can't be read.

    Args:
        why: `damaged` is the last there is, since nobody knows where the next begins.
    """

    why: Literal["damaged", "large", "deep"]


def entries(stream: BinaryIO) -> Iterator[object]:
    """The values in a list, or in the list "conversations" or "chats" of an object; else the
    object itself.

    Any encoding of JSON is read; what isn't right in it becomes U+FFFD. Numbers without end and
    those that aren't any become None.

    Raises:
        NotJsonError: before the first.
        Exception: whatever reading from the stream raises.
    """
    window = _Window(stream)
    first = window.peek()
    if first == "[":
        yield from _of_list(window)
    elif first == "{":
        yield from _of_object(window)
    else:
        raise NotJsonError


class _DamagedError(Exception):
    pass


class _LargeError(Exception):
    pass


def _of_list(window: _Window) -> Generator[object, None, bool]:
    """The list's values; returns whether its end was found."""
    window.step()
    while (first := window.peek()) != "]":
        if not first:
            yield Unreadable("damaged")
            return False
        value = _one(window)
        yield value
        if value == Unreadable("damaged"):
            return False
        if window.peek() == ",":
            window.step()
        elif window.peek() != "]":
            yield Unreadable("damaged")
            return False
    window.step()
    return True


def _one(window: _Window) -> object:
    try:
        return window.value()
    except _DamagedError:
        return Unreadable("damaged")
    except _LargeError:
        why: Literal["large", "deep"] = "large"
    except RecursionError:
        why = "deep"
    return Unreadable(why) if window.skip_value() else Unreadable("damaged")


def _of_object(window: _Window) -> Iterator[object]:
    window.step()
    found: dict[str, object] = {}
    has_list = False
    while (first := window.peek()) != "}":
        name = _one(window) if first == '"' else None
        if not isinstance(name, str) or window.peek() != ":":
            yield Unreadable("damaged")
            return
        window.step()
        if name in _LISTS and window.peek() == "[":
            has_list = True
            if not (yield from _of_list(window)):
                return
        else:
            found[name] = _one(window)
            if isinstance(found[name], Unreadable) or len(found) > MAX_NAMES:
                yield found[name] if isinstance(found[name], Unreadable) else Unreadable("large")
                return
        if window.peek() == ",":
            window.step()
        elif window.peek() != "}":
            if not has_list:
                yield Unreadable("damaged")
            return
    if not has_list:
        yield found


def _whole(digits: str) -> int | None:
    return int(digits) if len(digits) <= _LONGEST_WHOLE else None


def _not_a_number(_name: str) -> None:
    return None


_DECODER = json.JSONDecoder(strict=False, parse_int=_whole, parse_constant=_not_a_number)


class _Window:
    """The part of the document that is looked at.

    Thread-safety: none.
    """

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._text = ""
        self._at = 0
        start = stream.read(_CHUNK_BYTES)
        self._ended = not start
        encoding = json.detect_encoding(start)
        encoding = "utf-8-sig" if encoding.startswith("utf-8") else encoding
        self._decoder = codecs.getincrementaldecoder(encoding)(errors="replace")
        self._text = self._decoder.decode(start, final=self._ended)

    def peek(self) -> str:
        """The next character that isn't space; empty at the end."""
        while True:
            space = _SPACE.match(self._text, self._at)
            self._at = space.end() if space else self._at
            if self._at < len(self._text):
                return self._text[self._at]
            if self._ended:
                return ""
            self._fill(1)

    def step(self) -> None:
        """Past the character that was looked at."""
        self._at += 1

    def value(self) -> object:
        """The value that begins here.

        Raises:
            _DamagedError, _LargeError, RecursionError: the place is still the value's beginning.
        """
        self.peek()
        chars = _FIRST_CHARS
        while True:
            self._fill(chars)
            try:
                value, end = _DECODER.raw_decode(self._text, self._at)
            except json.JSONDecodeError as error:
                torn = error.msg.startswith("Unterminated") or (
                    error.pos >= len(self._text) - _NEAR_THE_END
                )
                if self._ended or not torn:
                    raise _DamagedError from None
            else:
                if self._ended or end < len(self._text):  # a number may go on
                    self._at = end
                    return value
            if chars >= MAX_ENTRY_CHARS:
                raise _LargeError
            chars = min(chars * 4, MAX_ENTRY_CHARS)

    def skip_value(self) -> bool:
        """Past the list, object or string that begins here; False where it never ends."""
        depth, in_string = 0, False
        while True:
            mark = (_INSIDE if in_string else _OUTSIDE).search(self._text, self._at)
            if mark is None:
                self._at = len(self._text)
                if self._ended:
                    return False
                self._fill(1)
                continue
            self._at = mark.end()
            if mark[0] == "\\":
                self._fill(1)
                self._at += 1
            elif mark[0] == '"':
                in_string = not in_string
            else:
                depth += 1 if mark[0] in "[{" else -1
            if depth <= 0 and not in_string:
                return True

    def _fill(self, chars: int) -> None:
        """Let at least so many characters stand ahead, as far as there are any."""
        if self._ended or len(self._text) - self._at >= chars:
            return
        pieces = [self._text[self._at :]]
        ahead = len(pieces[0])
        while ahead < chars and not self._ended:
            read = self._stream.read(_CHUNK_BYTES)
            self._ended = not read
            pieces.append(self._decoder.decode(read, final=self._ended))
            ahead += len(pieces[-1])
        self._text, self._at = "".join(pieces), 0
