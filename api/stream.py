"""`/stream`: an answer as named events, which a client that lost the connection takes up again.

`POST /stream` asks, `GET /stream/{id}` follows, from the start or from what `Last-Event-ID` names,
and `DELETE` stops. A browser's EventSource can send no headers: the id, which can't be guessed, is
all that it needs.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from api.bodies import read_chat
from api.errors import ApiError, from_engine, refused
from api.events import HEADERS, KEEP_ALIVE, EventResponse, event
from api.following import Position, follow
from api.open_streams import OpenStream
from api.service import Service, failure, usage_of
from llm.errors import LLMError
from llm.job import Snapshot

PATH = "/stream"
RETRY_MS = 1_000


async def begin(service: Service, request: Request, language: str) -> JSONResponse | EventResponse:
    """Ask. Whoever accepts events is sent them at once, others are told where they are.

    Raises:
        ApiError, LLMError: nothing was asked.
        ClientDisconnect: the client is gone.
    """
    person = service.access.caller(request)
    service.streams.require_room()
    body = await read_chat(request, service.limits.body_bytes, service.stopping)
    asked = await service.ask(person, body)
    stream = service.streams.open(asked, service.limits.grace_s)
    if "text/event-stream" in request.headers.get("Accept", ""):
        return _followed(service, stream, Position(), language)
    told = {"stream": _path(stream), "model": asked.model, "created": asked.created_s}
    headers = {"Location": _path(stream), "Cache-Control": "no-store"}
    return JSONResponse(told, 201, headers)


async def take_up(service: Service, request: Request, language: str) -> Response | EventResponse:
    """Follow an answer from where this client stands.

    Raises:
        ApiError: there is no such answer, or no such place in it.
    """
    service.access.require_loopback(request)
    stream = service.streams.get(request.path_params["stream_id"])
    told = request.headers.get("Last-Event-ID") or request.query_params.get("last_event_id", "")
    at = Position.read(told) if told else Position()
    if at is None or not at.is_in(stream.asked.job.snapshot()):
        raise refused(400, "invalid_event_id", "Last-Event-ID")
    if at.end:
        return Response(status_code=204)  # by which an EventSource stops to come again
    if request.method == "HEAD":  # else its connection would be taken until the answer ends
        return Response(headers=HEADERS)
    return _followed(service, stream, at, language)


async def stop(service: Service, request: Request, language: str) -> Response:
    """Stop an answer, and forget it; raises as `take_up`."""
    service.access.require_loopback(request)
    service.streams.end(service.streams.get(request.path_params["stream_id"]))
    return Response(status_code=204)


def _followed(service: Service, stream: OpenStream, at: Position, language: str) -> EventResponse:
    service.streams.begin_watching(stream)
    return EventResponse(
        _events(service, stream, at, language),
        write_limit_s=service.limits.write_s,
        on_end=lambda: service.streams.end_watching(stream, service.limits.grace_s),
    )


async def _events(
    service: Service, stream: OpenStream, at: Position, language: str
) -> AsyncGenerator[bytes]:
    asked = stream.asked
    told = {"stream": _path(stream), "model": asked.model, "created": asked.created_s}
    yield event(told, name="connected", event_id=str(at), retry_ms=RETRY_MS)
    looks = follow(
        asked.job,
        at,
        until_s=asked.until_s,
        keep_alive_s=service.limits.keep_alive_s,
        stopping=service.stopping,
    )
    try:
        async with aclosing(looks):
            async for look in looks:
                snapshot = look.snapshot
                for piece in look.pieces:
                    at = piece.at
                    data = {} if piece.kind == "recast" else {"text": piece.text}
                    yield event(data, name=piece.kind, event_id=str(at))
                if not look.pieces and not snapshot.done:
                    yield KEEP_ALIVE
        for last in _end(snapshot, at, asked.model):
            yield last
    except (ApiError, LLMError) as error:
        if not asked.job.snapshot().done:  # the time is up, or the server is being stopped
            asked.job.cancel()
        failed = from_engine(error) if isinstance(error, LLMError) else error
        yield event(failed.told(language), name="error", event_id=_end_id(at))


def _end(snapshot: Snapshot, at: Position, model: str) -> list[bytes]:
    """The events behind the last text.

    Raises:
        ApiError, LLMError: the answer isn't whole.
    """
    if (error := failure(snapshot)) is not None:
        raise error
    assert snapshot.finish is not None
    usage = usage_of(snapshot.finish.usage)
    events = [event(usage, name="usage", event_id=str(at))] if usage else []
    done = {
        "finish_reason": snapshot.finish.reason,
        "model": model,
        "cached": snapshot.cached is not None,
    }
    return [*events, event(done, name="done", event_id=_end_id(at))]


def _end_id(at: Position) -> str:
    return str(Position(at.reasoning, at.text, at.recast, end=True))


def _path(stream: OpenStream) -> str:
    return f"{PATH}/{stream.stream_id}"
