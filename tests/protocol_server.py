"""A small real server that speaks the OpenAI protocol, well or badly, byte by byte.

It listens on a free port of this machine, on a thread of its own. Tests say what happens to a
request by a word in its last message or by its model's name, and look afterwards at what came
and at whether, and when, the client went away.
"""

from __future__ import annotations

import asyncio
import json
import ssl
import threading
import time
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Self

MODEL = "tiny-test-model"


class ClientGoneError(Exception):
    """The client closed the connection while a handler was speaking."""


@dataclass(eq=False)
class Exchange:
    """One request and the way back.

    Attributes:
        gone: set when the client has closed the connection.
        over: set when the handler has ended, for whatever reason.
    """

    method: str
    path: str
    headers: dict[str, str]
    body: dict[str, Any]
    _writer: asyncio.StreamWriter
    _lost: asyncio.Event
    gone: threading.Event = field(default_factory=threading.Event)
    over: threading.Event = field(default_factory=threading.Event)
    gone_at_s: float | None = None
    bytes_sent: int = 0
    _chunked: bool = False

    @property
    def question(self) -> str:
        """The last message, but for an answer that is to go on."""
        messages = [m for m in self.body.get("messages") or [] if m["role"] != "assistant"]
        return str(messages[-1]["content"]) if messages else ""

    @property
    def given(self) -> str | None:
        """The answer's text that is to be gone on with, by vLLM's fields; None for a new one."""
        last = (self.body.get("messages") or [{}])[-1]
        wanted = self.body.get("continue_final_message") and last.get("role") == "assistant"
        return str(last["content"]) if wanted else None

    async def raw(self, data: bytes) -> None:
        """Send bytes as they are."""
        if self._lost.is_set():
            raise ClientGoneError
        self._writer.write(data)
        await self._writer.drain()
        self.bytes_sent += len(data)

    async def head(
        self, status: int = 200, kind: str = "text/event-stream", **headers: str
    ) -> None:
        """A head for a body of unknown length."""
        self._chunked = True
        lines = [f"HTTP/1.1 {status} X", f"content-type: {kind}", "transfer-encoding: chunked"]
        lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
        await self.raw("\r\n".join([*lines, "", ""]).encode())

    async def part(self, data: bytes) -> None:
        """Some of that body."""
        if data:
            await self.raw(b"%x\r\n%s\r\n" % (len(data), data))

    async def end(self) -> None:
        """The body's proper end."""
        await self.raw(b"0\r\n\r\n")

    async def event(self, data: object) -> None:
        """One server-sent event; text is sent as it is, anything else as JSON."""
        text = data if isinstance(data, str) else json.dumps(data)
        await self.part(f"data: {text}\n\n".encode())

    async def say(self, text: str | None = None, **more: object) -> None:
        """One well-formed chunk."""
        await self.event(chunk({} if text is None else {"content": text}, **more))

    async def answer(self, status: int, body: object, **headers: str) -> None:
        """A whole response."""
        kind = "text/html" if isinstance(body, str) else "application/json"
        data = body.encode() if isinstance(body, str) else json.dumps(body).encode()
        await self.head(status, kind, **headers)
        await self.part(data)
        await self.end()

    async def hold(self) -> None:
        """Say nothing more until the client goes."""
        await self._lost.wait()
        raise ClientGoneError

    def cut(self) -> None:
        """Drop the connection, without a proper end."""
        self._writer.transport.abort()


Handler = Callable[[Exchange], Awaitable[None]]

PATIENCE_S = 60.0
"""Nothing here takes long; whoever waits this long has found a bug."""


def chunk(delta: object, finish: str | None = None, **more: Any) -> dict[str, Any]:
    """A chat.completion.chunk with one choice."""
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion.chunk",
        "model": MODEL,
        "choices": [choice],
        **more,
    }


def usage_chunk(prompt: int, completion: int) -> dict[str, Any]:
    counts = {"prompt_tokens": prompt, "completion_tokens": completion}
    return {"object": "chat.completion.chunk", "choices": [], "usage": counts}


