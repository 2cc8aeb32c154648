"""The list of conversations as a person uses it, in a real browser, over the scripted backend."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Locator, expect

from tests.browser.chat_page import INPUT, LIMIT_MS, ChatPage
from tests.browser.conftest import ROOT, StartServer

pytestmark = pytest.mark.browser

WORDS = [f"word{number:03d}" for number in range(200)]
LONG = "\n\n".join(" ".join(WORDS[at : at + 10]) for at in range(0, 200, 10)) + "\n\nThe end."
SCRIPTS = {
    "default": {"text": "You asked: {question}", "tokens_per_s": 200},
    "rules": [
        {"when": "long", "text": LONG, "tokens_per_s": 60},
        {"when": "endless", "text": LONG * 50, "tokens_per_s": 60},
        {"when": "天气", "text": "今天的天气很好，适合散步。", "tokens_per_s": 200},
    ],
}


@pytest.fixture(scope="module")
def app(streamlit_server: StartServer, tmp_path_factory: pytest.TempPathFactory) -> str:
    scripts = tmp_path_factory.mktemp("scripts") / "scripts.json"
    scripts.write_text(json.dumps(SCRIPTS), encoding="utf-8")
    return streamlit_server(
        ROOT / "streamlit_app.py",
        env={
            "STEADY_CHAT_BACKENDS": "scripted",
            "STEADY_CHAT_SCRIPTS_FILE": str(scripts),
            "STEADY_CHAT_MAX_TOKENS": "20000",
        },
    )


@pytest.fixture
def chat(chromium: Browser, app: str) -> Iterator[ChatPage]:
    page = ChatPage.open(chromium, app)
    yield page
    page.close()
    assert page.failures == []


def row(chat: ChatPage, title: str) -> Locator:
    return chat.page.locator('[class*="st-key-open-"] button', has_text=title)


def menu(chat: ChatPage, title: str, action: str) -> None:
    item = chat.page.locator('[class*="st-key-open-"]', has_text=title)
    item.locator("xpath=following-sibling::*[1]").get_by_role("button").click()
    chat.page.get_by_role("menuitem", name=action, exact=True).click()


def open_(chat: ChatPage, title: str) -> None:
    row(chat, title).click()
    expect(chat.questions.first).to_have_text(title)


def new_chat(chat: ChatPage) -> None:
    chat.page.locator(".st-key-new_chat button").click()
    expect(chat.questions).to_have_count(0)


def answered(chat: ChatPage, question: str) -> str:
    """Ask in a new conversation; returns the address that it has then."""
    new_chat(chat)
    chat.ask(question)
    chat.wait_until_done()
    chat.page.wait_for_url(re.compile(r"c=(?!new)"))
    return chat.page.url


def test_a_new_chat_in_mid_answer_and_back_to_it(chat: ChatPage) -> None:
    chat.ask("the long way round")
    chat.wait_for_text("word003")
    new_chat(chat)
    chat.ask("something else")
    chat.wait_for_text("You asked: something else")
    open_(chat, "the long way round")
    chat.wait_until_done()
    assert re.findall(r"word\d+", chat.answer_text()) == WORDS
    expect(row(chat, "the long way round")).not_to_contain_text("pending")


def test_an_answer_that_still_runs_is_shown_live(chat: ChatPage) -> None:
    chat.ask("an endless tale")
    chat.wait_for_text("word003")
    expect(row(chat, "an endless tale")).to_contain_text("pending")
    new_chat(chat)
    row(chat, "an endless tale").click()
    expect(chat.stop_button).to_be_visible()
    length = len(chat.answer_text())
    chat.page.wait_for_function(
        "(length) => document.querySelector('[class*=st-key-answer-]').innerText.length > length",
        arg=length,
    )
    chat.stop_button.click()
    expect(chat.stop_button).to_be_hidden()
    # What is over is no longer marked, in a tab that does nothing, too.
    expect(row(chat, "an endless tale")).not_to_contain_text("pending")


def test_back_and_forward_walk_the_conversations(chat: ChatPage) -> None:
    one = answered(chat, "alpha")
    two = answered(chat, "beta")
    row(chat, "alpha").click()
    expect(chat.questions).to_have_text(["alpha"])
    expect(chat.page).to_have_url(one)
    chat.page.go_back()
    expect(chat.questions).to_have_text(["beta"])
    expect(chat.page).to_have_url(two)
    chat.page.go_forward()
    expect(chat.questions).to_have_text(["alpha"])
    expect(chat.page).to_have_url(one)
    chat.page.go_back()
    expect(chat.questions).to_have_text(["beta"])
    chat.page.go_back()  # where “New chat” was pressed
    expect(chat.questions).to_have_count(0)
    chat.page.go_back()
    expect(chat.questions).to_have_text(["alpha"])
    chat.page.reload()
    expect(chat.questions).to_have_text(["alpha"])
    chat.page.goto(two)
    expect(chat.questions).to_have_text(["beta"])


def test_back_in_mid_answer_leaves_it_running(chat: ChatPage) -> None:
    first = answered(chat, "before the tale")
    new_chat(chat)
    chat.ask("a long tale")
    chat.wait_for_text("word003")
    chat.page.go_back()
    chat.page.go_back()
    expect(chat.page).to_have_url(first)
    expect(chat.questions).to_have_text(["before the tale"])
    expect(chat.answers).to_have_count(1)
    open_(chat, "a long tale")
    chat.wait_until_done()
    assert re.findall(r"word\d+", chat.answer_text()) == WORDS


def test_a_draft_stays_where_it_was_typed(chat: ChatPage) -> None:
    answered(chat, "with a draft")
    chat.page.locator(INPUT).fill("half a thought")
    new_chat(chat)
    expect(chat.page.locator(INPUT)).to_have_value("")
    row(chat, "with a draft").click()
    expect(chat.questions).to_have_text(["with a draft"])
    expect(chat.page.locator(INPUT)).to_have_value("")


def test_a_second_tab_follows(chromium: Browser, app: str, chat: ChatPage) -> None:
    address = answered(chat, "seen twice")
    other = ChatPage.open(chromium, address)
    expect(other.questions).to_have_text(["seen twice"])
    chat.ask("and once more")
    expect(other.questions).to_have_text(["seen twice", "and once more"])
    menu(chat, "seen twice", "Rename")
    field = chat.page.locator(".st-key-new_title input")
    expect(field).to_be_focused()
    field.fill("a name of its own")
    field.press("Enter")
    expect(row(other, "a name of its own")).to_be_visible()
    menu(chat, "a name of its own", "Delete")
    expect(other.page.get_by_text("isn’t here")).to_be_visible()
    expect(other.questions).to_have_count(0)
    assert other.failures == []
    other.close()


def test_delete_and_undo(chat: ChatPage) -> None:
    answered(chat, "to be deleted")
    menu(chat, "to be deleted", "Delete")
    expect(row(chat, "to be deleted")).to_have_count(0)
    expect(chat.questions).to_have_count(0)
    chat.page.locator(".st-key-undo_delete button").click()
    row(chat, "to be deleted").click()
    expect(chat.questions).to_have_text(["to be deleted"])


def test_deleting_in_mid_answer_stops_it(chat: ChatPage) -> None:
    chat.ask("an endless thing to delete")
    chat.wait_for_text("word003")
    menu(chat, "an endless thing to delete", "Delete")
    expect(row(chat, "an endless thing to delete")).to_have_count(0)
    expect(chat.questions).to_have_count(0)
    expect(chat.stop_button).to_be_hidden()


def test_escape_leaves_a_title_as_it_was(chat: ChatPage) -> None:
    answered(chat, "not to be renamed")
    menu(chat, "not to be renamed", "Rename")
    field = chat.page.locator(".st-key-new_title input")
    expect(field).to_be_focused()
    field.fill("something hasty")
    field.press("Escape")
    expect(row(chat, "not to be renamed")).to_be_visible()
    expect(field).to_have_count(0)
    expect(row(chat, "something hasty")).to_have_count(0)
    menu(chat, "not to be renamed", "Rename")
    expect(field).to_be_focused()
    field.press("Enter")
    expect(field).to_have_count(0)
    chat.page.reload()
    expect(row(chat, "not to be renamed")).to_be_visible()


def test_searching_in_both_languages(chat: ChatPage) -> None:
    answered(chat, "今天的天气怎么样")
    answered(chat, "a needle in a haystack")
    field = chat.page.locator(".st-key-search input")
    field.fill("散步")
    expect(row(chat, "今天的天气怎么样")).to_be_visible()
    expect(row(chat, "haystack")).to_have_count(0)
    expect(chat.page.locator(".steady-snippet mark")).to_have_text(["散步"])
    field.fill("nothing like this")
    expect(chat.page.get_by_text("Nothing found.")).to_be_visible()
    field.fill("")
    expect(row(chat, "haystack")).to_be_visible()


def test_a_hostile_title_is_text(chat: ChatPage) -> None:
    title = '**b** :red[x] :smile: :material/home: $x$ <img src=x onerror="window.hacked=1"> --> ok'
    answered(chat, title)
    expect(row(chat, "**b**")).to_be_visible()
    assert row(chat, "**b**").inner_text().replace("\u2060", "").strip()[:40] == title[:40]
    assert row(chat, "**b**").locator("strong, img, a, code, .katex").count() == 0
    assert chat.page.evaluate("window.hacked") is None


def test_by_keyboard_alone(chat: ChatPage) -> None:
    answered(chat, "reached by keys")
    chat.page.locator(".st-key-new_chat button").focus()
    chat.page.keyboard.press("Enter")
    expect(chat.questions).to_have_count(0)
    for _ in range(12):
        chat.page.keyboard.press("Tab")
        if "reached by keys" in chat.page.evaluate("document.activeElement.innerText"):
            break
    chat.page.keyboard.press("Enter")
    expect(chat.questions).to_have_text(["reached by keys"])


def test_from_another_page_a_conversation_opens_the_chat(chat: ChatPage) -> None:
    answered(chat, "from elsewhere")
    new_chat(chat)
    chat.page.get_by_role("link", name="This installation").click()
    expect(chat.page.get_by_text("STEADY_CHAT_DATA_DIR")).to_be_visible()
    row(chat, "from elsewhere").click()
    expect(chat.questions).to_have_text(["from elsewhere"], timeout=LIMIT_MS)


def test_a_new_chat_from_a_tab_that_began_on_another_page(chromium: Browser, app: str) -> None:
    page = chromium.new_context(locale="en-US").new_page()
    page.goto(f"{app}/conversations")
    expect(page.get_by_role("heading", name="Conversations")).to_be_visible()
    page.locator(".st-key-new_chat button").click()
    chat = ChatPage.of(page)
    expect(page.locator(".st-key-temperature")).to_be_visible()
    chat.ask("from a bookmark")
    chat.wait_until_done()
    assert page.get_by_test_id("stException").count() == 0
    chat.close()


def test_on_a_phone_the_sidebar_closes_over_what_was_opened(
    chromium: Browser, app: str, artifacts: Path
) -> None:
    phone = ChatPage.open(chromium, app, width=390, height=800)
    phone.ask("asked on a phone")
    phone.wait_until_done()
    phone.page.get_by_test_id("stExpandSidebarButton").click()
    expect(row(phone, "asked on a phone")).to_be_visible()
    phone.page.screenshot(path=artifacts / "list-phone.png")
    row(phone, "asked on a phone").click()
    expect(phone.page.get_by_test_id("stSidebar")).to_have_attribute("data-collapsed", "true")
    expect(phone.questions).to_have_text(["asked on a phone"])
    assert phone.failures == []
    phone.close()
