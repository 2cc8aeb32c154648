"""The routes, and what goes for all of them: switched off, who may, how errors are told.

Unknown paths below `/v1` are answered here too: Streamlit would give its page, with status 200.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable

from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from api import chat_completions, stream
from api.embeddings import embed
from api.errors import ApiError, from_engine, internal, language_of, refused
from api.events import EventResponse
from api.models import find, listed, named
from api.service import Service
from llm.errors import LLMError
from llm.fault_log import log_fault

logger = logging.getLogger(__name__)

Answer = Response | EventResponse
Handler = Callable[[Service, Request, str], Awaitable[Answer]]


def api_routes(make_service: Callable[[], Service | None]) -> list[Route]:
    """All routes of the API.

    Args:
        make_service: the API of this process, None where it is off. Called for each request, on a
            thread of the pool until it has given one.
    """
    there = _Lazily(make_service)

    def route(path: str, **by_method: Handler) -> Route:
        return Route(path, _endpoint(there, by_method), methods=None)

    return [
        route("/v1/models", GET=_models),
        route("/v1/models/{model:path}", GET=_model),
        route("/v1/chat/completions", POST=chat_completions.complete),
        route("/v1/embeddings", POST=embed),
        route("/v1/{rest:path}"),
        route(stream.PATH, POST=stream.begin),
        route(stream.PATH + "/{stream_id}", GET=stream.take_up, DELETE=stream.stop),
    ]


class _Lazily:
    """Made at the first request: settings may be wrong, and that is the page's to say."""

    def __init__(self, make: Callable[[], Service | None]) -> None:
        self._make = make
        self._made: Service | None = None

    async def get(self) -> Service:
        """Raises `ApiError` where the API is off."""
        if self._made is None:
            self._made = await run_in_threadpool(self._make)
        if self._made is None:
            raise refused(404, "disabled")
        return self._made


def _endpoint(there: _Lazily, by_method: dict[str, Handler]) -> ASGIApp:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive, send)
        language = language_of(request.headers.get("Accept-Language"))
        headers: dict[str, str] = {}
        answer: Answer
        try:
            service = await there.get()
            headers.update(service.access.cors(request))
            if request.method == "OPTIONS" and "Access-Control-Allow-Origin" in headers:
                answer = Response(status_code=204)
            else:
                handler = _handler(service, request, by_method)
                answer = await handler(service, request, language)
        except ClientDisconnect:
            return
        except Exception as error:  # noqa: BLE001 - told by type and place
            answer = _told(error, language)
        for name, told in headers.items():
            answer.headers[name] = told
        try:
            await answer(scope, receive, send)
        except Exception as error:  # noqa: BLE001 - told by type and place
            log_fault(logger, "An answer of the API broke off", error)

    return _Plain(app)


def _told(error: Exception, language: str) -> JSONResponse:
    try:
        if isinstance(error, ApiError):
            return error.response(language)
        if isinstance(error, LLMError):
            return from_engine(error).response(language)
    except Exception as fault:  # noqa: BLE001 - told by type and place
        error = fault
    log_fault(logger, "A request to the API failed", error)
    return internal(error).response(language)


class _Plain:
    """Starlette calls a function with a request; what isn't one, as an ASGI app."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._app(scope, receive, send)


def _handler(service: Service, request: Request, by_method: dict[str, Handler]) -> Handler:
    method = "GET" if request.method == "HEAD" else request.method
    if method in by_method:
        return by_method[method]
    service.access.caller(request)
    if not by_method:
        raise refused(404, "unknown_url")
    error = refused(405, "method_not_allowed")
    error.headers["Allow"] = ", ".join(by_method)
    raise error


async def _models(service: Service, request: Request, language: str) -> Answer:
    service.access.caller(request)
    offered = await run_in_threadpool(service.offered)
    data = [
        listed(model_id, model, service.started_s) for model_id, model in named(offered).items()
    ]
    if (embeddings := service.embeddings) is not None:
        data.append(listed(embeddings.name, embeddings.offered, service.started_s))
    told = {"object": "list", "data": data}
    return JSONResponse(told, headers={"Cache-Control": "no-store"})


async def _model(service: Service, request: Request, language: str) -> Answer:
    service.access.caller(request)
    wanted = request.path_params["model"]
    if service.embeddings is not None and wanted == service.embeddings.name:
        return JSONResponse(listed(wanted, service.embeddings.offered, service.started_s))
    model_id, model = find(await run_in_threadpool(service.offered), wanted)
    return JSONResponse(listed(model_id, model, service.started_s))
