"""The one place that knows openai: how a request is sent, and what its failures mean.

openai is imported at the first request, and everything here runs on the backend's private loop.
"""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from collections.abc import AsyncIterator, Container, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit
from urllib.request import getproxies

from llm.errors import (
    LLMError,
    MissingPackageError,
    ServerGarbageError,
    ServerKeyError,
    ServerModelUnknownError,
    ServerTimeoutError,
)
from llm.model_list import ModelInfo, read_model_list
from llm.served_values import told_count, told_name
from llm.server_errors import ServerErrors, api_url, said_s

if TYPE_CHECKING:
    from openai import AsyncOpenAI, AsyncStream
    from openai._types import RequestOptions


_NO_ROUTE = (404, 405, 501)
# Where a body may also be another than the server wants, or the route not for everybody.
_REFUSED = (301, 302, 303, 307, 308, 400, 401, 403, 422, *_NO_ROUTE)


@dataclass(frozen=True, slots=True)
class FirstLook:
    """What a server says when it is asked for its models.

    Args:
        status: of HTTP.
        date: the head's, as it came; empty where there is none.
        took_s: from the question to the answer.
        models: what it lists.
        error: why that isn't a list of models.
    """

    status: int
    date: str
    took_s: float
    models: tuple[ModelInfo, ...]
    error: LLMError | None


