"""What goes wrong, as the objects that OpenAI's clients read: `{"error": {message, type, …}}`.

`docs/api.md` has the table of codes. Messages are sentences of the catalogue, in English or in
what `Accept-Language` asks for; none holds a key, a prompt or a whole body.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from starlette.responses import JSONResponse

from llm import errors as engine
from llm.catalogue import catalogue, choose_language
from llm.errors import LLMError, Reason, Value

RETRY_S = 5
"""When to ask again, where nothing better is known: about an answer's time."""

INVALID, SERVER, LIMITED = "invalid_request_error", "server_error", "rate_limit_error"


class ApiError(Exception):
    """A request that gets an error object instead of an answer.

    Args:
        status: of HTTP.
        code: what a program tells it by; stays the same for good.
        reason: the sentence for a person.
        param: the field of the body that it is about.
        kind: `invalid_request_error`, `rate_limit_error` or `server_error`.
        headers: to be sent with it.
    """

    def __init__(
        self,
        status: int,
        code: str,
        reason: Reason,
        *,
        param: str | None = None,
        kind: str = INVALID,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(code)
        self.status = status
        self.code = code
        self.reason = reason
        self.param = param
        self.kind = kind
        self.headers = dict(headers or {})

    def told(self, language: str) -> dict[str, Any]:
        """The error object."""
        message = self.reason.sentence(catalogue(language))
        error = {"message": message, "type": self.kind, "param": self.param, "code": self.code}
        return {"error": error}

    def response(self, language: str) -> JSONResponse:
        headers = {"Cache-Control": "no-store", **self.headers}
        return JSONResponse(self.told(language), self.status, headers)


def refused(status: int, code: str, param: str | None = None, **values: Value | Reason) -> ApiError:
    """The error of that code, whose sentence is the catalogue's `api-` and the code."""
    reason = Reason("api-" + code.replace("_", "-"), values)
    return ApiError(status, code, reason, param=param)


def wrong_value(param: str, why: Reason) -> ApiError:
    """A field of the body that can't be used."""
    return refused(400, "invalid_value", param, name=param, why=why)


def language_of(accept_language: str | None) -> str:
    """The catalogue's language that is asked for first."""
    return choose_language((accept_language or "").partition(",")[0].partition(";")[0].strip())


# The first class that fits decides: status, code, type.
_KINDS: tuple[tuple[type[LLMError], int, str, str], ...] = (
    (engine.ContextOverflowError, 400, "context_length_exceeded", INVALID),
    (engine.InvalidRequestError, 400, "invalid_value", INVALID),
    (engine.ServerParameterError, 400, "invalid_value", INVALID),
    (engine.ServerModelUnknownError, 404, "model_not_found", INVALID),
    (engine.TooManyWaitingError, 429, "too_many_waiting", LIMITED),
    (engine.QueueFullError, 429, "queue_full", LIMITED),
    (engine.ServerBusyError, 503, "busy", SERVER),
    (engine.ServerStartingError, 503, "model_not_ready", SERVER),
    (engine.ModelError, 503, "model_not_ready", SERVER),
    (engine.ShuttingDownError, 503, "shutting_down", SERVER),
    (engine.ServerTimeoutError, 504, "timeout", SERVER),
    (engine.ServerProxyTimeoutError, 504, "timeout", SERVER),
    (engine.StalledError, 504, "timeout", SERVER),
    (engine.ServerError, 502, "backend_failed", SERVER),
    (engine.OutOfMemoryError, 503, "out_of_memory", SERVER),
    (LLMError, 500, "failed", SERVER),
)
_AGAIN = (429, 503)


def from_engine(error: LLMError) -> ApiError:
    """The engine's error as this API tells it."""
    if isinstance(error, engine.InternalError):  # its own sentence is about the page
        return _internal(str(error.values.get("kind", "")))
    _, status, code, kind = next(each for each in _KINDS if isinstance(error, each[0]))
    headers = {}
    if status in _AGAIN:
        told_s = error.values.get("seconds")
        headers["Retry-After"] = str(told_s if isinstance(told_s, int) and told_s else RETRY_S)
    named = error.values.get("parameter")
    param = named if isinstance(named, str) else None
    if isinstance(error, engine.StopStringsError):
        param = "stop"
    elif isinstance(error, engine.ContextOverflowError):
        param = "messages"
    elif isinstance(error, engine.ServerModelUnknownError):
        param = "model"
    return ApiError(status, code, error.reason, param=param, kind=kind, headers=headers)


def internal(error: BaseException) -> ApiError:
    """A defect of this app; details are in the log."""
    return _internal(type(error).__name__)


def _internal(kind: str) -> ApiError:
    error = refused(500, "internal_error", kind=kind)
    error.kind = SERVER
    return error
