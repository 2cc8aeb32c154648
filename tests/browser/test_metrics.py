"""The figures of answers as a person meets them, and as Prometheus does."""

from __future__ import annotations

import csv
import json
import re
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest
from playwright.sync_api import Browser, ViewportSize, expect

from tests.browser.chat_page import LIMIT_MS, ChatPage
from tests.browser.conftest import ROOT, StartServer

pytestmark = pytest.mark.browser

QUESTION = "What is in my diary?"
SCRIPTS = {"default": {"text": f"{'word ' * 40}", "tokens_per_s": 100}}
TOKEN = "a-token-for-the-test"
SAME_HOURS = """() => {
    const plots = [...document.querySelectorAll('[data-testid=stVegaLiteChart] svg')];
    const hours = plots.map((plot) => JSON.stringify([...plot.querySelectorAll('text')]
        .filter((each) => /^\\d\\d:\\d\\d$/.test(each.textContent))
        .map((each) => [each.textContent, Math.round(each.getBoundingClientRect().x)])));
    return hours.length >= 2 && new Set(hours).size === 1 && hours[0].length > 40;
}"""
PHONE = (
    "Mozilla/5.0 (iPhone; CPU iPhone OS 17_5 like Mac OS X) AppleWebKit/605.1.15 "
    "(KHTML, like Gecko) Version/17.5 Mobile/15E148 Safari/604.1"
)
WIDE = "document.scrollingElement.scrollWidth > document.scrollingElement.clientWidth"


@pytest.fixture
def app(streamlit_server: StartServer, tmp_path: Path) -> str:
    scripts = tmp_path / "scripts.json"
    scripts.write_text(json.dumps(SCRIPTS), encoding="utf-8")
    return streamlit_server(
        ROOT / "streamlit_app.py",
        env={
            "STEADY_CHAT_BACKENDS": "scripted",
            "STEADY_CHAT_SCRIPTS_FILE": str(scripts),
            "STEADY_CHAT_DATA_DIR": str(tmp_path),
            "STEADY_CHAT_METRICS_TOKEN": TOKEN,
        },
    )


def scrape(app: str, token: str) -> str:
    request = urllib.request.Request(f"{app}/metrics", headers={"Authorization": f"Bearer {token}"})
    with urllib.request.urlopen(request, timeout=30) as reply:
        text: str = reply.read().decode("utf-8")
        return text


def wait_for_the_answer(chat: ChatPage) -> None:
    """The page is drawn once, and waits for what is just being kept only shortly: so once more."""
    answers = chat.page.get_by_test_id("stMain").get_by_test_id("stMetricValue").first
    empty = chat.page.get_by_test_id("stMain").get_by_test_id("stAlert")
    deadline_s = time.monotonic() + 120
    while True:
        expect(answers.or_(empty).first).to_be_visible()
        if answers.is_visible():
            break
        assert time.monotonic() < deadline_s, "its figures never came"
        chat.page.reload()
    expect(answers).to_have_text("1")


