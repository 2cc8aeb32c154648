"""Several servers in a real browser: states that change by themselves, and waiting that is seen."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Locator, expect

from tests.browser.chat_page import ChatPage
from tests.browser.conftest import ROOT, StartServer
from tests.protocol_server import ProtocolServer, refusing, saying
from tests.test_patient_backend import first_then

WORDS = [f"word{n:03} " for n in range(500)]


class Fleet:
    """Two servers that the app knows as gpu-1 and gpu-2."""

    def __init__(self, open_until: ExitStack) -> None:
        self._open = open_until
        self.servers = [open_until.enter_context(ProtocolServer()) for _ in range(2)]
        self.urls = [server.url for server in self.servers]

    def back_again(self, number: int, *models: str) -> ProtocolServer:
        """The server of that number, at its old address after it was stopped."""
        again = ProtocolServer()
        again.port, again.models = self.servers[number].port, list(models)
        self.servers[number] = self._open.enter_context(again)
        return again


@pytest.fixture
def fleet() -> Iterator[Fleet]:
    with ExitStack() as open_until:
        yield Fleet(open_until)


@pytest.fixture
def app(fleet: Fleet, streamlit_server: StartServer) -> str:
    return start(fleet, streamlit_server)


def start(fleet: Fleet, streamlit_server: StartServer, **more: str) -> str:
    named = [{"name": f"gpu-{n}", "base_url": url} for n, url in enumerate(fleet.urls, 1)]
    env = {"STEADY_CHAT_BACKENDS": "vllm", "STEADY_CHAT_SERVERS": json.dumps(named), **more}
    return streamlit_server(ROOT / "streamlit_app.py", env=env)


@pytest.fixture
def chat(chromium: Browser, app: str) -> Iterator[ChatPage]:
    page = ChatPage.open(chromium, app)
    yield page
    page.close()
    assert page.failures == []


def state(chat: ChatPage, name: str) -> Locator:
    return chat.page.locator('[data-testid="stSidebar"] p', has_text=name)


def pick(chat: ChatPage, label: str) -> None:
    chat.page.locator(".st-key-model_pick input").click()
    chat.page.get_by_role("option", name=label).click()


def test_a_page_at_rest_learns_by_itself_what_becomes_of_the_servers(
    chat: ChatPage, fleet: Fleet, artifacts: Path
) -> None:
    states = state(chat, "gpu-1")
    expect(states).to_contain_text(re.compile(r"gpu-1 ready.*gpu-2 ready", re.S))
    pick(chat, "gpu-2 · tiny-test-model")
    fleet.servers[1].stop()
    expect(states).to_contain_text("gpu-2 not reachable; looking again")
    chat.page.screenshot(path=artifacts / "servers-one-away.png")
    chosen = chat.page.locator(".st-key-model_pick")
    expect(chosen.locator("input")).to_have_value("gpu-2 · tiny-test-model")
    fleet.back_again(1, "tiny-test-model", "a-new-model")
    expect(states).to_contain_text("gpu-2 ready")
    expect(chosen.locator("input")).to_have_value("gpu-2 · tiny-test-model")
    pick(chat, "gpu-2 · a-new-model")
    chat.ask("who are you?")
    chat.wait_until_done()
    assert "a-new-model · gpu-2 · finished" in chat.receipts.last.inner_text()
    # As the conversation left it.
    chat.page.reload()
    expect(chosen.locator("input")).to_have_value("gpu-2 · a-new-model")


def test_a_question_waits_visibly_for_a_server_that_is_not_up_yet(
    fleet: Fleet, chromium: Browser, streamlit_server: StartServer, artifacts: Path
) -> None:
    for server in fleet.servers:
        server.stop()
    app = start(fleet, streamlit_server)
    chat = ChatPage.open(chromium, app)
    chat.ask("anybody there?")
    waiting = chat.page.get_by_text("Your question waits for it")
    expect(waiting).to_contain_text(f"Nothing answers at {fleet.urls[0]}")
    expect(waiting).to_contain_text(re.compile(r"… [1-9]\d* s"))
    chat.page.screenshot(path=artifacts / "servers-waiting.png")
    fleet.back_again(0, "tiny-test-model")
    chat.wait_until_done()
    assert chat.answer_text() == "Hello, world!"
    expect(state(chat, "gpu-1")).to_contain_text("gpu-1 ready")
    assert chat.failures == []
    chat.close()


def test_stop_ends_the_waiting_at_once(
    fleet: Fleet, chromium: Browser, streamlit_server: StartServer
) -> None:
    fleet.servers[0].stop()
    app = start(fleet, streamlit_server)
    chat = ChatPage.open(chromium, app, locale="zh-CN")
    chat.ask("有人吗？")
    expect(chat.page.get_by_text("您的问题正在等待服务器")).to_be_visible()
    chat.stop_button.click()
    chat.wait_until_done()
    assert "gpu-1 · 已停止" in chat.receipts.last.inner_text()
    assert chat.failures == []
    chat.close()


@pytest.mark.parametrize(
    ("locale", "said"),
    [
        ("en-US", r"gpu-1 is busy; asking again in [1-4] s \(try 2\)"),
        ("zh-CN", r"gpu-1 正忙，[1-4] 秒后再次请求（第 2 次）"),
    ],
)
def test_a_busy_server_is_asked_again_and_the_page_says_when(
    fleet: Fleet, app: str, chromium: Browser, artifacts: Path, locale: str, said: str
) -> None:
    busy = refusing(429, {}, retry_after="4")
    fleet.servers[0].when("hi", first_then(1, busy))
    chat = ChatPage.open(chromium, app, locale=locale)
    chat.ask("hi")
    expect(chat.page.get_by_text(re.compile(said))).to_be_visible()
    chat.page.screenshot(path=artifacts / f"servers-busy-{locale}.png")
    chat.wait_until_done()
    assert chat.answer_text() == "here now"
    assert chat.failures == []
    chat.close()


def test_a_server_that_is_gone_is_stood_in_for_where_settings_allow_it(
    fleet: Fleet, chromium: Browser, streamlit_server: StartServer
) -> None:
    fleet.servers[0].stop()
    fleet.servers[1].when("hi", saying(["from ", "the other"], gap_s=0.2))
    app = start(fleet, streamlit_server, STEADY_CHAT_SERVER_FAILOVER="true")
    chat = ChatPage.open(chromium, app)
    chat.ask("hi")
    chat.wait_until_done()
    assert chat.answer_text() == "from the other"
    assert "tiny-test-model · gpu-2 · finished" in chat.receipts.last.inner_text()
    chat.close()


def test_models_that_come_and_go_in_mid_answer_change_nothing_of_it(
    chat: ChatPage, fleet: Fleet
) -> None:
    fleet.servers[0].when("long", saying(WORDS, gap_s=0.06))
    expect(state(chat, "gpu-1")).to_contain_text("gpu-2 ready")
    chat.ask("a long answer")
    chat.wait_for_text("word003")
    fleet.servers[1].stop()
    expect(state(chat, "gpu-1")).to_contain_text("gpu-2 not reachable")
    fleet.back_again(1, "a-new-model")
    chat.page.locator(".st-key-model_pick input").click()
    expect(chat.page.get_by_role("option", name="gpu-2 · a-new-model")).to_be_visible()
    assert "word499" not in chat.answer_text(), "too late to prove anything"
    chat.page.keyboard.press("Escape")
    chat.wait_until_done()
    assert chat.answer_text().split() == [word.strip() for word in WORDS]
