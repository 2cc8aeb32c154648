"""What can be done with a turn and with the conversation, by Streamlit's AppTest."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

from llm.chat import Chat
from llm.conversation_database import ConversationDatabase
from llm.conversation_tree import ConversationKey, Turn, add_turn, change_turn, interrupted
from llm.conversations import ConversationStore
from llm.registry import JobRegistry
from llm.types import SamplingParams
from ui import resources

ROOT = Path(__file__).parents[1]
SCRIPTS = {
    "default": {"text": "You asked: {question}"},
    "rules": [
        {"when": "for ever", "text": "word " * 2000, "tokens_per_s": 20},
        {"when": "fail", "text": "One two three four", "fail_after": 2},
    ],
}


@pytest.fixture
def app(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[AppTest]:
    """The page in a process of its own as far as the app can tell."""
    monkeypatch.chdir(tmp_path)
    scripts = tmp_path / "scripts.json"
    scripts.write_text(json.dumps(SCRIPTS), encoding="utf-8")
    monkeypatch.setenv("STEADY_CHAT_BACKENDS", "scripted")
    monkeypatch.setenv("STEADY_CHAT_SCRIPTS_FILE", str(scripts))
    monkeypatch.setenv("STEADY_CHAT_DATA_DIR", str(tmp_path))
    st.cache_resource.clear()
    yield fresh().run()
    resources.chat().close()
    st.cache_resource.clear()


def fresh() -> AppTest:
    return AppTest.from_file(str(ROOT / "streamlit_app.py"), default_timeout=120)


def refreshed(app: AppTest) -> AppTest:
    """The same address in a new session."""
    other = fresh()
    other.query_params["c"] = app.query_params["c"]
    return other.run()


def ask(app: AppTest, question: str) -> None:
    app.chat_input[0].set_value(question).run()
    assert not app.exception


def key(app: AppTest) -> ConversationKey:
    here = app.query_params["c"]
    return ConversationKey("local", here[0] if isinstance(here, list) else here)


def turns(app: AppTest) -> tuple[Turn, ...]:
    return resources.chat().turns(key(app))


def choose(app: AppTest, action: str, at: int = -1) -> None:
    """Choose in the menu of one of the shown turns."""
    turn = turns(app)[at]
    app.menu_button(key=f"quiet-menu-{turn.turn_id}").click(action).run()
    assert not app.exception


def press(app: AppTest, wanted: str) -> None:
    """Press the button with this key, or with this beginning of its key."""
    buttons = [each for each in app.button if str(each.key).startswith(wanted)]
    assert len(buttons) == 1, [each.key for each in app.button]
    buttons[0].click().run()
    assert not app.exception


def keys(app: AppTest) -> set[str]:
    return {str(button.key) for button in app.button}


def shown(app: AppTest) -> str:
    """All text of the page."""
    parts = [*app.markdown, *app.caption, *app.warning, *app.error, *app.code]
    return "\n".join(part.value for part in parts)


def questions(app: AppTest) -> list[str]:
    return [turn.question for turn in turns(app)]


def until(told: Callable[[], object]) -> None:
    for _ in range(6000):
        if told():
            return
        time.sleep(0.01)
    pytest.fail("it never came to that")


def test_regenerate_stands_beside_and_both_can_be_walked(app: AppTest) -> None:
    ask(app, "Hello")
    (first,) = turns(app)
    assert not any("quiet-next" in name for name in keys(app))
    app.slider(key="temperature").set_value(1.2)
    choose(app, "regenerate")
    (second,) = turns(app)
    assert second.turn_id != first.turn_id
    assert second.params.temperature == 1.2
    assert "2/2" in shown(app)
    assert app.button(key=f"quiet-next-{second.turn_id}").disabled
    press(app, "quiet-previous")
    assert turns(app) == (first,)
    assert "1/2" in shown(app)
    assert app.button(key=f"quiet-previous-{first.turn_id}").disabled
    assert turns(refreshed(app)) == (first,)
    press(app, "quiet-next")
    assert turns(app) == (second,)


def test_an_edited_question_is_asked_in_its_place_and_the_old_branch_stays(app: AppTest) -> None:
    ask(app, "First")
    ask(app, "Second")
    choose(app, "edit", 0)
    field = app.text_area(key=f"edited-{turns(app)[0].turn_id}")
    assert field.value == "First"
    press(app, "edit-cancel")
    assert questions(app) == ["First", "Second"]
    choose(app, "edit", 0)
    app.text_area(key=f"edited-{turns(app)[0].turn_id}").set_value("Changed")
    press(app, "edit-save")
    assert questions(app) == ["Changed"]
    assert "You asked: Changed" in shown(app)
    assert not [area for area in app.text_area if "edited" in str(area.key)]
    press(app, "quiet-previous")
    assert questions(app) == ["First", "Second"]


def test_a_refused_edit_stays_in_its_field(app: AppTest) -> None:
    ask(app, "First")
    choose(app, "edit")
    app.text_area(key=f"edited-{turns(app)[0].turn_id}").set_value("  ")
    press(app, "edit-save")
    assert "The question is empty" in app.warning[0].value
    assert app.text_area(key=f"edited-{turns(app)[0].turn_id}").value == "  "
    assert questions(app) == ["First"]
    press(app, "edit-cancel")


def test_an_answer_cut_off_can_go_on_and_one_that_ended_cant(app: AppTest) -> None:
    ask(app, "Hello there")
    menu = app.menu_button(key=f"quiet-menu-{turns(app)[0].turn_id}")
    assert not any("Continue" in option for option in menu.options)
    assert "go_on" not in keys(app)
    app.number_input(key="max_tokens").set_value(2)
    ask(app, "Hello again")
    old = turns(app)[-1]
    assert old.receipt is not None
    assert old.receipt.finish.reason == "length"
    menu = app.menu_button(key=f"quiet-menu-{old.turn_id}")
    assert any("Continue" in option for option in menu.options)
    press(app, "go_on")
    new = turns(app)[-1]
    assert new.continues == old.turn_id
    assert new.parent == old.parent
    assert "2/2" in shown(app)
    press(app, "quiet-previous")
    assert turns(app)[-1] == old


def test_a_deleted_turn_comes_back_with_undo(app: AppTest) -> None:
    for question in ("One", "Two", "Three"):
        ask(app, question)
    choose(app, "delete", 1)
    assert questions(app) == ["One", "Three"]
    assert "Turn deleted." in shown(app)
    press(app, "undo")
    assert questions(app) == ["One", "Two", "Three"]
    assert "Turn deleted." not in shown(app)
    choose(app, "delete", 1)
    ask(app, "Four")
    assert "Turn deleted." not in shown(app)
    assert "undo" not in keys(app)


def test_a_cleared_history_comes_back_with_undo_even_after_a_refresh(app: AppTest) -> None:
    for question in ("One", "Two"):
        ask(app, question)
    before = turns(app)
    press(app, "clear_yes")
    assert turns(app) == ()
    assert "History cleared." in shown(app)
    again = refreshed(app)
    assert "History cleared." in shown(again)
    press(again, "undo")
    assert turns(again) == before
    assert "History cleared." not in shown(again)


def test_there_is_one_undo_whatever_was_deleted_before(app: AppTest) -> None:
    for question in ("One", "Two"):
        ask(app, question)
    choose(app, "delete")
    press(app, "clear_yes")
    press(app, "undo")
    assert questions(app) == ["One"]
    choose(app, "delete")
    assert "History cleared." in shown(app)
    press(app, "undo")
    assert questions(app) == ["One"]


def test_the_conversation_can_be_copied_whole(app: AppTest) -> None:
    assert "export_copy" not in keys(app)
    ask(app, "One")
    press(app, "export_copy")
    _, note = app.session_state["note"]
    assert note.text.startswith("# One\n")
    assert "You asked: One" in note.text


def test_copy_takes_the_markdown_and_the_question(app: AppTest) -> None:
    ask(app, "What is *this*?")
    choose(app, "copy")
    _, note = app.session_state["note"]
    assert note.text == "You asked: What is *this*?"
    choose(app, "copy-question")
    _, other = app.session_state["note"]
    assert other.text == "What is *this*?"
    assert other.mark != note.mark


def test_what_was_changed_between_two_answers_is_told(app: AppTest) -> None:
    ask(app, "One")
    app.slider(key="temperature").set_value(1.1)
    app.text_area(key="system_prompt").set_value("Be brief.")
    ask(app, "Two")
    ask(app, "Three")
    receipts = [caption.value for caption in app.caption if " · " in caption.value]
    assert ["Temperature 1.1" in receipt for receipt in receipts] == [False, True, False]
    assert ["other system prompt" in receipt for receipt in receipts] == [False, True, False]


def test_an_error_keeps_ask_again_whose_answer_stands_beside(app: AppTest) -> None:
    ask(app, "fail")
    (failed,) = turns(app)
    assert failed.text
    assert {"ask_again", "go_on"} <= keys(app)
    press(app, "ask_again")
    assert "2/2" in shown(app)
    press(app, "quiet-previous")
    assert turns(app) == (failed,)


@pytest.fixture
def elsewhere(app: AppTest, tmp_path: Path) -> Iterator[ConversationStore]:
    """Another process on the same database."""
    url = resources.settings().conversations_url()
    store = ConversationStore(ConversationDatabase(url, runner="another"))
    yield store
    store.close()


@pytest.mark.parametrize("text", ["The beginning of an", ""])
def test_an_interrupted_answer_is_marked_and_can_be_asked_again(
    app: AppTest, elsewhere: ConversationStore, text: str
) -> None:
    ask(app, "First")
    parent = turns(app)[-1].turn_id
    turn = Turn(
        "dead", "Second", "scripted", SamplingParams(), state="running", parent=parent,
        text=text, created_s=time.time(), runner="another",
    )  # fmt: skip
    elsewhere.change(key(app), add_turn(turn))
    elsewhere.change(key(app), change_turn("dead", interrupted))
    app.run()
    told = "in the middle of this answer" if text else "before this was answered"
    assert told in app.warning[0].value
    assert "without saying anything" not in shown(app)
    assert ("go_on" in keys(app)) == bool(text)
    press(app, "ask_again")
    assert questions(app) == ["First", "Second"]
    assert "You asked: Second" in shown(app)
    assert not app.warning
    # What had no text isn't kept beside.
    assert any("quiet-previous" in name for name in keys(app)) == bool(text)


def test_an_answer_that_changes_after_its_end_is_drawn_anew(
    app: AppTest, elsewhere: ConversationStore
) -> None:
    ask(app, "First")
    turn = turns(app)[0]
    elsewhere.change(
        key(app),
        change_turn(turn.turn_id, lambda t: Turn(**{**fields(t), "text": "Said later."})),
    )
    app.run()
    assert "Said later." in shown(app)
    assert "You asked" not in shown(app)


def fields(turn: Turn) -> dict[str, object]:
    return {name: getattr(turn, name) for name in Turn.__slots__}


def test_stop_reaches_an_answer_of_another_process(
    app: AppTest, elsewhere: ConversationStore
) -> None:
    ask(app, "First")
    other = Chat(elsewhere, JobRegistry(idle_limit_s=60), resources.backends())
    here = key(app)
    other.ask(here, "for ever", person="x", backend="scripted", params=SamplingParams())
    until(lambda: turns(app)[-1].text)
    job = resources.chat().job(here)
    assert job is not None
    resources.chat().stop(here, job.request.request_id)
    until(lambda: turns(app)[-1].state == "ended")
    app.run()
    assert "stopped" in shown(app)
    other.close()


def test_a_short_branch_of_a_long_conversation_is_shown_whole(app: AppTest) -> None:
    ask(app, "Question 0")
    here = key(app)
    for number in range(1, 18):
        resources.chat().ask(
            here, f"Question {number}", person="x", backend="scripted", params=SamplingParams()
        )
        until(lambda: resources.chat().job(here) is None)
    again = refreshed(app)
    assert "Question 2" not in question_boxes(again)
    choose(again, "edit", 3)
    again.text_area(key=f"edited-{turns(again)[3].turn_id}").set_value("Instead")
    press(again, "edit-save")
    assert question_boxes(again) == ["Question 0", "Question 1", "Question 2", "Instead"]
    press(again, "quiet-previous")
    assert question_boxes(again)[-1] == "Question 17"


def a_question() -> None:
    import streamlit as st

    from llm.conversation_tree import ConversationKey, Turn
    from llm.types import SamplingParams
    from ui.turns import draw_question

    turn = Turn("t", "Why?", "scripted", SamplingParams(), state=st.session_state.state)
    with st.container(key="turn"):
        draw_question(ConversationKey("local", "c"), turn, ())


def test_what_a_queued_question_said_is_drawn_over_whatever_becomes_of_it(app: AppTest) -> None:
    drawn = AppTest.from_function(a_question)
    places = {}
    for state in ("queued", "running", "ended"):
        drawn.session_state["state"] = state
        drawn.run()
        assert not drawn.exception
        places[state] = set(drawn.chat_message[0].children)
    assert places["queued"] <= places["running"]
    assert places["queued"] <= places["ended"]


def question_boxes(app: AppTest) -> list[str]:
    """The questions as they are drawn."""
    bodies = [element.proto.body for element in app.get("html")]
    found = [re.search(r'class="steady-question"[^>]*>([^<]*)<', body) for body in bodies]
    return [match[1] for match in found if match]


def test_all_works_while_an_answer_runs_on_another_branch(app: AppTest) -> None:
    ask(app, "One")
    ask(app, "Two")
    resources.chat().ask(
        key(app), "for ever", person="x", backend="scripted",
        params=SamplingParams(max_tokens=5000),
    )  # fmt: skip
    running = turns(app)[-1]
    # A run that follows an answer doesn't end, so the first look is from the other branch.
    resources.chat().ask_again(
        key(app), turns(app)[0].turn_id, person="x", backend="scripted",
        params=SamplingParams(), question="Instead",
    )  # fmt: skip
    app.run()
    assert not app.exception
    assert questions(app) == ["Instead"]
    assert {"stop", "show_running"} <= keys(app)
    assert "being written in another branch" in shown(app)
    assert any(name.startswith("withdraw") for name in keys(app))
    app.button(key="stop").click().run()
    until(lambda: turns(app)[-1].state == "ended")
    app.run()
    assert "You asked: Instead" in shown(app)
    assert not {"stop", "show_running"} & keys(app)
    press(app, "quiet-previous")
    ended = turns(app)[-1]
    assert ended.turn_id == running.turn_id
    assert ended.receipt is not None
    assert ended.receipt.finish.reason == "abort"
