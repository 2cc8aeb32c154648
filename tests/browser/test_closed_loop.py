"""The browser's own word: what it paints paces the frames, how it froze is told in the receipt."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Locator, Route, WebSocket, expect
from websockets.sync.client import connect
from websockets.typing import Subprotocol

from llm.frame_credit import HIDDEN_S, SILENT_S, STAMP_S, UNPAINTED
from tests.browser.chat_page import ChatPage
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
    """A page's websockets."""

    def __init__(self) -> None:
        self.closed = 0

    def listen(self, socket: WebSocket) -> None:
        socket.on("close", lambda _: self._close())

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


def details(chat: ChatPage) -> Locator:
    """The figures of the last answer, shown below it."""
    chat.page.get_by_role("button", name="What to do with this turn").last.click()
    chat.page.get_by_role("menuitem", name="Details").click()
    shown = chat.page.locator(".steady-details")
    expect(shown).to_be_visible()
    return shown


def flight(chat: ChatPage) -> dict[str, Any]:
    """What the server sent of the last answer and heard of it, with when, by its own clock."""
    details(chat)
    with chat.page.expect_download() as told:
        chat.page.get_by_role("button", name="Timings as a file").click()
    read: dict[str, Any] = json.loads(told.value.path().read_text(encoding="utf-8"))
    return read


def felt(chat: ChatPage) -> float:
    """The last answer's longest freeze in seconds, once it is told: a late word needs a run."""
    for _ in range(10):
        if found := FREEZE.search(chat.receipts.last.inner_text()):
            return float(found[1])
        details(chat)
        chat.page.get_by_role("button", name="Hide", exact=True).click()
        expect(chat.page.locator(".steady-details")).to_be_hidden()
    raise AssertionError("no freeze was told")


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
    chat.ask("long")
    with chat.page.expect_request(lambda request: PATH in request.url):
        chat.wait_for_text("word002")
    # The page is kept busy for a second: that is what a person would have felt.
    chat.page.evaluate("() => { const end = Date.now() + 1000; while (Date.now() < end); }")
    chat.wait_for_text("word040")
    chat.stop_button.click()
    chat.wait_until_done(2)
    assert 0.9 < felt(chat) < 60, "it is told of an answer that was stopped, too"
    told = chat.receipts.last.inner_text()
    chat.page.reload()
    expect(chat.receipts).to_have_count(2)
    assert chat.receipts.last.inner_text() == told, "it outlives the page"
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
    chat, _ = opened(chromium, app)
    chat.ask("long")
    chat.wait_for_text("word005")
    show(chat, hidden=True)
    chat.page.wait_for_timeout(6000)
    show(chat, hidden=False)
    chat.wait_for_text("word200")
    chat.stop_button.click()
    chat.wait_until_done(2)
    told = flight(chat)
    hidden_s = [at_s for at_s, report in told["reports"] if report["hidden"]]
    seen_s = [at_s for at_s, report in told["reports"] if not report["hidden"]]
    left_s, back_s = hidden_s[0], min(at_s for at_s in seen_s if at_s > hidden_s[-1])
    sent = [at_s for at_s, _ in told["frames"] if left_s < at_s < back_s]
    # One may have been on its way when the word came.
    assert len(sent) <= 2 + (back_s - left_s) / HIDDEN_S, f"of {back_s - left_s:.0f} s"
    assert any(at_s > back_s for at_s, _ in told["frames"])
    chat.close()


def test_a_page_that_stalls_is_not_flooded_and_catches_up(chromium: Browser, app: str) -> None:
    chat, line = opened(chromium, app)
    chat.ask("long")
    chat.wait_for_text("word005")
    chat.page.evaluate("() => { const end = Date.now() + 7000; while (Date.now() < end); }")
    chat.wait_for_text("word080")
    text = chat.answer_text().split()
    assert text == [f"word{n:03}" for n in range(len(text) - 1)] + text[-1:]
    chat.stop_button.click()
    chat.wait_until_done(2)
    assert not line.closed
    told = flight(chat)
    after_s, longest_ms = max(
        ((at_s, report["freeze_ms"]) for at_s, report in told["reports"]), key=lambda each: each[1]
    )
    assert longest_ms > 5000
    # What may be under way when it stalls is out within two stamps' time.
    from_s = after_s - longest_ms / 1000 + UNPAINTED * STAMP_S + 0.5
    sent = [at_s for at_s, _ in told["frames"] if from_s < at_s < after_s]
    assert len(sent) <= 1 + (after_s - from_s) / SILENT_S, "ten a second, where none is waited for"
    chat.close()


def test_on_a_slow_line_nothing_piles_up_and_stop_stops(chromium: Browser, app: str) -> None:
    chat, line = opened(chromium, app)
    session = chat.context.new_cdp_session(chat.page)
    session.send("Network.enable")
    slow = {"offline": False, "latency": 400, "downloadThroughput": 50_000}
    session.send("Network.emulateNetworkConditions", {**slow, "uploadThroughput": 50_000})
    chat.ask("endless")
    chat.wait_for_text("one paragraph")
    chat.page.wait_for_timeout(15_000)
    chat.stop_button.click()
    chat.wait_until_done(2)
    assert not line.closed
    session.send(
        "Network.emulateNetworkConditions",
        {"offline": False, "latency": 0, "downloadThroughput": -1, "uploadThroughput": -1},
    )
    told = flight(chat)
    frames = told["frames"]
    seconds = frames[-1][0] - frames[0][0]
    assert sum(size for _, size in frames) < 50_000 * seconds, "more than the line can carry"
    largest = max(size for _, size in frames)
    assert largest * len(told["pieces"]) > 100_000 * seconds, "a frame a piece would pile up"
    chat.close()


def test_details_and_the_timings_as_a_file(chromium: Browser, app: str, artifacts: Path) -> None:
    chat, _ = opened(chromium, app)
    chat.ask("longer than the first")
    chat.wait_for_text("word060")
    chat.stop_button.click()
    chat.wait_until_done(2)
    felt(chat)
    told = flight(chat)
    assert "word" not in json.dumps(told)
    assert sum(chars for _, chars in told["pieces"]) >= len("word000\n\n" * 60)
    assert told["frames"]
    assert told["reports"]
    shown = chat.page.locator(".steady-details")
    for name in ("Read the prompt (TTFT)", "Gaps between pieces (ITL)", "Longest freeze"):
        expect(shown).to_contain_text(name)
    chat.page.screenshot(path=artifacts / "details.png")
    chat.page.get_by_role("button", name="Hide", exact=True).click()
    expect(shown).to_be_hidden()
    chat.close()


def test_what_goes_to_the_browser_is_packed(app: str) -> None:
    address = app.replace("http://", "ws://") + "/_stcore/stream"
    with connect(address, subprotocols=[Subprotocol("streamlit")]) as socket:
        assert "permessage-deflate" in socket.response.headers["Sec-WebSocket-Extensions"]