def saying(pieces: Iterable[str], *, gap_s: float = 0.0, finish: str | None = "stop") -> Handler:
    """A handler that behaves: role first, pieces, finish, usage, [DONE]; honours max_tokens, stop,
    and goes on with a text where it is told to."""
    all_told = tuple(pieces)

    async def handler(exchange: Exchange) -> None:
        await exchange.head()
        await exchange.event(chunk({"role": "assistant", "content": ""}))
        told = before(after(exchange.given or "", all_told), exchange.body.get("stop") or [])
        limit = exchange.body.get("max_tokens") or len(told)
        for piece in told[:limit]:
            await exchange.say(piece)
            if gap_s:
                await asyncio.sleep(gap_s)
        await exchange.say(None, finish="length" if len(told) > limit else finish)
        await exchange.event(usage_chunk(7, min(limit, len(told))))
        await exchange.event("[DONE]")
        await exchange.end()

    return handler


def after(given: str, pieces: tuple[str, ...]) -> tuple[str, ...]:
    """The pieces but for as many characters as were given, and but for empty ones."""
    left, kept = len(given), []
    for piece in pieces:
        kept.append(piece[left:])
        left = max(0, left - len(piece))
    return tuple(piece for piece in kept if piece)


def before(pieces: tuple[str, ...], stop: list[str]) -> tuple[str, ...]:
    """The pieces up to the first stop string, as a server cuts them."""
    text = "".join(pieces)
    end = min((text.index(one) for one in stop if one in text), default=len(text))
    kept, at = [], 0
    for piece in pieces:
        if at < end:
            kept.append(piece[: end - at])
        at += len(piece)
    return tuple(kept)


def refusing(status: int, body: object, **headers: str) -> Handler:
    """A handler that answers with a status."""

    async def handler(exchange: Exchange) -> None:
        await exchange.answer(status, body, **headers)

    return handler


def sending(*events: object, done: bool = True) -> Handler:
    """A handler that sends these events as they are, and ends the body properly."""

    async def handler(exchange: Exchange) -> None:
        await exchange.head()
        for event in events:
            await exchange.event(event)
        if done:
            await exchange.event("[DONE]")
        await exchange.end()

    return handler


