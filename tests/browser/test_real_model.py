"""The main job on real input: a person asks, the embedded model answers, in a real browser."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from tests.browser.chat_page import INPUT, ChatPage
from tests.browser.conftest import ROOT, StartServer
from tests.model_data import model_data_dir

pytestmark = [pytest.mark.browser, pytest.mark.model]


@pytest.fixture(scope="module")
def app(streamlit_server: StartServer) -> str:
    return streamlit_server(
        ROOT / "streamlit_app.py",
        env={
            "STEADY_CHAT_BACKENDS": "local,scripted",
            "STEADY_CHAT_DATA_DIR": str(model_data_dir()),
            "STEADY_CHAT_MAX_TOKENS": "60",
            "STEADY_CHAT_TEMPERATURE": "0",
        },
    )


def test_the_phases_are_shown_and_a_question_asked_meanwhile_is_answered(
    chromium: Browser, app: str, artifacts: Path
) -> None:
    early, other = ChatPage.open(chromium, app), ChatPage.open(chromium, app)
    sidebar = early.page.locator("section[data-testid=stSidebar]")
    expect(sidebar).to_contain_text(re.compile("fetching|converting|loading|warming|ready"))
    early.page.screenshot(path=artifacts / "model-getting-ready.png")
    early.ask("What is the capital of France?")
    other.ask("What is the capital of Italy?")
    early.wait_for_text("Paris")
    other.wait_for_text("Italy")
    early.wait_until_done()
    other.wait_until_done()
    assert "Italy" not in early.answer_text()
    assert "Paris" not in other.answer_text()
    receipt = early.receipts.last.inner_text()
    assert re.fullmatch(
        r"SmolLM2-135M-Instruct · (finished|cut at the token limit) · \d+ tokens · "
        r"first text after [\d.]+ s · [\d.]+ tokens/s( · longest freeze [\d.]+ s)?( · waited \d+ s)?",
        receipt,
    ), receipt
    early.page.screenshot(path=artifacts / "model-answered.png")
    early.close()
    other.close()


def test_the_answer_grows_on_the_page_and_stop_ends_it(chromium: Browser, app: str) -> None:
    chat = ChatPage.open(chromium, app)
    limit = chat.page.get_by_role("spinbutton", name="Max tokens")
    limit.fill("500")
    limit.press("Enter")
    chat.ask("Write a long story about a lighthouse keeper who learns to paint the sea.")
    expect(chat.answers.last).to_contain_text(re.compile(r"\w+"))
    lengths = [len(chat.answer_text())]
    for _ in range(2):
        chat.page.wait_for_function(
            "(n) => document.querySelector('[class*=\"st-key-answer-\"]').innerText.length > n",
            arg=lengths[-1],
        )
        lengths.append(len(chat.answer_text()))
    assert lengths == sorted(set(lengths))
    chat.stop_button.click()
    chat.wait_until_done()
    assert "stopped" in chat.receipts.last.inner_text()
    chat.close()


def test_switching_the_backend_in_mid_answer_changes_the_next_answer_only(
    chromium: Browser, app: str
) -> None:
    chat = ChatPage.open(chromium, app)
    chat.ask("What is the capital of France?")
    chat.page.get_by_text("Scripted", exact=True).click()
    chat.ask("And who are you?")
    chat.wait_until_done(answers=2)
    assert "Paris" in chat.answer_text(0)
    assert "You asked: And who are you?" in chat.answer_text(1)
    assert "SmolLM2" in chat.receipts.first.inner_text()
    assert "scripted" in chat.receipts.last.inner_text()
    chat.close()


def test_a_question_longer_than_the_window_says_by_how_much(chromium: Browser, app: str) -> None:
    chat = ChatPage.open(chromium, app)
    field = chat.page.locator(INPUT)
    field.fill("word " * 12_000)
    field.press("Enter")
    alert = chat.page.locator('[data-testid="stChatMessage"] [data-testid="stAlert"]')
    expect(alert).to_contain_text(
        re.compile(r"has [\d,]+ tokens and the model’s window holds 8,192")
    )
    chat.ask("What is the capital of France?")
    chat.wait_for_text("Paris")
    chat.close()


def test_a_model_that_is_not_there_is_a_sentence_and_other_backends_work(
    chromium: Browser, streamlit_server: StartServer
) -> None:
    app = streamlit_server(
        ROOT / "streamlit_app.py",
        env={
            "STEADY_CHAT_BACKENDS": "local,scripted",
            "STEADY_CHAT_MODEL": f"{os.sep}no{os.sep}such{os.sep}model",
        },
    )
    chat = ChatPage.open(chromium, app, locale="zh-CN")
    missing = "找不到模型“model”"
    expect(chat.page.get_by_test_id("stAlert").first).to_contain_text(missing)
    chat.ask("有人吗？")
    expect(
        chat.page.locator('[data-testid="stChatMessage"] [data-testid="stAlert"]')
    ).to_contain_text(missing)
    expect(chat.page.locator("body")).not_to_contain_text("/no/such")
    chat.page.get_by_text("脚本演示", exact=True).click()
    chat.ask("你好")
    chat.wait_until_done(answers=2)
    chat.close()
