"""The answer cache as a person meets it: given again, doubted, switched off, looked at, emptied."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Locator, expect
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from streamlit.proto.RootContainer_pb2 import RootContainer

from llm.minilm import fetch_minilm
from llm.types import CancelToken
from tests.browser.chat_page import INPUT, LIMIT_MS, ChatPage
from tests.browser.conftest import ROOT, StartServer
from tests.model_data import model_data_dir

pytestmark = pytest.mark.browser

QUESTION = "How do I reverse a list in Python?"
ALIKE = "How can I reverse a list in Python?"
SEARCH_MS = 5_000
"""What a search may take on a busy machine; where nothing is found, all of it is waited for."""
TRIES = 10
"""Where a machine is too busy to have a kept answer ready at once, it rightly comes later."""
SCRIPTS = {"default": {"text": "You asked: {question}", "tokens_per_s": 100}}


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
            "STEADY_CHAT_TEMPERATURE": "0",
        },
    )


def sidebar(chat: ChatPage) -> Locator:
    return chat.page.get_by_test_id("stSidebar")


def begin_anew(chat: ChatPage) -> None:
    chat.page.locator(".st-key-new_chat button").click()
    expect(chat.questions).to_have_count(0)


def ask_anew(chat: ChatPage, question: str = QUESTION) -> str:
    """Ask in a new chat; returns the receipt."""
    begin_anew(chat)
    chat.ask(question)
    chat.wait_until_done()
    return chat.receipts.last.inner_text()


def choose(chat: ChatPage, what: str) -> None:
    """Something in the sidebar's popover; it stays open until Escape."""
    sidebar(chat).get_by_role("button", name=re.compile("Answer cache|回答缓存")).click()
    chat.page.get_by_text(what, exact=True).click()
    chat.page.keyboard.press("Escape")


def test_an_answer_is_given_again_and_the_model_may_be_asked_anyway(
    chromium: Browser, app: str, artifacts: Path
) -> None:
    chat = ChatPage.open(chromium, app)
    assert "cache" not in ask_anew(chat)
    first = chat.answer_text()
    receipt = ask_anew(chat)
    assert "from the cache, exact · just now" in receipt
    assert chat.answer_text() == first
    chat.page.screenshot(path=artifacts / "cache-answer.png")
    chat.page.get_by_role("button", name="Ask the model anyway").click()
    expect(chat.page.get_by_text("2/2")).to_be_visible()
    expect(chat.receipts.last).to_contain_text("finished", timeout=LIMIT_MS)
    expect(chat.receipts.last).not_to_contain_text("cache")
    assert "from the cache" in ask_anew(chat)
    chat.close()


def test_a_kept_answer_is_sent_before_the_sidebar(chromium: Browser, app: str) -> None:
    sent: list[ForwardMsg] = []

    def take(frame: str | bytes) -> None:
        if isinstance(frame, bytes):
            sent.append(ForwardMsg.FromString(frame))

    page = chromium.new_context().new_page()
    page.on("websocket", lambda socket: socket.on("framereceived", take))
    page.goto(app)
    chat = ChatPage.of(page)
    ask_anew(chat)
    tried: list[tuple[set[int], int]] = []
    for _ in range(TRIES):
        begin_anew(chat)
        sent.clear()
        chat.ask(QUESTION)
        chat.wait_until_done()
        expect(chat.receipts.last).to_contain_text("from the cache")
        text = next(n for n, each in enumerate(sent) if "You asked" in _markdown(each))
        run = max(n for n, each in enumerate(sent[:text]) if _begins_run(each))
        before = sent[run:text]
        roots = {each.metadata.delta_path[0] for each in before if each.HasField("delta")}
        tried.append((roots, len(before)))
        if RootContainer.SIDEBAR not in roots and len(before) < 40:
            break
    else:
        pytest.fail(f"always after the sidebar: {tried}")
    chat.close()


def _markdown(message: ForwardMsg) -> str:
    return message.delta.new_element.markdown.body


def _begins_run(message: ForwardMsg) -> bool:
    return message.HasField("new_session") and not message.metadata.run.fragment_ids


def test_off_and_fresh(chromium: Browser, app: str) -> None:
    chat = ChatPage.open(chromium, app)
    ask_anew(chat)
    choose(chat, "Fresh answer")
    assert "cache" not in ask_anew(chat)
    assert "from the cache" in ask_anew(chat), "fresh goes for one question"
    choose(chat, "off")
    expect(sidebar(chat).get_by_role("button", name="Answer cache: off")).to_be_visible()
    assert "cache" not in ask_anew(chat)
    chat.close()


