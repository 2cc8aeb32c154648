"""The chat page behind the proxy of deploy/: the same configuration, run by nginx itself."""

from __future__ import annotations

import contextlib
import json
import os
import re
import secrets
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import trustme
from playwright.sync_api import Browser, BrowserContext, expect

from tests.browser.chat_page import INPUT, ChatPage
from tests.browser.conftest import ROOT, StartServer, wait_until_healthy
from tests.deploy_tools import Proxy, free_port, render, write_certificate

pytestmark = pytest.mark.browser

WORDS = [f"word{number:03d}" for number in range(200)]
LONG = "\n\n".join(" ".join(WORDS[at : at + 10]) for at in range(0, 200, 10))
SCRIPTS = {
    "default": {"text": "You asked: {question}", "tokens_per_s": 50},
    "rules": [
        {"when": "slow and long", "text": LONG, "tokens_per_s": 40},
        {"when": "long", "text": LONG, "tokens_per_s": 80},
    ],
}

WATCH_GROWTH = """() => {
  const seen = window.__growth = [];
  const look = () => {
    const text = [...document.querySelectorAll('[class*="st-key-answer-"]')]
      .map((node) => node.innerText).join("");
    const words = (text.match(/word\\d{3}/g) ?? []).length;
    if (words && words !== seen.at(-1)) seen.push(words);
  };
  new MutationObserver(look).observe(document.body,
    { subtree: true, childList: true, characterData: true });
}"""
PAINT_REPORTS = """() => performance.getEntriesByType("resource")
  .filter((entry) => entry.name.endsWith("/steady/paint")).map((entry) => entry.responseStatus)"""


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    scripts = tmp_path_factory.mktemp("scripts") / "scripts.json"
    scripts.write_text(json.dumps(SCRIPTS), encoding="utf-8")
    return {
        "STEADY_CHAT_BACKENDS": "scripted",
        "STEADY_CHAT_SCRIPTS_FILE": str(scripts),
        "STEADY_CHAT_MAX_TOKENS": "2000",
    }


@pytest.fixture(scope="module")
def processes(streamlit_server: StartServer, environment: dict[str, str]) -> list[str]:
    """Two processes of the app, as with the compose file's `app-2`."""
    started = [streamlit_server(ROOT / "streamlit_app.py", env=environment) for _ in range(2)]
    return [address.removeprefix("http://") for address in started]


StartProxy = Callable[..., Proxy]


@pytest.fixture
def start_proxy(processes: list[str], tmp_path: Path) -> Iterator[StartProxy]:
    running: list[Proxy] = []

    def start(servers: list[str] = processes, **given: Any) -> Proxy:
        port = free_port()
        upstream = " ".join(f"server {server};" for server in servers)
        text = render(f"127.0.0.1:{port}", upstream, **given)
        proxy = Proxy(tmp_path, text, f"http://127.0.0.1:{port}")
        proxy.start()
        running.append(proxy)
        return proxy

    yield start
    for proxy in running:
        proxy.stop(kill=True)


def assert_whole_once(chat: ChatPage) -> None:
    """Every word of LONG is on the page, once, in order."""
    assert re.findall(r"word\d+", chat.answer_text()) == WORDS


def assert_paint_is_heard(chat: ChatPage) -> None:
    """The page has reported, as it does every two seconds of an answer, and was known there.

    A process that doesn't know the session would answer 403.
    """
    chat.page.wait_for_function(f"({PAINT_REPORTS})().length > 0")
    assert set(chat.page.evaluate(PAINT_REPORTS)) == {204}


def test_an_answer_grows_on_the_page_and_its_paint_is_reported(
    chromium: Browser, start_proxy: StartProxy, artifacts: Path
) -> None:
    # Under a name of its own: Streamlit lets 127.0.0.1 open web sockets whatever the proxy says.
    address = start_proxy().address.replace("127.0.0.1", "chat.localhost")
    chat = ChatPage.open(chromium, address)
    chat.page.evaluate(WATCH_GROWTH)
    chat.ask("a slow and long answer please")
    chat.wait_until_done()
    assert_whole_once(chat)
    # Held up by the proxy, it would come in one step, or in two. A quick screen sees a hundred.
    assert len(chat.page.evaluate("window.__growth")) > 3
    assert_paint_is_heard(chat)
    chat.page.screenshot(path=artifacts / "behind-nginx.png")
    assert chat.failures == []
    chat.close()


def test_stop_works_and_the_next_question_too(chromium: Browser, start_proxy: StartProxy) -> None:
    chat = ChatPage.open(chromium, start_proxy().address)
    chat.ask("a long answer please")
    chat.wait_for_text("word005")
    chat.stop_button.click()
    chat.wait_until_done()
    words = re.findall(r"word\d\d\d", chat.answer_text())
    assert 5 < len(words) < len(WORDS)
    assert words == WORDS[: len(words)]
    assert "stopped" in chat.receipts.last.inner_text()
    chat.ask("and now?")
    chat.wait_until_done(answers=2)
    assert chat.answer_text() == "You asked: and now?"
    chat.close()


