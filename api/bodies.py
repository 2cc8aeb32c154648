"""What is asked, read without trusting it: a bounded body, known fields, values in their ranges.

Fields of OpenAI's API that change nothing here are taken; those that would be silently not done
are refused by name, and so are unknown ones.

Source: https://platform.openai.com/docs/api-reference/chat/create, and vLLM's sampling parameters.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from starlette.requests import Request

from api.errors import missing, refused, wrong_value
from llm.errors import Reason, ShuttingDownError
from llm.reasons import first_wrong
from llm.served_values import whole_text
from llm.types import Message, Role, SamplingParams

BODY_LIMIT_S = 30.0
"""How long a body may take to come."""
_LOOK_S = 0.2
_DRAINED = 16
"""A body that is too large is read on up to so many times the limit, and thrown away: who still
sends doesn't look for the answer."""
MAX_MESSAGES = 2_000
MAX_INPUTS = 256
"""Texts that are embedded in one request."""

_HARMLESS = frozenset(
    {
        "metadata",
        "parallel_tool_calls",
        "prompt_cache_key",
        "prompt_cache_options",
        "prompt_cache_retention",
        "safety_identifier",
        "service_tier",
        "store",
        "user",
    }
)
# The values with which these say nothing. None always does.
_SAYS_NOTHING: Mapping[str, tuple[object, ...]] = {
    "audio": (),
    "function_call": ("none", "auto"),
    "functions": ([],),
    "logit_bias": ({},),
    "logprobs": (False,),
    "modalities": (["text"],),
    "moderation": (),
    "n": (1,),
    "prediction": (),
    "reasoning_effort": (),
    "response_format": ({"type": "text"},),
    "tool_choice": ("none", "auto"),
    "tools": ([],),
    "top_logprobs": (0,),
    "verbosity": ("medium",),
    "web_search_options": (),
}
_MESSAGE_HARMLESS = frozenset({"annotations", "name", "reasoning", "reasoning_content"})
_MESSAGE_SAYS_NOTHING: Mapping[str, tuple[object, ...]] = {
    "audio": (),
    "function_call": (),
    "refusal": (),
    "tool_calls": ([],),
    "tool_call_id": (),
}
_ROLES: Mapping[str, Role] = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "assistant": "assistant",
}


_MOST = 2**53
Whole = Annotated[int, Field(ge=-_MOST, le=_MOST)]
Number = Annotated[float, Field(ge=-_MOST, le=_MOST)]
"""Numbers that a sentence can still say; their own ranges are `SamplingParams`'."""


class _Body(BaseModel):
    model_config = ConfigDict(
        strict=True, extra="allow", frozen=True, hide_input_in_errors=True, protected_namespaces=()
    )


class _Message(_Body):
    role: str
    content: Any = None


class _StreamOptions(_Body):
    include_usage: bool | None = None


class ChatRequest(_Body):
    """A chat completion; what is left out is left to the model, but for the answer's length."""

    messages: list[_Message]
    model: str | None = None
    stream: bool | None = None
    stream_options: _StreamOptions | None = None
    temperature: Number | None = None
    top_p: Number | None = None
    max_tokens: Whole | None = None
    max_completion_tokens: Whole | None = None
    seed: Whole | None = None
    top_k: Whole | None = None
    min_p: Number | None = None
    repetition_penalty: Number | None = None
    presence_penalty: Number | None = None
    frequency_penalty: Number | None = None
    stop: Any = None

    @property
    def with_usage(self) -> bool:
        return bool(self.stream_options and self.stream_options.include_usage)

    def told_messages(self) -> tuple[Message, ...]:
        """The conversation.

        Raises:
            ApiError: it isn't one of text.
        """
        if not self.messages:
            raise wrong_value("messages", Reason("reason-empty"))
        if len(self.messages) > MAX_MESSAGES:
            raise wrong_value("messages", Reason("api-reason-too-many", {"limit": MAX_MESSAGES}))
        told = tuple(_message(one, f"messages[{at}]") for at, one in enumerate(self.messages))
        if not any(one.role == "user" and one.content.strip() for one in told):
            raise wrong_value("messages", Reason("api-reason-no-question"))
        if told[-1].role == "system":
            raise wrong_value("messages", Reason("api-reason-last-message"))
        return told

    def params(self, usual_tokens: int, most_tokens: int) -> SamplingParams:
        """The parameters.

        Args:
            usual_tokens: the answer's length where none is asked for.
            most_tokens: no answer gets more.

        Raises:
            ApiError: a stop string isn't text.
            InvalidParameterError: a value is outside its range.
        """
        asked = self.max_completion_tokens
        if asked is None:
            asked = self.max_tokens
        return SamplingParams(
            temperature=self.temperature,
            top_p=self.top_p,
            max_tokens=usual_tokens if asked is None else asked,
            seed=self.seed,
            top_k=self.top_k,
            min_p=self.min_p,
            repetition_penalty=self.repetition_penalty,
            presence_penalty=self.presence_penalty,
            frequency_penalty=self.frequency_penalty,
            stop=_texts(self.stop, "stop"),
        ).at_most(most_tokens)