class ProtocolServer:
    """The server; a context manager.

    Attributes:
        exchanges: every chat request, in the order they came.
        models: what `/v1/models` lists.
        models_handler: takes the place of that list.
        tokenize_handler: answers `/tokenize`, which is not there without it.
        version_handler: answers `/version`, likewise.
        embeddings_handler: the same for `/v1/embeddings`.
        key: the bearer token that is wanted; None wants none.

    Args:
        tls: what the server proves itself with; None speaks plain HTTP.
    """

    def __init__(self, tls: ssl.SSLContext | None = None) -> None:
        self._tls = tls
        self.exchanges: list[Exchange] = []
        self.lookups: list[Exchange] = []
        self.models: list[str] = [MODEL]
        self.models_handler: Handler | None = None
        self.tokenize_handler: Handler | None = None
        self.version_handler: Handler | None = None
        self.embeddings_handler: Handler | None = None
        self.key: str | None = None
        self._rules: list[tuple[str, Handler]] = []
        self._default = saying(["Hello", ", ", "world", "!"])
        self._news = threading.Condition()
        self._started = threading.Event()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="protocol-server", daemon=True)
        self.port = 0

    @property
    def url(self) -> str:
        return f"{'https' if self._tls else 'http'}://127.0.0.1:{self.port}/v1"

    def when(self, word: str, handler: Handler) -> None:
        """What happens to a request whose last message contains `word`, or whose model it is."""
        self._rules.insert(0, (word, handler))

    def exchange(self, number: int = 0, timeout_s: float = PATIENCE_S) -> Exchange:
        """The chat request of that number, waiting for it to come."""
        with self._news:
            came = self._news.wait_for(lambda: len(self.exchanges) > number, timeout_s)
        assert came, f"chat request {number} never came"
        return self.exchanges[number]

    def __enter__(self) -> Self:
        self._thread.start()
        assert self._started.wait(PATIENCE_S)
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.stop()

    def stop(self) -> None:
        """Drop every connection and stop; a second call does nothing."""
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join(PATIENCE_S)

    def _run(self) -> None:
        loop = self._loop
        asyncio.set_event_loop(loop)
        server = loop.run_until_complete(
            asyncio.start_server(self._serve, "127.0.0.1", self.port, ssl=self._tls)
        )
        self.port = server.sockets[0].getsockname()[1]
        self._started.set()
        loop.run_forever()
        server.close()
        tasks = asyncio.all_tasks(loop)
        for task in tasks:
            task.cancel()
        if tasks:
            loop.run_until_complete(asyncio.wait(tasks))
        loop.run_until_complete(loop.shutdown_asyncgens())
        loop.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection: its requests, one after another."""
        came = _Inbox(reader)
        pump = asyncio.ensure_future(came.pump())
        try:
            while (exchange := await self._next(came, writer)) is not None:
                try:
                    await self._handler(exchange)(exchange)
                except (ClientGoneError, ConnectionError):
                    came.lose()
                    return
                finally:
                    exchange.over.set()
        except asyncio.CancelledError:
            return  # the server stops
        finally:
            pump.cancel()
            writer.close()

    async def _next(self, came: _Inbox, writer: asyncio.StreamWriter) -> Exchange | None:
        head = await came.until(b"\r\n\r\n")
        if head is None:
            return None
        first, *lines = head.decode("latin-1").split("\r\n")
        method, path, _ = first.split(" ", 2)
        headers = {
            name.strip().lower(): value.strip()
            for name, _, value in (line.partition(":") for line in lines if line)
        }
        data = await came.take(int(headers.get("content-length", "0")))
        if data is None:
            return None
        body = json.loads(data) if data else {}
        exchange = Exchange(method, path, headers, body, writer, came.lost)
        came.exchange = exchange
        with self._news:
            (self.exchanges if path.endswith("/chat/completions") else self.lookups).append(
                exchange
            )
            self._news.notify_all()
        return exchange

    def _handler(self, exchange: Exchange) -> Handler:
        if self.key is not None and exchange.headers.get("authorization") != f"Bearer {self.key}":
            return refusing(401, {"error": {"message": "Unauthorized"}})
        if exchange.path == "/v1/models":
            listed = {"object": "list", "data": [{"id": name} for name in self.models]}
            return self.models_handler or refusing(200, listed)
        if exchange.path == "/tokenize" and self.tokenize_handler is not None:
            return self.tokenize_handler
        if exchange.path == "/version" and self.version_handler is not None:
            return self.version_handler
        if exchange.path == "/v1/embeddings" and self.embeddings_handler is not None:
            return self.embeddings_handler
        if exchange.path != "/v1/chat/completions":
            return refusing(404, {"detail": "Not Found"})
        for word, handler in self._rules:
            if word in exchange.question or word == exchange.body.get("model"):
                return handler
        if exchange.body.get("model") not in self.models:
            name = exchange.body.get("model")
            message = f"The model `{name}` does not exist."
            return refusing(
                404, {"error": {"message": message, "type": "NotFoundError", "code": 404}}
            )
        return self._default


class _Inbox:
    """What a client sent, read at once, so that its going is noticed while a handler speaks."""

    def __init__(self, reader: asyncio.StreamReader) -> None:
        self._reader = reader
        self._data = bytearray()
        self._came = asyncio.Event()
        self.lost = asyncio.Event()
        self.exchange: Exchange | None = None

    async def pump(self) -> None:
        try:
            while data := await self._reader.read(65536):
                self._data += data
                self._came.set()
        except ConnectionError:
            pass
        self.lose()

    def lose(self) -> None:
        if self.lost.is_set():
            return
        self.lost.set()
        self._came.set()
        if self.exchange is not None:
            self.exchange.gone_at_s = time.monotonic()
            self.exchange.gone.set()

    async def until(self, mark: bytes) -> bytes | None:
        while (at := self._data.find(mark)) < 0:
            if not await self._more() or self._data[:1] == b"\x16":  # TLS
                return None
        data = bytes(self._data[:at])
        del self._data[: at + len(mark)]
        return data

    async def take(self, count: int) -> bytes | None:
        while len(self._data) < count:
            if not await self._more():
                return None
        data = bytes(self._data[:count])
        del self._data[:count]
        return data

    async def _more(self) -> bool:
        if self.lost.is_set():
            return False
        self._came.clear()
        await self._came.wait()
        return True
