"""`/v1/chat/completions`: an answer as one object, or as chunks while it comes.

Source: https://platform.openai.com/docs/api-reference/chat; `reasoning_content` is vLLM's.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse

from api.bodies import read_chat
from api.client import while_client_stays
from api.errors import ApiError, from_engine, missing
from api.events import DONE, KEEP_ALIVE, EventResponse, comment, event
from api.following import Position, follow, whole
from api.service import Asked, Service, failure, usage_of
from llm.errors import LLMError
from llm.job import Snapshot


async def complete(
    service: Service, request: Request, language: str
) -> JSONResponse | EventResponse:
    """Answer a chat.

    Raises:
        ApiError, LLMError: before anything was sent.
        ClientDisconnect: the client is gone.
    """
    person = service.access.caller(request)
    body = await read_chat(request, service.limits.body_bytes, service.stopping)
    if body.model is None:
        raise missing("model")
    asked = await service.ask(person, body)
    if body.stream:
        chunks = _chunks(service, asked, language, with_usage=body.with_usage)
        return EventResponse(chunks, write_limit_s=service.limits.write_s, on_end=asked.job.cancel)
    try:
        waiting = whole(asked.job, until_s=asked.until_s, stopping=service.stopping)
        snapshot = await while_client_stays(request, waiting)
    finally:
        asked.job.cancel()
    if (error := failure(snapshot)) is not None:
        raise error
    return JSONResponse(_object(asked, snapshot), headers={"Cache-Control": "no-store"})


def _object(asked: Asked, snapshot: Snapshot) -> dict[str, Any]:
    assert snapshot.finish is not None
    message: dict[str, Any] = {"role": "assistant", "content": snapshot.text}
    if snapshot.reasoning:
        message["reasoning_content"] = snapshot.reasoning
    choice = {
        "index": 0,
        "message": message,
        "logprobs": None,
        "finish_reason": snapshot.finish.reason,
    }
    return {
        **_head(asked, "chat.completion"),
        "choices": [choice],
        "usage": usage_of(snapshot.finish.usage),
    }


async def _chunks(
    service: Service, asked: Asked, language: str, *, with_usage: bool
) -> AsyncGenerator[bytes]:
    """The stream.

    An error after it began is an object with `error` in place of a chunk, and no `[DONE]` follows:
    OpenAI's clients raise it.
    """
    head = _head(asked, "chat.completion.chunk")
    if with_usage:
        head["usage"] = None

    def chunk(delta: Mapping[str, str], finish_reason: str | None = None) -> bytes:
        choice = {
            "index": 0,
            "delta": delta,
            "logprobs": None,
            "finish_reason": finish_reason,
        }
        return event({**head, "choices": [choice]})

    try:
        yield comment("connected")
        yield chunk({"role": "assistant", "content": ""})
        snapshot = asked.job.snapshot()
        looks = follow(
            asked.job,
            Position(),
            until_s=asked.until_s,
            keep_alive_s=service.limits.keep_alive_s,
            stopping=service.stopping,
        )
        async with aclosing(looks):
            async for look in looks:
                snapshot = look.snapshot
                for piece in look.pieces:
                    if piece.kind != "recast":  # what was said as text can't be taken back here
                        yield chunk({_FIELDS[piece.kind]: piece.text})
                if not look.pieces and not snapshot.done:
                    yield KEEP_ALIVE
        if (error := failure(snapshot)) is not None:
            raise error
        assert snapshot.finish is not None
        yield chunk({}, snapshot.finish.reason)
        if with_usage:
            yield event({**head, "choices": [], "usage": usage_of(snapshot.finish.usage)})
        yield DONE
    except (ApiError, LLMError) as error:
        told = from_engine(error) if isinstance(error, LLMError) else error
        yield event(told.told(language))


_FIELDS: Mapping[str, str] = {"text": "content", "reasoning": "reasoning_content"}


def _head(asked: Asked, kind: str) -> dict[str, Any]:
    return {
        "id": f"chatcmpl-{asked.request_id}",
        "object": kind,
        "created": asked.created_s,
        "model": asked.model,
    }