def test_a_proxy_that_is_started_anew_in_mid_answer_loses_nothing(
    chromium: Browser, start_proxy: StartProxy
) -> None:
    proxy = start_proxy()
    chat = ChatPage.open(chromium, proxy.address)
    chat.ask("a long answer please")
    chat.wait_for_text("word005")
    proxy.stop(kill=True)
    expect(chat.page.locator(INPUT)).to_be_disabled()
    proxy.start()
    expect(chat.page.locator(INPUT)).to_be_enabled(timeout=60_000)
    chat.wait_until_done()
    assert_whole_once(chat)
    chat.ask("and now?")
    chat.wait_until_done(answers=2)
    chat.close()


def test_two_people_on_two_processes_keep_their_own(
    chromium: Browser, start_proxy: StartProxy, processes: list[str]
) -> None:
    proxy = start_proxy()
    people = [ChatPage(_visitor(chromium, proxy, each), proxy.address) for each in processes]
    for number, chat in enumerate(people):
        chat.ask(f"a slow and long answer for number {number} please")
    for chat in people:
        assert_paint_is_heard(chat)
        chat.page.reload()  # and the conversation is found again
    for number, chat in enumerate(people):
        chat.wait_until_done()
        assert_whole_once(chat)
        (question,) = chat.questions.all_inner_texts()
        assert question == f"a slow and long answer for number {number} please"
        chat.close()
    used = set(re.findall(r'"GET /_stcore/stream" 101 .*upstream=(\S+):101', proxy.log.read_text()))
    assert used == set(processes)


def _visitor(chromium: Browser, proxy: Proxy, process: str) -> BrowserContext:
    """A browser whose cookie leads to that process."""
    while True:
        number = secrets.token_hex(16)
        request = urllib.request.Request(
            f"{proxy.address}/static/{number}", headers={"Cookie": f"steady_visitor={number}"}
        )
        with contextlib.suppress(urllib.error.HTTPError):
            urllib.request.urlopen(request)
        # The log has a line when the reply is over.
        while not (led_to := re.search(rf'{number}" .*upstream=(\S+):\d+', proxy.log.read_text())):
            time.sleep(0.01)
        if led_to[1] == process:
            context = chromium.new_context(locale="en-US")
            context.add_cookies([{"name": "steady_visitor", "value": number, "url": proxy.address}])
            return context


def test_over_https_with_a_password(
    chromium: Browser, start_proxy: StartProxy, tmp_path: Path
) -> None:
    write_certificate(trustme.CA(), tmp_path)
    (tmp_path / "login").write_text("ann:{PLAIN}secret\n", encoding="utf-8")
    port = free_port()
    start_proxy(
        marks=("tls", "login"),
        listen_tls=f"127.0.0.1:{port}",
        tls_folder=tmp_path,
        login_file=tmp_path / "login",
    )
    context = chromium.new_context(
        locale="en-US",
        ignore_https_errors=True,
        http_credentials={"username": "ann", "password": "secret"},
    )
    chat = ChatPage(context, f"https://localhost:{port}")
    chat.ask("a long answer please")
    chat.wait_until_done()
    assert_whole_once(chat)
    assert_paint_is_heard(chat)
    chat.close()


def test_another_page_cant_open_a_web_socket(chromium: Browser, start_proxy: StartProxy) -> None:
    proxy = start_proxy()
    page = chromium.new_page()
    page.goto(f"{proxy.address.replace('127.0.0.1', 'elsewhere.localhost')}/_stcore/health")
    opened = page.evaluate(
        """(url) => new Promise((answer) => {
          const socket = new WebSocket(url, ["streamlit"]);
          socket.onopen = () => answer(true);
          socket.onerror = () => answer(false);
        })""",
        f"{proxy.address.replace('http', 'ws')}/_stcore/stream",
    )
    assert opened is False
    page.close()


def test_the_app_ends_soon_when_it_is_stopped_in_mid_answer(
    chromium: Browser, start_proxy: StartProxy, environment: dict[str, str], tmp_path: Path
) -> None:
    port = free_port()
    with (tmp_path / "app.log").open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "streamlit", "run", "streamlit_app.py"],
            cwd=ROOT,
            env={
                **os.environ,
                **environment,
                "STREAMLIT_SERVER_PORT": str(port),
                "STREAMLIT_SERVER_HEADLESS": "true",
            },
            stdout=output,
            stderr=subprocess.STDOUT,
        )
    wait_until_healthy(f"http://127.0.0.1:{port}", process, tmp_path / "app.log", 60)
    chat = ChatPage.open(chromium, start_proxy([f"127.0.0.1:{port}"]).address)
    chat.ask("a long answer please")
    chat.wait_for_text("word005")
    stopped_at_s = time.monotonic()
    process.send_signal(signal.SIGTERM)
    process.wait(30)
    assert time.monotonic() - stopped_at_s < 10, "Docker would kill it after 30 s"
    chat.close()
