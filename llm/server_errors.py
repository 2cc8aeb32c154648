"""Which error of the tree a server's refusal is, from its status, its body or the socket's end.

Nothing here knows a vendor's classes, and nothing that leaves here holds a key or a header.
"""

from __future__ import annotations

import json
import logging
import math
import re
import socket
import ssl
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from urllib.parse import urlsplit, urlunsplit

from llm import going_on
from llm.errors import (
    ConnectionLostError,
    ContextOverflowError,
    InternalError,
    LLMError,
    NotAllowedError,
    Reason,
    ServerBusyError,
    ServerFaultError,
    ServerGarbageError,
    ServerHostUnknownError,
    ServerKeyError,
    ServerModelUnknownError,
    ServerParameterError,
    ServerProxyTimeoutError,
    ServerStartingError,
    ServerTimeoutError,
    ServerTlsError,
    ServerUnreachableError,
    SettingsError,
    Value,
    WindowExceededError,
)
from llm.fault_log import log_fault
from llm.parameter_errors import named_parameters
from llm.served_values import told_count, whole_text
from llm.types import OPTIONAL_PARAMS

logger = logging.getLogger(__name__)

REASON_CHARS = 300
MESSAGE_CHARS = 20_000
"""No more of a server's message is looked at."""

_ANSWER_TOO_LONG = "reason-answer-too-long"

# Source: vLLM 0.4 to 0.32, vllm/entrypoints/openai/serving_engine.py and renderers/params.py;
# its wording changed several times.
_WINDOW = re.compile(
    r"(?:context (?:length|size|window)(?: is)?(?: only)?|maximum model length of)\D{0,12}(\d{1,12})\b",
    re.IGNORECASE,
)
_PROMPT = (
    re.compile(r"\((\d{1,12}) in the (?:messages|prompt)", re.IGNORECASE),
    re.compile(r"\b(\d{1,12})\s+input\s+tokens", re.IGNORECASE),
    re.compile(r"resulted in (\d{1,12}) tokens", re.IGNORECASE),
    re.compile(r"prompt \(length (\d{1,12})\)", re.IGNORECASE),
    re.compile(r"requested (\d{1,12}) tokens", re.IGNORECASE),
)
_NAMEABLE = (*OPTIONAL_PARAMS, "stream_options", *going_on.FIELDS)
# Source: OpenAI's newer models. Other complaints about max_tokens are about its value.
_OTHER_LIMIT = re.compile(r"\buse\W+max_completion_tokens", re.IGNORECASE)
# Source: OpenAI's error code; llama.cpp's error type (tools/server/README.md) and its numbers.
_OVERFLOW_CODES = ("context_length_exceeded", "exceed_context_size_error")
_WINDOW_WORDS = re.compile(
    r"(?:context|model|prompt|input|sequence)s?\W+(?:\w+\W+){0,4}?(?:length|size|window|len)\b"
    r".{0,200}\b(?:exceed|longer|larger|greater|too long|maximum|over)"
    r"|\b(?:exceed|longer than|larger than|greater than|too long).{0,200}"
    r"\b(?:context|window|max(?:imum)?[ _]model[ _]len(?:gth)?)\b",
    re.IGNORECASE | re.DOTALL,
)
_NO_SUCH_MODEL = re.compile(r"model\b.{0,200}\b(?:does not exist|not found)", re.I | re.S)

# Source: llama.cpp, tools/server/server.cpp: "Loading model"; gateways say it in other words.
_STILL_LOADING = re.compile(r"\b(?:loading|starting|warming up|not (?:yet )?ready)\b", re.I)

# Source: RFC 9110, and Cloudflare's own 524 for an origin that takes too long.
_PROXY_GAVE_UP = (504, 524)
_VERY_LONG_S = 1_000_000


def api_url(base_url: str) -> str:
    """The address to talk to: without user, query or trailing slash; `/v1` where no path is.

    Raises:
        SettingsError: it isn't an address.
    """
    wrong = SettingsError(setting="vllm_base_url", reason=Reason("reason-not-an-address"))
    try:
        parts = urlsplit(base_url.strip())
    except ValueError:
        raise wrong from None
    if "@" in parts.path:  # a password with a slash: it would be shown as part of the path
        raise wrong
    host = parts.netloc.rpartition("@")[2]
    return urlunsplit((parts.scheme, host, parts.path.rstrip("/") or "/v1", "", ""))


