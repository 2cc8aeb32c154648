"""The app in front of a real vLLM, in a real browser. Greedy, so that nothing depends on luck."""

from __future__ import annotations

import json
import re
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from playwright.sync_api import Browser, Locator, expect

from tests.browser.chat_page import INPUT, ChatPage
from tests.browser.conftest import ROOT, StartServer
from tests.servers.real_server import WINDOW_TOKENS, RealServer

pytest_plugins = "tests.servers.fixtures"
pytestmark = [pytest.mark.browser, pytest.mark.vllm]

LONG = "Tell me a long story about a lighthouse."
SEND = "[data-testid=stChatInputSubmitButton]"
READS_FOR_SECONDS = "word " * (WINDOW_TOKENS - 600)
MORE_THAN_HALF = "word " * (WINDOW_TOKENS * 6 // 10)
FREED_WITHIN_S = 1.0
READING_FREED_WITHIN_S = 8.0
"""An engine lets go between two steps, and one that reads is long on a CPU that others want too.
The answer that would follow takes several times as long."""
EIGHT = ["India", "Spain", "Japan", "Peru", "Mexico", "Russia", "Egypt", "China"]
"""What they ask about. In every answer the likeliest token leads by 0.03 and more (logprob), so
rounding, which depends on what else is in the batch, decides nothing. France's has a near tie."""


def app_of(streamlit_server: StartServer, vllm: RealServer, max_tokens: int) -> str:
    return streamlit_server(
        ROOT / "streamlit_app.py",
        env={
            "STEADY_CHAT_BACKENDS": "vllm",
            "STEADY_CHAT_VLLM_BASE_URL": vllm.url,
            "STEADY_CHAT_VLLM_API_KEY": vllm.key,
            "STEADY_CHAT_TEMPERATURE": "0",
            "STEADY_CHAT_MAX_TOKENS": str(max_tokens),
        },
    )


@pytest.fixture(scope="module")
def app(streamlit_server: StartServer, vllm: RealServer) -> str:
    """Its answers may be long: there is time to stop them."""
    return app_of(streamlit_server, vllm, 2000)


@pytest.fixture(scope="module")
def brief_app(streamlit_server: StartServer, vllm: RealServer) -> str:
    return app_of(streamlit_server, vllm, 60)


@pytest.fixture(autouse=True)
def nothing_is_left_running(vllm: RealServer) -> Iterator[None]:
    """One test's request must not be taken for another's."""
    assert becomes(lambda: vllm.requests_held() == 0, 10)
    yield
    assert becomes(lambda: vllm.requests_held() == 0, 10)


def becomes(condition: Callable[[], bool], timeout_s: float) -> bool:
    """Wait for what another process does."""
    deadline_s = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() > deadline_s:
            return False
        time.sleep(0.02)
    return True


def is_freed(vllm: RealServer, within_s: float = FREED_WITHIN_S) -> bool:
    return becomes(lambda: vllm.requests_held() == 0, within_s)


def is_asked(vllm: RealServer) -> bool:
    return becomes(lambda: vllm.requests_held() == 1, 30)


def alert_of(chat: ChatPage) -> Locator:
    return chat.page.locator('[data-testid="stChatMessage"] [data-testid="stAlert"]')


def grows(chat: ChatPage, times: int) -> None:
    """Wait until the newest answer has become longer so many times."""
    expect(chat.answers.last).to_contain_text(re.compile(r"\w+"))
    for _ in range(times):
        before = len(chat.answer_text())
        assert becomes(lambda: len(chat.answer_text()) > before, 30)  # noqa: B023 - waited for here


def test_the_answer_grows_and_stop_frees_the_server(
    chromium: Browser, app: str, vllm: RealServer, artifacts: Path
) -> None:
    chat = ChatPage.open(chromium, app)
    sidebar = chat.page.locator("section[data-testid=stSidebar]")
    expect(sidebar).to_contain_text("ready")
    picked = sidebar.locator(".st-key-model_pick input")
    expect(picked).to_have_value(re.compile(f" · {WINDOW_TOKENS // 1024}k$"))
    expect(chat.page.locator(".steady-context")).to_contain_text(f"{WINDOW_TOKENS:,}")
    chat.ask(LONG)
    grows(chat, times=3)
    assert vllm.requests_held() == 1
    chat.page.screenshot(path=artifacts / "vllm-answering.png")
    chat.stop_button.click()
    assert is_freed(vllm)
    chat.wait_until_done()
    assert "stopped" in chat.receipts.last.inner_text()
    assert len(chat.answer_text()) > 20
    chat.close()


def test_stop_while_the_prompt_is_read_frees_the_server(
    chromium: Browser, app: str, vllm: RealServer
) -> None:
    chat = ChatPage.open(chromium, app)
    chat.ask(READS_FOR_SECONDS)
    assert is_asked(vllm)
    chat.stop_button.click()
    assert is_freed(vllm, READING_FREED_WITHIN_S)
    chat.wait_until_done()
    assert chat.answer_text() == "", "it was stopped in mid-answer, not before it"
    assert "stopped" in chat.receipts.last.inner_text()
    chat.close()


def test_deleting_the_conversation_frees_the_server(
    chromium: Browser, app: str, vllm: RealServer
) -> None:
    chat = ChatPage.open(chromium, app)
    chat.ask(LONG)
    grows(chat, times=1)
    sidebar = chat.page.get_by_test_id("stSidebar")
    sidebar.get_by_test_id("stPopover").get_by_role("button", name="Clear history").click()
    chat.page.locator(".st-key-clear_yes button").click()
    assert is_freed(vllm)
    expect(chat.questions).to_have_count(0)
    chat.close()


def test_a_closed_tab_is_no_stop(chromium: Browser, brief_app: str, vllm: RealServer) -> None:
    chat = ChatPage.open(chromium, brief_app)
    chat.ask(LONG)
    grows(chat, times=1)
    address = chat.page.url
    chat.page.close()
    assert is_asked(vllm), "the answer goes on"
    back = ChatPage(chat.context, address)
    back.wait_until_done()
    assert "cut at the token limit · 60 tokens" in back.receipts.last.inner_text()
    back.close()


def test_shutting_the_app_down_frees_the_server(
    chromium: Browser, streamlit_server: StartServer, vllm: RealServer
) -> None:
    address = app_of(streamlit_server, vllm, 2000)
    port = address.rpartition(":")[2]
    (process,) = (p for p in psutil.Process().children() if port in p.cmdline())
    chat = ChatPage.open(chromium, address)
    chat.ask(LONG)
    grows(chat, times=1)
    process.terminate()
    assert is_freed(vllm)
    chat.close()


def test_eight_people_at_once_get_each_their_own_answer(
    chromium: Browser, brief_app: str, vllm: RealServer
) -> None:
    questions = [f"Tell me about the history of {country}." for country in EIGHT]
    alone = [letters(said_alone(vllm, question, max_tokens=60)) for question in questions]
    assert len(set(alone)) == len(EIGHT)
    people = [ChatPage.open(chromium, brief_app) for _ in EIGHT]
    send_together(people, questions)
    assert becomes(lambda: vllm.requests_held() > 2, 20), "they were never answered at once"
    for chat in people:
        chat.wait_until_done()
    assert [letters(chat.answer_text()) for chat in people] == alone
    for chat in people:
        assert len(chat.questions.all()) == 1
        chat.close()


def send_together(people: list[ChatPage], questions: list[str]) -> None:
    """Everybody's question sent in one moment, which the pages' own clocks tell.

    One page after the other, the first answers may be over before the last question is sent.
    """
    for chat, question in zip(people, questions, strict=True):
        chat.page.locator(INPUT).fill(question)
        expect(chat.page.locator(SEND)).to_be_enabled()
    at_ms = time.time() * 1000 + 2000
    for chat in people:
        chat.page.evaluate(
            """([button, at]) => void setTimeout(
                () => document.querySelector(button).click(), at - Date.now())""",
            [SEND, at_ms],
        )


def said_alone(vllm: RealServer, question: str, *, max_tokens: int) -> str:
    """What vLLM says with nobody else there, without the app."""
    told = post(
        vllm,
        "/v1/chat/completions",
        messages=[{"role": "user", "content": question}],
        temperature=0,
        max_tokens=max_tokens,
    )
    return str(told["choices"][0]["message"]["content"])


def tokens_of(vllm: RealServer, question: str, answer: str) -> int:
    """How many tokens vLLM counts in a conversation of these two."""
    told = (("user", question), ("assistant", answer))
    messages = [{"role": role, "content": text} for role, text in told]
    return int(post(vllm, "/tokenize", messages=messages)["count"])


def post(vllm: RealServer, path: str, **body: object) -> dict[str, Any]:
    request = urllib.request.Request(
        f"{vllm.address}{path}",
        json.dumps({"model": vllm.model, **body}).encode(),
        {"Content-Type": "application/json", "Authorization": f"Bearer {vllm.key}"},
    )
    with urllib.request.urlopen(request, timeout=120) as reply:
        told: dict[str, Any] = json.load(reply)
        return told


def letters(text: str) -> str:
    """Only letters: the page shows Markdown as what it means."""
    return re.sub(r"[^A-Za-z]", "", text)


def test_what_does_not_fit_the_window_is_a_sentence_with_numbers(
    chromium: Browser, app: str
) -> None:
    chat = ChatPage.open(chromium, app)
    field = chat.page.locator(INPUT)
    field.fill("word " * (WINDOW_TOKENS + 500))
    field.press("Enter")
    expect(alert_of(chat)).to_contain_text(f"{WINDOW_TOKENS:,}")
    assert_no_raw_refusal(chat)
    chat.ask("What is the capital of France?")
    chat.wait_for_text("Paris")
    chat.wait_until_done(answers=2)
    chat.close()


@pytest.mark.parametrize("max_tokens", [WINDOW_TOKENS - 6, 100 * WINDOW_TOKENS])
def test_an_answer_that_may_be_longer_than_its_room_is_given_the_room(
    chromium: Browser, app: str, max_tokens: int
) -> None:
    chat = ChatPage.open(chromium, app)
    limit = chat.page.get_by_role("spinbutton", name="Max tokens")
    limit.fill(str(max_tokens))
    limit.press("Enter")
    chat.ask("What is the capital of France?")
    chat.wait_for_text("Paris")
    chat.wait_until_done()
    expect(alert_of(chat)).to_have_count(0)
    assert_no_raw_refusal(chat)
    chat.close()


def test_the_meter_below_the_input_counts_as_vllm_does(
    chromium: Browser, brief_app: str, vllm: RealServer
) -> None:
    chat = ChatPage.open(chromium, brief_app)
    question = "What is the capital of Japan?"
    tokens = tokens_of(vllm, question, said_alone(vllm, question, max_tokens=60))
    line = chat.page.locator(".steady-context")
    expect(line).to_have_text(f"Context: 0 of {WINDOW_TOKENS:,} tokens")
    chat.ask(question)
    chat.wait_until_done()
    expect(line).to_have_text(f"Context: {tokens:,} of {WINDOW_TOKENS:,} tokens")
    chat.close()


def test_a_conversation_that_outgrows_the_window_goes_on_without_the_oldest_questions(
    chromium: Browser, brief_app: str
) -> None:
    chat = ChatPage.open(chromium, brief_app)
    # Neither of the first two fits beside the third; that the first goes is not enough.
    for turn, question in enumerate(["Hello!", MORE_THAN_HALF, MORE_THAN_HALF], start=1):
        chat.ask(question)
        chat.wait_until_done(answers=turn)
        expect(alert_of(chat)).to_have_count(0)
        if turn < 3:
            expect(chat.receipts.last).not_to_contain_text("left out")
    assert chat.answer_text()
    expect(chat.receipts.last).to_contain_text(
        "the 2 oldest questions no longer fitted the model’s window and were left out"
    )
    expect(chat.questions).to_have_count(3)
    line = chat.page.locator(".steady-context")
    expect(line).to_contain_text(f"The model’s window ({WINDOW_TOKENS:,} tokens) is full")
    chat.close()


def assert_no_raw_refusal(chat: ChatPage) -> None:
    """No alert has a server's own words. Figures elsewhere may hold a 400."""
    for shown in chat.page.get_by_test_id("stAlert").all_inner_texts():
        for word in ("400", "BadRequest", "max_tokens", "maximum context length", "Traceback"):
            assert word not in shown


def test_killed_in_mid_answer_the_words_stay_and_after_a_restart_it_answers_again(
    chromium: Browser, app: str, vllm: RealServer, artifacts: Path
) -> None:
    chat = ChatPage.open(chromium, app)
    chat.ask(LONG)
    grows(chat, times=2)
    before = letters(chat.answer_text())
    vllm.kill()
    try:
        expect(alert_of(chat)).to_contain_text("What had arrived is kept")
        chat.wait_until_done()
        assert letters(chat.answer_text()).startswith(before)
        assert "failed" in chat.receipts.last.inner_text()
        chat.page.screenshot(path=artifacts / "vllm-killed.png")
    finally:
        vllm.start()
        vllm.wait_until_ready()
    chat.ask("What is the capital of France?")
    chat.wait_for_text("Paris")
    chat.wait_until_done(answers=2)
    expect(alert_of(chat)).to_have_count(1)
    chat.close()