class VllmClient:
    """The requests that the backend makes, as plain JSON.

    Thread-safety: made anywhere; used on one event loop only.

    Args:
        base_url: with or without `/v1`, a user and a password.
        api_key: sent as a bearer token; none is sent where it is empty.
        connect_timeout_s: to reach the server.

    Attributes:
        url: the address as it may be shown.

    Raises:
        SettingsError: the address isn't one.
    """

    def __init__(self, base_url: str, api_key: str, connect_timeout_s: float) -> None:
        self.url = api_url(base_url)
        self._user = _user_of(base_url)
        self._key = api_key.strip()
        self._connect_timeout_s = connect_timeout_s
        secrets = tuple(secret for secret in (self._key, (self._user or ("", ""))[1]) if secret)
        self._errors = ServerErrors(self.url, secrets, connect_timeout_s)
        self._openai: AsyncOpenAI | None = None

    async def open(self, body: dict[str, Any]) -> AsyncStream[object]:
        """Ask; returns once the head came. Chunks stay plain JSON: the vendor's models cost more
        than they check.
        """
        return await self._connected().post(
            "/chat/completions",
            cast_to=object,
            body=body,
            stream=True,
            stream_cls=_event_stream(),
            options=self._options(),
        )

    async def models(self, limit_s: float) -> tuple[ModelInfo, ...]:
        """The models that the server lists.

        Raises:
            LLMError: and nothing else.
        """
        watch = asyncio.timeout(limit_s)
        try:
            async with watch:
                told = await self._connected().get(
                    "/models", cast_to=object, options=self._options()
                )
        except Exception as fault:
            if watch.expired():
                raise ServerTimeoutError(url=self.url, seconds=said_s(limit_s)) from fault
            raise self.translated(fault, {}) from self.cause(fault)
        models = read_model_list(told)
        if models is None:
            raise ServerGarbageError(url=self.url)
        return models

    async def first_look(self, limit_s: float) -> FirstLook:
        """The list of models with all that its head tells, a refusal's too.

        Raises:
            LLMError: no answer came, or one that is none.
        """
        import httpx2
        from openai import APIStatusError

        watch = asyncio.timeout(limit_s)
        now_s = asyncio.get_running_loop().time
        try:
            client = self._connected()
            async with watch:
                sent_s = now_s()
                answer = await client.get(
                    "/models", cast_to=httpx2.Response, options=self._options()
                )
        except APIStatusError as refusal:
            date = refusal.response.headers.get("date", "")
            error = self.translated(refusal, {})
            return FirstLook(refusal.status_code, date, now_s() - sent_s, (), error)
        except Exception as fault:
            if watch.expired():
                raise ServerTimeoutError(url=self.url, seconds=said_s(limit_s)) from fault
            raise self.translated(fault, {}) from self.cause(fault)
        took_s = now_s() - sent_s
        try:
            models = read_model_list(answer.json())
        except (ValueError, RecursionError):
            models = None
        garbage = ServerGarbageError(url=self.url) if models is None else None
        date = answer.headers.get("date", "")
        return FirstLook(answer.status_code, date, took_s, models or (), garbage)

    async def embeddings(
        self, model: str, texts: Sequence[str], limit_s: float
    ) -> list[list[float]]:
        """One vector a text, in their order, as the server scales them.

        Raises:
            LLMError: and nothing else.
        """
        body = {"model": model, "input": list(texts), "encoding_format": "float"}
        watch = asyncio.timeout(limit_s)
        try:
            async with watch:
                told = await self._connected().post(
                    "/embeddings", cast_to=object, body=body, options=self._options()
                )
        except Exception as fault:
            if watch.expired():
                raise ServerTimeoutError(url=self.url, seconds=said_s(limit_s)) from fault
            raise self.translated(fault, body) from self.cause(fault)
        data = told.get("data") if isinstance(told, dict) else None
        try:
            rows = {int(row["index"]): row["embedding"] for row in data or ()}
            return [list(rows[place]) for place in range(len(texts))]
        except (KeyError, TypeError, ValueError):
            raise ServerGarbageError(url=self.url) from None

    async def count_tokens(self, model: str, conversation: Mapping[str, object]) -> int | None:
        """The prompt's tokens by the server's own tokenizer; None where it has no such route.

        Args:
            conversation: the messages, and whether the last is gone on with, as `open` is told.

        Raises:
            LLMError: and nothing else.
        """
        told = await self._beside("/tokenize", _NO_ROUTE, _tokenized(model, conversation))
        return told_count(told.get("count") if isinstance(told, dict) else None)

    async def token_ids(
        self, model: str, conversation: Mapping[str, object]
    ) -> tuple[int, ...] | None:
        """The prompt's tokens themselves; None where the server has no such route, wants another
        body or refuses the conversation.

        Raises:
            LLMError: and nothing else.
        """
        told = await self._beside("/tokenize", _REFUSED, _tokenized(model, conversation))
        ids = told.get("tokens") if isinstance(told, dict) else None
        if not isinstance(ids, list) or not ids or not all(type(each) is int for each in ids):
            return None
        return tuple(ids)

    async def version(self) -> str:
        """What the server calls its version; empty where it doesn't.

        Source: vLLM's `/version`.

        Raises:
            LLMError: and nothing else.
        """
        return told_name(await self._beside("/version", _REFUSED), "version")

    async def system_fingerprint(self, model: str) -> str:
        """What the server calls its engine and configuration; empty where it doesn't.

        It is told with answers only, so one of a single token is asked for.

        Source: the OpenAI API; vLLM, entrypoints/serve/utils/fingerprint.py.

        Raises:
            LLMError: and nothing else.
        """
        messages = [{"role": "user", "content": "Hi"}]
        body = {"model": model, "messages": messages, "max_tokens": 1}
        try:
            told = await self._connected().post(
                "/chat/completions", cast_to=object, body=body, options=self._options()
            )
        except Exception as fault:  # noqa: BLE001 - only LLMErrors leave
            raise self.translated(fault, body) from self.cause(fault)
        return told_name(told, "system_fingerprint")

    async def _beside(
        self, route: str, nothing: Container[int], body: Mapping[str, object] | None = None
    ) -> object:
        """What a route says that stands beside `/v1`, not under it; None where it isn't there.

        Args:
            nothing: the statuses that mean just that.
            body: what is posted; without one the route is read.

        Raises:
            LLMError: and nothing else.
        """
        url = self.url.removesuffix("/v1") + route
        try:
            if body is None:
                return await self._connected().get(url, cast_to=object, options=self._options())
            return await self._connected().post(
                url, cast_to=object, body=dict(body), options=self._options()
            )
        except Exception as fault:  # noqa: BLE001 - only LLMErrors leave
            error = self.translated(fault, body or {})
            said_no = getattr(fault, "status_code", 0) in nothing
            if said_no and not isinstance(error, ServerModelUnknownError):
                return None
            raise error from self.cause(fault)

    async def close(self) -> None:
        if self._openai is not None:
            await self._openai.close()

    def cause(self, error: Exception) -> Exception | None:
        """The error as a cause for the log: None where it holds a secret."""
        hide = isinstance(error, LLMError) or self._errors.tells_secret(error)
        return None if hide else error

    def translated(self, error: Exception, asked: Mapping[str, object]) -> LLMError:
        """The tree's error for whatever the vendor or the socket raised over this body."""
        if isinstance(error, LLMError):
            return error
        if isinstance(error, ImportError):
            return MissingPackageError(package="openai")
        from openai import APIError, APIStatusError

        if isinstance(error, APIStatusError):
            retry_after = error.response.headers.get("retry-after")
            return self._errors.from_status(error.status_code, error.body, retry_after, asked)
        if type(error) is APIError:  # an error object inside the stream
            return self._errors.from_stream(error.body, asked)
        return self._errors.from_socket(error)

    def told(self, error_object: object, asked: Mapping[str, object]) -> LLMError:
        """The tree's error for an error object that came in place of a chunk."""
        return self._errors.from_stream(error_object, asked)

    def _connected(self) -> AsyncOpenAI:
        """The client, made at the first use."""
        if self._openai is None:
            if not (self._key.isascii() and self._key.isprintable()):
                raise ServerKeyError(url=self.url)  # it can't even be sent
            self._openai = _client(self.url, self._key, self._user, self._connect_timeout_s)
        return self._openai

    def _options(self) -> RequestOptions:
        """Without a key no bearer token is sent, which openai wants said with each request."""
        from openai import Omit

        return {} if self._key else {"headers": {"Authorization": Omit()}}