@dataclass(frozen=True, slots=True)
class ServerErrors:
    """Turns what a server or its socket did into an `LLMError`.

    Args:
        url: the address as it may be shown.
        secrets: texts that must not appear in a reason.
        connect_timeout_s: what was waited for the connection.
    """

    url: str
    secrets: tuple[str, ...]
    connect_timeout_s: float

    def from_status(
        self, status: int, body: object, retry_after: str | None, asked: Mapping[str, object]
    ) -> LLMError:
        """The error of an HTTP status, or of an error object that names one.

        Args:
            asked: the request's body.
        """
        message = _message(body)
        if status < 400:  # a redirect: the question and the key are for this address only
            return ServerGarbageError(url=self.url)
        if status in (401, 403):
            return ServerKeyError(url=self.url)
        if _NO_SUCH_MODEL.search(message) or (status == 404 and "model" in message.lower()):
            return ServerModelUnknownError(url=self.url, model=str(asked.get("model", "")))
        if status == 503 and _STILL_LOADING.search(message):
            return ServerStartingError(url=self.url)
        if status in (408, 429, 503):
            return ServerBusyError(url=self.url, seconds=retry_after_s(retry_after, _now()))
        if status in _PROXY_GAVE_UP:
            return ServerProxyTimeoutError(url=self.url)
        if status >= 500:
            return ServerFaultError(url=self.url, status=status)
        if status in (400, 409, 413, 422):
            return _overflow(message, body) or self._refusal(body, message, status, asked)
        return ServerGarbageError(url=self.url)

    def from_stream(self, body: object, asked: Mapping[str, object]) -> LLMError:
        """The error of an error object inside a stream."""
        code = body.get("code") if isinstance(body, Mapping) else None
        if isinstance(code, str) and code.isdigit():
            code = int(code)
        if isinstance(code, int) and 400 <= code < 500:
            return self.from_status(code, body, None, asked)
        return _overflow(_message(body), body) or ServerFaultError(url=self.url, status=0)

    def from_socket(self, error: BaseException) -> LLMError:
        """The error of a connection that failed, by the reasons behind it."""
        names: set[str] = set()
        for cause in _causes(error):
            if isinstance(cause, socket.gaierror):
                return ServerHostUnknownError(url=self.url, host=urlsplit(self.url).hostname or "")
            if isinstance(cause, ssl.SSLCertVerificationError):
                return ServerTlsError(url=self.url)
            if isinstance(cause, ssl.SSLError):
                return ServerGarbageError(url=self.url)
            names.update(kind.__name__ for kind in type(cause).__mro__)
        if names & {"ConnectTimeout", "PoolTimeout", "WriteTimeout", "ReadTimeout"}:
            return ServerTimeoutError(url=self.url, seconds=said_s(self.connect_timeout_s))
        if names & {"UnicodeDecodeError", "JSONDecodeError", "DecodingError"}:
            return ServerGarbageError(url=self.url)
        if "UnicodeError" in names:  # a host name that can't be one
            return ServerHostUnknownError(url=self.url, host=urlsplit(self.url).hostname or "")
        if names & {"ConnectError", "ConnectionRefusedError", "InvalidURL", "UnsupportedProtocol"}:
            return ServerUnreachableError(url=self.url)
        if names & {"NetworkError", "ProtocolError", "APIConnectionError", "OSError"}:
            return ConnectionLostError(url=self.url)
        log_fault(logger, "Asking the server failed", error)
        return InternalError(kind=type(error).__name__)

    def _refusal(
        self, body: object, message: str, status: int, asked: Mapping[str, object]
    ) -> LLMError:
        reason = self.scrub(message, status)
        if status in (400, 422):
            other_limit = "max_tokens" in asked and _OTHER_LIMIT.search(message)
            sent = [name for name in _NAMEABLE if name in asked]
            if named := (("max_tokens",) if other_limit else named_parameters(body, message, sent)):
                return ServerParameterError(url=self.url, parameter=", ".join(named), reason=reason)
        return NotAllowedError(reason=reason)

    def scrub(self, message: str, status: int) -> str:
        """A server's own words, short and without secrets."""
        for secret in self.secrets:
            message = message.replace(secret, "…")
        message = " ".join(whole_text(message).split())
        return message[:REASON_CHARS] or f"HTTP {status}"

    def tells_secret(self, error: BaseException) -> bool:
        """Whether a traceback that shows `error` would show a secret."""
        return any(s in f"{cause!r}{cause}" for cause in _causes(error) for s in self.secrets)


