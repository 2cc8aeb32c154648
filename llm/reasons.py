"""Why a value or a file can't be used, as sentences of the catalogue.

pydantic and the system say it in English only; what they mean is told here by its kind.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from llm.errors import Reason

if TYPE_CHECKING:
    from pydantic import ValidationError

_LIMITS = {
    "greater_than": ("reason-more-than", "gt"),
    "greater_than_equal": ("reason-at-least", "ge"),
    "less_than_equal": ("reason-at-most", "le"),
    "string_too_long": ("reason-too-long", "max_length"),
}
_KINDS = {
    **dict.fromkeys(
        ("int_parsing", "int_parsing_size", "int_type", "int_from_float"), "reason-whole-number"
    ),
    **dict.fromkeys(("float_parsing", "float_type"), "reason-number"),
    **dict.fromkeys(("bool_parsing", "bool_type"), "reason-yes-or-no"),
    **dict.fromkeys(("string_type", "path_type"), "reason-text"),
    "string_too_short": "reason-empty",
    "string_pattern_mismatch": "reason-not-an-address",  # the only pattern there is
    "tuple_type": "reason-list",
    **dict.fromkeys(("model_type", "model_attributes_type"), "reason-object"),
    **dict.fromkeys(("unexpected_keyword_argument", "extra_forbidden"), "reason-unknown-entry"),
    "missing": "reason-missing",
}


class WrongValueError(ValueError):
    """A value that a check of ours refuses.

    Args:
        reason: why.
        place: where it stands within what was checked; empty for the whole.
    """

    def __init__(self, reason: Reason, place: str = "") -> None:
        super().__init__(f"{place}: {reason.message_id}")
        self.reason = reason
        self.place = place


def first_wrong(error: ValidationError) -> tuple[tuple[str, ...], Reason]:
    """Where the first wrong value stands, and what is wrong with it; never the value."""
    first = error.errors(include_input=False, include_url=False)[0]
    place = tuple(str(part) for part in first["loc"])
    kind, context = first["type"], first.get("ctx", {})
    ours = context.get("error")
    if isinstance(ours, WrongValueError):
        return (*place, ours.place) if ours.place else place, ours.reason
    if kind in _LIMITS:
        message_id, name = _LIMITS[kind]
        return place, Reason(message_id, {"limit": context[name]})
    if kind == "literal_error":
        allowed = re.findall(r"'([^']*)'", context["expected"])
        return place, Reason("reason-one-of", {"allowed": ", ".join(allowed)})
    return place, Reason(_KINDS.get(kind, "reason-not-valid"))


def reading_failed(error: Exception) -> Reason:
    """Why a file couldn't be read."""
    if isinstance(error, FileNotFoundError):
        return Reason("reason-file-missing")
    if isinstance(error, UnicodeDecodeError):
        return Reason("reason-file-encoding")
    return Reason("reason-reading-failed", {"kind": type(error).__name__})