def test_what_is_chosen_outlives_a_reload_and_is_there_in_a_second_tab(
    chromium: Browser, app: str
) -> None:
    chat = ChatPage.open(chromium, app)
    ask_anew(chat)
    choose(chat, "off")
    expect(sidebar(chat).get_by_role("button", name="Answer cache: off")).to_be_visible()
    expect(chat.page).to_have_url(re.compile("[?&]cache=off"))
    chat.page.reload()
    chat.page.wait_for_selector(INPUT)
    expect(sidebar(chat).get_by_role("button", name="Answer cache: off")).to_be_visible()
    assert "cache" not in ask_anew(chat)
    second = ChatPage(chat.context, chat.page.url)
    expect(sidebar(second).get_by_role("button", name="Answer cache: off")).to_be_visible()
    assert "cache" not in ask_anew(second)
    for name in ("Answer cache", "Chat"):
        second.page.get_by_role("link", name=name, exact=True).click()
        heading = "Steady Chat" if name == "Chat" else name
        expect(second.page.get_by_role("heading", name=heading)).to_be_visible()
        expect(sidebar(second).get_by_role("button", name="Answer cache: off")).to_be_visible()
    choose(second, "exact")
    expect(sidebar(second).get_by_role("button", name="Answer cache: exact")).to_be_visible()
    expect(second.page).to_have_url(re.compile("[?&]cache=exact"))
    assert "from the cache" in ask_anew(second)
    chat.close()


def test_kept_answers_are_searched_and_opened_by_keyboard(chromium: Browser, app: str) -> None:
    chat = ChatPage.open(chromium, app, width=390)
    questions = ("What is a **LIST** in `Python`?", "列表是什么？", "How much is 100%?")
    for question in questions:
        chat.page.goto(app)
        chat.page.wait_for_selector(INPUT)
        chat.ask(question)
        chat.wait_until_done()
    page = chat.page
    page.goto(f"{app}/cache")
    main = page.get_by_test_id("stMain")
    kept = main.locator('[class*="st-key-entry-"]')
    expect(kept).to_have_count(3)
    field = main.get_by_label("Search the questions")
    for typed, found in (("列表", questions[1]), ("%", questions[2]), ("list", questions[0])):
        field.fill(typed)
        field.press("Enter")
        # The row before may stand beside it for a moment.
        expect(kept.filter(has_text=found)).to_have_count(1)
        expect(kept).to_have_count(1)
    opening = kept.locator(".steady-cache-opening")
    expect(opening).to_have_text("You asked: What is a LIST in Python?")
    answer = main.locator('[class*="st-key-answer-kept-"]')
    expect(answer).to_have_count(0)
    kept.locator("summary").focus()
    page.keyboard.press("Enter")
    expect(answer.locator("strong")).to_have_text("LIST")
    expect(answer.locator("code")).to_have_text("Python")
    expect(opening).to_be_hidden()
    assert not page.evaluate(
        "document.scrollingElement.scrollWidth > document.scrollingElement.clientWidth"
    )
    page.keyboard.press("Enter")
    expect(answer).to_have_count(0)
    chat.close()


def test_the_page_shows_what_is_kept_and_empties_it(
    chromium: Browser, app: str, artifacts: Path
) -> None:
    chat = ChatPage.open(chromium, app)
    ask_anew(chat)
    ask_anew(chat)
    ask_anew(chat, "<b>What</b> is *this* $x$?")
    ask_anew(chat, "What is the weather like today?")
    page = chat.page
    page.get_by_role("link", name="Answer cache").click()
    main = page.get_by_test_id("stMain")
    expect(main).to_contain_text("2 answers")
    expect(main).to_contain_text("<b>What</b> is *this* $x$?")
    expect(main).to_contain_text("given once")
    expect(main.get_by_test_id("stMetricValue").first).to_have_text("25%")
    expect(main).to_contain_text("Never cached:")
    page.screenshot(path=artifacts / "cache-page.png", full_page=True)
    with page.expect_download() as told:
        page.get_by_role("button", name="Decision log").click()
    lines = Path(told.value.path()).read_text(encoding="utf-8").splitlines()
    assert [json.loads(line)["kind"] for line in lines] == ["refused", "miss", "exact", "miss"]
    assert "weather" not in "".join(lines)
    page.get_by_role("button", name="Forget", exact=True).first.click()
    expect(main).to_contain_text("One answer")
    page.get_by_role("button", name="Forget answers").click()
    page.locator(".st-key-cache_clear_yes button").click()
    expect(main).to_contain_text("One answer was forgotten.")
    expect(page.locator(".st-key-cache_clear_yes")).to_have_count(0)
    expect(main).to_contain_text("Nothing yet.")
    page.get_by_role("link", name="Chat").click()
    page.wait_for_selector(INPUT)
    assert "cache" not in ask_anew(chat)
    chat.close()