def only_the_answer_is_too_long(error: LLMError) -> bool:
    """Whether the prompt fits the window, and only the answer asked for doesn't."""
    reason = error.values.get("reason")
    return isinstance(reason, Reason) and reason.message_id == _ANSWER_TOO_LONG


def said_s(seconds: float) -> int | float:
    """Seconds as a person says them: whole ones without a fraction."""
    return int(seconds) if seconds == int(seconds) else round(seconds, 2)


def _causes(error: BaseException) -> Iterator[BaseException]:
    """The error and what led to it, groups opened."""
    todo: list[BaseException | None] = [error]
    seen: set[int] = set()
    while todo:
        one = todo.pop()
        if one is None or id(one) in seen:
            continue
        seen.add(id(one))
        yield one
        if isinstance(one, BaseExceptionGroup):
            todo.extend(one.exceptions)
        todo += [one.__cause__, one.__context__]


def _message(body: object) -> str:
    """The server's words, whatever shape it gave them."""
    if isinstance(body, str):
        words = body[:MESSAGE_CHARS]
        return "" if words.lstrip().startswith("<") else words  # a page, not words
    if isinstance(body, Mapping):
        for key in ("message", "error", "detail"):
            if words := _message(body.get(key)):
                return words
        return ""
    return "; ".join(map(_entry, body)) if isinstance(body, list) else ""


def _entry(entry: object) -> str:
    """One of several complaints. pydantic's repeats the value, which may be the conversation."""
    if isinstance(entry, Mapping) and isinstance(entry.get("msg"), str):
        loc = entry.get("loc")
        place = (
            ".".join(str(part) for part in loc if part != "body") if isinstance(loc, list) else ""
        )
        return f"{place}: {entry['msg']}" if place else str(entry["msg"])
    return json.dumps(entry, ensure_ascii=False, default=str)


def _overflow(message: str, body: object) -> LLMError | None:
    """What is said about the context window, with the numbers where they are told."""
    fields = _error_object(body)
    prompt_tokens, limit = (
        told_count(fields.get("n_prompt_tokens")),
        told_count(fields.get("n_ctx")),
    )
    if prompt_tokens is None or limit is None:
        window = _WINDOW.search(message)
        prompt = next((found for form in _PROMPT if (found := form.search(message))), None)
        if window is None or prompt is None:
            told = any(fields.get(name) in _OVERFLOW_CODES for name in ("code", "type"))
            return WindowExceededError() if told or _WINDOW_WORDS.search(message) else None
        limit, prompt_tokens = int(window[1]), int(prompt[1])
    numbers: dict[str, Value] = {"prompt_tokens": prompt_tokens, "limit": limit}
    if prompt_tokens < limit:
        return NotAllowedError(reason=Reason(_ANSWER_TOO_LONG, numbers))
    return ContextOverflowError(**numbers, over=max(1, prompt_tokens - limit))


def _error_object(body: object) -> Mapping[str, object]:
    """The object that describes the error, where the body has one."""
    if not isinstance(body, Mapping):
        return {}
    inner = body.get("error")
    return inner if isinstance(inner, Mapping) else body


def retry_after_s(told: str | None, now: datetime) -> int:
    """Retry-After, a number or a date, in whole seconds from now, at most about twelve days.

    0 where it says nothing: empty, negative, in the past, or no such value at all.
    Source: https://www.rfc-editor.org/rfc/rfc9110#field.retry-after
    """
    told = (told or "").strip()
    if told.isdecimal():
        return int(told) if len(told) < 7 else _VERY_LONG_S
    try:
        at = parsedate_to_datetime(told)
        seconds = math.ceil((at - now).total_seconds()) if at.tzinfo else 0
    except (ValueError, OverflowError):
        return 0
    return min(max(0, seconds), _VERY_LONG_S)


def _now() -> datetime:
    return datetime.now(UTC)
