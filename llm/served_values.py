"""Numbers and texts from servers and files, taken as far as they can be what they should be."""

from __future__ import annotations

import re
from collections.abc import Mapping

MOST = 10**12
"""More than any window or answer has; some name 10**30 where they mean "no limit"."""

MOST_NAME_CHARS = 200

_UNKEEPABLE = re.compile("[\x00\ud800-\udfff]")


def told_count(value: object) -> int | None:
    """A number of tokens; None where it can't be one."""
    return value if type(value) is int and 0 <= value <= MOST else None


def told_name(told: object, key: str) -> str:
    """A short text of an object, such as a version; empty where there is none."""
    name = told.get(key) if isinstance(told, Mapping) else None
    return whole_text(name[:MOST_NAME_CHARS]) if isinstance(name, str) else ""


def whole_text(text: str) -> str:
    """Without halves of characters, which no page can show: JSON may carry an emoji cut in two."""
    if text.isascii() or not any("\ud800" <= char <= "\udfff" for char in text):
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "ignore")


def keepable(text: str) -> str:
    """As every file and database takes it, with U+FFFD for what they don't: half a character can't
    be written as UTF-8, and PostgreSQL has no NUL."""
    return _UNKEEPABLE.sub("\ufffd", text)
