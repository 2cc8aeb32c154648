"""Several people before a model that answers one at a time: their places, and what becomes of them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Locator, expect

from tests.browser.chat_page import LIMIT_MS, ChatPage
from tests.browser.conftest import ROOT, StartServer

pytestmark = pytest.mark.browser

LEARNED_S = 20
"""What the page has seen an answer take, and so expects of others."""


@pytest.fixture(scope="module")
def one_slot(streamlit_server: StartServer, tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("line")
    story = {"when": "story", "text": "word " * LEARNED_S, "tokens_per_s": 1, "chunk_chars": 5}
    # Without an end, so that it is the test that ends it.
    saga = {**story, "when": "saga", "text": "word " * 10_000}
    scripts = {"slots": 1, "default": {"text": "You asked: {question}"}, "rules": [story, saga]}
    (folder / "scripts.json").write_text(json.dumps(scripts), encoding="utf-8")
    return streamlit_server(
        ROOT / "streamlit_app.py",
        env={
            "STEADY_CHAT_BACKENDS": "scripted",
            "STEADY_CHAT_SCRIPTS_FILE": str(folder / "scripts.json"),
            "STEADY_CHAT_DATA_DIR": str(folder),
        },
    )


@pytest.fixture
def people(chromium: Browser, one_slot: str) -> Iterator[list[ChatPage]]:
    """Three browsers; the third one's person reads Chinese."""
    opened = [ChatPage.open(chromium, one_slot, locale) for locale in ("en-US", "en-US", "zh-CN")]
    yield opened
    for chat in opened:
        chat.close()


def line(chat: ChatPage) -> Locator:
    """What is said in place of the last answer."""
    return chat.page.get_by_test_id("stChatMessage").last.get_by_test_id("stCaptionContainer")


def seconds(chat: ChatPage) -> int:
    found = re.search(r"(\d+) (?:s|秒)", line(chat).inner_text())
    assert found, line(chat).inner_text()
    return int(found[1])


def wait_for_fewer_seconds(chat: ChatPage, than: int) -> None:
    chat.page.wait_for_function(
        """([line, than]) => {
            const found = line.textContent.match(/(\\d+) (?:s|秒)/);
            return found && Number(found[1]) < than;
        }""",
        arg=[line(chat).element_handle(), than],
        timeout=LIMIT_MS,
    )


def test_people_see_their_places_and_may_leave_and_return(
    people: list[ChatPage], artifacts: Path
) -> None:
    ann, ben, chen = people
    ann.ask("a story")
    ann.wait_until_done()  # now it is known what an answer takes
    ann.ask("a saga")
    ann.wait_for_text("word")

    ben.ask("Ben's question")
    expect(line(ben)).to_have_text(re.compile(r"^First in line, about \d+ s …$"))
    wait_for_fewer_seconds(ben, than=seconds(ben))
    chen.ask("陈的问题")
    expect(line(chen)).to_have_text(re.compile(r"^排在第 2 位，大约还需 \d+ 秒……$"))
    wait_for_fewer_seconds(chen, than=seconds(chen))
    ben.page.screenshot(path=artifacts / "line-first.png")
    chen.page.screenshot(path=artifacts / "line-second-zh.png")

    # Stop leaves the line, and who was behind moves up.
    ben.stop_button.click()
    expect(ben.receipts.last).to_contain_text("stopped")
    expect(line(chen)).to_contain_text("下一个就轮到您")

    # Closing the tab doesn't: whoever asks now is behind.
    address = chen.page.url
    context = chen.context
    chen.page.close()
    ben.ask("Ben's other question")
    expect(line(ben)).to_contain_text("Second in line")

    ann.stop_button.click()
    expect(ben.answers.last).to_contain_text("You asked: Ben's other question")
    back = ChatPage(context, address)
    expect(back.answers).to_have_text(re.compile("You asked: 陈的问题"))
    for chat in (ann, ben, back):
        assert chat.failures == []


def test_many_tabs_of_one_browser_are_one_person(people: list[ChatPage], one_slot: str) -> None:
    ann, ben, _ = people
    ann.ask("a saga")
    ann.wait_for_text("word")
    second, third = ChatPage(ann.context, one_slot), ChatPage(ann.context, one_slot)
    second.ask("Ann's second")
    expect(line(second)).to_contain_text("First in line")
    third.ask("Ann's third")
    expect(line(third)).to_contain_text("Second in line")
    ben.ask("Ben's only one")
    expect(line(ben)).to_contain_text("First in line")
    expect(line(second)).to_contain_text("Second in line")
    expect(line(third)).to_contain_text("Third in line")
    ann.stop_button.click()
    expect(third.answers.last).to_contain_text("You asked: Ann's third")
