"""A model that thinks first: its reasoning on the page, in a real browser."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Locator, expect

from tests.browser.chat_page import ChatPage
from tests.browser.conftest import ROOT, StartServer
from tests.protocol_server import ProtocolServer, saying

pytestmark = pytest.mark.browser

THOUGHTS = "\n\n".join(f"thought{number:03d} is *one* of many." for number in range(80))
ANSWER = "\n\n".join(f"word{number:03d} and more." for number in range(150))
HOSTILE = """<script>window.hacked = 1</script> <img src=x onerror="window.hacked = 2">

![pixel](http://127.0.0.1:1/leak.png) :red[colour] :smile: a -> b"""

SCRIPTS = {
    "default": {"text": "You asked: {question}"},
    "rules": [
        {"when": "think", "reasoning": THOUGHTS, "text": ANSWER, "tokens_per_s": 150},
        {"when": "too long", "reasoning": "thought000", "finish_reason": "length"},
        {"when": "hostile", "reasoning": HOSTILE, "text": "Done.", "tokens_per_s": 100},
        {"when": "blank", "reasoning": "\n\n", "text": "Done.", "tokens_per_s": 100},
    ],
}


@pytest.fixture(scope="module")
def server() -> Iterator[ProtocolServer]:
    with ProtocolServer() as running:
        yield running


@pytest.fixture(scope="module")
def app(
    server: ProtocolServer,
    streamlit_server: StartServer,
    tmp_path_factory: pytest.TempPathFactory,
) -> str:
    scripts = tmp_path_factory.mktemp("scripts") / "scripts.json"
    scripts.write_text(json.dumps(SCRIPTS), encoding="utf-8")
    return streamlit_server(
        ROOT / "streamlit_app.py",
        env={
            "STEADY_CHAT_BACKENDS": "scripted,vllm",
            "STEADY_CHAT_SCRIPTS_FILE": str(scripts),
            "STEADY_CHAT_VLLM_BASE_URL": server.url,
            "STEADY_CHAT_MAX_TOKENS": "5000",
        },
    )


@pytest.fixture
def chat(chromium: Browser, app: str) -> Iterator[ChatPage]:
    page = ChatPage.open(chromium, app)
    yield page
    page.close()
    assert page.failures == []


def block(chat: ChatPage) -> Locator:
    return chat.page.locator('[class*="st-key-reasoning-"] details')


def head(chat: ChatPage) -> Locator:
    return block(chat).locator("summary")


def label(chat: ChatPage) -> Locator:
    return head(chat).locator("p")


def seconds(chat: ChatPage) -> str:
    """What the head says of the time while the model thinks."""
    told: str = label(chat).evaluate("e => getComputedStyle(e, '::after').content")
    return told


def expect_open(chat: ChatPage, is_open: bool) -> None:
    expect(block(chat)).to_have_js_property("open", is_open)


def wait_for_thought(chat: ChatPage, number: int) -> None:
    """Until it is on the page, seen or in a closed block."""
    expect(block(chat)).to_contain_text(f"thought{number:03d}")


def move_a_slider(chat: ChatPage) -> None:
    """Something that makes the script run again."""
    slider = chat.page.get_by_role("slider", name="Temperature")
    value = float(slider.input_value())
    slider.press("ArrowRight")
    expect(slider).to_have_value(f"{value + 0.05:.2f}".rstrip("0"))


def test_the_block_is_open_while_it_thinks_and_closes_with_the_answer(
    chat: ChatPage, artifacts: Path
) -> None:
    chat.ask("think please")
    wait_for_thought(chat, 20)
    expect_open(chat, True)
    expect(label(chat)).to_contain_text("Thinking …")
    assert re.fullmatch(r'" \d+ s"', seconds(chat)), seconds(chat)
    assert chat.answer_text() == ""
    # Its newest words are in sight, and it takes up part of the page only.
    expect(block(chat).get_by_text(re.compile(r"^thought02")).last).to_be_in_viewport()
    assert block(chat).evaluate("e => e.getBoundingClientRect().height") < 320
    chat.page.screenshot(path=artifacts / "reasoning-live.png")
    chat.wait_for_text("word001")
    expect_open(chat, False)
    expect(label(chat)).to_have_text(re.compile(r"^Thought for \d+ s"))
    assert seconds(chat) == "none"
    assert "word149" not in chat.answer_text()
    chat.wait_until_done()
    expect_open(chat, False)
    assert re.findall(r"word\d+", chat.answer_text())[-1] == "word149"
    assert "thought" not in chat.answer_text()
    took = label(chat).inner_text()
    chat.page.screenshot(path=artifacts / "reasoning-closed.png")
    chat.page.reload()
    chat.wait_until_done()
    expect_open(chat, False)
    assert label(chat).inner_text() == took
    head(chat).click()
    expect(block(chat).get_by_text("thought079")).to_be_visible()
    # Not what is seen: what is out of sight isn't laid out.
    thoughts = re.findall(r"thought\d+", block(chat).text_content() or "")
    assert thoughts == [f"thought{number:03d}" for number in range(80)]


def test_a_block_closed_in_mid_thought_stays_closed(chat: ChatPage) -> None:
    chat.ask("think please")
    wait_for_thought(chat, 5)
    head(chat).click()
    expect_open(chat, False)
    wait_for_thought(chat, 15)
    expect_open(chat, False)
    move_a_slider(chat)
    wait_for_thought(chat, 25)
    expect_open(chat, False)
    was = seconds(chat)
    chat.page.wait_for_function(
        "([e, was]) => getComputedStyle(e, '::after').content !== was",
        arg=[label(chat).element_handle(), was],
    )
    expect_open(chat, False)
    head(chat).click()
    expect_open(chat, True)
    move_a_slider(chat)
    wait_for_thought(chat, 45)
    expect_open(chat, True)
    chat.wait_for_text("word001")
    expect_open(chat, False)


def test_a_block_opened_in_mid_answer_stays_open(chat: ChatPage) -> None:
    chat.ask("think please")
    chat.wait_for_text("word001")
    expect_open(chat, False)
    head(chat).click()
    expect_open(chat, True)
    expect(block(chat).get_by_text("thought000")).to_be_visible()
    chat.wait_for_text("word010")
    expect_open(chat, True)
    move_a_slider(chat)
    chat.wait_for_text("word020")
    expect_open(chat, True)
    assert "word149" not in chat.answer_text(), "too late to prove anything"
    chat.wait_until_done()
    expect_open(chat, True)
    chat.ask("another question")
    chat.wait_until_done(2)
    expect_open(chat, True)
    expect(block(chat)).to_have_count(1)


def test_stopped_in_mid_thought_there_is_no_answer_and_the_page_says_so(chat: ChatPage) -> None:
    chat.ask("think please")
    wait_for_thought(chat, 5)
    chat.stop_button.click()
    chat.wait_until_done()
    assert chat.answer_text() == ""
    expect(chat.page.get_by_text("It ended while the model was still thinking")).to_be_visible()
    expect(label(chat)).to_have_text(re.compile("^Thought for "))
    expect_open(chat, False)
    wait_for_thought(chat, 5)


def test_cut_in_mid_thought_the_page_says_what_to_do(chat: ChatPage) -> None:
    chat.ask("far too long")
    chat.wait_until_done()
    assert chat.answer_text() == ""
    expect(chat.page.get_by_text("Raise Max tokens")).to_be_visible()
    expect(label(chat)).to_contain_text("Thought for a moment")


def test_reasoning_runs_nothing_and_fetches_nothing(chat: ChatPage) -> None:
    requested: list[str] = []
    chat.page.on("request", lambda request: requested.append(request.url))
    chat.ask("hostile")
    chat.wait_until_done()
    head(chat).click()
    for text in ("<script>", "<img", ":red[colour]", ":smile:", "a -> b"):
        expect(block(chat)).to_contain_text(text)
    assert block(chat).locator("img, script").count() == 0
    assert chat.page.evaluate("window.hacked") is None
    assert not [url for url in requested if "leak" in url]


def test_an_answer_without_reasoning_has_no_block_and_no_gap(chat: ChatPage) -> None:
    for number, question in enumerate(("hello", "blank"), start=1):
        chat.ask(question)
        chat.wait_until_done(number)
        expect(block(chat)).to_have_count(0)
        gap = chat.answers.last.evaluate(
            """e => e.getBoundingClientRect().top
                - e.closest('[data-testid="stChatMessageContent"]').getBoundingClientRect().top"""
        )
        assert gap == 0


def test_in_chinese_it_says_so_in_chinese(chromium: Browser, app: str) -> None:
    chat = ChatPage.open(chromium, app, locale="zh-CN")
    chat.ask("think please")
    wait_for_thought(chat, 3)
    expect(label(chat)).to_contain_text("正在思考……")
    assert "秒" in seconds(chat)
    chat.wait_for_text("word001")
    expect(label(chat)).to_contain_text(re.compile(r"思考了 \d+ 秒"))
    chat.close()


# Tags in the text of a server without a reasoning parser.

WATCH = """() => {
  window.shown = '';
  new MutationObserver(() => {
    for (const e of document.querySelectorAll('[class*="st-key-answer-"]'))
      window.shown += e.innerText;
  }).observe(document.body, { childList: true, characterData: true, subtree: true });
}"""


def choose_the_server(chat: ChatPage) -> None:
    chat.page.get_by_text("vLLM", exact=True).click()
    expect(chat.page.get_by_role("radio", name="vLLM")).to_be_checked()


@pytest.mark.parametrize("closed", [True, False], ids=["closed", "unclosed"])
def test_what_is_in_tags_is_never_shown_as_the_answer(
    chat: ChatPage, server: ProtocolServer, closed: bool
) -> None:
    sent = f"<think>\n{THOUGHTS[:600]}" + ("</think>\n\nword000" if closed else "")
    server.when("tagged", saying([sent[at : at + 7] for at in range(0, len(sent), 7)], gap_s=0.02))
    choose_the_server(chat)
    chat.page.evaluate(WATCH)
    chat.ask("tagged")
    wait_for_thought(chat, 5)
    expect_open(chat, True)
    chat.wait_until_done()
    shown = chat.page.evaluate("window.shown")
    assert "thought" not in shown
    assert "think>" not in shown
    assert chat.answer_text() == ("word000" if closed else "")
    expect_open(chat, False)


def test_what_turns_out_to_be_reasoning_leaves_the_answer(
    chat: ChatPage, server: ProtocolServer
) -> None:
    sent = f"{THOUGHTS[:600]}\n</think>\n\n{ANSWER[:900]}"
    server.when("alone", saying([sent[at : at + 7] for at in range(0, len(sent), 7)], gap_s=0.02))
    choose_the_server(chat)
    chat.ask("alone")
    chat.wait_for_text("thought010")  # it can't be known yet
    chat.wait_for_text("word005")
    assert "thought" not in chat.answer_text()
    expect_open(chat, False)
    chat.wait_until_done()
    words = re.findall(r"word\d+", chat.answers.last.text_content() or "")
    assert len(words) > 30
    assert words == [f"word{number:03d}" for number in range(len(words))]
    assert "think>" not in chat.page.locator("body").inner_text()
    head(chat).click()
    expect(block(chat).get_by_text("thought000")).to_be_visible()
    chat.ask("alone again")
    roles = [m["content"] for m in server.exchange(len(server.exchanges) - 1).body["messages"]]
    assert not any("thought" in content for content in roles)
    chat.stop_button.click()
