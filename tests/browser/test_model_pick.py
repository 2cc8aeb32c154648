"""Choosing a local model in a real browser: what it takes, whom it affects, what becomes of it."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Locator, TimeoutError, expect

from tests.browser.chat_page import LIMIT_MS, ChatPage
from tests.browser.conftest import ROOT, StartServer
from tests.local_answers import cut
from tests.tiny_model import make_tiny_model

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two models whose answers may be long, one whose weights are cut short, and one whose
    tokenizer can't be read, which shows only when it is loaded."""
    folder = tmp_path_factory.mktemp("models")
    first = make_tiny_model(folder / "Tiny-A")
    config = first / "config.json"
    told = {**json.loads(config.read_text()), "max_position_embeddings": 32_768}
    config.write_text(json.dumps(told))
    shutil.copytree(first, folder / "Tiny-B")
    cut(shutil.copytree(first, folder / "Tiny-Damaged") / "model.safetensors")
    (shutil.copytree(first, folder / "Tiny-Mute") / "tokenizer.json").write_text("{")
    return folder


@pytest.fixture
def app(folder: Path, streamlit_server: StartServer, tmp_path: Path) -> str:
    return streamlit_server(
        ROOT / "streamlit_app.py",
        env={
            "STEADY_CHAT_BACKENDS": "local,scripted",
            "STEADY_CHAT_DATA_DIR": str(tmp_path),
            "STEADY_CHAT_MODEL": str(folder / "Tiny-A"),
            "STEADY_CHAT_MODEL_FOLDERS": str(folder),
            "STEADY_CHAT_ATTN_IMPLEMENTATION": "flash_attention_2",
            "STEADY_CHAT_MAX_TOKENS": "5",
            "STEADY_CHAT_TEMPERATURE": "0",
            "HF_HOME": str(tmp_path / "hf"),
        },
    )


class Person:
    """One browser with the page, and its hand on the list of models."""

    def __init__(self, browser: Browser, app: str, locale: str = "en-US") -> None:
        self.chat = ChatPage.open(browser, app, locale=locale)
        self.page = self.chat.page

    @property
    def state(self) -> Locator:
        return self.page.locator(".st-key-backend_state")

    @property
    def said(self) -> Locator:
        return self.page.locator(".st-key-local_model")

    @property
    def picked(self) -> Locator:
        return self.page.locator(".st-key-local_model_pick input")

    def look_at(self, name: str) -> None:
        option = self.page.get_by_role("option", name=re.compile(f"^{name}( ·|$)"))
        for _ in range(5):  # a page that is drawn anew meanwhile closes the list
            self.picked.click()
            try:
                return option.click(timeout=5000)
            except TimeoutError:
                continue
        raise AssertionError("the list doesn't stay open")

    def press(self, what: str) -> None:
        self.page.locator(f".st-key-model_{what} button").click()

    def is_ready_with(self, name: str) -> None:
        expect(self.state).to_contain_text(re.compile(rf"{name}\s*●\s*ready"), timeout=LIMIT_MS)

    def ask_for_long(self, question: str) -> None:
        limit = self.page.get_by_role("spinbutton", name="Max tokens")
        limit.fill("20000")
        limit.press("Enter")
        self.chat.ask(question)
        expect(self.chat.answers.last).to_contain_text(re.compile(r"\S"), timeout=LIMIT_MS)


@pytest.fixture
def people(chromium: Browser, app: str) -> Iterator[tuple[Person, Person]]:
    both = Person(chromium, app), Person(chromium, app)
    yield both
    for person in both:
        person.chat.close()
        assert person.chat.failures == []


def test_a_model_is_looked_at_and_then_loaded_for_everybody(
    people: tuple[Person, Person], artifacts: Path
) -> None:
    one, other = people
    one.is_ready_with("Tiny-A")
    expect(one.said).to_contain_text("Answers up to 8 questions at once, in one batch.")
    expect(one.said).to_contain_text("Note: flash attention isn’t used, because the model doesn’t")
    one.look_at("Tiny-B")
    expect(one.said).to_contain_text(
        re.compile(r"“Tiny-B” needs about \d+ MB.*32,768.*it fits", re.S)
    )
    expect(one.said).to_contain_text("Everybody here shares one model; “Tiny-A” leaves memory")
    one.page.screenshot(path=artifacts / "model-looked-at.png")
    other.is_ready_with("Tiny-A")  # nothing has happened yet
    one.press("load")
    one.is_ready_with("Tiny-B")
    other.is_ready_with("Tiny-B")
    expect(other.picked).to_have_value(re.compile("^Tiny-B ·"))
    other.chat.ask("Who are you?")
    other.chat.wait_until_done()
    assert other.chat.receipts.last.inner_text().startswith("Tiny-B · ")


