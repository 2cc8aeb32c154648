"""The doctor as a person meets it: pressed, read, copied, and in nobody's way."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from llm.doctor import REST_S
from tests.browser.chat_page import LIMIT_MS, ChatPage
from tests.browser.conftest import ROOT, StartServer
from tests.protocol_server import Exchange, ProtocolServer, saying

pytestmark = pytest.mark.browser

WRONG_KEY = "wr0ng-k3y"
LONG = " ".join(f"word{number:03d}" for number in range(200))
SCRIPTS = {"default": {"text": LONG, "tokens_per_s": 60}}


@pytest.fixture
def server() -> Iterator[ProtocolServer]:
    with ProtocolServer() as running:
        running.when("lighthouse", saying([f"word{n} " for n in range(30)], gap_s=0.05))
        yield running


@pytest.fixture
def app(streamlit_server: StartServer, server: ProtocolServer, tmp_path: Path) -> str:
    scripts = tmp_path / "scripts.json"
    scripts.write_text(json.dumps(SCRIPTS), encoding="utf-8")
    named = {"name": "gpu-1", "base_url": server.url, "api_key": WRONG_KEY}
    return streamlit_server(
        ROOT / "streamlit_app.py",
        env={
            "STEADY_CHAT_BACKENDS": "scripted,vllm",
            "STEADY_CHAT_SCRIPTS_FILE": str(scripts),
            "STEADY_CHAT_DATA_DIR": str(tmp_path),
            "STEADY_CHAT_MAX_TOKENS": "2000",
            "STEADY_CHAT_SERVERS": json.dumps([named]),
        },
    )


def opened(
    browser: Browser, app: str, *, locale: str = "en-US", width: int = 1280, scheme: str = "light"
) -> Page:
    context = browser.new_context(
        locale=locale,
        viewport={"width": width, "height": 900},
        color_scheme="dark" if scheme == "dark" else "light",
        permissions=["clipboard-read", "clipboard-write"],
    )
    page = context.new_page()
    page.set_default_timeout(LIMIT_MS)
    page.goto(f"{app}/doctor")
    return page


def press(page: Page) -> None:
    page.locator(".st-key-doctor_start button").click()


def report(page: Page) -> Locator:
    """The newest, should the last one stand beside it for a frame."""
    return page.locator(".steady-doctor").last


def row_of(page: Page, name: str, level: str = "") -> Locator:
    """A check's row, unless it is one of the problems above; only of that level, if any is named."""
    row = f"li.is-{level}" if level else "li"
    return report(page).locator(row, has=page.locator("b").get_by_text(name, exact=True)).last


def overall(page: Page) -> Locator:
    return report(page).locator(".steady-doctor-overall")


def test_a_press_says_what_is_wrong_and_what_is_well_and_can_be_copied(
    chromium: Browser, app: str, server: ProtocolServer, artifacts: Path
) -> None:
    server.key = "the right one"
    page = opened(chromium, app)
    page.get_by_test_id("stSidebar").get_by_role("link", name="Doctor").wait_for()
    expect(page.locator(".steady-doctor")).to_have_count(0)
    press(page)
    # The machine's disk may be nearly full, which is a thing to look at, too.
    expect(overall(page)).to_contain_text(re.compile("thing"), timeout=LIMIT_MS)
    copy = page.locator(".st-key-doctor_copy button")
    expect(copy).to_be_enabled(timeout=LIMIT_MS)
    first = report(page).locator("li").first
    expect(first).to_contain_text("Server gpu-1 · Reach and key")
    expect(first).to_contain_text("It refuses the key (401)")
    expect(row_of(page, "Database", "ok")).to_contain_text("takes, gives and deletes a row")
    expect(row_of(page, "Garbage collection", "ok")).to_contain_text("as it should be")
    copy.click()
    expect(page.locator(".st-key-clipboard [role=status]")).to_have_text("Copied")
    copied = page.evaluate("navigator.clipboard.readText()")
    assert copied.startswith("# Steady Chat · Doctor")
    assert "- ✗ Server gpu-1 · Reach and key: It refuses the key (401)" in copied
    assert "## What is kept" in copied
    assert WRONG_KEY not in copied + page.content()
    page.screenshot(path=artifacts / "doctor.png", full_page=True)
    page.reload()
    expect(overall(page)).to_contain_text("checked at")
    expect(row_of(page, "Database", "ok")).to_contain_text("takes, gives and deletes a row")
    # What was put right is well at the next press.
    server.key = WRONG_KEY
    # A round rests for some seconds: until then a press is given the last one.
    page.wait_for_timeout(1000 * REST_S)
    press(page)
    expect(row_of(page, "Reach and key", "ok")).to_contain_text("takes the key", timeout=LIMIT_MS)
    expect(row_of(page, "Stream")).to_contain_text("comes as it is written", timeout=LIMIT_MS)
    page.context.close()


def test_while_a_check_hangs_others_are_answered_and_the_page_can_be_left(
    chromium: Browser, app: str, server: ProtocolServer
) -> None:
    async def never(exchange: Exchange) -> None:
        await exchange.head()
        await exchange.hold()

    server.when("lighthouse", never)
    # All are open before it hangs: a check is given up after a minute.
    page, chat, other = opened(chromium, app), ChatPage.open(chromium, app), opened(chromium, app)
    press(page)
    row = row_of(page, "Stream")
    expect(row).to_contain_text("Checking")
    server.exchange(0, timeout_s=60)
    expect(overall(page)).to_contain_text("Checking")
    chat.ask("a long answer please")
    chat.wait_until_done()
    assert chat.answer_text().endswith("word199")
    # A second person joins, and sees what was found already.
    press(other)
    expect(row_of(other, "Database")).to_contain_text("row")
    assert len(server.exchanges) == 1, "the server is asked once for both"
    page.get_by_role("link", name="This installation").click()
    expect(page.get_by_text("STEADY_CHAT_DATA_DIR").first).to_be_visible()
    server.stop()
    expect(overall(other)).to_contain_text(re.compile("thing"), timeout=LIMIT_MS)
    for each in (page, other):
        each.context.close()
    chat.close()


def test_in_chinese_on_a_narrow_dark_screen(chromium: Browser, app: str, artifacts: Path) -> None:
    page = opened(chromium, app, locale="zh-CN", width=390, scheme="dark")
    press(page)
    expect(page.locator(".st-key-doctor_copy button")).to_be_enabled(timeout=LIMIT_MS)
    shown = page.get_by_test_id("stMain")
    expect(shown).to_contain_text("服务器 gpu-1")
    expect(shown).to_contain_text("边生成边到达")
    wide = "document.scrollingElement.scrollWidth > document.scrollingElement.clientWidth"
    assert not page.evaluate(wide)
    said = report(page).inner_text()
    assert not re.findall(r"[a-z]+ [a-z]+", said), "names are single words, sentences are none here"
    page.screenshot(path=artifacts / "doctor-narrow-zh.png", full_page=True)
    page.context.close()
