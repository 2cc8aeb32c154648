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


class ApiError(Exception):
    """A request that gets an error object instead of an answer.

    Args:
        status: of HTTP.
        code: what a program tells it by; stays the same for good.
        reason: the sentence for a person.
        param: the field of the body that it is about.
        headers: to be sent with it.
    """

    def __init__(
        self,
        status: int,
        code: str,
        reason: Reason,
        *,
        param: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(code)
        self.status = status
        self.code = code
        self.reason = reason
        self.param = param
        again = {"Retry-After": str(RETRY_S)} if status in (429, 503) else {}
        self.headers = {**again, **(headers or {})}

    @property
    def kind(self) -> str:
        """The error object's `type`."""
        if self.status == 429:
            return "rate_limit_error"
        return "server_error" if self.status >= 500 else "invalid_request_error"

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


def missing(param: str) -> ApiError:
    """A field of the body that must be there isn't."""
    return refused(400, "missing_parameter", param, name=param)


def wrong_value(param: str, why: Reason) -> ApiError:
    """A field of the body that can't be used."""
    return refused(400, "invalid_value", param, name=param, why=why)


def language_of(accept_language: str | None) -> str:
    """The catalogue's language that is asked for first."""
    return choose_language((accept_language or "").partition(",")[0].partition(";")[0].strip())


# The first class that fits decides: status and code.
_CODES: tuple[tuple[type[LLMError], int, str], ...] = (
    (engine.ContextOverflowError, 400, "context_length_exceeded"),
    (engine.InvalidRequestError, 400, "invalid_value"),
    (engine.ServerParameterError, 400, "invalid_value"),
    (engine.ServerModelUnknownError, 404, "model_not_found"),
    (engine.TooManyWaitingError, 429, "too_many_waiting"),
    (engine.QueueFullError, 429, "queue_full"),
    (engine.ServerBusyError, 503, "busy"),
    (engine.ServerStartingError, 503, "model_not_ready"),
    (engine.ModelError, 503, "model_not_ready"),
    (engine.ShuttingDownError, 503, "shutting_down"),
    (engine.ServerTimeoutError, 504, "timeout"),
    (engine.ServerProxyTimeoutError, 504, "timeout"),
    (engine.StalledError, 504, "timeout"),
    (engine.ServerError, 502, "backend_failed"),
    (engine.OutOfMemoryError, 503, "out_of_memory"),
    (LLMError, 500, "failed"),
)


def from_engine(error: LLMError) -> ApiError:
    """The engine's error as this API tells it."""
    if isinstance(error, engine.InternalError):  # its own sentence is about the page
        return _internal(str(error.values.get("kind", "")))
    _, status, code = next(each for each in _CODES if isinstance(error, each[0]))
    named = error.values.get("parameter")
    param = named if isinstance(named, str) else None
    if isinstance(error, engine.StopStringsError):
        param = "stop"
    elif isinstance(error, engine.ContextOverflowError):
        param = "messages"
    elif isinstance(error, engine.ServerModelUnknownError):
        param = "model"
    told = ApiError(status, code, error.reason, param=param)
    told_s = error.values.get("seconds")
    if "Retry-After" in told.headers and isinstance(told_s, int) and told_s:
        told.headers["Retry-After"] = str(told_s)
    return told


def internal(error: BaseException) -> ApiError:
    """A defect of this app; details are in the log."""
    return _internal(type(error).__name__)


def _internal(kind: str) -> ApiError:
    return refused(500, "internal_error", kind=kind)
