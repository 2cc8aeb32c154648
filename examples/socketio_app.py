"""A chat over WebSocket in four layers: `python -m examples.socketio_app`, then http://127.0.0.1:5050.

    inference     inference.py: a job generates, whoever is looking
    flow control  send_answer: the newest text, one batch a frame, only while there is credit
    transport     Socket.IO: `ask`, `stop`; back `state`, `text` …, then `end` or `trouble`
    rendering     socketio_page.html: one text update an animation frame

Each `text` says at which character it begins (0: anew) and is acknowledged when it is painted;
`end` says how many characters there are, so that the page knows whether it has them all.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from threading import Lock, Semaphore

from flask import Flask, Response, request, send_file
from flask_socketio import SocketIO
from werkzeug.serving import WSGIRequestHandler

from examples.inference import Inference
from llm.catalogue import Catalogue, catalogue
from llm.errors import LLMError, Reason, TooManyWaitingError
from llm.job import GenerationJob
from llm.types import Message

PORT = int(os.environ.get("PORT", "5050"))
FRAME_S = 1 / 20
BATCH_CHARS = 5_000  # at most 12 bytes each in JSON, so that no message has 64 kB
UNPAINTED = 4  # batches that may be on their way to a page; what comes meanwhile goes together
SILENT_S = 60.0  # a page that acknowledges nothing for so long is let go

app = Flask(__name__, static_folder=None)
inference = Inference(most_chars=15_000)
socketio = SocketIO(
    app,
    async_mode="threading",
    async_handlers=False,  # what one page sends is dealt with in its order
    manage_session=False,
    max_http_buffer_size=64_000,
    # Named, not compared with the request's own host: no other site asks through a visitor.
    cors_allowed_origins=[f"http://{host}:{PORT}" for host in ("127.0.0.1", "localhost")],
)


@dataclass
class Client:
    """One page: its conversation, and the one answer on its way to it."""

    sid: str
    history: list[Message] = field(default_factory=list)
    job: GenerationJob | None = None
    credit: Semaphore = field(default_factory=lambda: Semaphore(UNPAINTED))
    lock: Lock = field(default_factory=Lock)


clients: dict[str, Client] = {}


@app.get("/")
def page() -> Response:
    return send_file(Path(__file__).with_name("socketio_page.html"))


@socketio.on("connect")
def connect() -> None:
    clients[request.sid] = Client(request.sid)


@socketio.on("disconnect")
def disconnect(reason: str) -> None:
    clients.pop(request.sid).credit.release()  # for send_answer, which may be waiting for it


@socketio.on("ask")
def ask(question: str = "", language: str = "en") -> None:
    client, words = clients[request.sid], catalogue(str(language))
    with client.lock:
        try:
            if client.job is not None:
                raise TooManyWaitingError(limit=1)
            client.job = inference.ask(inference.usual, client.sid, client.history, str(question))
        except LLMError as error:
            socketio.emit("trouble", error.sentence(words), to=client.sid)
        else:
            socketio.start_background_task(send_answer, client, client.job, words)


@socketio.on("stop")
def stop() -> None:
    if (job := clients[request.sid].job) is not None:
        job.cancel()


def send_answer(client: Client, job: GenerationJob, words: Catalogue) -> None:
    """Send an answer while it grows, and its end; with the page gone, stop it."""
    emit, sent, said = partial(socketio.emit, to=client.sid), "", ""
    while client.sid in clients:
        now = job.snapshot()
        if now.text != sent:
            if not client.credit.acquire(timeout=SILENT_S):
                socketio.server.disconnect(client.sid)
                continue
            now = job.snapshot()  # what came while the page was busy goes along
            sent = sent if now.text.startswith(sent) else ""
            more = now.text[len(sent) :][:BATCH_CHARS]
            batch = {"at": len(sent), "text": more}
            emit("text", batch, callback=lambda *said: client.credit.release())
            sent += more
        elif now.finish is not None:
            why = now.error or now.finish.why or Reason(f"finish-{now.finish.reason}")
            end = {"reason": now.finish.reason, "chars": len(sent), "said": why.sentence(words)}
            with client.lock:  # so that the next answer comes after it
                turn = [job.request.messages[-1], Message("assistant", sent)]
                client.history += turn if sent else []
                client.job = None
                emit("end", end)
            return
        elif (state := inference.going_on(job, now, words)) != said:
            emit("state", said := state)
        if not now.done:
            socketio.sleep(FRAME_S)
    job.cancel()


class OneRequest(WSGIRequestHandler):
    """Closes a connection whose WebSocket has ended, where Werkzeug waits for another request."""

    def connection_dropped(self, error: BaseException, environ: object = None) -> None:
        self.close_connection = True


if __name__ == "__main__":
    serving = {"request_handler": OneRequest, "allow_unsafe_werkzeug": True}
    try:
        # Werkzeug's server is made for development: this serves this machine alone.
        socketio.run(app, host="127.0.0.1", port=PORT, **serving)
    finally:
        inference.close()
