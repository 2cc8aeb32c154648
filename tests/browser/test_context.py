"""The model's window on the page: how full it is, and what no longer fits."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from tests.browser.chat_page import ChatPage
from tests.browser.conftest import ROOT, StartServer

pytestmark = pytest.mark.browser

METER = '[role="meter"]'
LINE = ".steady-context"


@pytest.fixture(scope="module")
def app(streamlit_server: StartServer, tmp_path_factory: pytest.TempPathFactory) -> str:
    scripts = tmp_path_factory.mktemp("context") / "scripts.json"
    told = {"default": {"text": "words " * 100, "tokens_per_s": 2000}, "window_tokens": 600}
    scripts.write_text(json.dumps(told), encoding="utf-8")
    environment = {
        "STEADY_CHAT_BACKENDS": "scripted",
        "STEADY_CHAT_SCRIPTS_FILE": str(scripts),
        "STEADY_CHAT_MAX_TOKENS": "300",
    }
    return streamlit_server(ROOT / "streamlit_app.py", env=environment)


def test_the_meter_fills_and_the_oldest_questions_are_left_out(
    chromium: Browser, app: str, artifacts: Path
) -> None:
    chat = ChatPage.open(chromium, app)
    line, meter = chat.page.locator(LINE), chat.page.locator(METER)
    expect(line).to_have_text("Context: 0 of 600 tokens")
    # 1 token for a message and one for each 4 characters, in this backend's way of counting.
    for turn, (tokens, percent) in enumerate([(154, 26), (308, 51), (462, 77)], start=1):
        chat.ask(f"question {turn}")
        chat.wait_until_done(answers=turn)
        expect(line).to_have_text(f"Context: {tokens} of 600 tokens")
        expect(meter).to_have_attribute("aria-valuenow", str(percent))
    expect(chat.receipts.last).not_to_contain_text("left out")
    chat.ask("question 4")
    chat.wait_until_done(answers=4)
    # 465 and 150 for the answer are more than 600: the first turn went.
    expect(chat.receipts.last).to_contain_text(
        "the oldest question no longer fitted the model’s window and was left out"
    )
    expect(line).to_contain_text("The model’s window (600 tokens) is full")
    chat.page.screenshot(path=artifacts / "context-full.png")
    chat.close()


def test_a_question_beyond_the_window_is_a_sentence_with_the_numbers(
    chromium: Browser, app: str
) -> None:
    chat = ChatPage.open(chromium, app, locale="zh-CN", width=390)
    chat.ask("长" * 2800)
    chat.wait_until_done(answers=1)
    expect(chat.page.get_by_test_id("stAlert")).to_contain_text("超出 101 个")
    expect(chat.page.locator(LINE)).to_have_text("上下文：0 / 600 个词元")
    chat.ask("好")
    chat.wait_until_done(answers=2)
    expect(chat.answers.last).to_contain_text("words words")
    expect(chat.page.locator(LINE)).to_have_text("上下文：152 / 600 个词元")
    chat.close()
