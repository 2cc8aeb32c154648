"""Presets in a real browser: saved, picked in mid-answer, told when they are changed."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Locator, expect

from tests.browser.chat_page import ChatPage
from tests.browser.conftest import ROOT, StartServer

pytestmark = pytest.mark.browser

WORDS = [f"word{number:03d}" for number in range(300)]


@pytest.fixture
def app(streamlit_server: StartServer, tmp_path: Path) -> str:
    scripts = tmp_path / "scripts.json"
    scripts.write_text(
        json.dumps({"default": {"text": " ".join(WORDS), "tokens_per_s": 30}}), encoding="utf-8"
    )
    return streamlit_server(
        ROOT / "streamlit_app.py",
        env={
            "STEADY_CHAT_BACKENDS": "scripted",
            "STEADY_CHAT_SCRIPTS_FILE": str(scripts),
            "STEADY_CHAT_MAX_TOKENS": "2000",
        },
    )


@pytest.fixture
def chat(chromium: Browser, app: str) -> Iterator[ChatPage]:
    page = ChatPage.open(chromium, app)
    yield page
    page.close()
    assert page.failures == []


def edit(chat: ChatPage) -> None:
    """Open what can be done with presets, or close it."""
    chat.page.locator(".st-key-presets").get_by_test_id("stPopoverButton").click()


def save_as(chat: ChatPage, name: str) -> None:
    edit(chat)
    chat.page.get_by_label("Name of the preset").fill(name)
    chat.page.get_by_role("button", name="Save as a new preset").click()
    expect(picked(chat)).to_have_value(name)
    edit(chat)
    expect(chat.page.get_by_label("Name of the preset")).to_be_hidden()


def pick(chat: ChatPage, name: str) -> None:
    picked(chat).click()
    chat.page.get_by_role("option", name=name, exact=True).click()


def picked(chat: ChatPage) -> Locator:
    return chat.page.locator(".st-key-preset input")


def prompt(chat: ChatPage) -> Locator:
    return chat.page.locator(".st-key-system_prompt textarea")


def max_tokens(chat: ChatPage) -> Locator:
    return chat.page.get_by_role("spinbutton", name="Max tokens")


def set_to(field: Locator, text: str) -> None:
    field.fill(text)
    field.blur()


def changed(chat: ChatPage) -> Locator:
    return chat.page.get_by_text("Preset · changed")


def test_a_preset_fills_what_it_is_of_and_is_told_when_that_is_changed(
    chat: ChatPage, artifacts: Path
) -> None:
    set_to(prompt(chat), "Be kind.")
    set_to(max_tokens(chat), "777")
    save_as(chat, "好老师")
    expect(changed(chat)).to_be_hidden()
    pick(chat, "No preset")
    expect(prompt(chat)).to_have_value("")
    expect(max_tokens(chat)).to_have_value("2000")
    pick(chat, "好老师")
    expect(prompt(chat)).to_have_value("Be kind.")
    expect(max_tokens(chat)).to_have_value("777")
    set_to(max_tokens(chat), "778")
    expect(changed(chat)).to_be_visible()
    edit(chat)
    chat.page.screenshot(path=artifacts / "preset-changed.png")
    chat.page.get_by_role("button", name="Undo the changes").click()
    expect(changed(chat)).to_be_hidden()
    expect(max_tokens(chat)).to_have_value("777")
    edit(chat)
    set_to(max_tokens(chat), "")
    expect(max_tokens(chat)).to_have_value("777")


def test_a_renamed_and_a_deleted_one_are_what_the_list_says(chat: ChatPage) -> None:
    set_to(prompt(chat), "Be kind.")
    save_as(chat, "one")
    set_to(prompt(chat), "Be brief.")
    edit(chat)
    chat.page.get_by_role("button", name="Save the changes").click()
    expect(changed(chat)).to_be_hidden()
    chat.page.get_by_label("Name of the preset").fill("two")
    chat.page.get_by_role("button", name="Rename").click()
    expect(picked(chat)).to_have_value("two")
    chat.page.get_by_role("button", name="Delete", exact=True).click()
    expect(picked(chat)).to_have_value("No preset")
    edit(chat)
    expect(prompt(chat)).to_have_value("Be brief.")
    chat.page.get_by_role("button", name="Bring the deleted preset back").click()
    expect(picked(chat)).to_have_value("two")
    expect(changed(chat)).to_be_hidden()


def test_the_default_is_what_a_visit_begins_with(chat: ChatPage, app: str) -> None:
    set_to(prompt(chat), "Be kind.")
    save_as(chat, "usual")
    edit(chat)
    chat.page.get_by_role("button", name="Use for new chats", exact=True).click()
    expect(chat.page.get_by_role("button", name="Don’t use for new chats")).to_be_visible()
    chat.page.goto(app)
    expect(picked(chat)).to_have_value("usual")
    expect(prompt(chat)).to_have_value("Be kind.")


def test_picking_in_mid_answer_shows_at_once_and_changes_nothing_of_it(chat: ChatPage) -> None:
    set_to(prompt(chat), "Be kind.")
    save_as(chat, "kind")
    pick(chat, "No preset")
    expect(prompt(chat)).to_have_value("")
    chat.ask("go on")
    chat.wait_for_text("word003")
    pick(chat, "kind")
    expect(prompt(chat)).to_have_value("Be kind.")
    set_to(prompt(chat), "Be brief.")
    expect(changed(chat)).to_be_visible()
    edit(chat)
    chat.page.get_by_role("button", name="Save the changes").click()
    expect(changed(chat)).to_be_hidden()
    assert "word299" not in chat.answer_text(), "the clicks came too late to prove anything"
    chat.wait_until_done()
    assert re.findall(r"word\d+", chat.answer_text()) == WORDS