def test_an_answer_is_given_and_its_figures_are_there(
    chromium: Browser, app: str, artifacts: Path
) -> None:
    chat = ChatPage.open(chromium, app)
    chat.page.get_by_role("link", name="Metrics").click()
    main = chat.page.get_by_test_id("stMain")
    expect(main).to_contain_text("No answer has ended in the last day")
    chat.page.get_by_role("link", name="Chat").click()
    chat.ask(QUESTION)
    chat.wait_until_done()
    chat.page.get_by_role("link", name="Metrics").click()
    values = main.get_by_test_id("stMetricValue")
    wait_for_the_answer(chat)
    expect(values.nth(1)).to_have_text(re.compile(r"^\d+ ms$|^\d+(\.\d+)? s$"))
    ttft = main.locator("tr", has_text="TTFT: time to first token")
    expect(ttft).to_contain_text(re.compile(r"\d+ ms|\d+(\.\d+)? s"))
    plots = main.locator("canvas, svg.marks, [data-testid=stVegaLiteChart]")
    expect(plots.first).to_be_visible()
    # All hours stand below one another.
    chat.page.wait_for_function(SAME_HOURS)
    assert "diary" not in main.inner_text()
    chat.page.screenshot(path=artifacts / "metrics.png", full_page=True)
    with chat.page.expect_download() as told:
        chat.page.get_by_role("button", name="Figures as CSV").click()
    text = Path(told.value.path()).read_text(encoding="utf-8")
    (line,) = csv.DictReader(text.splitlines())
    assert (line["backend"], line["finish"]) == ("scripted", "stop")
    assert float(line["ttft_s"]) >= 0
    assert float(line["itl_p95_ms"]) >= float(line["itl_p50_ms"]) > 0
    assert int(line["chars"]) >= len("word " * 39)
    assert "diary" not in text
    assert "word" not in text

    figures = scrape(app, TOKEN)
    assert re.search(r'steady_chat_answers_total\{[^}]*finish="stop"[^}]*\} 1\.0', figures)
    assert re.search(r'steady_chat_ttft_seconds_count\{backend="scripted"[^}]*\} 1\.0', figures)
    with pytest.raises(urllib.error.HTTPError, match="401"):
        scrape(app, "another")
    assert chat.failures == []
    chat.close()


def test_in_chinese_on_a_narrow_screen_and_in_the_dark(
    chromium: Browser, app: str, artifacts: Path
) -> None:
    chat = ChatPage.open(chromium, app, locale="zh-CN", width=390)
    chat.ask("你好")
    chat.wait_until_done()
    for scheme in ("light", "dark"):
        chat.page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
        chat.page.goto(f"{app}/figures")
        main = chat.page.get_by_test_id("stMain")
        wait_for_the_answer(chat)
        expect(main).to_contain_text("首个词元的时间")
        expect(main.locator("[data-testid=stVegaLiteChart]").first).to_be_visible()
        english = set(re.findall(r"[A-Za-z]{3,}", main.inner_text()))
        assert english <= {"TTFT", "TPOT", "ITL", "INP", "CSV", "download", "demo", "scripted"} | {
            "help",
            "outline",
            "monitoring",
            "expand",
            "more",
            "all",
            "keyboard",
            "arrow",
            "down",
        }, english
        assert not chat.page.evaluate(WIDE)
        chat.page.screenshot(path=artifacts / f"metrics-narrow-zh-{scheme}.png", full_page=True)
    assert chat.failures == []
    chat.close()


def test_on_a_phone_the_sidebar_closes_when_a_page_is_chosen_in_it(
    chromium: Browser, app: str
) -> None:
    """Streamlit does that where the browser says that it is a phone's, not by the width."""
    viewport: ViewportSize = {"width": 390, "height": 844}
    page = chromium.new_context(viewport=viewport, user_agent=PHONE).new_page()
    page.set_default_timeout(LIMIT_MS)
    page.goto(app)
    page.get_by_test_id("stExpandSidebarButton").click()
    page.get_by_test_id("stSidebar").get_by_role("link", name="Metrics").click()
    main = page.get_by_test_id("stMain")
    expect(main.get_by_role("heading", name="Metrics", exact=True)).to_be_visible()
    expect(page.get_by_test_id("stExpandSidebarButton")).to_be_visible()
    expect(page.get_by_test_id("stSidebar")).to_have_attribute("data-collapsed", "true")
    page.context.close()


def test_it_isnt_there_unless_it_is_switched_on(
    streamlit_server: StartServer, tmp_path: Path
) -> None:
    address = streamlit_server(
        ROOT / "streamlit_app.py",
        env={"STEADY_CHAT_BACKENDS": "scripted", "STEADY_CHAT_DATA_DIR": str(tmp_path)},
    )
    with pytest.raises(urllib.error.HTTPError, match="404"):
        scrape(address, TOKEN)