def test_running_answers_are_told_of_and_ended_only_where_somebody_wants_that(
    people: tuple[Person, Person], artifacts: Path
) -> None:
    one, other = people
    one.is_ready_with("Tiny-A")
    one.ask_for_long("A long story")
    other.look_at("Tiny-B")
    expect(other.said).to_contain_text("1 answer is running.")
    other.press("load_after")
    expect(other.state).to_contain_text("waiting for running answers to end")
    # Whoever is being answered sees it too, in mid-answer, and may take it back.
    expect(one.state).to_contain_text("waiting for running answers to end")
    one.page.screenshot(path=artifacts / "model-waits.png")
    one.press("cancel")
    one.is_ready_with("Tiny-A")
    expect(one.said).to_contain_text("Loading “Tiny-B” was stopped. Back to “Tiny-A”.")
    expect(one.chat.stop_button).to_be_visible()
    other.look_at("Tiny-B")
    other.press("load_now")
    other.chat.ask("Who are you?")
    one.chat.wait_until_done()
    other.chat.wait_until_done()
    assert one.chat.receipts.last.inner_text().startswith("Tiny-A · stopped")
    assert other.chat.receipts.last.inner_text().startswith("Tiny-B · ")
    one.is_ready_with("Tiny-B")


def test_a_model_that_cannot_be_loaded_is_a_sentence_and_everybody_keeps_the_one_before(
    people: tuple[Person, Person], artifacts: Path
) -> None:
    one, other = people
    one.is_ready_with("Tiny-A")
    one.look_at("Tiny-Damaged")
    expect(one.said).to_contain_text("“Tiny-Damaged” can’t be used: its weights are damaged")
    expect(one.said.get_by_role("button")).to_have_text(["Leave it"])
    other.page.set_viewport_size({"width": 390, "height": 800})  # its sidebar is folded away
    one.look_at("Tiny-Mute")
    one.press("load")
    for person in (one, other):
        trouble = person.page.locator(".st-key-model_trouble")
        expect(trouble).to_contain_text(
            re.compile(r"Tiny-Mute.*can’t be read.*Back to “Tiny-A”", re.S), timeout=LIMIT_MS
        )
        expect(trouble).to_be_in_viewport()
    one.is_ready_with("Tiny-A")
    other.page.screenshot(path=artifacts / "model-went-back.png")
    other.page.locator(".st-key-model_trouble_close button").click()
    expect(other.page.locator(".st-key-model_trouble")).to_have_count(0)
    one.chat.ask("Who are you?")
    one.chat.wait_until_done()
    assert one.chat.receipts.last.inner_text().startswith("Tiny-A · ")


def test_what_a_model_takes_is_seen_however_many_conversations_there_are(
    people: tuple[Person, Person], artifacts: Path
) -> None:
    one, _ = people
    one.is_ready_with("Tiny-A")
    one.page.set_viewport_size({"width": 1280, "height": 800})
    for number in range(11):
        one.chat.ask(f"Question {number}")
        one.chat.wait_until_done()
        one.page.get_by_role("button", name="New chat").click()
        expect(one.chat.answers).to_have_count(0)
    rows = one.page.locator(".st-key-conversations")
    cut_px = rows.evaluate(
        """list => {
            const end = list.getBoundingClientRect().bottom;
            const seen = [...list.querySelectorAll('[class*="st-key-open-"]')]
                .map(row => row.getBoundingClientRect()).filter(row => row.top < end);
            return seen.at(-1).bottom - end;
        }"""
    )
    assert 4 < cut_px < 28, "a row is cut where there is more"
    one.page.reload()
    one.is_ready_with("Tiny-A")
    expect(one.picked).to_have_value(re.compile("^Tiny-A · .* MB$"), timeout=LIMIT_MS)
    one.look_at("Tiny-B")
    expect(one.page.locator(".st-key-model_load button")).to_be_in_viewport(ratio=1)
    expect(one.page.locator(".st-key-model_leave button")).to_be_in_viewport(ratio=1)
    expect(one.said.locator("p").first).to_be_in_viewport(ratio=1)
    one.page.screenshot(path=artifacts / "model-in-sight.png")


def test_the_list_speaks_chinese(chromium: Browser, app: str, artifacts: Path) -> None:
    person = Person(chromium, app, locale="zh-CN")
    expect(person.state).to_contain_text("就绪", timeout=LIMIT_MS)
    expect(person.said).to_contain_text("最多同时回答 8 个问题（合为一批）。")
    expect(person.said).to_contain_text("提示：未使用 flash attention")
    person.look_at("Tiny-B")
    expect(person.said).to_contain_text(re.compile("约需.*放得下.*这里的所有人共用一个模型", re.S))
    person.page.screenshot(path=artifacts / "model-looked-at-zh.png")
    person.press("leave")
    expect(person.picked).to_have_value(re.compile("^Tiny-A ·"))
    assert person.chat.failures == []
    person.chat.close()
