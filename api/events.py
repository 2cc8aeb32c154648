"""Server-sent events: how they are written, and a response that minds its client.

A client that goes is noticed while nothing is sent; one that stops reading is given up once a write
has waited too long. Until then no more than the socket's buffer is held for it.

Source: https://html.spec.whatwg.org/multipage/server-sent-events.html
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing

from starlette.types import Message, Receive, Scope, Send

KEEP_ALIVE = b": keep-alive\n\n"
DONE = b"data: [DONE]\n\n"
HEADERS = {
    "Content-Type": "text/event-stream; charset=utf-8",
    # no-transform: nobody on the way may compress it, and so gather it first.
    "Cache-Control": "no-store, no-transform",
    "X-Accel-Buffering": "no",
}


def comment(text: str) -> bytes:
    """A line that clients pass over."""
    return f": {text}\n\n".encode()


def event(data: object, *, name: str = "", event_id: str = "", retry_ms: int = 0) -> bytes:
    """One event. JSON has no line breaks of its own, so the data is one line."""
    lines = [f"event: {name}"] if name else []
    if event_id:
        lines.append(f"id: {event_id}")
    if retry_ms:
        lines.append(f"retry: {retry_ms}")
    lines.append("data: " + json.dumps(data, ensure_ascii=False, separators=(",", ":")))
    return ("\n".join(lines) + "\n\n").encode()


class EventResponse:
    """Sends events as they come, until they end, the client goes, or it doesn't read.

    Args:
        events: encoded events; closed in the end.
        write_limit_s: how long one write may wait for the client to read.
        on_end: called once, however it ends, and even where nothing could be sent.
    """

    def __init__(
        self,
        events: AsyncGenerator[bytes],
        *,
        write_limit_s: float,
        on_end: Callable[[], None] = lambda: None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        self._events = events
        self._write_limit_s = write_limit_s
        self._on_end = on_end
        self.headers = {**HEADERS, **(headers or {})}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        sending = asyncio.ensure_future(self._send_all(send))
        leaving = asyncio.ensure_future(_client_leaves(receive))
        try:
            await asyncio.wait({sending, leaving}, return_when=asyncio.FIRST_COMPLETED)
            if sending.done() and isinstance(sending.exception(), TimeoutError):
                _hang_up(receive)
                await asyncio.wait({leaving}, timeout=1)
        finally:
            self._on_end()
            for task in (sending, leaving):
                task.cancel()
            ended, _ = await asyncio.gather(sending, leaving, return_exceptions=True)
            await self._events.aclose()
        # A write that took too long or had no socket any more is the client's doing.
        if isinstance(ended, Exception) and not isinstance(ended, OSError):
            raise ended

    async def _send_all(self, send: Send) -> None:
        headers = [(name.lower().encode(), told.encode()) for name, told in self.headers.items()]
        start: Message = {"type": "http.response.start", "status": 200, "headers": headers}
        await self._write(send, start)
        async with aclosing(self._events) as events:
            async for piece in events:
                body: Message = {"type": "http.response.body", "body": piece, "more_body": True}
                await self._write(send, body)
        await self._write(send, {"type": "http.response.body", "body": b""})

    async def _write(self, send: Send, message: Message) -> None:
        async with asyncio.timeout(self._write_limit_s):
            await send(message)


async def _client_leaves(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


def _hang_up(receive: Receive) -> None:
    """Drop the connection with what waits to be written to it.

    ASGI has no word for it, and a connection that is only closed stays until its client has read
    all: for ever, and a server that stops waits for it. Where this isn't uvicorn it stays so.

    Source: uvicorn's RequestResponseCycle, whose method `receive` is.
    """
    transport = getattr(getattr(receive, "__self__", None), "transport", None)
    if isinstance(transport, asyncio.WriteTransport):
        transport.abort()
