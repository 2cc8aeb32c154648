"""What a person does with turns and variants, in a real browser, over the scripted backend."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from tests.browser.chat_page import INPUT, ChatPage
from tests.browser.conftest import ROOT, StartServer

pytestmark = pytest.mark.browser

WORDS = [f"word{number:03d}" for number in range(300)]
LONG = "\n\n".join(" ".join(WORDS[at : at + 10]) for at in range(0, 300, 10))
SCRIPTS = {
    "default": {"text": "You asked: **{question}**", "tokens_per_s": 50},
    "rules": [
        {"when": "slow", "text": LONG, "tokens_per_s": 30},
        {"when": "many blocks", "text": LONG, "tokens_per_s": 5000},
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
            "STEADY_CHAT_MAX_TOKENS": "5000",
        },
    )


@pytest.fixture
def chat(chromium: Browser, app: str) -> Iterator[ChatPage]:
    page = ChatPage.open(chromium, app)
    yield page
    page.close()
    assert page.failures == []


def choose(chat: ChatPage, action: str, at: int = -1) -> None:
    """Choose in the menu of one of the shown answers that are over, by keyboard."""
    button = chat.page.get_by_role("button", name="What to do with this turn").nth(at)
    button.press("Enter")
    chat.page.get_by_role("menuitem", name=action).press("Enter")


def deny(chat: ChatPage, permission: str) -> None:
    session = chat.context.new_cdp_session(chat.page)
    target = session.send("Target.getTargetInfo")["targetInfo"]
    session.send(
        "Browser.setPermission",
        {
            "permission": {"name": permission},
            "setting": "denied",
            "browserContextId": target["browserContextId"],
        },
    )


def edit(chat: ChatPage, question: str, at: int) -> None:
    choose(chat, "Edit question", at)
    field = chat.page.get_by_role("textbox", name="Question", exact=True)
    field.fill(question)
    field.press("Control+Enter")


def texts(chat: ChatPage) -> list[str]:
    return chat.questions.all_inner_texts()


def test_an_edit_and_a_walk_in_mid_answer_of_another(chat: ChatPage, artifacts: Path) -> None:
    chat.ask("many blocks")
    chat.wait_until_done()
    chat.ask("second")
    chat.wait_until_done(answers=2)
    chat.ask("a slow one")
    expect(chat.answers.nth(2)).to_contain_text("word003")
    edit(chat, "second, changed", 1)
    line = chat.page.get_by_text("An answer is being written in another branch.")
    expect(line).to_be_visible()
    expect(chat.questions).to_have_text(["many blocks", "second, changed"])
    expect(chat.stop_button).to_be_visible()
    expect(chat.page.get_by_text("Will be asked when the present answer is over.")).to_be_visible()
    chat.page.screenshot(path=artifacts / "turn-other-branch.png")
    # Back to the old version, and so to the running answer below it.
    chat.page.get_by_role("button", name="Show version 1 of 2, before this one").click()
    expect(chat.questions).to_have_text(["many blocks", "second", "a slow one"])
    expect(line).to_be_hidden()
    assert "word299" not in chat.answer_text(2), "too late to prove anything"
    # In mid-answer, the first turn asked otherwise: nothing of it may be left standing.
    edit(chat, "first, changed", 0)
    expect(chat.questions).to_have_text(["first, changed"])
    expect(chat.answers).to_have_count(0)
    chat.page.get_by_role("button", name="Show it").click()
    expect(chat.questions).to_have_text(["many blocks", "second", "a slow one"])
    assert "word299" not in chat.answer_text(2), "too late to prove anything"
    chat.stop_button.click()
    expect(chat.receipts).to_have_count(3)
    assert re.findall(r"word\d+", chat.answer_text(0)) == WORDS
    # Both that waited are answered, each on its branch.
    chat.page.get_by_role("button", name="Show version 2 of 2, after this one").first.click()
    chat.wait_until_done()
    assert chat.answer_text() == "You asked: first, changed"


def test_while_an_answer_streams_a_deleted_turn_leaves_nothing_and_comes_back(
    chat: ChatPage,
) -> None:
    for number, question in enumerate(("one", "many blocks", "three"), 1):
        chat.ask(question)
        chat.wait_until_done(answers=number)
    chat.ask("a slow one")
    expect(chat.answers.nth(3)).to_contain_text("word003")
    choose(chat, "Delete this turn", 1)
    expect(chat.questions).to_have_text(["one", "three", "a slow one"])
    expect(chat.page.get_by_text("Turn deleted.")).to_be_visible()
    assert chat.answer_text(1) == "You asked: three"
    chat.page.get_by_role("button", name="Undo").click()
    expect(chat.questions).to_have_text(["one", "many blocks", "three", "a slow one"])
    expect(chat.page.get_by_text("Turn deleted.")).to_be_hidden()
    assert "word299" not in chat.answer_text(3), "too late to prove anything"
    assert re.findall(r"word\d+", chat.answer_text(1)) == WORDS
    chat.stop_button.click()
    chat.wait_until_done(answers=4)


def test_a_new_answer_never_shows_the_old_one_below_it(chat: ChatPage) -> None:
    chat.ask("a slow one")
    chat.wait_for_text("word040")
    chat.stop_button.click()
    chat.wait_until_done()
    choose(chat, "Regenerate")
    expect(chat.page.get_by_text("2/2")).to_be_visible()
    expect(chat.answers).to_have_count(1)
    chat.wait_for_text("word002")
    numbers = [int(number) for number in re.findall(r"word(\d{3})", chat.answer_text())]
    assert numbers == list(range(len(numbers))), "of the old one something is left"
    # The one that runs can be left by its arrows too.
    chat.page.get_by_role("button", name="Show version 1 of 2, before this one").click()
    expect(chat.answers).to_have_count(1)
    expect(chat.answers).to_contain_text("word040")
    chat.stop_button.click()
    expect(chat.stop_button).to_be_hidden()


def test_a_refresh_keeps_the_branch_that_was_shown(chat: ChatPage) -> None:
    chat.ask("one")
    chat.wait_until_done()
    choose(chat, "Regenerate")
    expect(chat.page.get_by_text("2/2")).to_be_visible()
    chat.wait_until_done()
    chat.page.get_by_role("button", name="Show version 1 of 2, before this one").click()
    expect(chat.page.get_by_text("1/2")).to_be_visible()
    chat.page.reload()
    chat.page.wait_for_selector(INPUT)
    expect(chat.page.get_by_text("1/2")).to_be_visible()
    expect(chat.answers).to_have_count(1)


def test_copy_puts_the_markdown_on_the_clipboard(chat: ChatPage) -> None:
    chat.context.grant_permissions(["clipboard-read", "clipboard-write"])
    chat.ask("this")
    chat.wait_until_done()
    choose(chat, "Copy answer")
    expect(chat.page.get_by_role("status").get_by_text("Copied")).to_be_visible()
    assert chat.page.evaluate("navigator.clipboard.readText()") == "You asked: **this**"
    # Also while an answer streams.
    chat.ask("a slow one")
    chat.wait_for_text("word003")
    choose(chat, "Copy question", 0)
    expect(chat.page.get_by_role("status").get_by_text("Copied")).to_be_visible()
    assert chat.page.evaluate("navigator.clipboard.readText()") == "this"
    assert "word299" not in chat.answer_text(), "too late to prove anything"
    chat.stop_button.click()
    chat.wait_until_done(answers=2)


def test_a_copied_text_isnt_sent_again_by_every_run(chat: ChatPage) -> None:
    chat.context.grant_permissions(["clipboard-read", "clipboard-write"])
    chat.ask("this/that")
    chat.wait_until_done()
    frames: list[str | bytes] = []

    def note(frame: str | bytes) -> None:
        frames.append(frame)

    chat.page.on("websocket", lambda socket: socket.on("framereceived", note))
    chat.page.reload()
    chat.page.wait_for_selector(INPUT)
    chat.page.get_by_role("button", name="Export").click()
    chat.page.get_by_role("button", name="Copy as Markdown").click()
    expect(chat.page.get_by_role("status").get_by_text("Copied")).to_be_visible()
    expect(chat.page.get_by_role("status").get_by_text("Copied")).to_be_hidden()
    chat.page.keyboard.press("Escape")
    chat.ask("more")
    chat.wait_until_done(answers=2)
    # A heading is in the copied text alone.
    with_it = [frame for frame in frames if isinstance(frame, bytes) and b"# this/that" in frame]
    assert len(with_it) == 1


def test_where_the_browser_refuses_the_text_is_shown_to_be_copied_by_hand(chat: ChatPage) -> None:
    chat.ask("this")
    chat.wait_until_done()
    deny(chat, "clipboard-write")
    choose(chat, "Copy answer")
    expect(chat.page.get_by_text("The browser doesn’t let this page copy.")).to_be_visible()
    shown = chat.page.get_by_test_id("stBottomBlockContainer").get_by_test_id("stCode")
    expect(shown).to_have_text("You asked: **this**")
    chat.page.get_by_role("button", name="Close").click()
    expect(chat.page.get_by_text("The browser doesn’t let this page copy.")).to_be_hidden()


def test_the_conversation_is_copied_and_downloaded_even_in_mid_answer(
    chat: ChatPage, artifacts: Path
) -> None:
    chat.context.grant_permissions(["clipboard-read", "clipboard-write"])
    chat.ask("this/that")
    chat.wait_until_done()
    chat.ask("a slow one")
    chat.wait_for_text("word003")
    menu = chat.page.get_by_role("button", name="Export")
    menu.click()
    chat.page.get_by_role("button", name="Copy as Markdown").click()
    expect(chat.page.get_by_role("status").get_by_text("Copied")).to_be_visible()
    copied = chat.page.evaluate("navigator.clipboard.readText()")
    assert copied.startswith("# this/that\n")
    assert "You asked: **this/that**" in copied
    chat.page.screenshot(path=artifacts / "turn-export.png")
    if not chat.page.get_by_role("button", name="Download Markdown").is_visible():
        menu.click()
    with chat.page.expect_download() as markdown:
        chat.page.get_by_role("button", name="Download Markdown").click()
    assert markdown.value.suggested_filename == "this that.md"
    assert markdown.value.path().read_text(encoding="utf-8").startswith("# this/that\n")
    with chat.page.expect_download() as whole:
        chat.page.get_by_role("button", name="Download JSON").click()
    assert whole.value.suggested_filename == "this that.json"
    read = json.loads(whole.value.path().read_text(encoding="utf-8"))
    assert read["conversations"][0]["turns"][0]["question"] == "this/that"
    assert "word299" not in chat.answer_text(), "too late to prove anything"
    chat.stop_button.click()
    chat.wait_until_done(answers=2)


def test_undo_of_a_cleared_history_stands_where_the_welcome_stood(chat: ChatPage) -> None:
    chat.ask("one")
    chat.wait_until_done()
    chat.page.get_by_role("button", name="Clear history").click()
    chat.page.get_by_role("button", name="Delete").click()
    expect(chat.page.get_by_text("History cleared.")).to_be_visible()
    chat.page.reload()
    chat.page.get_by_role("button", name="Undo").click()
    chat.wait_until_done()
    assert chat.answer_text() == "You asked: one"
    expect(chat.page.get_by_text("History cleared.")).to_be_hidden()


def test_on_a_narrow_screen_in_chinese_nothing_stands_out(
    chromium: Browser, app: str, artifacts: Path
) -> None:
    chat = ChatPage.open(chromium, app, locale="zh-CN", width=390, height=844)
    chat.ask("你好，请介绍一下你自己")
    chat.wait_until_done()
    menu = chat.page.get_by_role("button", name="对这一轮的操作")
    menu.click()
    chat.page.screenshot(path=artifacts / "turn-menu-narrow-zh.png")
    chat.page.get_by_role("menuitem", name="重新生成").click()
    expect(chat.page.get_by_text("2/2")).to_be_visible()
    chat.wait_until_done()
    for each in (menu, chat.page.get_by_role("button", name="显示前一个版本（1 / 2）")):
        box = each.bounding_box()
        assert box is not None
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= 390
    assert chat.page.evaluate("document.documentElement.scrollWidth") <= 390
    menu.click()
    chat.page.get_by_role("menuitem", name="编辑问题").click()
    expect(chat.page.get_by_role("button", name="保存")).to_be_visible()
    chat.page.screenshot(path=artifacts / "turn-edit-narrow-zh.png")
    chat.close()
    assert chat.failures == []
