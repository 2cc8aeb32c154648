"""Which parameters of the request a server's refusal names.

Servers say it in many ways: OpenAI and vLLM in a `param`, FastAPI and pydantic by the place in
the body, others in their sentence only.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping

# Source: OpenAI ("Unsupported parameter: 'temperature' …", "Unrecognized request argument
# supplied: top_k"); vLLM 0.32, sampling_params.py ("min_p must be in [0, 1]") and
# exception_handling/handlers/validation.py; `transformers serve` 5.24 ("Unexpected fields in the
# request: {'top_k'}"); pydantic ("Extra inputs are not permitted").
_COMPLAINT = re.compile(
    r"support|unrecogni[sz]ed|unexpected|unknown|invalid|permitted|allowed|must|should|between"
    r"|range|not\b|n't\b",
    re.IGNORECASE,
)
_PLACE = re.compile(r"""["']loc["']: *[(\[]([^)\]]*)""")
_PLAIN_WORD = "stop"  # an everyday word: it must stand in quotes, or alone behind a colon


def named_parameters(body: object, message: str, sent: Collection[str]) -> tuple[str, ...]:
    """The parameters of `sent` that the refusal names, in the order of `sent`.

    Args:
        body: the refusal, decoded.
        message: its words.
        sent: the names that may be meant.
    """
    places = [*_places(body), *_PLACE.findall(message)]
    if places:
        # The server says where: whatever else its words mention is not meant.
        return _those(sent, (word for place in places for word in re.findall(r"\w+", place)))
    if not _COMPLAINT.search(message):
        return ()
    return tuple(name for name in sent if _mentions(message, name))


def _places(body: object) -> list[str]:
    """What the body's own fields say about the place of the fault."""
    if isinstance(body, list):
        return [place for entry in body for place in _places(entry)]
    if not isinstance(body, Mapping):
        return []
    param, loc = body.get("param"), body.get("loc")
    if isinstance(param, str) and param:
        return [param]
    if isinstance(loc, list):
        return [" ".join(map(str, loc))]
    return [place for key in ("error", "detail", "message") for place in _places(body.get(key))]


def _those(sent: Collection[str], words: Iterable[str]) -> tuple[str, ...]:
    found = set(words)
    return tuple(name for name in sent if name in found)


def _mentions(message: str, name: str) -> bool:
    if name == _PLAIN_WORD:
        return re.search(rf"""["'`]{name}["'`]|: {name}\W*$""", message) is not None
    return re.search(rf"(?<![\w-]){name}(?![\w-])", message) is not None