class EmbeddingRequest(_Body):
    """Texts to be embedded."""

    input: Any
    model: str | None = None
    encoding_format: Literal["float", "base64"] | None = None
    dimensions: None = None

    def texts(self) -> tuple[str, ...]:
        """The texts.

        Raises:
            ApiError: there are none, too many, or they are no texts.
        """
        texts = _texts(self.input, "input")
        if not texts or not all(text.strip() for text in texts):
            raise wrong_value("input", Reason("reason-empty"))
        if len(texts) > MAX_INPUTS:
            raise wrong_value("input", Reason("api-reason-too-many", {"limit": MAX_INPUTS}))
        return texts


B = TypeVar("B", bound=_Body)


async def read_chat(
    request: Request, limit_bytes: int, stopping: Callable[[], bool]
) -> ChatRequest:
    """The chat that a request asks for.

    Args:
        stopping: whether the server is being stopped; it waits for whoever still sends.

    Raises:
        ApiError: it can't be used.
        ShuttingDownError: the server is being stopped.
        ClientDisconnect: the client went meanwhile.
    """
    body = _parsed(ChatRequest, await _read(request, limit_bytes, stopping))
    _require_known(body, "", _HARMLESS, _SAYS_NOTHING)
    return body


async def read_embeddings(
    request: Request, limit_bytes: int, stopping: Callable[[], bool]
) -> EmbeddingRequest:
    """The texts that a request wants embedded; raises as `read_chat`."""
    body = _parsed(EmbeddingRequest, await _read(request, limit_bytes, stopping))
    _require_known(body, "", frozenset({"user"}), {})
    return body


async def _read(request: Request, limit_bytes: int, stopping: Callable[[], bool]) -> bytes:
    reading = asyncio.ensure_future(_whole(request, limit_bytes))
    now_s = asyncio.get_running_loop().time
    until_s = now_s() + BODY_LIMIT_S
    try:
        while True:
            await asyncio.wait({reading}, timeout=_LOOK_S)
            if reading.done():
                return reading.result()
            if stopping():
                raise ShuttingDownError
            if now_s() >= until_s:
                raise refused(408, "body_too_slow")
    finally:
        reading.cancel()
        await asyncio.gather(reading, return_exceptions=True)


async def _whole(request: Request, limit_bytes: int) -> bytes:
    body, read, too_large = bytearray(), 0, False
    async for piece in request.stream():
        read += len(piece)
        too_large = too_large or read > limit_bytes
        if read > _DRAINED * limit_bytes:
            break
        if not too_large:
            body += piece
        else:
            body.clear()
    if too_large:
        raise refused(413, "body_too_large", limit=limit_bytes // 1024)
    return bytes(body)


def _parsed(kind: type[B], body: bytes) -> B:
    try:
        return kind.model_validate_json(body)
    except ValidationError as error:
        if error.errors(include_input=False, include_url=False)[0]["type"] == "json_invalid":
            raise refused(400, "invalid_json") from None
        place, reason = first_wrong(error)
    if not place:
        raise refused(400, "invalid_json")
    param = _spelled(place)
    if reason.message_id == "reason-missing":
        raise missing(param)
    raise wrong_value(param, reason)


def _spelled(place: Sequence[str]) -> str:
    """`messages[0].content`, as OpenAI names a place."""
    told = "".join(f"[{part}]" if part.isdecimal() else f".{part}" for part in place)
    return told.removeprefix(".")


def _require_known(
    body: _Body,
    place: str,
    harmless: frozenset[str],
    says_nothing: Mapping[str, tuple[object, ...]],
) -> None:
    """Refuse what would not be done."""
    for name, value in (body.model_extra or {}).items():
        param = f"{place}.{name}".removeprefix(".")[:100]
        if name in harmless:
            continue
        if name not in says_nothing:
            raise refused(400, "unknown_parameter", whole_text(param), name=whole_text(param))
        if value is not None and value not in says_nothing[name]:
            raise refused(400, "unsupported_parameter", param, name=param)


def _message(message: _Message, param: str) -> Message:
    role = _ROLES.get(message.role)
    if role is None:
        allowed = Reason("reason-one-of", {"allowed": ", ".join(_ROLES)})
        raise wrong_value(f"{param}.role", allowed)
    _require_known(message, param, _MESSAGE_HARMLESS, _MESSAGE_SAYS_NOTHING)
    return Message(role, _content(message.content, f"{param}.content"))


def _content(content: object, param: str) -> str:
    """A message's text, whole or in parts."""
    if isinstance(content, str):
        return _kept(content)
    if not isinstance(content, list):
        raise wrong_value(param, Reason("reason-text"))
    texts = []
    for at, part in enumerate(content):
        kind = part.get("type") if isinstance(part, dict) else None
        if kind != "text":
            raise refused(400, "unsupported_content", f"{param}[{at}]")
        text = part.get("text")
        if not isinstance(text, str):
            raise wrong_value(f"{param}[{at}].text", Reason("reason-text"))
        texts.append(_kept(text))
    return "\n".join(texts)


def _texts(value: object, param: str) -> tuple[str, ...]:
    """One text, several, or none."""
    if value is None:
        return ()
    if isinstance(value, str):
        return (_kept(value),)
    if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
        raise wrong_value(param, Reason("api-reason-texts"))
    return tuple(_kept(one) for one in value)


def _kept(text: str) -> str:
    """As the model can be given it: JSON may spell NUL and halves of characters."""
    return whole_text(text.replace("\0", ""))
