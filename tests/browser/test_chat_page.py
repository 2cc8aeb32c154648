"""What a person does on the chat page, in a real browser, over the scripted backend."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Locator, expect

from tests.browser.chat_page import INPUT, ChatPage
from tests.browser.conftest import ROOT, StartServer

pytestmark = pytest.mark.browser

WORDS = [f"word{number:03d}" for number in range(200)]
LONG = "\n\n".join(" ".join(WORDS[at : at + 10]) for at in range(0, 200, 10)) + "\n\nThe end."
HOSTILE = """<script>window.hacked = 1</script>

<img src=x onerror="window.hacked = 2">

<table><tr><td>raw</td></tr></table>

[click](javascript:window.hacked=3)

![pixel](http://127.0.0.1:1/leak.png)

:red[colour] :smile: :material/home: a -> b

After all that."""

SCRIPTS = {
    "default": {"text": "You asked: {question}", "tokens_per_s": 50},
    "rules": [
        {"when": "slow and long", "text": LONG, "tokens_per_s": 40},
        {"when": "long", "text": LONG, "tokens_per_s": 100},
        {"when": "slow start", "text": "Here it is.", "prefill_s": 4},
        {"when": "die", "text": LONG, "tokens_per_s": 200, "die_after": 20},
        {"when": "fail", "text": LONG, "tokens_per_s": 200, "fail_after": 20},
        {
            "when": "memory",
            "text": LONG,
            "tokens_per_s": 200,
            "fail_after": 20,
            "fail_kind": "out-of-memory",
        },
        {"when": "breaks", "text": LONG, "tokens_per_s": 400, "fail_after": 300},
        {"when": "silent", "text": LONG, "tokens_per_s": 200, "stall_after": 20},
        {"when": "nothing", "text": ""},
        {"when": "blank", "text": "  \n\n "},
        {"when": "open fence", "text": "Look:\n\n```python\nprint(1)\n"},
        {"when": "hostile", "text": HOSTILE, "tokens_per_s": 200},
        {"when": "echo", "text": "{question}", "tokens_per_s": 60},
    ],
}


@pytest.fixture(scope="module")
def app(streamlit_server: StartServer, tmp_path_factory: pytest.TempPathFactory) -> str:
    scripts = tmp_path_factory.mktemp("scripts") / "scripts.json"
    scripts.write_text(json.dumps(SCRIPTS), encoding="utf-8")
    return streamlit_server(
        ROOT / "streamlit_app.py",
        env={
            "STEADY_CHAT_BACKENDS": "scripted,vllm",
            "STEADY_CHAT_SCRIPTS_FILE": str(scripts),
            "STEADY_CHAT_VLLM_BASE_URL": "http://127.0.0.1:9/v1",
            "STEADY_CHAT_SERVER_WAIT_S": "1",
            "STEADY_CHAT_IDLE_TIMEOUT_S": "2",
            "STEADY_CHAT_MAX_TOKENS": "2000",
            "STEADY_CHAT_MAX_QUESTION_CHARS": "5000",
        },
    )


@pytest.fixture
def chat(chromium: Browser, app: str) -> Iterator[ChatPage]:
    page = ChatPage.open(chromium, app)
    yield page
    page.close()
    assert page.failures == []


def assert_whole_once(chat: ChatPage) -> None:
    """Every word of LONG is on the page, once, in order."""
    assert re.findall(r"word\d+", chat.answer_text()) == WORDS


def test_the_very_first_visit_of_a_process_opens_the_page_at_its_address(
    chromium: Browser, streamlit_server: StartServer
) -> None:
    app = streamlit_server(ROOT / "streamlit_app.py", env={"STEADY_CHAT_BACKENDS": "scripted"})
    page = chromium.new_page(locale="en-US")
    page.goto(f"{app}/setup")
    expect(page.get_by_text("STEADY_CHAT_DATA_DIR")).to_be_visible()
    assert page.get_by_role("link", name="chat page").count() == 0
    page.close()


def test_an_answer_grows_and_ends_with_its_receipt(chat: ChatPage, artifacts: Path) -> None:
    chat.ask("a long answer please")
    chat.wait_for_text("word003")
    early = chat.answer_text()
    assert "word199" not in early
    chat.page.screenshot(path=artifacts / "answer-streaming.png")
    chat.wait_until_done()
    assert_whole_once(chat)
    receipt = chat.receipts.last.inner_text()
    assert re.fullmatch(
        r"scripted · finished · [\d,]+ tokens · first text after \d+\.\d\d s · [\d.]+ tokens/s"
        r"( · longest freeze \d+\.\d\d s)?",
        receipt,
    )
    chat.page.screenshot(path=artifacts / "answer-done.png")


def test_a_question_costs_two_script_runs(chat: ChatPage) -> None:
    assert chat.script_runs == 1
    for asked in (1, 2):
        chat.ask("a long answer please")
        chat.wait_until_done(asked)
        assert chat.script_runs == 1 + 2 * asked, "one to draw the answer, one for its end"


def test_sidebar_controls_in_mid_answer_change_nothing_of_it(chat: ChatPage) -> None:
    chat.ask("a slow and long answer please")
    chat.wait_for_text("word003")
    slider = chat.page.get_by_role("slider", name="Temperature")
    slider.press("ArrowRight")
    expect(slider).to_have_value("0.75")
    chat.page.get_by_text("vLLM", exact=True).click()
    expect(chat.page.get_by_role("radio", name="vLLM")).to_be_checked()
    chat.page.locator("textarea").first.fill("Be brief.")
    chat.page.get_by_text("Scripted", exact=True).click()
    assert "word199" not in chat.answer_text(), "the clicks came too late to prove anything"
    chat.wait_until_done()
    assert_whole_once(chat)


def test_another_page_a_refresh_and_a_second_tab_all_find_the_whole_answer(chat: ChatPage) -> None:
    chat.ask("a slow and long answer please")
    chat.wait_for_text("word003")
    chat.page.get_by_role("link", name="This installation").click()
    expect(chat.page.get_by_text("STEADY_CHAT_DATA_DIR")).to_be_visible()
    chat.page.reload()
    expect(chat.page.get_by_text("STEADY_CHAT_DATA_DIR")).to_be_visible()
    chat.page.get_by_role("link", name="Chat").click()
    chat.wait_for_text("word003")
    second = ChatPage(chat.context, chat.page.url)
    chat.page.reload()
    assert "word199" not in second.answer_text(), "too late to prove anything"
    for tab in (chat, second):
        tab.wait_until_done()
        assert_whole_once(tab)


def test_a_page_left_before_the_first_token_has_the_answer_on_return(chat: ChatPage) -> None:
    chat.ask("slow start")
    expect(chat.page.get_by_text(re.compile(r"Reading the question … \d+ s"))).to_be_visible()
    chat.page.get_by_role("link", name="This installation").click()
    expect(chat.page.get_by_text("STEADY_CHAT_DATA_DIR")).to_be_visible()
    chat.page.get_by_role("link", name="Chat").click()
    chat.wait_until_done()
    assert chat.answer_text() == "Here it is."


def test_stop_keeps_what_was_said_and_marks_it(chat: ChatPage, artifacts: Path) -> None:
    chat.ask("a long answer please")
    chat.wait_for_text("word005")
    chat.stop_button.click()
    chat.wait_until_done()
    words = re.findall(r"word\d\d\d", chat.answer_text())
    assert len(words) > 5
    assert words == WORDS[: len(words)]
    assert len(words) < len(WORDS)
    assert "stopped" in chat.receipts.last.inner_text()
    chat.page.screenshot(path=artifacts / "answer-stopped.png")


def test_stop_is_gone_at_once_though_the_model_still_loads(
    chromium: Browser, streamlit_server: StartServer, tmp_path: Path
) -> None:
    scripts = tmp_path / "scripts.json"
    scripts.write_text(json.dumps({"ready_after_s": 40}), encoding="utf-8")
    app = streamlit_server(
        ROOT / "streamlit_app.py",
        env={"STEADY_CHAT_BACKENDS": "scripted", "STEADY_CHAT_SCRIPTS_FILE": str(scripts)},
    )
    chat = ChatPage.open(chromium, app)
    chat.ask("anybody?")
    chat.stop_button.click()
    expect(chat.receipts).to_have_count(1)
    expect(chat.stop_button).to_be_hidden(timeout=10_000)
    expect(chat.page.get_by_text("● ready")).to_have_count(0)
    chat.close()


def test_an_emptied_number_takes_the_default_and_not_the_least(chat: ChatPage) -> None:
    field = chat.page.get_by_role("spinbutton", name="Max tokens")
    field.fill("")
    field.press("Enter")
    chat.ask("echo " + "many words " * 10)
    chat.wait_until_done()
    assert chat.answer_text().count("many words") == 10


def test_further_parameters_stay_over_pages_and_come_back_with_the_conversation(
    chat: ChatPage, artifacts: Path
) -> None:
    def number(name: str) -> Locator:
        return chat.page.get_by_role("spinbutton", name=name)

    more = chat.page.get_by_text("More parameters")
    expect(number("Top-k")).to_be_hidden()
    more.click()
    for name, value in (("Top-k", "20"), ("Presence penalty", "0.5"), ("Seed", "7")):
        number(name).fill(value)
        number(name).press("Enter")
    number("Seed").fill("")
    number("Seed").press("Enter")
    stop = chat.page.get_by_label("Stop strings", exact=True)
    stop.fill("END\n\\n\\n")
    stop.blur()
    chat.page.get_by_test_id("stSidebar").get_by_text("Top-p", exact=True).last.click()
    expect(chat.page.get_by_text("Top-p (not sent)")).to_be_visible()
    chat.page.screenshot(path=artifacts / "more-parameters.png")
    chat.ask("echo this but not the END of it")
    chat.wait_until_done()
    assert chat.answer_text() == "echo this but not the"

    def assert_kept() -> None:
        expect(number("Top-k")).to_have_value("20")
        expect(number("Presence penalty")).to_have_value("0.50")
        expect(number("Seed")).to_have_value("")
        expect(stop).to_have_value("END\n\\n\\n")
        expect(chat.page.get_by_text("Top-p (not sent)")).to_be_visible()

    assert_kept()
    chat.page.get_by_role("link", name="This installation").click()
    expect(chat.page.get_by_role("heading", name="This installation")).to_be_visible()
    assert_kept()
    chat.page.get_by_role("link", name="Chat").click()
    expect(chat.receipts).to_have_count(1)
    assert_kept()
    chat.page.reload()
    expect(chat.receipts).to_have_count(1)
    more.click()
    assert_kept()


def test_stop_then_ask_at_once_gives_one_question_and_one_answer_a_turn(chat: ChatPage) -> None:
    chat.ask("a long answer please")
    chat.wait_for_text("word002")
    chat.stop_button.click()
    chat.ask("and now?")
    chat.wait_until_done(answers=2)
    assert chat.questions.all_inner_texts() == ["a long answer please", "and now?"]
    assert chat.answers.count() == 2
    assert chat.answer_text(1) == "You asked: and now?"


def test_a_question_asked_in_mid_answer_waits_for_its_turn(chat: ChatPage) -> None:
    chat.ask("a slow and long answer please")
    chat.wait_for_text("word002")
    chat.ask("the next one")
    chat.ask("not this one")
    expect(chat.page.get_by_text("Will be asked when the present answer is over.")).to_have_count(2)
    chat.page.get_by_role("button", name="Take back").last.click()
    # At once, not only when the answer is over.
    expect(chat.questions).to_have_count(2)
    expect(chat.page.get_by_role("button", name="Take back")).to_have_count(1)
    assert "word199" not in chat.answer_text(0), "too late to prove anything"
    chat.wait_until_done(answers=2)
    expect(chat.page.get_by_role("button", name="Take back")).to_have_count(0)
    assert chat.questions.all_inner_texts() == ["a slow and long answer please", "the next one"]
    assert re.findall(r"word\d+", chat.answer_text(0)) == WORDS
    assert chat.answer_text(1) == "You asked: the next one"


def test_clear_history_asks_first_and_keeps_or_deletes(chat: ChatPage, artifacts: Path) -> None:
    clear = chat.page.get_by_role("button", name="Clear history")
    clear.click()
    expect(chat.page.get_by_role("button", name="Delete")).to_have_count(0)
    chat.ask("first")
    chat.wait_until_done()
    clear.click()
    expect(chat.page.get_by_text("only question and answer?")).to_be_visible()
    chat.page.screenshot(path=artifacts / "clear-asks.png")
    chat.page.keyboard.press("Escape")
    expect(chat.page.get_by_text("only question and answer?")).to_be_hidden()
    assert chat.answer_text() == "You asked: first"
    clear.click()
    chat.page.get_by_role("button", name="Delete").click()
    expect(chat.answers).to_have_count(0)
    expect(chat.page.get_by_role("button", name="Delete")).to_have_count(0)
    chat.page.reload()
    chat.page.wait_for_selector(INPUT)
    expect(chat.answers).to_have_count(0)


def test_clear_in_mid_answer_stops_it_and_the_next_question_works(chat: ChatPage) -> None:
    chat.ask("a long answer please")
    chat.wait_for_text("word002")
    chat.page.get_by_role("button", name="Clear history").click()
    chat.page.get_by_role("button", name="Delete").click()
    expect(chat.answers).to_have_count(0)
    chat.ask("fresh")
    chat.wait_until_done()
    assert chat.questions.all_inner_texts() == ["fresh"]
    assert chat.answer_text() == "You asked: fresh"


def test_two_people_get_their_own_answers_and_stop_only_their_own(
    chromium: Browser, app: str
) -> None:
    ann, ben = (ChatPage.open(chromium, app) for _ in range(2))
    ann.ask("a long answer please")
    ben.ask("echo of Ben " + "b " * 100)
    ann.wait_for_text("word002")
    ann.stop_button.click()
    ben.wait_until_done()
    ann.wait_until_done()
    assert ben.answer_text().count("b") >= 100
    assert "word" not in ben.answer_text()
    assert "Ben" not in ann.answer_text()
    assert "stopped" in ann.receipts.last.inner_text()
    assert "finished" in ben.receipts.last.inner_text()
    ann.close()
    ben.close()


@pytest.mark.parametrize(
    ("question", "sentence"),
    [
        ("die", "Something went wrong inside the app (RuntimeError)"),
        ("fail", "reported a fault of its own"),
        ("memory", "The memory isn’t enough"),
        ("silent", "No new text came for"),
    ],
)
def test_a_mishap_in_mid_answer_is_a_sentence_and_the_text_stays(
    chat: ChatPage, question: str, sentence: str
) -> None:
    chat.ask(question)
    expect(chat.page.get_by_test_id("stAlert")).to_contain_text(sentence, timeout=30_000)
    assert chat.answer_text().startswith("word000")
    assert "Traceback" not in chat.page.inner_text("body")
    chat.ask("still there?")
    chat.wait_until_done(answers=2)
    assert chat.answer_text() == "You asked: still there?"


def test_an_unreachable_server_is_a_sentence_and_asking_again_is_offered(chat: ChatPage) -> None:
    chat.page.get_by_text("vLLM", exact=True).click()
    chat.ask("anybody?")
    alert = chat.page.locator('[data-testid="stChatMessage"] [data-testid="stAlert"]')
    expect(alert).to_contain_text("Nothing answers at http://127.0.0.1:9/v1")
    chat.page.get_by_text("Scripted", exact=True).click()
    chat.page.get_by_role("button", name="Retry").click()
    chat.wait_for_text("You asked: anybody?")
    chat.wait_until_done()
    assert chat.questions.all_inner_texts() == ["anybody?"]


@pytest.mark.parametrize("question", ["nothing", "blank", "open fence"])
def test_an_odd_answer_is_shown_for_what_it_is_and_the_next_one_works(
    chat: ChatPage, question: str
) -> None:
    chat.ask(question)
    chat.wait_until_done()
    if question == "open fence":
        expect(chat.answers.last.locator("pre")).to_contain_text("print(1)")
    else:
        expect(chat.page.get_by_text("without saying anything")).to_be_visible()
    chat.ask("next")
    chat.wait_until_done(answers=2)
    assert chat.answer_text() == "You asked: next"


def test_a_question_that_is_too_long_says_by_how_much_and_stays_in_the_field(
    chat: ChatPage,
) -> None:
    field = chat.page.locator(INPUT)
    field.fill("x" * 6000)
    field.press("Enter")
    expect(chat.page.get_by_text("Shorten it by 1,000.")).to_be_visible()
    expect(field).to_have_value("x" * 6000)
    expect(chat.answers).to_have_count(0)
    chat.ask("short")
    chat.wait_until_done()
    assert chat.answer_text() == "You asked: short"


def test_a_question_keeps_its_indentation_and_its_line_breaks(chat: ChatPage) -> None:
    chat.ask("    indented\n  less\n\nlast <b>&amp;")
    chat.wait_until_done()
    assert (
        chat.questions.last.evaluate("e => e.textContent")
        == "    indented\n  less\n\nlast <b>&amp;"
    )


def test_nothing_that_a_model_writes_runs_or_is_fetched(chat: ChatPage) -> None:
    fetched: list[str] = []
    chat.page.on("request", lambda request: fetched.append(request.url))
    chat.ask("hostile <b>bold</b> <script>window.hacked=4</script>")
    chat.wait_until_done()
    assert chat.page.evaluate("window.hacked") is None
    assert not [url for url in fetched if "leak" in url]
    text = chat.answer_text()
    for written in ("<script>", "onerror=", "<td>raw</td>", ":red[colour]", ":smile:", "a -> b"):
        assert written in text
    assert "javascript" not in chat.answers.last.locator("a", has_text="click").get_attribute(
        "href"
    )
    assert "<b>bold</b>" in chat.questions.last.inner_text()


def test_a_reader_who_scrolled_up_is_left_alone_and_one_at_the_end_follows(
    chromium: Browser, app: str
) -> None:
    chat = ChatPage.open(chromium, app, height=500)
    chat.ask("a long answer please")
    chat.wait_for_text("word080")
    scroller = '[data-testid="stMain"]'
    place = f"document.querySelector('{scroller}')"
    from_end = f"({place}.scrollHeight - {place}.scrollTop - {place}.clientHeight)"
    chat.page.wait_for_function(f"{place}.scrollTop > 100 && {from_end} < 100")
    chat.page.mouse.move(700, 200)
    chat.page.mouse.wheel(0, -2000)
    chat.page.wait_for_function(f"{place}.scrollTop === 0")
    chat.wait_for_text("word150")
    assert chat.page.evaluate(f"{place}.scrollTop") == 0
    chat.page.mouse.wheel(0, 20000)
    chat.wait_until_done()
    chat.page.wait_for_function(f"{from_end} < 5")
    chat.close()


def test_what_is_offered_below_an_answer_is_in_sight_at_its_end(
    chromium: Browser, app: str
) -> None:
    chat = ChatPage.open(chromium, app, height=600)
    chat.ask("an answer that breaks off")
    chat.wait_until_done()
    place = "document.querySelector('[data-testid=\"stMain\"]')"
    expect(chat.page.locator(".st-key-ask_again button")).to_be_visible()
    chat.page.wait_for_function(
        f"{place}.scrollTop > 100 &&"
        f" {place}.scrollHeight - {place}.scrollTop - {place}.clientHeight < 5"
    )
    chat.close()


def test_another_page_opens_at_its_top_and_the_chat_again_at_its_end(chat: ChatPage) -> None:
    chat.page.set_viewport_size({"width": 1200, "height": 400})
    chat.ask("a long one")
    chat.wait_until_done()
    place = 'document.querySelector("[data-testid=stMain]")'
    chat.page.wait_for_function(f"{place}.scrollTop > 100")
    chat.page.get_by_role("link", name="This installation").click()
    expect(chat.page.get_by_role("heading", name="This installation")).to_be_in_viewport()
    chat.page.wait_for_function(f"{place}.scrollTop === 0")
    expect(chat.answers).to_have_count(0)
    assert chat.page.evaluate(f"{place}.scrollTop") == 0
    chat.page.get_by_role("link", name="Chat", exact=True).click()
    chat.page.wait_for_function(f"{place}.scrollTop > 100")
    expect(chat.receipts.last).to_be_in_viewport()


def test_a_reader_who_goes_to_the_end_gets_there_though_it_moves_on_meanwhile(
    chromium: Browser, app: str
) -> None:
    chat = ChatPage.open(chromium, app, height=500)
    chat.ask("a long answer please")
    chat.wait_until_done()
    place = "document.querySelector('[data-testid=\"stMain\"]')"
    from_end = f"({place}.scrollHeight - {place}.scrollTop - {place}.clientHeight)"
    chat.page.wait_for_function(f"{place}.scrollTop > 100 && {from_end} < 5")
    chat.page.mouse.move(700, 200)
    chat.page.mouse.wheel(0, -2000)
    chat.page.wait_for_function(f"{place}.scrollTop === 0")
    # As when text comes between the wheel and the scrolling: the end is farther off by then.
    chat.page.evaluate(
        """() => {
          const grow = () => {
            const content = document.querySelector('[data-testid="stMainBlockContainer"]');
            content.style.paddingBottom = '900px';
          };
          document.addEventListener('scroll', grow, { capture: true, once: true });
        }"""
    )
    chat.page.mouse.wheel(0, 20000)
    chat.page.wait_for_function(f"{from_end} < 5 && {place}.scrollTop > 1000")
    chat.close()


def test_a_long_conversation_draws_its_end_and_offers_the_rest(chat: ChatPage) -> None:
    for number in range(17):
        chat.ask(f"question {number}")
        expect(chat.answers.last).to_contain_text(f"question {number}")
    chat.wait_until_done(answers=17)
    chat.page.reload()
    expect(chat.answers).to_have_count(15)
    chat.page.get_by_role("button", name="Show earlier messages (2)").click()
    expect(chat.answers).to_have_count(17)
    assert chat.questions.all_inner_texts() == [f"question {number}" for number in range(17)]


def test_an_answer_is_never_seen_twice_or_faded_around_reruns(chat: ChatPage) -> None:
    chat.page.evaluate(
        """() => {
          window.seen = { twice: 0, faded: 0, shrunk: 0, longest: 0, looks: 0 };
          const look = () => {
            const answers = [...document.querySelectorAll('[class*="st-key-answer-"]')];
            const text = answers.map((a) => a.textContent).join('');
            window.seen.looks += 1;
            if ((text.match(/word000/g) ?? []).length > 1) window.seen.twice += 1;
            const faded = answers.flatMap((a) => [...a.querySelectorAll('*')])
              .some((e) => Number(getComputedStyle(e).opacity) < 0.5 && e.innerText?.includes('word'));
            if (faded) window.seen.faded += 1;
            if (text.length < window.seen.longest - 40) window.seen.shrunk += 1;
            window.seen.longest = Math.max(window.seen.longest, text.length);
            requestAnimationFrame(look);
          };
          requestAnimationFrame(look);
        }"""
    )
    chat.ask("a long answer please")
    slider = chat.page.get_by_role("slider", name="Temperature")
    for _ in range(6):
        slider.press("ArrowRight")
        chat.page.wait_for_timeout(400)
    chat.wait_until_done()
    assert_whole_once(chat)
    seen = chat.page.evaluate("window.seen")
    assert seen["looks"] > 50
    assert (seen["twice"], seen["faded"], seen["shrunk"]) == (0, 0, 0), seen


def test_the_browser_reports_how_it_paints_while_an_answer_streams_and_not_after(
    chat: ChatPage,
) -> None:
    answered: list[int] = []
    chat.page.on(
        "response",
        lambda response: answered.append(response.status) if "/steady/paint" in response.url else 0,
    )
    chat.ask("a slow and long answer please")
    chat.wait_until_done()
    assert answered
    assert set(answered) == {204}
    reports = len(answered)
    chat.page.wait_for_timeout(3000)  # two reports' time
    assert len(answered) == reports


def test_the_page_speaks_chinese_to_a_chinese_browser_and_can_be_switched(
    chromium: Browser, app: str, artifacts: Path
) -> None:
    chat = ChatPage.open(chromium, app, locale="zh-CN")
    chat.ask("你好，世界！🙂")
    chat.wait_until_done()
    chat.page.get_by_role("button", name="清空历史").click()
    expect(chat.page.get_by_text("确定删除此对话的 1 组问答吗？")).to_be_visible()
    chat.page.screenshot(path=artifacts / "chinese.png")
    # All but the list: it holds what other tests have asked.
    chat.page.add_style_tag(content=".st-key-conversations { display: none !important; }")
    shown = chat.page.locator("section[data-testid=stSidebar]").inner_text()
    english = set(re.findall(r"[A-Za-z]{3,}", shown))
    # Icons are drawn by ligatures of these names.
    icons = {
        "forum",
        "bolt",
        "tune",
        "stethoscope",
        "keyboard",
        "double",
        "arrow",
        "left",
        "right",
        "delete",
        "expand",
        "less",
        "inventory",
        "edit",
        "square",
        "more",
        "search",
        "monitoring",
    }
    # Proper names and the switch itself.
    assert english - icons <= {"vLLM", "scripted", "Language", "English"}, english
    chat.page.keyboard.press("Escape")  # the question lies over the switch
    chat.page.get_by_text("English", exact=True).click()
    expect(chat.page.get_by_role("button", name="Clear history")).to_be_visible()
    assert "你好" in chat.answer_text()
    chat.close()


def test_a_phone_shows_the_whole_page_in_both_colour_schemes(
    chromium: Browser, app: str, artifacts: Path
) -> None:
    for scheme in ("light", "dark"):
        context = chromium.new_context(
            viewport={"width": 390, "height": 780}, color_scheme=scheme, locale="en-US"
        )
        chat = ChatPage(context, app)
        chat.ask("hostile")
        chat.wait_until_done()
        chat.page.screenshot(path=artifacts / f"phone-{scheme}.png")
        assert chat.page.evaluate("document.documentElement.scrollWidth <= window.innerWidth"), (
            "the page is wider than the screen"
        )
        chat.close()
