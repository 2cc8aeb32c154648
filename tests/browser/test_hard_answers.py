"""Questions and answers that have frozen other chat pages: long blocks, long lists, no spaces.

The bounds leave room for a busy machine; `make bench` has the exact figures.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, expect

from tests.browser.chat_page import INPUT, ChatPage
from tests.browser.conftest import ROOT, StartServer

pytestmark = pytest.mark.browser

PYTHON = "\n".join(f"    value_{n} = compute(value_{n - 1}, step={n})  # step" for n in range(120))
ROUNDS = "\n\n".join(
    f"Round {number}:\n\n```python\n"
    + "\n".join(f"row_{number}_{line} = load({line})" for line in range(40))
    + "\n```\n\n"
    + "| "
    + " | ".join(f"column {column}" for column in range(12))
    + " |\n|"
    + "---|" * 12
    + "\n"
    + "\n".join(
        "| " + " | ".join(f"{row}.{column}" for column in range(12)) + " |" for row in range(8)
    )
    for number in range(8)
)
NUMBERS = "\n".join(f"{number}. item" for number in range(1, 20_001))
END = "\n\nThe end."

SCRIPTS = {
    "default": {"text": "words and words " * 60, "tokens_per_s": 100},
    "rules": [
        {"when": "a long fence", "text": f"```python\n{PYTHON}\n```{END}", "tokens_per_s": 150},
        {"when": "eight rounds", "text": ROUNDS + END, "tokens_per_s": 400},
        {"when": "no space", "text": "ABCabc" * 10_000, "tokens_per_s": 2500, "chunk_chars": 6},
        {"when": "numbers", "text": NUMBERS + END, "tokens_per_s": 2500, "chunk_chars": 20},
        {"when": "input method", "text": "You asked: {question}"},
    ],
}

WATCH_JS = """() => {
  const seen = window.__seen = { changes: [], longestFrame: 0, last: performance.now() };
  const answer = [...document.querySelectorAll('[class*="st-key-answer-"]')].at(-1);
  new MutationObserver(() => seen.changes.push(performance.now()))
    .observe(answer, { subtree: true, childList: true, characterData: true });
  const frame = (now) => {
    seen.longestFrame = Math.max(seen.longestFrame, now - seen.last);
    seen.last = now;
    requestAnimationFrame(frame);
  };
  requestAnimationFrame(frame);
}"""
GAPS_JS = """() => {
  const at = window.__seen.changes;
  const gaps = at.slice(1).map((t, i) => t - at[i]).sort((a, b) => a - b);
  return { longest: gaps.at(-1), p95: gaps[Math.floor(gaps.length * 0.95)], count: gaps.length,
           longestFrame: window.__seen.longestFrame };
}"""


@pytest.fixture(scope="module")
def app(streamlit_server: StartServer, tmp_path_factory: pytest.TempPathFactory) -> str:
    scripts = tmp_path_factory.mktemp("hard") / "scripts.json"
    scripts.write_text(json.dumps(SCRIPTS), encoding="utf-8")
    environment = {
        "STEADY_CHAT_BACKENDS": "scripted",
        "STEADY_CHAT_SCRIPTS_FILE": str(scripts),
        "STEADY_CHAT_MAX_TOKENS": "100000",
    }
    return streamlit_server(ROOT / "streamlit_app.py", env=environment)


@pytest.fixture
def chat(chromium: Browser, app: str) -> Iterator[ChatPage]:
    opened = ChatPage.open(chromium, app)
    yield opened
    assert opened.failures == []
    opened.close()


def watched(chat: ChatPage, question: str) -> dict[str, float]:
    """Ask, and watch the answer's changes until it is done."""
    chat.ask(question)
    expect(chat.answers.last).to_contain_text(chr(0x61), timeout=30_000)
    chat.page.evaluate(WATCH_JS)
    chat.wait_until_done()
    gaps: dict[str, float] = chat.page.evaluate(GAPS_JS)
    return gaps


def test_a_fence_of_120_lines_grows_steadily(chat: ChatPage) -> None:
    gaps = watched(chat, "a long fence")
    assert gaps["count"] > 60
    assert gaps["p95"] < 350, gaps
    assert gaps["longest"] < 1000, gaps
    expect(chat.answers.last).to_contain_text("value_119")


def test_code_and_wide_tables_in_turns_grow_steadily(chat: ChatPage) -> None:
    gaps = watched(chat, "eight rounds")
    assert gaps["p95"] < 350, gaps
    assert gaps["longest"] < 1500, gaps
    assert chat.answers.last.locator("table").count() == 8
    assert chat.answers.last.locator("pre").count() == 8


def test_60_000_letters_without_a_space_arrive_whole(chat: ChatPage) -> None:
    gaps = watched(chat, "no space")
    assert gaps["longestFrame"] < 2500, gaps
    assert chat.answer_text().strip() == "ABCabc" * 10_000


def test_a_list_of_20_000_leaves_the_page_usable(chat: ChatPage) -> None:
    chat.ask("numbers")
    expect(chat.answers.last).to_contain_text("item", timeout=30_000)
    chat.page.evaluate(WATCH_JS)
    field = chat.page.locator(INPUT)
    for word in ("one ", "two ", "three "):
        chat.page.wait_for_timeout(2000)
        field.press_sequentially(word)
    expect(field).to_have_value("one two three ")
    field.fill("")
    chat.wait_until_done()
    gaps = chat.page.evaluate(GAPS_JS)
    assert gaps["longestFrame"] < 3000, gaps
    shown = chat.answers.last.locator("li").count()
    assert shown == 20_000
    expect(chat.answers.last).to_contain_text("The end.")


def test_a_pasted_book_is_drawn_once(chat: ChatPage) -> None:
    chat.ask("a word of a book " * 9_000)
    expect(chat.answers.last).to_contain_text("words", timeout=30_000)
    chat.page.evaluate(
        """() => {
          window.__redrawn = 0;
          new MutationObserver((all) => { window.__redrawn += all.length; }).observe(
            document.querySelector('.steady-question').closest('[data-testid=stChatMessage]'),
            { subtree: true, childList: true, characterData: true });
        }"""
    )
    chat.page.evaluate(WATCH_JS)
    chat.wait_until_done()
    gaps = chat.page.evaluate(GAPS_JS)
    assert gaps["p95"] < 350, gaps
    expect(chat.page.get_by_text("153,000")).to_be_visible()
    # The run that follows the answer may touch it once; frames may not.
    assert chat.page.evaluate("window.__redrawn") < gaps["count"] / 4


def test_enter_that_confirms_a_candidate_sends_nothing(chat: ChatPage) -> None:
    field = chat.page.locator(INPUT)
    field.focus()
    keyboard = chat.page.context.new_cdp_session(chat.page)
    keyboard.send(
        "Input.imeSetComposition", {"text": "ni hao", "selectionStart": 6, "selectionEnd": 6}
    )
    enter = {"key": "Enter", "code": "Enter", "windowsVirtualKeyCode": 229}
    keyboard.send("Input.dispatchKeyEvent", {"type": "rawKeyDown", **enter})
    keyboard.send("Input.insertText", {"text": "你好 input method"})
    keyboard.send("Input.dispatchKeyEvent", {"type": "keyUp", **enter})
    expect(field).to_have_value("你好 input method")
    assert chat.questions.count() == 0
    field.press("Enter")
    chat.wait_for_text("You asked: 你好 input method")
    assert chat.questions.count() == 1
