"""The API's routes on a port of their own, over whatever backend a test brings."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cached_property
from typing import Any

import httpx2
import uvicorn
from openai import OpenAI
from starlette.applications import Starlette

from api.access import Access
from api.models import OfferedModel
from api.routes import api_routes
from api.service import Limits, Service
from llm.engine import Engine
from llm.registry import JobRegistry
from llm.types import Backend

KEY = "sk-of-the-test"
BEARER = {"Authorization": f"Bearer {KEY}"}
PATIENCE_S = 120.0
"""Long, for a machine that is busy with other things; nothing here waits for time to pass."""


class ApiServer:
    """uvicorn with the API, on a thread.

    Args:
        service: made with the arguments of `Service`; whatever is left out is as in `serving`.
        send_buffer_bytes: the kernel's, of every connection.
    """

    def __init__(self, service: Service, send_buffer_bytes: int = 0) -> None:
        self.service = service
        self._socket = socket.create_server(("127.0.0.1", 0), backlog=256)
        if send_buffer_bytes:
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, send_buffer_bytes)
        self.port: int = self._socket.getsockname()[1]
        self.address = f"http://127.0.0.1:{self.port}"
        # There is no TLS here, and reading its certificates takes a while.
        self.http = httpx2.Client(base_url=self.address, timeout=PATIENCE_S, verify=False)
        app = Starlette(routes=api_routes(lambda: service))
        config = uvicorn.Config(app, log_level="error", access_log=False, lifespan="off")
        self.server = uvicorn.Server(config)
        self.thread = threading.Thread(target=self.server.run, args=([self._socket],))
        self.thread.start()

    @cached_property
    def openai(self) -> OpenAI:
        """A client of the SDK; it tries nothing again."""
        return OpenAI(base_url=f"{self.address}/v1", api_key=KEY, max_retries=0, timeout=PATIENCE_S)

    def stop(self) -> None:
        self.http.close()
        if "openai" in vars(self):
            self.openai.close()
        self.server.should_exit = True
        self.thread.join(PATIENCE_S)
        assert not self.thread.is_alive()


@contextmanager
def serving(
    backends: Mapping[str, Backend] | Backend,
    *,
    access: Access | None = None,
    registry: JobRegistry | None = None,
    send_buffer_bytes: int = 0,
    engine: Callable[[JobRegistry, Mapping[str, Callable[[], Backend]]], Engine] = Engine,
    **given: Any,
) -> Iterator[ApiServer]:
    """The API over these backends, with the key `KEY`."""
    named = backends if isinstance(backends, Mapping) else {"scripted": backends}
    registry = registry or JobRegistry(max_waiting=1000, max_waiting_each=1000)
    makers = {name: (lambda made=backend: made) for name, backend in named.items()}
    server: ApiServer | None = None
    given.setdefault("offered", lambda: tuple(OfferedModel(name, name=name) for name in named))
    given.setdefault("stopping", lambda: server is not None and server.server.should_exit)
    service = Service(access or Access(KEY), engine(registry, makers), **given)
    server = ApiServer(service, send_buffer_bytes)
    try:
        yield server
    finally:
        server.stop()
        registry.close()
        for backend in named.values():
            backend.close()


def limits(**given: float) -> Limits:
    return Limits(**given)  # type: ignore[arg-type]


def wait_until(true: Callable[[], bool], what: str = "it") -> None:
    """For what has no event of its own to wait on."""
    deadline = time.monotonic() + PATIENCE_S
    while not true():
        assert time.monotonic() < deadline, f"{what} never came true"
        time.sleep(0.01)


def chat(question: str, **given: Any) -> dict[str, Any]:
    """A request's body."""
    messages = [{"role": "user", "content": question}]
    return {"model": "scripted", "messages": messages, **given}


class RawStream:
    """A client of the plainest kind: a socket, and whatever it reads.

    Args:
        receive_buffer_bytes: how much the kernel takes in for it unread.
    """

    def __init__(
        self,
        server: ApiServer,
        path: str,
        body: object = None,
        *,
        method: str = "",
        headers: Mapping[str, str] = BEARER,
        receive_buffer_bytes: int = 0,
    ) -> None:
        self.socket = socket.socket()
        if receive_buffer_bytes:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer_bytes)
        self.socket.settimeout(PATIENCE_S)
        self.socket.connect(("127.0.0.1", server.port))
        told = b"" if body is None else json.dumps(body).encode()
        lines = [f"{method or ('GET' if body is None else 'POST')} {path} HTTP/1.1"]
        lines += [f"Host: 127.0.0.1:{server.port}", f"Content-Length: {len(told)}"]
        lines += [f"{name}: {value}" for name, value in headers.items()]
        self.socket.sendall(("\r\n".join(lines) + "\r\n\r\n").encode() + told)
        self.received = b""

    def read_until(self, needle: bytes) -> bytes:
        """All that has come, once the needle is in it."""
        while needle not in self.received:
            piece = self.socket.recv(65_536)
            assert piece, f"{needle!r} never came: {self.received[-500:]!r}"
            self.received += piece
        return self.received

    def close(self) -> None:
        """Gone, as a browser's tab is."""
        with suppress(OSError):
            self.socket.shutdown(socket.SHUT_RDWR)
        self.socket.close()


def events(received: str) -> list[dict[str, str]]:
    """The events of a body, comments left out; several data lines are joined."""
    told: list[dict[str, str]] = []
    for block in received.replace("\r\n", "\n").split("\n\n"):
        fields: dict[str, str] = {}
        for line in block.splitlines():
            name, _, value = line.partition(":")
            if name:
                fields[name] = fields.get(name, "") + value.removeprefix(" ")
        if fields:
            told.append(fields)
    return told
