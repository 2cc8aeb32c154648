"""What a click does is done to its end, and only while the sign-in of who clicked counts."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import streamlit as st
from streamlit.runtime.scriptrunner import RerunData, get_script_run_ctx
from streamlit.testing.v1 import AppTest

from llm.conversation_tree import ConversationKey, Turn
from ui import callback as callbacks
from ui import resources

ROOT = Path(__file__).parents[1]
WIDGET_ARGUMENT = re.compile(r"on_(click|change|submit|\w+_change)")


def page() -> AppTest:
    return AppTest.from_file(str(ROOT / "streamlit_app.py"), default_timeout=120)


@pytest.fixture
def app(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[AppTest]:
    monkeypatch.chdir(tmp_path)
    scripts = tmp_path / "scripts.json"
    rules = [{"when": "for ever", "text": "word " * 2000, "tokens_per_s": 20}]
    answers = {"default": {"text": "You asked: {question}"}, "rules": rules}
    scripts.write_text(json.dumps(answers), encoding="utf-8")
    monkeypatch.setenv("STEADY_CHAT_BACKENDS", "scripted")
    monkeypatch.setenv("STEADY_CHAT_SCRIPTS_FILE", str(scripts))
    monkeypatch.setenv("STEADY_CHAT_DATA_DIR", str(tmp_path))
    st.cache_resource.clear()
    yield page().run()
    resources.chat().close()
    st.cache_resource.clear()


@pytest.fixture
def impatient(app: AppTest, monkeypatch: pytest.MonkeyPatch) -> AppTest:
    """The page of somebody whose next click comes as soon as a callback has begun."""

    def click() -> bool:
        context = get_script_run_ctx()
        assert context is not None
        assert context.script_requests is not None
        context.script_requests.request_rerun(
            RerunData(query_string=context.query_string, page_script_hash=context.page_script_hash)
        )
        return False

    monkeypatch.setattr(callbacks, "needs_sign_in", click)
    return app


def key(app: AppTest) -> ConversationKey:
    here = app.query_params["c"]
    return ConversationKey("local", here[0] if isinstance(here, list) else here)


def turns(app: AppTest) -> tuple[Turn, ...]:
    return resources.chat().turns(key(app))


def ask(app: AppTest, question: str) -> None:
    app.chat_input[0].set_value(question).run()
    assert not app.exception


def test_every_widgets_action_is_a_callback_of_ours() -> None:
    wrong, seen = [], 0
    for path in [*(ROOT / "ui").glob("*.py"), *(ROOT / "pages").glob("*.py")]:
        for call in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(call, ast.Call):
                continue
            for argument in call.keywords:
                if not WIDGET_ARGUMENT.fullmatch(argument.arg or ""):
                    continue
                seen += 1
                told = ast.unparse(argument.value)
                if told not in ("'ignore'", "'rerun'") and not told.startswith("callback("):
                    wrong.append(f"{path.name}:{argument.value.lineno} {told}")
    assert not wrong
    assert seen > 40


def test_what_streamlit_wants_meanwhile_happens_afterwards() -> None:
    def script() -> None:
        import streamlit as st
        from streamlit.runtime.scriptrunner import RerunData, get_script_run_ctx

        from ui.callback import undisturbed

        state = st.session_state
        state.runs = state.get("runs", 0) + 1
        if state.runs == 1:
            with undisturbed():
                with undisturbed():
                    get_script_run_ctx().script_requests.request_rerun(RerunData())  # type: ignore[union-attr]
                    state.within = True
                state.after = True
            state.too_late = True

    app = AppTest.from_function(script).run()
    assert not app.exception
    assert app.session_state["runs"] == 2
    assert app.session_state["within"]
    assert app.session_state["after"]
    assert "too_late" not in app.session_state


def test_a_question_is_asked_whatever_is_clicked_meanwhile(impatient: AppTest) -> None:
    ask(impatient, "Hello")
    assert [turn.question for turn in turns(impatient)] == ["Hello"]
    assert not impatient.session_state["question"]


def test_a_refused_question_isnt_lost_either(
    impatient: AppTest, monkeypatch: pytest.MonkeyPatch
) -> None:
    impatient.text_area(key="stop_lines").set_value("\n".join("abcdefghijklmnopqrst"))
    ask(impatient, "Hello")
    assert impatient.warning
    assert impatient.chat_input[0].value == "Hello"


def test_another_answer_and_an_edited_question_are_asked_for(impatient: AppTest) -> None:
    ask(impatient, "One")
    (first,) = turns(impatient)
    impatient.menu_button(key=f"quiet-menu-{first.turn_id}").click("regenerate").run()
    (second,) = turns(impatient)
    assert second.turn_id != first.turn_id
    impatient.menu_button(key=f"quiet-menu-{second.turn_id}").click("edit").run()
    impatient.text_area(key=f"edited-{second.turn_id}").set_value("Two")
    impatient.button(key=f"edit-save-{second.turn_id}").click().run()
    assert [turn.question for turn in turns(impatient)] == ["Two"]


def test_a_conversation_is_deleted_and_left(impatient: AppTest) -> None:
    ask(impatient, "One")
    gone = key(impatient)
    impatient.menu_button(key=f"menu-{gone.conversation_id}").click("delete").run()
    assert resources.chat().state(gone) is None
    assert impatient.button(key="undo_delete")
    assert not impatient.chat_message


def test_a_preset_is_saved(impatient: AppTest) -> None:
    impatient.text_input(key="preset_name").set_value("Short").run()
    impatient.button(key="preset_new").click().run()
    assert [preset.name for preset in resources.presets().listed("local")] == ["Short"]
    assert impatient.selectbox(key="preset").value


def test_nothing_is_done_once_the_sign_in_is_over(
    app: AppTest, monkeypatch: pytest.MonkeyPatch
) -> None:
    ask(app, "One")
    (turn,) = turns(app)
    monkeypatch.setattr(callbacks, "needs_sign_in", lambda: True)
    app.button(key="clear_yes").click().run()
    app.menu_button(key=f"quiet-menu-{turn.turn_id}").click("delete").run()
    app.menu_button(key=f"quiet-menu-{turn.turn_id}").click("copy").run()
    app.button(key="export_copy").click().run()
    assert turns(app) == (turn,)
    assert app.session_state["note"][1] is None


def test_nothing_is_handed_out_once_the_sign_in_is_over() -> None:
    def script() -> None:
        import contextlib
        import threading
        import time

        import streamlit as st
        from streamlit.runtime.scriptrunner import get_script_run_ctx

        from llm.errors import NotSignedInError
        from ui.owner import sign_out, while_signed_in

        user = {"is_logged_in": True, "iss": "https://id.example", "sub": "1", "iat": time.time()}
        get_script_run_ctx().user_info.update(user)  # type: ignore[union-attr, arg-type]
        made = while_signed_in(lambda: "whole")
        told = []

        def hand_out() -> None:
            try:
                told.append(made())
            except NotSignedInError:
                told.append("nothing")

        def on_another_thread() -> None:
            thread = threading.Thread(target=hand_out)
            thread.start()
            thread.join()

        on_another_thread()
        with contextlib.suppress(Exception):  # there is nobody here to be sent away
            sign_out()
        on_another_thread()
        st.text(" ".join(told))

    app = AppTest.from_function(script)
    app.secrets["auth"] = {
        "redirect_uri": "https://chat.example/oauth2callback",
        "cookie_secret": "x" * 40,
        "client_id": "chat",
        "client_secret": "secret",
        "server_metadata_url": "https://id.example/.well-known/openid-configuration",
    }
    st.cache_resource.clear()
    app.run()
    assert not app.exception
    assert app.text[0].value == "whole nothing"
    st.cache_resource.clear()
