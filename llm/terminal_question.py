"""The question: what stands on the command line and what comes on standard input, joined."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from llm.errors import InvalidRequestError, Reason

STDIN = "-"


def from_input(arguments: Sequence[str]) -> bool:
    """Whether standard input is part of the question: it is asked for, or no terminal."""
    return STDIN in arguments or not at_keyboard()


def at_keyboard() -> bool:
    """Whether somebody types on standard input."""
    return sys.stdin is not None and sys.stdin.isatty()


def question_of(arguments: Sequence[str]) -> str:
    """The whole question, of arguments that are UTF-8.

    What comes on standard input stands where `-` stands, else before the arguments.

    Raises:
        InvalidRequestError: it isn't text.
    """
    words = list(arguments)
    if not from_input(words):
        return " ".join(words)
    at = words.index(STDIN) if STDIN in words else 0
    before, after = words[:at], words[at + 1 if STDIN in words else at :]
    parts = [" ".join(before), _standard_input(), " ".join(after)]
    return "\n\n".join(part for part in parts if part.strip())


def _standard_input() -> str:
    if sys.stdin is None:
        return ""
    try:
        return sys.stdin.buffer.read().decode("utf-8-sig").strip("\n")
    except UnicodeDecodeError:
        raise InvalidRequestError(reason=Reason("reason-file-encoding")) from None


def as_utf8(argument: str) -> str:
    """What a model or a server is to be told, as UTF-8, whatever the locale says."""
    return os.fsencode(argument).decode("utf-8", "replace")