def _tokenized(model: str, conversation: Mapping[str, object]) -> dict[str, object]:
    """What vLLM's `/tokenize` is asked."""
    return {"model": model, "add_generation_prompt": True, **conversation}


def _user_of(base_url: str) -> tuple[str, str] | None:
    parts = urlsplit(base_url.strip())
    if parts.username is None:
        return None
    return unquote(parts.username), unquote(parts.password or "")


def _is_this_machine(host: str) -> bool:
    try:
        address = ipaddress.ip_address(host)
        return address.is_loopback or address.is_unspecified
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


@cache
def _event_stream() -> type[AsyncStream[object]]:
    """openai's stream, minus events without data, which the standard says to pass over.

    openai reads them as empty JSON and fails: a comment after an event with an `id` is enough.
    Source: https://html.spec.whatwg.org/multipage/server-sent-events.html#dispatchMessage
    """
    from openai import AsyncStream

    class EventStream(AsyncStream[object]):
        async def _iter_events(self) -> AsyncIterator[Any]:
            async for event in super()._iter_events():
                if event.data:
                    yield event

    return EventStream


async def _part_after_fault(response: Any) -> None:
    """Use a connection no more after a fault of the server.

    uvicorn closes it a moment after the 500, under the next question that is sent on it.
    """
    if response.status_code >= 500:
        await response.aread()
        await response.extensions["network_stream"].aclose()


def _client(
    url: str, key: str, user: tuple[str, str] | None, connect_timeout_s: float
) -> AsyncOpenAI:
    """openai's client: no retries of its own, no read timeout, keep-alive probes on its sockets."""
    import httpx2
    from openai import AsyncOpenAI, Omit

    # Idle connections go before uvicorn, after 5 s, closes them under a request.
    limits = httpx2.Limits(max_connections=None, keepalive_expiry=2.0)
    transport = None
    if _is_this_machine(urlsplit(url).hostname or "") or not getproxies():
        keepalive = [(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)]
        if hasattr(socket, "TCP_KEEPIDLE"):  # Linux
            tcp = socket.IPPROTO_TCP
            keepalive += [(tcp, socket.TCP_KEEPIDLE, 30), (tcp, socket.TCP_KEEPINTVL, 10)]
        transport = httpx2.AsyncHTTPTransport(limits=limits, socket_options=keepalive)
    headers: dict[str, Any] = {"OpenAI-Organization": Omit(), "OpenAI-Project": Omit()}
    return AsyncOpenAI(
        base_url=url,
        api_key=key or "none",
        admin_api_key="",
        max_retries=0,
        default_headers=headers,
        http_client=httpx2.AsyncClient(
            base_url=url,
            auth=user,
            # The question is for this address, not for whatever host it names.
            follow_redirects=False,
            limits=limits,
            transport=transport,
            timeout=httpx2.Timeout(None, connect=connect_timeout_s),
            event_hooks={"response": [_part_after_fault]},
        ),
        timeout=httpx2.Timeout(None, connect=connect_timeout_s),
    )
