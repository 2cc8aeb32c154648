"""What a reader of foreign conversations notes on the way, and how it takes a value as it comes.

Whatever stands in a file may be of any kind: each function here takes anything and gives a value
that can be kept, in every database too.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from llm.served_values import keepable

MAX_TEXT_CHARS = 10_000_000
"""Of one question or answer; what is longer is cut, and that is said."""

MAX_NAME_CHARS = 200
"""Of a model's name and the like."""

_LATEST_S = 253_402_300_799  # the end of the year 9999, where calendars stop


@dataclass(slots=True)
class Notes:
    """What of a conversation couldn't be taken along.

    Args:
        cut: texts that were too long.
        left_out: pictures, recordings and files.
    """

    cut: int = 0
    left_out: int = 0

    def text(self, value: object) -> str:
        """The text, fit to be kept; empty for all that is none."""
        if not isinstance(value, str):
            return ""
        if len(value) > MAX_TEXT_CHARS:
            self.cut += 1
            value = value[:MAX_TEXT_CHARS]
        return keepable(value)


def name(value: object) -> str:
    """A short text; a number as its digits, empty for all else."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        value = str(value)
    if not isinstance(value, str):
        return ""
    return keepable(value[:MAX_NAME_CHARS])


def mapping(value: object) -> Mapping[str, Any]:
    """The object; an empty one for all else."""
    return value if isinstance(value, dict) else {}


def sequence(value: object) -> Sequence[Any]:
    """The list; an empty one for all else."""
    return value if isinstance(value, list) else ()


def duration_s(value: object) -> float | None:
    """So many seconds; None where it isn't said."""
    if isinstance(value, str):
        try:
            value = float(value[:MAX_NAME_CHARS])
        except ValueError:
            return None
    usable = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if usable and 0 <= value < 1e9 else None  # type: ignore[arg-type, operator]


def moment_s(value: object) -> float:
    """Seconds since 1970, of a number or an ISO date; 0 where it is no moment.

    Numbers too large for seconds are milli-, micro- or nanoseconds.
    """
    if isinstance(value, str):
        try:
            told = datetime.fromisoformat(value[:MAX_NAME_CHARS])
            value = (told if told.tzinfo else told.replace(tzinfo=UTC)).timestamp()
        except (ValueError, OverflowError, OSError):
            return 0.0
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return 0.0
    seconds = float(value)
    for _ in range(3):
        seconds = seconds / 1000 if seconds > 1e11 else seconds
    return seconds if 0 < seconds <= _LATEST_S else 0.0
