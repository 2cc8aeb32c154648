"""A hub with one model, whose weights may never come to their end."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

COMMIT = "a" * 40


class FakeHub:
    """What was asked of it, and what it serves.

    Args:
        files: name to content.
        endless: a file of which half is sent, and then nothing until the client goes.
    """

    def __init__(self, files: dict[str, bytes], endless: str = "") -> None:
        self.files = files
        self.endless = endless
        self.sent: list[str] = []
        self.half_sent, self.client_gone = threading.Event(), threading.Event()
        self.url = ""

    @contextmanager
    def running(self) -> Iterator[FakeHub]:
        hub = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_: object) -> None:
                pass

            def do_HEAD(self) -> None:
                self._file(self.path.rsplit("/", 1)[-1])

            def do_GET(self) -> None:
                if "/tree/" in self.path:
                    told = [
                        {"type": "file", "path": name, "size": len(text), "oid": _etag(text)}
                        for name, text in hub.files.items()
                    ]
                    self._answer(json.dumps(told).encode())
                elif self.path.startswith("/api/"):
                    self._answer(json.dumps({"id": "owner/name", "sha": COMMIT}).encode())
                else:
                    self._file(self.path.rsplit("/", 1)[-1], with_body=True)

            def _file(self, name: str, *, with_body: bool = False) -> None:
                text = hub.files[name]
                if not with_body or name != hub.endless:
                    self._answer(text, etag=_etag(text), with_body=with_body)
                    hub.sent += [name] * with_body
                    return
                self._answer(text[: len(text) // 2], etag=_etag(text), length=len(text))
                hub.half_sent.set()
                with suppress(ConnectionError):  # it went with what it hadn't read
                    while self.connection.recv(1024):
                        pass
                hub.client_gone.set()
                self.close_connection = True

            def _answer(
                self,
                body: bytes,
                *,
                etag: str = "",
                length: int | None = None,
                with_body: bool = True,
            ) -> None:
                self.send_response(200)
                self.send_header("Content-Length", str(len(body) if length is None else length))
                self.send_header("X-Repo-Commit", COMMIT)
                if etag:
                    self.send_header("ETag", f'"{etag}"')
                self.end_headers()
                if with_body:
                    self.wfile.write(body)
                    self.wfile.flush()

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        self.url = f"http://127.0.0.1:{server.server_port}"
        try:
            yield self
        finally:
            server.shutdown()
            server.server_close()
            thread.join()


def _etag(text: bytes) -> str:
    return hashlib.sha256(text).hexdigest()