def test_in_chinese_on_a_narrow_screen(chromium: Browser, app: str, artifacts: Path) -> None:
    question = "Python 里怎么把列表倒过来？"
    chat = ChatPage.open(chromium, app, locale="zh-CN", width=390)
    chat.ask(question)
    chat.wait_until_done()
    chat.page.goto(app)
    chat.page.wait_for_selector(INPUT)
    chat.ask(question)
    chat.wait_until_done()
    expect(chat.receipts.last).to_contain_text("来自缓存，完全相同 · 刚刚")
    expect(chat.page.get_by_role("button", name="仍然询问模型")).to_be_visible()
    wide = "document.scrollingElement.scrollWidth > document.scrollingElement.clientWidth"
    assert not chat.page.evaluate(wide)
    chat.page.screenshot(path=artifacts / "cache-narrow-zh.png")
    chat.page.goto(f"{app}/cache")
    expect(chat.page.get_by_test_id("stMain")).to_contain_text("已使用 1 次")
    assert not chat.page.evaluate(wide)
    chat.page.screenshot(path=artifacts / "cache-page-narrow-zh.png", full_page=True)
    chat.close()


@pytest.mark.model
def test_the_same_in_other_words_and_a_wrong_match(
    chromium: Browser, streamlit_server: StartServer, tmp_path: Path, artifacts: Path
) -> None:
    """With the real embedding; the model is too slow to be first."""
    rules = [{"when": QUESTION, "text": "The model's own.", "tokens_per_s": 100}]
    told = {"default": {"text": "You asked: {question}", "prefill_s": 600}, "rules": rules}
    scripts = tmp_path / "scripts.json"
    scripts.write_text(json.dumps(told), encoding="utf-8")
    minilm = fetch_minilm(model_data_dir() / "embeddings", CancelToken())
    app = streamlit_server(
        ROOT / "streamlit_app.py",
        env={
            "STEADY_CHAT_BACKENDS": "scripted",
            "STEADY_CHAT_SCRIPTS_FILE": str(scripts),
            "STEADY_CHAT_DATA_DIR": str(tmp_path),
            "STEADY_CHAT_TEMPERATURE": "0",
            "STEADY_CHAT_CACHE": "similar",
            "STEADY_CHAT_EMBEDDING_MODEL": str(minilm),
        },
    )
    chat = ChatPage.open(chromium, app)
    ask_anew(chat)
    while not answered_by_the_cache(chat, ALIKE):  # the embedding gets ready meanwhile
        chat.stop_button.click()
        expect(chat.stop_button).to_be_hidden()
    assert chat.answer_text() == "The model's own."
    expect(chat.receipts.last).to_contain_text(f"similar to: “{QUESTION}”")
    chat.page.screenshot(path=artifacts / "cache-similar.png")
    assert not answered_by_the_cache(chat, "How do I sort a list in Python?")
    chat.stop_button.click()
    expect(chat.stop_button).to_be_hidden()
    assert answered_by_the_cache(chat, ALIKE)
    chat.page.get_by_role("button", name="Wrong match").click()
    expect(chat.stop_button).to_be_visible()
    chat.stop_button.click()
    expect(chat.stop_button).to_be_hidden()
    assert not answered_by_the_cache(chat, ALIKE)
    chat.close()


def answered_by_the_cache(chat: ChatPage, question: str) -> bool:
    """Whether a new chat's question is; else it still waits for the model."""
    chat.page.locator(".st-key-new_chat button").click()
    expect(chat.questions).to_have_count(0)
    chat.ask(question)
    expect(chat.questions).to_have_count(1)
    try:
        expect(chat.receipts).to_have_count(1, timeout=SEARCH_MS)
    except AssertionError:
        return False
    return "from the cache" in chat.receipts.last.inner_text()
