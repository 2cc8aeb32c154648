"""The examples, each as it is started by hand: real clients ask, read to the end, stop, stay apart."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import socketio
from playwright.sync_api import Browser, BrowserContext, Locator, Page, expect
from websockets.exceptions import InvalidStatus
from websockets.sync.client import ClientConnection, connect

from tests.browser.conftest import ROOT, free_port
from tests.protocol_server import MODEL, Exchange, ProtocolServer, refusing, saying

pytestmark = pytest.mark.browser

PATIENCE_S = 60.0
CHINESE = "".join(
    f"第{number}句：保持流畅，一个字也不丢。😀{chr(10) * (number % 40 == 0)}"
    for number in range(2_500)
)
UNPAINTED = 4


async def echo(exchange: Exchange) -> None:
    """An answer of many pieces, each with the word that was asked."""
    await saying([f"{exchange.question}-{n} " for n in range(40)], gap_s=0.02)(exchange)


async def endless(exchange: Exchange) -> None:
    """Something at first, then a piece now and then, until the client goes."""
    await exchange.head()
    while True:
        await exchange.say("on and on ")
        await asyncio.sleep(0.05)


@pytest.fixture(scope="module")
def server() -> Iterator[ProtocolServer]:
    with ProtocolServer() as started:
        started.when("echo", echo)
        started.when("endless", endless)
        started.when("huge", saying([CHINESE[at : at + 997] for at in range(0, len(CHINESE), 997)]))
        started.when("broken", refusing(500, {"error": {"message": "it broke"}}))
        yield started


# As by `python -m`; but what is started in the background ignores Ctrl-C, and so would this.
_BEGIN = """
import runpy, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
runpy.run_module(sys.argv[1], run_name="__main__", alter_sys=True)
"""


@dataclass
class Example:
    """An example, started by the command that its README names."""

    name: str
    process: subprocess.Popen[bytes]
    port: int
    log: Path

    @classmethod
    def start(cls, name: str, folder: Path, **env: str) -> Example:
        port, log = free_port(), folder / f"{name}.log"
        with log.open("wb") as output:
            process = subprocess.Popen(
                [sys.executable, "-c", _BEGIN, f"examples.{name}"],
                cwd=ROOT,
                env={
                    **os.environ,
                    **{"PORT": str(port), "GRADIO_SERVER_PORT": str(port)},
                    **{"STEADY_CHAT_DATA_DIR": str(folder), **env},
                },
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
            )
        return cls(name, process, port, log)

    def address(self) -> str:
        """Where it listens, once it does."""
        deadline = time.monotonic() + 2 * PATIENCE_S
        while not _listens(self.port):
            assert self.process.poll() is None, self.log.read_text()
            assert time.monotonic() < deadline, self.log.read_text()
            time.sleep(0.1)
        return f"http://127.0.0.1:{self.port}"

    def end(self) -> None:
        try:
            self.process.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise
        assert "Traceback" not in self.log.read_text().partition("KeyboardInterrupt")[0]


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


@pytest.fixture(scope="module")
def examples(
    server: ProtocolServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[str, Example]]:
    """Both, started and stopped beside each other: Gradio takes its time for either."""
    folder = tmp_path_factory.mktemp("examples")
    scripts = folder / "scripts.json"
    script = {"text": "Told: {question} " + "and more " * 30 + "the end", "tokens_per_s": 100}
    scripts.write_text(json.dumps({"default": script}), encoding="utf-8")
    asked = {"STEADY_CHAT_VLLM_BASE_URL": server.url, "STEADY_CHAT_VLLM_MODEL": MODEL}
    asked["STEADY_CHAT_SCRIPTS_FILE"] = str(scripts)
    started = {
        "socketio_app": Example.start("socketio_app", folder, STEADY_CHAT_BACKENDS="vllm", **asked),
        "gradio_app": Example.start(
            "gradio_app",
            folder,
            STEADY_CHAT_BACKENDS="scripted,vllm",
            STEADY_CHAT_SERVERS=json.dumps(
                [
                    {"name": "there", "base_url": server.url, "model": MODEL},
                    {"name": "away", "base_url": "http://127.0.0.1:9/v1"},
                ]
            ),
            STEADY_CHAT_SERVER_FAILOVER="true",
            **asked,
        ),
    }
    yield started
    for each in started.values():
        each.process.send_signal(signal.SIGINT)
    for each in started.values():
        each.end()


@pytest.fixture
def over_websocket(examples: dict[str, Example]) -> str:
    return examples["socketio_app"].address()


@pytest.fixture
def with_gradio(examples: dict[str, Example]) -> str:
    return examples["gradio_app"].address()


@pytest.fixture(scope="module")
def browsers(chromium: Browser) -> Iterator[Callable[[str], BrowserContext]]:
    """One browser for each language, which keeps what it has loaded."""
    made: dict[str, BrowserContext] = {}

    def speaking(locale: str) -> BrowserContext:
        if locale not in made:
            made[locale] = chromium.new_context(locale=locale)
        return made[locale]

    yield speaking
    for context in made.values():
        context.close()


@pytest.fixture
def opened(browsers: Callable[[str], BrowserContext]) -> Iterator[Callable[..., Page]]:
    """Opens an address in a tab of its own, whose requests to other hosts fail the test."""
    pages, outside = [], []

    def open_page(address: str, locale: str = "en-US") -> Page:
        page = browsers(locale).new_page()
        pages.append(page)
        page.on("request", lambda request: _note_outside(request.url, outside))
        page.goto(address)
        return page

    yield open_page
    for page in pages:
        page.close()
    assert outside == []


def _note_outside(url: str, outside: list[str]) -> None:
    if not re.match(r"(http|ws)://127\.0\.0\.1:|data:|blob:", url):
        outside.append(url)


def ask(page: Page, question: str) -> None:
    # Until it is connected, the page of Flask-SocketIO takes none.
    expect(page.locator("#send:disabled")).to_have_count(0)
    page.locator("textarea").first.fill(question)
    page.keyboard.press("Enter")


def next_exchange(server: ProtocolServer, act: Callable[[], None]) -> Exchange:
    """The request to the server that an act leads to."""
    number = len(server.exchanges)
    act()
    return server.exchange(number, PATIENCE_S)


def whole(locator: Locator) -> str:
    return locator.evaluate("each => each.textContent")


class RawClient:
    """Socket.IO as it is on the wire: every message is looked at, no acknowledgement sent unasked.

    A message of 64 kB or more is an error.
    """

    def __init__(self, wire: ClientConnection) -> None:
        self._wire = wire
        assert self._wire.recv(PATIENCE_S)[:1] == "0"
        self._wire.send("40")
        assert str(self._wire.recv(PATIENCE_S)).startswith("40")

    def emit(self, *event: str) -> None:
        self._wire.send("42" + json.dumps(event))

    def next(self, *names: str) -> tuple[str, Any, str]:
        """The next event of these names: its name, what it says, its number if it wants one."""
        while True:
            message = str(self._wire.recv(PATIENCE_S))
            if message == "2":
                self._wire.send("3")
            elif found := re.match(r"42(\d*)(.*)", message, re.S):
                name, told = json.loads(found[2])
                if name in names:
                    return name, told, found[1]

    def painted(self, number: str) -> None:
        self._wire.send(f"43{number}[]")


def raw(address: str, **options: Any) -> ClientConnection:
    url = address.replace("http", "ws") + "/socket.io/?EIO=4&transport=websocket"
    return connect(url, max_size=63_999, **options)


# Flask-SocketIO


def test_the_websocket_page_shows_the_whole_answer_and_goes_on_with_the_conversation(
    over_websocket: str, server: ProtocolServer, opened: Callable[..., Page]
) -> None:
    page = opened(over_websocket)
    ask(page, "huge")
    expect(page.locator(".note")).to_have_text("finished", timeout=PATIENCE_S * 1000)
    assert whole(page.locator(".answer")) == CHINESE
    assert page.locator(".answer").evaluate("each => getComputedStyle(each).contain") == "content"
    # The end was followed to the bottom, and the caret is gone.
    assert page.locator("#log").evaluate("e => e.scrollHeight - e.scrollTop - e.clientHeight") < 2
    caret = "each => getComputedStyle(each, '::after').content"
    assert page.locator(".answer").evaluate(caret) == "none"
    exchange = next_exchange(server, lambda: ask(page, "echo"))
    expect(page.locator(".note").last).to_have_text("finished")
    assert [each["content"] for each in exchange.body["messages"]] == ["huge", CHINESE, "echo"]


def test_a_websocket_page_updates_its_text_once_a_frame_at_most(
    over_websocket: str, opened: Callable[..., Page]
) -> None:
    page = opened(over_websocket)
    page.evaluate(
        """() => {
            window.updates = [];
            let frame = 0;
            const tick = () => { frame++; requestAnimationFrame(tick); };
            requestAnimationFrame(tick);
            new MutationObserver((seen) => {
                if (seen.some((each) => each.target.parentElement.closest(".answer"))) updates.push(frame);
            }).observe(log, { characterData: true, childList: true, subtree: true });
        }"""
    )
    ask(page, "huge")
    expect(page.locator(".note")).to_have_text("finished", timeout=PATIENCE_S * 1000)
    updates = page.evaluate("updates")
    assert len(updates) > 2
    # The end may come within the frame of the last update.
    assert len(updates) - len(set(updates)) <= 1


def test_stop_on_the_websocket_page_stops_the_server_and_keeps_the_text(
    over_websocket: str, server: ProtocolServer, opened: Callable[..., Page]
) -> None:
    page = opened(over_websocket)
    exchange = next_exchange(server, lambda: ask(page, "endless"))
    expect(page.locator(".answer")).to_contain_text("on and on")
    page.get_by_role("button", name="Stop").click()
    expect(page.locator(".note")).to_have_text("stopped")
    assert exchange.gone.wait(PATIENCE_S)
    assert "on and on" in whole(page.locator(".answer"))
    ask(page, "echo")
    expect(page.locator(".note").last).to_have_text("finished")


def test_two_websocket_pages_do_not_mix_and_speak_their_own_language(
    over_websocket: str, opened: Callable[..., Page]
) -> None:
    ann, bob = opened(over_websocket), opened(over_websocket, locale="zh-CN")
    ask(ann, "echo-ann")
    ask(bob, "echo-bob")
    expect(ann.locator(".note")).to_have_text("finished")
    expect(bob.locator(".note")).to_have_text("已完成")
    for page, name in ((ann, "echo-ann"), (bob, "echo-bob")):
        assert whole(page.locator(".answer")) == "".join(f"{name}-{n} " for n in range(40))


def test_a_page_that_is_closed_stops_its_answer(
    over_websocket: str, server: ProtocolServer, opened: Callable[..., Page]
) -> None:
    page = opened(over_websocket)
    exchange = next_exchange(server, lambda: ask(page, "endless"))
    expect(page.locator(".answer")).to_contain_text("on and on")
    page.close()
    assert exchange.gone.wait(PATIENCE_S)


def test_a_client_that_acknowledges_nothing_is_sent_no_more_and_later_all_at_once(
    over_websocket: str, server: ProtocolServer
) -> None:
    with raw(over_websocket) as wire:
        client = RawClient(wire)
        exchange = next_exchange(server, lambda: client.emit("ask", "huge"))
        batches = [client.next("text") for _ in range(UNPAINTED)]
        assert exchange.over.wait(PATIENCE_S)  # the answer was given whole, whoever reads
        client.emit("ask", "another")
        name, told, _ = client.next("text", "trouble")
        assert name == "trouble"
        assert "only one may at a time" in told
        received = "".join(told["text"] for _, told, _ in batches)
        for _, _, number in batches:
            client.painted(number)
        while True:
            name, told, number = client.next("text", "end")
            if name == "end":
                break
            assert told["at"] == len(received)
            received += told["text"]
            batches.append((name, told, number))
            client.painted(number)
        assert received == CHINESE
        assert told == {"reason": "stop", "chars": len(CHINESE), "said": "finished"}
        # What had come meanwhile came in as few messages as it fits in.
        assert {len(each["text"]) for _, each, _ in batches[UNPAINTED:-1]} == {5_000}


def test_the_official_client_asks_stops_and_is_told_what_is_wrong(
    over_websocket: str, server: ProtocolServer
) -> None:
    with socketio.SimpleClient() as client:
        client.connect(over_websocket, transports=["websocket"])

        def told(name: str) -> tuple[str, Any]:
            """What is said by the next event of this name, and the text before it."""
            text = ""
            while (event := client.receive(PATIENCE_S))[0] != name:
                text += event[1]["text"] if event[0] == "text" else ""
            return text, event[1]

        client.emit("ask", ("echo", "en"))
        text, end = told("end")
        assert text == "".join(f"echo-{n} " for n in range(40))
        assert end == {"reason": "stop", "chars": len(text), "said": "finished"}
        exchange = next_exchange(server, lambda: client.emit("ask", ("endless", "en")))
        _, first = told("text")
        client.emit("stop")
        text, end = told("end")
        assert end == {"reason": "abort", "chars": len(first["text"] + text), "said": "stopped"}
        assert exchange.gone.wait(PATIENCE_S)
        client.emit("ask", ("broken", "en"))
        _, end = told("end")
        assert end["reason"] == "error"
        assert "reported a fault" in end["said"]
        client.emit("ask", ("x" * 15_001, "zh"))
        assert "15,001" in told("trouble")[1]
        client.emit("ask", ())
        assert "empty" in told("trouble")[1]


def test_other_sites_cannot_ask_through_a_visitors_browser(over_websocket: str) -> None:
    for origin in ("http://evil.example", over_websocket.replace("127.0.0.1", "evil.example")):
        with pytest.raises(InvalidStatus, match="400"), raw(over_websocket, origin=origin):
            pass
    with raw(over_websocket, origin=over_websocket) as wire:
        RawClient(wire)


# Gradio


def bot(page: Page) -> Locator:
    return page.locator(".bot.message")


def test_two_gradio_pages_show_their_whole_answers_and_do_not_mix(
    with_gradio: str, opened: Callable[..., Page]
) -> None:
    ann, bob = opened(with_gradio), opened(with_gradio)
    ask(ann, "ann-1")
    ask(bob, "bob-1")
    for page, name in ((ann, "ann-1"), (bob, "bob-1")):
        expect(bot(page)).to_have_text(f"Told: {name} " + "and more " * 30 + "the end")
        expect(page.locator(".submit-button")).to_be_visible()


def ask_server(
    page: Page, server: ProtocolServer, question: str, name: str = "vllm/there"
) -> Exchange:
    """Ask a server instead of what settings name first."""
    page.get_by_role("button", name="Who answers").click()
    page.get_by_role("combobox", name="Who answers").click()
    page.get_by_role("option", name=name).click()
    return next_exchange(server, lambda: ask(page, question))


def test_stop_on_the_gradio_page_stops_the_server_and_keeps_the_text(
    with_gradio: str, server: ProtocolServer, opened: Callable[..., Page]
) -> None:
    page = opened(with_gradio)
    exchange = ask_server(page, server, "endless")
    expect(bot(page)).to_contain_text("on and on")
    page.locator(".stop-button").click()
    assert exchange.gone.wait(PATIENCE_S)
    expect(page.locator(".submit-button")).to_be_visible()
    expect(bot(page)).to_contain_text("on and on")
    again = next_exchange(server, lambda: ask(page, "echo"))
    expect(bot(page).last).to_contain_text("echo-39")
    asked = [each["content"].split()[0] for each in again.body["messages"]]
    assert asked == ["endless", "on", "echo"]


def test_a_gradio_page_that_is_closed_stops_its_answer_even_that_of_another_server(
    with_gradio: str, server: ProtocolServer, opened: Callable[..., Page]
) -> None:
    page = opened(with_gradio)
    exchange = ask_server(page, server, "endless", "vllm/away")  # the other stands in for it
    expect(bot(page)).to_contain_text("on and on")
    page.close()
    assert exchange.gone.wait(PATIENCE_S)


def test_what_goes_wrong_is_said_on_the_gradio_page(
    with_gradio: str, server: ProtocolServer, opened: Callable[..., Page]
) -> None:
    page = opened(with_gradio)
    ask_server(page, server, "broken")
    expect(page.get_by_text("reported a fault")).to_be_visible()
    exchange = next_exchange(server, lambda: ask(page, "echo"))
    expect(bot(page).last).to_contain_text("echo-39")
    assert [each["content"] for each in exchange.body["messages"]] == ["echo"]
