"""A server that speaks vLLM's protocol at a set pace, in a process of its own.

    python -m benchmarks.protocol_server --port 9000 --tokens 600 --rate 30

What the client of such a server costs the app is then part of a measurement, and a model's work
is not.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import subprocess
import sys
import time
import urllib.request
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import psutil
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from benchmarks import answers
from benchmarks.server import free_port
from llm.script import Script

MODEL = "benchmark-model"
READY_TIMEOUT_S = 60


@dataclass(frozen=True, slots=True)
class Told:
    """An answer: its pieces, and how many a second."""

    pieces: list[str]
    rate: float


def make_app(streams: Sequence[tuple[int, float]]) -> Starlette:
    """The server: `answers.answer(tokens)`, `rate` pieces a second, for each such pair.

    The question chooses (`answers.question(tokens)`); the first is for whatever else is asked, and a
    short one for the question that warms up. The question stands behind the first mark and the last,
    so that answers can be told apart. `GET /first` has when each question was last answered.
    """
    told = {
        answers.WARM_UP_QUESTION: Told(_pieces(answers.WARM_UP), streams[0][1]),
        **{answers.question(n): Told(_pieces(answers.answer(n)), rate) for n, rate in streams},
    }
    default = told[answers.question(streams[0][0])]
    first_at: dict[str, float] = {}

    async def models(request: Request) -> Response:
        return JSONResponse(
            {"object": "list", "data": [{"id": MODEL, "object": "model", "max_model_len": 32_768}]}
        )

    async def complete(request: Request) -> Response:
        question = (await request.json())["messages"][-1]["content"]
        answer = next((a for needle, a in told.items() if needle in question), default)
        return StreamingResponse(stream(question, answer), media_type="text/event-stream")

    async def first(request: Request) -> Response:
        return JSONResponse(first_at)

    async def stream(question: str, answer: Told) -> AsyncIterator[bytes]:
        pieces, rate = answer.pieces, answer.rate
        began_s = time.monotonic()
        first_at[question] = time.time()
        yield _event(_choice({"role": "assistant", "content": ""}))
        for number, piece in enumerate(pieces):
            # Each has its own hour: a late one is followed sooner by the next.
            if (ahead_s := began_s + number / rate - time.monotonic()) > 0:
                await asyncio.sleep(ahead_s)
            if number in (0, len(pieces) - 1):
                piece += f" {question}"
            yield _event(_choice({"content": piece}))
        yield _event(_choice({}, "stop"))
        count = len(pieces)
        usage = {"prompt_tokens": 20, "completion_tokens": count, "total_tokens": count + 20}
        yield _event({"choices": [], "usage": usage})
        yield b"data: [DONE]\n\n"

    return Starlette(
        routes=[
            Route("/v1/models", models),
            Route("/v1/chat/completions", complete, methods=["POST"]),
            Route("/first", first),
        ]
    )


def _pieces(text: str) -> list[str]:
    return [piece for _, piece in Script(text).pieces("")]


def _choice(delta: dict[str, str], finish_reason: str | None = None) -> dict[str, object]:
    return {"choices": [{"index": 0, "delta": delta, "finish_reason": finish_reason}]}


def _event(fields: dict[str, object]) -> bytes:
    head = {"id": "chatcmpl-benchmark", "object": "chat.completion.chunk", "created": 0}
    return b"data: " + json.dumps({**head, "model": MODEL, **fields}).encode() + b"\n\n"


@contextmanager
def protocol_server(
    tokens: int, rate: float, *others: tuple[int, float]
) -> Iterator[tuple[str, psutil.Process]]:
    """Run it until the block ends; its base URL, and its process.

    Args:
        others: further answers that can be asked for, with their rates.
    """
    port = free_port()
    command = [sys.executable, "-m", "benchmarks.protocol_server", "--port", str(port)]
    command += ["--tokens", str(tokens), "--rate", str(rate)]
    command += [f"--other={tokens}:{rate}" for tokens, rate in others]
    process = psutil.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        base_url = f"http://127.0.0.1:{port}/v1"
        deadline_s = time.monotonic() + READY_TIMEOUT_S
        while True:
            try:
                with urllib.request.urlopen(f"{base_url}/models", timeout=2):
                    break
            except OSError:
                if time.monotonic() > deadline_s or process.poll() is not None:
                    raise
                time.sleep(0.1)
        yield base_url, process
    finally:
        process.terminate()
        process.wait(10)


def main() -> None:
    parser = argparse.ArgumentParser(description="vLLM's protocol at a set pace.")
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--tokens", type=int, default=600)
    parser.add_argument("--rate", type=float, default=30)
    parser.add_argument("--other", action="append", default=[], help="TOKENS:RATE; repeatable")
    chosen = parser.parse_args()
    others = [(int(n), float(rate)) for n, rate in (each.split(":") for each in chosen.other)]
    app = make_app([(chosen.tokens, chosen.rate), *others])
    uvicorn.run(
        app, host="127.0.0.1", port=chosen.port, log_level="error", timeout_graceful_shutdown=1
    )


if __name__ == "__main__":
    main()
