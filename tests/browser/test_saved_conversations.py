"""What is on the page is what is kept: refreshes, several tabs, closed browsers."""

from __future__ import annotations

import json
import time
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import Browser, expect

from llm.conversation_database import ConversationDatabase
from llm.conversation_tree import ConversationKey, Turn
from tests.browser.chat_page import INPUT, ChatPage
from tests.browser.conftest import ROOT, StartServer

pytestmark = pytest.mark.browser

# Paragraphs of words that Markdown leaves as they are, each of them only once.
LONG = "\n\n".join(
    " ".join(f"word{number:03d} 第{number}句 🙂" for number in range(start, start + 20))
    for start in range(0, 400, 20)
)
SCRIPTS = {
    "default": {"text": "You asked: {question}", "tokens_per_s": 50},
    "rules": [{"when": "long", "text": LONG, "tokens_per_s": 60}],
}


class App:
    """The app, and the database that it writes."""

    def __init__(self, url: str, database: Path) -> None:
        self.url = url
        self._database = f"sqlite:///{database}"

    def path(self, address: str) -> tuple[Turn, ...]:
        """The stored turns of the conversation at this address."""
        (wanted,) = parse_qs(urlsplit(address).query)["c"]
        database = ConversationDatabase(self._database, "test")
        try:
            loaded = database.load(ConversationKey("local", wanted))
        finally:
            database.close()
        assert loaded is not None
        return loaded.state.path()


@pytest.fixture(scope="module")
def app(streamlit_server: StartServer, tmp_path_factory: pytest.TempPathFactory) -> App:
    folder = tmp_path_factory.mktemp("saved")
    scripts, database = folder / "scripts.json", folder / "conversations.sqlite3"
    scripts.write_text(json.dumps(SCRIPTS), encoding="utf-8")
    url = streamlit_server(
        ROOT / "streamlit_app.py",
        env={
            "STEADY_CHAT_BACKENDS": "scripted",
            "STEADY_CHAT_SCRIPTS_FILE": str(scripts),
            "STEADY_CHAT_DATABASE_URL": f"sqlite:///{database}",
            "STEADY_CHAT_MAX_TOKENS": "5000",
        },
    )
    return App(url, database)


def shown(chat: ChatPage) -> str:
    """The last answer's text, with a blank line between its paragraphs, as it was written."""
    blocks = chat.answers.last.get_by_test_id("stMarkdownContainer")
    return "\n\n".join(text for text in blocks.all_text_contents() if text)


def test_after_twenty_refreshes_and_in_three_tabs_the_page_has_the_stored_text_byte_for_byte(
    chromium: Browser, app: App
) -> None:
    chat = ChatPage.open(chromium, app.url)
    chat.ask("a long answer please")
    chat.wait_for_text("word")
    others = [ChatPage(chat.context, chat.page.url) for _ in range(2)]
    lengths = []
    for _ in range(20):
        chat.page.reload()
        chat.wait_for_text("word000")  # all text so far is there at once
        lengths.append(len(shown(chat)))
    assert lengths[0] < len(LONG) * 0.9, "the answer was over before it could prove anything"
    tabs = [chat, *others]
    for tab in tabs:
        tab.wait_until_done()
    (turn,) = app.path(chat.page.url)
    assert turn.text == LONG
    assert [shown(tab) for tab in tabs] == [turn.text] * 3
    assert not [failure for tab in tabs for failure in tab.failures]
    chat.close()


def test_two_tabs_that_ask_at_once_get_two_answers_one_after_the_other(
    chromium: Browser, app: App
) -> None:
    one = ChatPage.open(chromium, app.url)
    one.ask("the first")
    one.wait_until_done()
    two = ChatPage(one.context, one.page.url)
    expect(two.questions).to_have_count(1)
    for tab, question in ((one, "from one tab"), (two, "from the other")):
        tab.page.locator(INPUT).fill(question)
    # Not awaited in between: both are on their way before either page has changed.
    for tab in (one, two):
        tab.page.evaluate(
            """selector => document.querySelector(selector).dispatchEvent(
              new KeyboardEvent('keydown', {key: 'Enter', keyCode: 13, bubbles: true}))""",
            INPUT,
        )
    for tab in (one, two):
        tab.wait_until_done(answers=3)
    turns = app.path(one.page.url)
    asked = [turn.question for turn in turns]
    assert asked[0] == "the first"
    assert sorted(asked[1:]) == ["from one tab", "from the other"]
    assert [turn.text for turn in turns] == [f"You asked: {question}" for question in asked]
    assert one.questions.all_inner_texts() == two.questions.all_inner_texts() == asked
    one.close()


def test_an_answer_that_ended_while_nobody_looked_is_there_on_return(
    chromium: Browser, app: App
) -> None:
    chat = ChatPage.open(chromium, app.url)
    chat.ask("a long answer please")
    chat.wait_for_text("word010")
    address = chat.page.url
    chat.close()
    expect_ended(app, address)
    back = ChatPage.open(chromium, address)
    back.wait_until_done()
    assert shown(back) == LONG
    back.close()


def expect_ended(app: App, address: str) -> None:
    """Wait, without a browser, for what the database says."""
    deadline = time.monotonic() + 60
    while app.path(address)[-1].state != "ended":
        assert time.monotonic() < deadline, "the answer hasn't ended"
        time.sleep(0.2)
