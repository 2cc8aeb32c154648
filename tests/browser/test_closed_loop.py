"""The browser's own word: what it paints paces the frames, how it froze is told in the receipt."""

from __future__ import annotations

import json
import re
import time
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Route, WebSocket, expect

from tests.browser.chat_page import LIMIT_MS, ChatPage
from tests.browser.conftest import ROOT, StartServer
from ui.paint_probe import PATH

pytestmark = pytest.mark.browser

SCRIPTS = {
    "default": {"text": "Said. " * 20, "tokens_per_s": 40},
    "rules": [
        {
            "when": "long",
            "text": "\n\n".join(f"word{n:03}" for n in range(400)),
            "tokens_per_s": 50,
        },
        {"when": "endless", "text": "one paragraph and no end to it, " * 3000, "tokens_per_s": 200},
    ],
}
FREEZE = re.compile(r"longest freeze (\d+\.\d\d) s")


@pytest.fixture(scope="module")
def app(streamlit_server: StartServer, tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("loop")
    scripts = folder / "scripts.json"
    scripts.write_text(json.dumps(SCRIPTS), encoding="utf-8")
    return streamlit_server(
        ROOT / "streamlit_app.py",
        env={
            "STEADY_CHAT_BACKENDS": "scripted",
            "STEADY_CHAT_SCRIPTS_FILE": str(scripts),
            "STEADY_CHAT_DATA_DIR": str(folder),
            "STEADY_CHAT_MAX_TOKENS": "30000",
            "STEADY_CHAT_CACHE": "off",
        },
    )


class Line:
    """What came over a page's websockets."""

    def __init__(self) -> None:
        self.frames = 0
        self.size = 0
        self.closed = 0

    def listen(self, socket: WebSocket) -> None:
        socket.on("framereceived", self._count)
        socket.on("close", lambda _: self._close())

    def _count(self, frame: str | bytes) -> None:
        self.frames += 1
        self.size += len(frame)

    def _close(self) -> None:
        self.closed += 1


def opened(chromium: Browser, app: str) -> tuple[ChatPage, Line]:
    """A chat whose browser has been heard, and its line."""
    chat, line = ChatPage.open(chromium, app), Line()
    chat.page.on("websocket", line.listen)
    chat.page.reload()
    with chat.page.expect_request(lambda request: PATH in request.url):
        chat.ask("first")
    chat.wait_until_done()
    return chat, line


def show(chat: ChatPage, *, hidden: bool) -> None:
    """Have the page believe that its tab is out of sight, or in sight again."""
    chat.page.evaluate(
        "hidden => {"
        "  Object.defineProperty(document, 'hidden', { configurable: true, get: () => hidden });"
        "  document.dispatchEvent(new Event('visibilitychange'));"
        "}",
        hidden,
    )


def test_the_receipt_tells_the_longest_freeze(chromium: Browser, app: str) -> None:
    chat, _ = opened(chromium, app)
    calm = FREEZE.search(chat.receipts.last.inner_text())
    assert calm is not None
    chat.ask("long")
    with chat.page.expect_request(lambda request: PATH in request.url):
        chat.wait_for_text("word002")
    # The page is kept busy for a second: that is what a person would have felt.
    chat.page.evaluate("() => { const end = Date.now() + 1000; while (Date.now() < end); }")
    chat.wait_for_text("word040")
    chat.stop_button.click()
    chat.wait_until_done(2)
    felt = FREEZE.search(chat.receipts.last.inner_text())
    assert felt is not None, "it is told of an answer that was stopped, too"
    assert 0.9 < float(felt[1]) < 30
    chat.page.reload()
    expect(chat.receipts).to_have_count(2)
    assert chat.receipts.last.inner_text().endswith(felt[0]), "it outlives the page"
    assert not chat.failures
    chat.close()


def test_where_reports_are_blocked_the_answer_streams_all_the_same(
    chromium: Browser, app: str
) -> None:
    chat = ChatPage.open(chromium, app)
    blocked = []

    def block(route: Route) -> None:
        blocked.append(route.request.url)
        route.abort()

    chat.page.route(f"**{PATH}", block)
    chat.ask("first")
    chat.wait_until_done()
    assert blocked
    assert chat.answer_text().count("Said.") == 20
    assert not FREEZE.search(chat.receipts.last.inner_text())
    chat.close()


def test_a_hidden_tab_gets_almost_nothing_and_all_of_it_on_return(
    chromium: Browser, app: str
) -> None:
    chat, line = opened(chromium, app)
    chat.ask("long")
    chat.wait_for_text("word005")
    with chat.page.expect_request(lambda request: PATH in request.url):
        show(chat, hidden=True)
    # What was on its way when the word came.
    chat.page.wait_for_timeout(500)
    before = line.frames
    hidden_s = time.monotonic()
    chat.page.wait_for_timeout(4000)
    came, passed_s = line.frames - before, time.monotonic() - hidden_s
    # In sight it is 10 frames a second, of several messages each.
    assert came <= 3 * (1 + passed_s / 5), f"{came} messages in {passed_s:.0f} s"
    shown = chat.answer_text()
    show(chat, hidden=False)
    chat.wait_for_text("word060")
    assert len(chat.answer_text()) > len(shown)
    chat.stop_button.click()
    chat.wait_until_done(2)
    chat.close()


def test_a_page_that_stalls_is_not_flooded_and_catches_up(chromium: Browser, app: str) -> None:
    chat, line = opened(chromium, app)
    chat.ask("long")
    chat.wait_for_text("word005")
    before = line.frames
    stall = "() => { const end = Date.now() + 6000; while (Date.now() < end); }"
    chat.page.evaluate(stall)
    came = line.frames - before
    # Two stamped frames, what is sent between stamps, and one a few seconds later.
    assert came < 60, "the frames of six seconds would be 180 messages and more"
    chat.wait_for_text("word080")
    text = chat.answer_text().split()
    assert text == [f"word{n:03}" for n in range(len(text) - 1)] + text[-1:]
    chat.stop_button.click()
    chat.wait_until_done(2)
    assert not line.closed
    chat.close()


def test_on_a_slow_line_nothing_piles_up_and_stop_stops(chromium: Browser, app: str) -> None:
    chat, line = opened(chromium, app)
    session = chat.context.new_cdp_session(chat.page)
    session.send("Network.enable")
    slow = {"offline": False, "latency": 400, "downloadThroughput": 50_000}
    session.send("Network.emulateNetworkConditions", {**slow, "uploadThroughput": 50_000})
    chat.ask("endless")
    chat.wait_for_text("one paragraph")
    before, begun_s = line.size, time.monotonic()
    chat.page.wait_for_timeout(15_000)
    passed_s = time.monotonic() - begun_s
    assert line.size - before < 50_000 * passed_s, "less than the line can carry"
    chat.stop_button.click()
    pressed_s = time.monotonic()
    chat.wait_until_done(2)
    # A second to be stopped, and what the line needs to bring the word.
    assert time.monotonic() - pressed_s < LIMIT_MS / 1000
    said = re.search(r"([\d,]+) tokens", chat.receipts.last.inner_text())
    assert said is not None
    assert int(said[1].replace(",", "")) < 200 * (pressed_s + 2 - begun_s + 5)
    assert not line.closed
    chat.close()


def test_details_and_the_timings_as_a_file(chromium: Browser, app: str, artifacts: Path) -> None:
    chat, _ = opened(chromium, app)
    chat.page.get_by_role("button", name="What to do with this turn").click()
    chat.page.get_by_text("Details", exact=True).click()
    details = chat.page.locator(".steady-details")
    for name in ("Read the prompt (TTFT)", "Gaps between pieces (ITL)", "Longest freeze"):
        expect(details).to_contain_text(name)
    chat.page.screenshot(path=artifacts / "details.png")
    with chat.page.expect_download() as told:
        chat.page.get_by_role("button", name="Timings as a file").click()
    flight = told.value.path().read_text(encoding="utf-8")
    assert "Said" not in flight
    times = json.loads(flight)
    assert sum(chars for _, chars in times["pieces"]) == len("Said. " * 20)
    assert times["frames"]
    assert times["reports"]
    chat.page.get_by_role("button", name="Hide", exact=True).click()
    expect(details).to_be_hidden()
    chat.close()
