"""Many clients at once, some slow, some that stopped reading: nothing is lost, and memory is bounded."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor

from openai import AsyncOpenAI

from llm.registry import JobRegistry
from llm.script import Script
from llm.scripted_backend import ScriptedBackend
from llm.types import CancelToken, Delta, Finish, GenerationRequest, Message, SamplingParams
from tests.api_server import (
    KEY,
    PATIENCE_S,
    ApiServer,
    RawStream,
    chat,
    limits,
    serving,
    wait_until,
)
from tests.driven_backend import Saves, end_of

STREAMS = 50
SLOTS = 16
WORDS = "{question}: " + " ".join(f"{{question}}-{number}" for number in range(60)) + " 你好🙂"

# uvicorn's high-water mark, and one event of 8,192 characters of up to 4 bytes (api/following.py).
MOST_BUFFERED_BYTES = 65_536 + 4 * 8_192 + 2_048
SMALL_BUFFER_BYTES = 8_192
"""What the kernel holds for a connection, so that it isn't the kernel that takes all of it."""


class Counting(ScriptedBackend):
    """Knows which answers were begun, in their order, and can hold them back."""

    def __init__(self, default: Script, *, slots: int) -> None:
        super().__init__(default, slots=slots)
        self.begun: list[str] = []
        self.go_on = threading.Event()
        self.go_on.set()

    def stream(self, request: GenerationRequest, cancel: CancelToken) -> Generator[Delta | Finish]:
        self.begun.append(request.request_id)
        assert self.go_on.wait(PATIENCE_S)
        return super().stream(request, cancel)


def buffered_bytes(server: ApiServer) -> list[int]:
    """What uvicorn holds for each of its connections."""
    connections = list(server.server.server_state.connections)
    return [each.transport.get_write_buffer_size() for each in connections]


def test_fifty_streams_at_once_are_each_whole_and_their_own() -> None:
    """And somebody of the page, who asks in the midst, isn't behind them all."""
    script = Script(WORDS, tokens_per_s=200, prefill_s=0.05)
    backend = Counting(script, slots=SLOTS)
    backend.go_on.clear()
    registry = JobRegistry(max_waiting=200, max_waiting_each=200)

    def ask_on_the_page() -> None:
        try:
            wait_until(lambda: registry.in_line() == STREAMS - SLOTS, "the line")
            params = SamplingParams(max_tokens=5)
            asked = GenerationRequest((Message("user", "page"),), params, request_id="page")
            job = registry.submit("page", "ann", backend, asked, save=Saves())
        finally:
            backend.go_on.set()
        end_of(job)

    async def one(client: AsyncOpenAI, number: int) -> str:
        text = ""
        stream = await client.chat.completions.create(
            **chat(f"q{number}", stream=True, max_tokens=5_000)
        )
        async for chunk in stream:
            text += chunk.choices[0].delta.content or ""
        return text

    async def all_of_them(server: ApiServer) -> list[str]:
        async with AsyncOpenAI(
            base_url=f"{server.address}/v1", api_key=KEY, max_retries=0, timeout=PATIENCE_S
        ) as client:
            return await asyncio.gather(*(one(client, number) for number in range(STREAMS)))

    # On threads: in this one a browser's test may have left an event loop that runs.
    with serving(backend, registry=registry) as server, ThreadPoolExecutor(2) as threads:
        page = threads.submit(ask_on_the_page)
        texts = threads.submit(asyncio.run, all_of_them(server)).result()
        page.result()
        wait_until(lambda: not registry.running(), "the end of all")
    assert texts == [WORDS.replace("{question}", f"q{n}") for n in range(STREAMS)]
    # Several places may become free at once, and then it isn't decided who begins first.
    assert backend.begun.index("page") < 2 * SLOTS, "the page's question was taken early"


def test_slow_readers_get_all_of_it_and_hold_up_nobody() -> None:
    text = "0123456789" * 20_000
    backend = ScriptedBackend(Script(text, chunk_chars=500))
    with serving(backend, send_buffer_bytes=SMALL_BUFFER_BYTES) as server:
        readers = [
            RawStream(
                server,
                "/stream",
                chat(f"r{number}", max_tokens=100_000),
                headers={"Authorization": f"Bearer {KEY}", "Accept": "text/event-stream"},
                receive_buffer_bytes=SMALL_BUFFER_BYTES,
            )
            for number in range(5)
        ]
        # The answers are over long before they are read, and a quick client isn't behind them.
        wait_until(lambda: backend.running == 0, "the answers")
        quick = server.openai.chat.completions.create(**chat("quick", max_tokens=100_000))
        assert quick.choices[0].message.content == text
        most = 0
        for reader in readers:
            while b"event: done" not in reader.received:
                reader.received += reader.socket.recv(2_000)
                most = max(most, *buffered_bytes(server), 0)
            digits = reader.received.count(b'"text":"')
            assert 20 < digits < 400, "what nobody had read was told together"
            told = b"".join(
                line.partition(b'{"text":"')[2].removesuffix(b'"}')
                for line in reader.received.replace(b"\r\n", b"\n").split(b"\n")
                if line.startswith(b'data: {"text"')
            )
            assert told.decode() == text
            reader.close()
        assert 0 < most <= MOST_BUFFERED_BYTES


def test_clients_that_stop_reading_are_given_up_and_cost_little_until_then() -> None:
    text = "0123456789" * 50_000
    backend = Counting(Script(text, chunk_chars=500, stall_after=900), slots=50)
    registry = JobRegistry(max_waiting_each=100)
    with serving(
        backend,
        registry=registry,
        limits=limits(write_s=0.5),
        send_buffer_bytes=SMALL_BUFFER_BYTES,
    ) as server:
        stopped = [
            RawStream(
                server,
                "/v1/chat/completions",
                chat(f"s{number}", stream=True, max_tokens=100_000),
                receive_buffer_bytes=SMALL_BUFFER_BYTES,
            )
            for number in range(20)
        ]
        most = 0

        def given_up() -> bool:
            nonlocal most
            most = max(most, *buffered_bytes(server), 0)
            return len(backend.begun) == 20 and backend.running == 0 and not registry.running()

        wait_until(given_up, "giving up")
        assert 0 < most <= MOST_BUFFERED_BYTES
        wait_until(lambda: not server.server.server_state.connections, "the connections' end")
        for stream in stopped:
            stream.close()
