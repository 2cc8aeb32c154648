"""Fits a request into the model's window: the oldest turns are left out, never the system prompt."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from llm.errors import ContextOverflowError
from llm.types import Backend, CancelToken, GenerationRequest, Message

ROOM_SHARE = 4
"""An answer gets the room it asks for, up to this part of the window, before a turn is left out."""

_ROUNDS = 4  # of counting; each leaves out more, and the estimate in between is hardly ever off
_TEMPLATE_TOKENS, _MESSAGE_TOKENS = 64, 16  # more than any chat template was seen to add


@dataclass(frozen=True, slots=True)
class Fitted:
    """A request as it is sent.

    Args:
        left_out: how many of the oldest questions were left out, with their answers.
    """

    request: GenerationRequest
    left_out: int = 0


def estimate_tokens(messages: Sequence[Message]) -> int:
    """About how many tokens these are: a quarter a character of English, one of Chinese.

    Tokenizers differ by half and more; good for a first look and for sharing out an exact count.
    """
    return sum(_weight(message) for message in messages)


def fit(backend: Backend, request: GenerationRequest, cancel: CancelToken) -> Fitted:
    """The request as the model's window can take it.

    Where the window or the exact count isn't known, it stays as it is: the backend will say.
    Turns are left out until the answer has room, and `max_tokens` is fitted to what is left.

    Args:
        cancel: ends the counting, which may be a request to a server.
    """
    fitted = Fitted(request)
    window = backend.window_tokens(request)
    if window is None:
        return fitted
    room = min(request.params.max_tokens, max(1, window // ROOM_SHARE))
    for _ in range(_ROUNDS):
        if surely_at_most(fitted.request.messages, window - request.params.max_tokens):
            return fitted
        tokens = backend.count_tokens(fitted.request, cancel)
        if tokens is None:
            return fitted
        shorter = _shorter(fitted, tokens, tokens + room - window)
        if shorter is None:
            return _with_room(fitted, window - tokens)
        fitted = shorter
    return fitted


def shorten(fitted: Fitted, error: ContextOverflowError) -> Fitted | None:
    """What to send after the backend found `fitted` too long; None where nothing can go."""
    tokens, window = error.values.get("prompt_tokens"), error.values.get("limit")
    if not isinstance(tokens, int) or not isinstance(window, int):
        return _shorter(fitted, ROOM_SHARE, 1)  # a quarter less, then: it said no number
    room = min(fitted.request.params.max_tokens, max(1, window // ROOM_SHARE))
    return _shorter(fitted, tokens, max(1, tokens + room - window))


def surely_at_most(messages: Sequence[Message], tokens: int) -> bool:
    """Whether the prompt is within `tokens` whatever the tokenizer: none makes more than bytes."""
    most = _TEMPLATE_TOKENS
    for message in messages:
        most += _MESSAGE_TOKENS + len(message.content)  # characters first: bytes are at least these
        if most > tokens:
            return False
    extra = sum(len(m.content.encode("utf-8", "replace")) - len(m.content) for m in messages)
    return most + extra <= tokens


def _weight(message: Message) -> int:
    text = message.content
    ascii_chars = len(text) if text.isascii() else sum(char < "\x80" for char in text)
    return 4 + ascii_chars // 4 + len(text) - ascii_chars


def _shorter(fitted: Fitted, tokens: int, excess: int) -> Fitted | None:
    """Without as many of the oldest turns as have `excess` of the `tokens`; at least one.

    None where nothing is too much, or nothing is left that may go.
    """
    if excess <= 0:
        return None
    messages = fitted.request.messages
    first = 1 if messages and messages[0].role == "system" else 0
    per_weight = tokens / max(1, estimate_tokens(messages))
    end, left_out, gone = first, 0, 0.0
    while gone < excess:
        following = next(
            (at for at in range(end + 1, len(messages)) if messages[at].role == "user"), None
        )
        if following is None:
            break
        gone += per_weight * estimate_tokens(messages[end:following])
        end, left_out = following, left_out + 1
    if not left_out:
        return None
    kept = (*messages[:first], *messages[end:])
    return Fitted(replace(fitted.request, messages=kept), fitted.left_out + left_out)


def _with_room(fitted: Fitted, room: int) -> Fitted:
    """With no more asked for than there is room; where there is none the backend says so."""
    params = fitted.request.params
    if not 0 < room < params.max_tokens:
        return fitted
    params = replace(params, max_tokens=room)
    return replace(fitted, request=replace(fitted.request, params=params))
