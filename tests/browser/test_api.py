"""The API of the running app, asked by what people use: OpenAI's client, curl, a browser's
EventSource, each also through nginx."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import openai
import pytest
from playwright.sync_api import Browser, Page, expect

from api.access import Access
from llm.script import Script
from llm.scripted_backend import ScriptedBackend
from llm.types import Finish, Usage
from tests.api_server import KEY, ApiServer, chat, events, serving
from tests.browser.chat_page import LIMIT_MS, ChatPage
from tests.browser.conftest import ROOT, StartServer, free_port, wait_until_healthy
from tests.deploy_tools import Proxy, render
from tests.driven_backend import DrivenBackend
from tests.stalling_proxy import StallingProxy

pytestmark = pytest.mark.browser

LIMIT_S = LIMIT_MS / 1000
WORDS = [f"word{number:03d}" for number in range(200)]
SCRIPTS = {
    "default": {"text": "You asked: {question}", "tokens_per_s": 0},
    "rules": [
        {"when": "long", "text": " ".join(WORDS), "chunk_chars": 8, "tokens_per_s": 80},
        {"when": "stalls", "text": " ".join(WORDS), "chunk_chars": 8, "stall_after": 20},
    ],
}


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *args: object) -> None:
        pass


@pytest.fixture(scope="module")
def page_address() -> Iterator[str]:
    """The page, served as its comment says."""
    handler = partial(_Quiet, directory=str(ROOT / "examples"))
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory, page_address: str) -> dict[str, str]:
    folder = tmp_path_factory.mktemp("data")
    scripts = folder / "scripts.json"
    scripts.write_text(json.dumps(SCRIPTS), encoding="utf-8")
    return {
        "STEADY_CHAT_BACKENDS": "scripted,vllm",
        "STEADY_CHAT_SERVERS": json.dumps([{"name": "away", "base_url": "http://127.0.0.1:9/v1"}]),
        "STEADY_CHAT_SCRIPTS_FILE": str(scripts),
        "STEADY_CHAT_DATA_DIR": str(folder),
        "STEADY_CHAT_MAX_TOKENS": "2000",
        "STEADY_CHAT_API_KEY": KEY,
        "STEADY_CHAT_API_ORIGINS": page_address,
        "STEADY_CHAT_EMBEDDING_MODEL": "",
    }


@pytest.fixture(scope="module")
def app(streamlit_server: StartServer, environment: dict[str, str]) -> str:
    return streamlit_server(ROOT / "streamlit_app.py", env=environment)


@pytest.fixture(scope="module")
def nginx(app: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Proxy]:
    port = free_port()
    text = render(f"127.0.0.1:{port}", f"server {app.removeprefix('http://')};")
    proxy = Proxy(tmp_path_factory.mktemp("nginx"), text, f"http://127.0.0.1:{port}")
    proxy.start()
    yield proxy
    proxy.stop(kill=True)


@pytest.fixture(params=["itself", "nginx"])
def address(request: pytest.FixtureRequest, app: str) -> str:
    """The app, asked itself and through the proxy."""
    if request.param == "itself":
        return app
    proxy: Proxy = request.getfixturevalue("nginx")
    return proxy.address


def test_openais_client_is_answered(address: str) -> None:
    with openai.OpenAI(base_url=f"{address}/v1", api_key=KEY, timeout=LIMIT_S) as client:
        assert [model.id for model in client.models.list()] == ["scripted", "vllm/away"]
        whole = client.chat.completions.create(**chat("who?"))
        assert whole.choices[0].message.content == "You asked: who?"
        pieces = [
            chunk.choices[0].delta.content or ""
            for chunk in client.chat.completions.create(**chat("a long one", stream=True))
        ]
        assert "".join(pieces) == " ".join(WORDS)
        assert len([piece for piece in pieces if piece]) > 3, "it grows"
        with pytest.raises(openai.APIStatusError) as raised:
            client.chat.completions.create(**chat("x" * 1_100_000))
        assert (raised.value.status_code, raised.value.code) == (413, "body_too_large")
    with (
        openai.OpenAI(base_url=f"{address}/v1", api_key="wrong", timeout=LIMIT_S) as stranger,
        pytest.raises(openai.AuthenticationError),
    ):
        stranger.models.list()


def test_curl_sees_it_grow(address: str) -> None:
    command = ["curl", "--no-buffer", "--silent", "--show-error", "--include"]
    command += ["--header", f"Authorization: Bearer {KEY}", "--max-time", "60"]
    command += [f"{address}/v1/chat/completions", "--data"]
    with subprocess.Popen(
        [*command, json.dumps(chat("it stalls", stream=True))], stdout=subprocess.PIPE, text=True
    ) as curl:
        assert curl.stdout is not None
        assert curl.stdout.readline().startswith("HTTP/1.1 200")
        # It is there though the answer isn't over, and never will be by itself.
        while WORDS[19] not in (line := curl.stdout.readline()):
            assert line, "it ended before it grew so far"
        curl.terminate()
    done = subprocess.run(
        [*command, json.dumps(chat("a long one", stream=True))],
        capture_output=True,
        text=True,
        check=True,
    )
    assert events(done.stdout)[-1] == {"data": "[DONE]"}


def test_who_asks_on_the_page_and_who_asks_the_api_share_the_app(
    chromium: Browser, app: str
) -> None:
    page = ChatPage.open(chromium, app)
    page.ask("a long one on the page")
    page.wait_for_text("word005")
    with openai.OpenAI(base_url=f"{app}/v1", api_key=KEY, timeout=LIMIT_S) as client:
        answer = client.chat.completions.create(**chat("beside"))
    assert answer.choices[0].message.content == "You asked: beside"
    page.wait_until_done()
    assert re.findall(r"word\d+", page.answer_text()) == WORDS
    assert "beside" not in page.page.inner_text("body")
    page.close()


def test_the_proxys_log_has_neither_the_key_nor_an_answers_id(nginx: Proxy) -> None:
    asked = urllib.request.Request(
        f"{nginx.address}/stream",
        data=json.dumps(chat("secret zebra")).encode(),
        headers={"Authorization": f"Bearer {KEY}"},
    )
    with urllib.request.urlopen(asked, timeout=LIMIT_S) as reply:
        path = json.load(reply)["stream"]
    with urllib.request.urlopen(nginx.address + path, timeout=LIMIT_S) as reply:
        assert "event: done" in reply.read().decode()
    log = nginx.log.read_text(encoding="utf-8")
    assert '"POST /stream" 201' in log
    for private in (path.rpartition("/")[2], KEY, "zebra"):
        assert private not in log


def test_the_app_stops_in_mid_stream(environment: dict[str, str], tmp_path: Path) -> None:
    """uvicorn waits for open connections, so an answer must not be waited for."""
    port = free_port()
    with (tmp_path / "app.log").open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "streamlit", "run", "streamlit_app.py"],
            cwd=ROOT,
            env={
                **os.environ,
                **environment,
                "STEADY_CHAT_DATA_DIR": str(tmp_path),
                "STREAMLIT_SERVER_PORT": str(port),
                "STREAMLIT_SERVER_HEADLESS": "true",
            },
            stdout=output,
            stderr=subprocess.STDOUT,
        )
    address = f"http://127.0.0.1:{port}"
    try:
        wait_until_healthy(address, process, tmp_path / "app.log", LIMIT_S)
        with openai.OpenAI(base_url=f"{address}/v1", api_key=KEY, timeout=LIMIT_S) as client:
            stream = client.chat.completions.create(**chat("zebra stalls", stream=True))
            first = next(iter(stream))
            process.send_signal(signal.SIGTERM)
            with pytest.raises(openai.APIError, match="being stopped"):
                list(stream)
        process.wait(LIMIT_S)
    finally:
        process.kill()
        process.wait(LIMIT_S)
    assert first.choices[0].delta.role == "assistant"
    log = (tmp_path / "app.log").read_text(encoding="utf-8")
    assert "Traceback" not in log
    assert "zebra" not in log
    assert KEY not in log


# The example page ----------------------------------------------------------------------------

MARKUP = "<b id='bold'>bold</b> & <img src='x' onerror='document.title = \"owned\"'> 你好 🙂"


@pytest.fixture(scope="module")
def stream_api(page_address: str) -> Iterator[ApiServer]:
    rules = [
        ("stalls", Script(" ".join(WORDS), chunk_chars=8, stall_after=20)),
        ("markup", Script(MARKUP, tokens_per_s=100)),
        ("fail", Script("half of it", chunk_chars=7, fail_after=1)),
    ]
    access = Access(on_loopback=True, origins=(page_address,))
    with serving(ScriptedBackend(Script("?"), rules), access=access) as server:
        yield server


@pytest.fixture
def page(chromium: Browser) -> Iterator[Page]:
    context = chromium.new_context()
    context.set_default_timeout(LIMIT_MS)
    yield context.new_page()
    context.close()


def ask_on(page: Page, page_address: str, api: str, question: str) -> None:
    page.goto(f"{page_address}/stream_page.html?app={api}")
    page.get_by_label("Question").fill(question)
    page.get_by_role("button", name="Ask").click()


def test_the_page_loses_its_connection_and_has_all_of_the_answer_once(
    page: Page, page_address: str, artifacts: Path
) -> None:
    access = Access(on_loopback=True, origins=(page_address,))
    with DrivenBackend() as driven, serving(driven, access=access) as server:
        line = StallingProxy(server.port)
        try:
            ask_on(page, page_address, f"http://127.0.0.1:{line.port}", "a long one")
            stream = driven.next_stream()
            stream.say("Let me see.", "reasoning")
            for begin, end in ((0, 10), (10, 60)):
                stream.say("".join(f"{word} " for word in WORDS[begin:end]))
                expect(page.locator("#answer")).to_contain_text(WORDS[end - 1])
                taken = line.connections
                line.drop()
            stream.say(" ".join(WORDS[60:]))
            stream.yield_raw(Finish("stop", Usage(7, 200)))
            expect(page.get_by_role("status")).to_have_text("Done (stop).")
            assert line.connections > taken
            assert page.locator("#answer").evaluate("e => e.textContent") == " ".join(WORDS)
            assert page.locator("#reasoning").evaluate("e => e.textContent") == "Let me see."
            assert page.get_by_role("status").get_attribute("data-tokens") == "200"
            page.screenshot(path=artifacts / "stream-page.png")
        finally:
            line.close()


def test_nginx_is_started_anew_in_mid_answer_and_the_page_has_all_of_it_once(
    page: Page, page_address: str, nginx: Proxy
) -> None:
    page.goto(f"{page_address}/stream_page.html?app={nginx.address}")
    page.get_by_label("Key").fill(KEY)
    page.get_by_label("Question").fill("a long one")
    page.get_by_role("button", name="Ask").click()
    expect(page.locator("#answer")).to_contain_text(WORDS[10])
    nginx.stop(kill=True)
    nginx.start()
    expect(page.get_by_role("status")).to_have_text("Done (stop).")
    assert page.locator("#answer").evaluate("e => e.textContent") == " ".join(WORDS)


def test_what_looks_like_markup_is_text_on_the_page(
    page: Page, page_address: str, stream_api: ApiServer
) -> None:
    ask_on(page, page_address, stream_api.address, "markup")
    expect(page.get_by_role("status")).to_have_text("Done (stop).")
    assert page.locator("#answer").evaluate("e => e.textContent") == MARKUP
    assert page.locator("#bold").count() == 0
    assert page.title() != "owned"
    source = (ROOT / "examples" / "stream_page.html").read_text(encoding="utf-8")
    assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write", source)


def test_the_page_stops_an_answer_and_says_what_went_wrong(
    page: Page, page_address: str, stream_api: ApiServer
) -> None:
    ask_on(page, page_address, stream_api.address, "it stalls")
    expect(page.locator("#answer")).to_contain_text(WORDS[5])
    page.get_by_role("button", name="Stop").click()
    expect(page.get_by_role("status")).to_have_text("Stopped.")
    assert "word199" not in page.inner_text("#answer")
    page.get_by_label("Question").fill("fail")
    page.get_by_role("button", name="Ask").click()
    expect(page.get_by_role("status")).to_contain_text("a fault of its own")
    assert page.locator("#answer").evaluate("e => e.textContent") == "half of"


def test_a_page_that_isnt_named_is_kept_out(
    page: Page, page_address: str, stream_api: ApiServer
) -> None:
    ask_on(page, page_address.replace("127.0.0.1", "localhost"), stream_api.address, "a long one")
    expect(page.get_by_role("status")).to_have_text("The app can't be reached from this page.")
