"""The page's script, run by Streamlit's AppTest: what it says without a browser."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from collections.abc import Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, TypeVar

import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest
from streamlit.util import calc_hash
from streamlit.web.server.starlette.starlette_app_utils import generate_xsrf_token_string

from llm.answer_status import in_line
from llm.catalogue import catalogue
from llm.conversation_tree import ConversationKey
from llm.job import GenerationJob
from llm.named_backends import NamedBackends
from llm.presets import Preset
from llm.registry import Place
from llm.types import BackendStatus, GenerationRequest, Message, SamplingParams
from tests.local_answers import at_rest
from tests.protocol_server import Exchange, Handler, ProtocolServer, refusing, saying
from ui import browser, live_answer, resources
from ui.owner import LOCAL

ROOT = Path(__file__).parents[1]
T = TypeVar("T")
FURTHER = ("top_k", "min_p", "repetition_penalty", "presence_penalty", "frequency_penalty")


@pytest.fixture
def settings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[pytest.MonkeyPatch]:
    """A process of its own as far as the app can tell: no settings, no cached resources."""
    monkeypatch.chdir(tmp_path)
    scripts = tmp_path / "scripts.json"
    scripts.write_text(json.dumps({"default": {"text": "You asked: {question}"}}), encoding="utf-8")
    monkeypatch.setenv("STEADY_CHAT_BACKENDS", "scripted,vllm")
    monkeypatch.setenv("STEADY_CHAT_SCRIPTS_FILE", str(scripts))
    monkeypatch.setenv("STEADY_CHAT_DATA_DIR", str(tmp_path))
    monkeypatch.setenv("STEADY_CHAT_VLLM_API_KEY", "sk-very-secret")
    st.cache_resource.clear()
    yield monkeypatch
    resources.registry().close()
    for server in resources.servers():
        server.close()
    st.cache_resource.clear()


def page() -> AppTest:
    return AppTest.from_file(str(ROOT / "streamlit_app.py"), default_timeout=30)


def captions(app: AppTest) -> str:
    return "\n".join(caption.value for caption in app.caption)


def test_a_question_is_answered_with_a_receipt(settings: pytest.MonkeyPatch) -> None:
    app = page().run()
    assert not app.exception
    app.chat_input[0].set_value("Hello *there*").run()
    assert not app.exception
    assert "You asked: Hello *there*" in [markdown.value for markdown in app.markdown]
    assert "finished" in captions(app)


def test_a_first_text_doesnt_wait_for_the_sidebar_to_be_painted(
    settings: pytest.MonkeyPatch,
) -> None:
    settings.setattr(live_answer, "SIDEBAR_FRAME_S", 60.0)
    app = page().run()
    app.chat_input[0].set_value("Hello").run()
    assert "You asked: Hello" in [markdown.value for markdown in app.markdown]


def in_a_loop(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run it on a thread of its own: this one may have the browser's loop running."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(asyncio.run, coroutine).result()


async def _live() -> BackendStatus:
    """The first backend's state between the server's start and its end, with nobody looking."""
    async with resources.lifespan(SimpleNamespace()):  # type: ignore[arg-type]
        return resources.scripted_backend().status()


def test_the_first_backend_gets_ready_before_anybody_comes(
    settings: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "scripts.json").write_text('{"ready_after_s": 60}', encoding="utf-8")
    assert in_a_loop(_live()).phase == "loading"


def test_the_database_is_made_before_anybody_comes(
    settings: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    async def made() -> bool:
        async with resources.lifespan(SimpleNamespace()):  # type: ignore[arg-type]
            with closing(sqlite3.connect(tmp_path / "conversations.sqlite3")) as database:
                for _ in range(1200):
                    tables = database.execute("SELECT name FROM sqlite_master").fetchall()
                    if ("presets",) in tables:
                        return True
                    await asyncio.sleep(0.05)
        return False

    settings.delenv("STEADY_CHAT_DATABASE_URL", raising=False)
    assert in_a_loop(made())


def test_wrong_settings_dont_keep_the_server_from_starting(settings: pytest.MonkeyPatch) -> None:
    settings.setenv("STEADY_CHAT_TEMPERATURE", "hot")

    async def start() -> None:
        async with resources.lifespan(SimpleNamespace()):  # type: ignore[arg-type]
            pass

    in_a_loop(start())
    settings.setenv("STEADY_CHAT_TEMPERATURE", "0.5")


def test_the_tiny_models_low_temperature_is_for_it_alone(
    settings: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    settings.setenv("STEADY_CHAT_BACKENDS", "scripted,local,vllm")
    local = at_rest(tmp_path)
    settings.setattr(NamedBackends, "local", lambda backends: local)
    app = page().run()
    seen = []
    for kind in ("scripted", "local", "vllm", "local"):
        app.radio(key="backend").set_value(kind).run()
        seen.append(app.slider(key="temperature").value)
    assert seen == [0.7, 0.2, 0.7, 0.2]
    app.slider(key="temperature").set_value(0.45).run()
    app.radio(key="backend").set_value("vllm").run()
    assert app.slider(key="temperature").value == 0.45


def test_the_temperature_follows_the_model_that_somebody_else_has_loaded(
    settings: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    settings.setenv("STEADY_CHAT_BACKENDS", "local")
    local = at_rest(tmp_path)
    settings.setattr(NamedBackends, "local", lambda backends: local)
    app = page().run()
    assert app.slider(key="temperature").value == 0.2
    local._chosen = replace(local.chosen, model="/models/larger")
    app.run()
    assert app.slider(key="temperature").value == 0.7


def test_wrong_settings_are_a_sentence_and_nothing_else(settings: pytest.MonkeyPatch) -> None:
    settings.setenv("STEADY_CHAT_TEMPERATURE", "hot")
    app = page().run()
    assert not app.exception
    assert [error.value for error in app.error] == [
        "The setting “STEADY_CHAT_TEMPERATURE” is not right: it must be a number"
    ]
    assert not app.chat_input
    settings.setenv("STEADY_CHAT_TEMPERATURE", "0.5")
    assert page().run().slider(key="temperature").value == 0.5


def test_a_wrong_scripts_file_is_a_sentence_too(settings: pytest.MonkeyPatch) -> None:
    settings.setenv("STEADY_CHAT_SCRIPTS_FILE", "no-such-file.json")
    app = page().run()
    assert not app.exception
    assert "scripts_file" in app.error[0].value


def test_the_sidebar_begins_with_the_settings(settings: pytest.MonkeyPatch) -> None:
    settings.setenv("STEADY_CHAT_SYSTEM_PROMPT", "Be brief.")
    settings.setenv("STEADY_CHAT_MAX_TOKENS", "77")
    settings.setenv("STEADY_CHAT_SEED", "5")
    settings.setenv("STEADY_CHAT_LANGUAGE", "zh")
    app = page().run()
    assert app.text_area(key="system_prompt").value == "Be brief."
    assert app.number_input(key="max_tokens").value == 77
    assert app.number_input(key="seed").value == 5
    assert app.text_area(key="system_prompt").label == "系统提示词"


def test_the_sidebars_further_parameters_begin_with_the_settings_too(
    settings: pytest.MonkeyPatch,
) -> None:
    assert [page().run().number_input(key=name).value for name in FURTHER] == [None] * 5
    st.cache_resource.clear()
    for name, value in (("TOP_K", "2"), ("MIN_P", "1"), ("PRESENCE_PENALTY", "-1")):
        settings.setenv(f"STEADY_CHAT_{name}", value)
    settings.setenv("STEADY_CHAT_STOP", '["###", "\\nUser:"]')
    app = page().run()
    assert [app.number_input(key=name).value for name in FURTHER] == [2, 1, None, -1, None]
    assert app.text_area(key="stop_lines").value == "###\n\\nUser:"


def test_what_the_sidebar_says_is_asked_and_restored_with_the_conversation(
    settings: pytest.MonkeyPatch,
) -> None:
    app = page().run()
    app.number_input(key="top_k").set_value(20)
    app.number_input(key="repetition_penalty").set_value(1.1)
    app.text_area(key="stop_lines").set_value("there\n\\n\n")
    app.pills(key="left_out").set_value(["temperature"])
    app.chat_input[0].set_value("Hello there, you").run()
    assert not app.exception
    assert "You asked: Hello " in [markdown.value.rstrip() + " " for markdown in app.markdown]
    here = app.query_params["c"]
    wanted = here[0] if isinstance(here, list) else here
    (turn,) = resources.chat().turns(ConversationKey("local", wanted))
    assert turn.params.given() == {
        "top_p": 0.95,
        "max_tokens": 512,
        "top_k": 20,
        "repetition_penalty": 1.1,
        "stop": ("there", "\n"),
    }
    other = page()
    other.query_params["c"] = here
    other.run()
    assert other.number_input(key="top_k").value == 20
    assert other.number_input(key="min_p").value is None
    assert other.text_area(key="stop_lines").value == "there\n\\n"
    assert other.slider(key="temperature").disabled
    assert other.slider(key="temperature").label == "Temperature (not sent)"
    assert not other.slider(key="top_p").disabled


def test_too_many_stop_strings_are_said_and_the_question_is_kept(
    settings: pytest.MonkeyPatch,
) -> None:
    app = page().run()
    app.text_area(key="stop_lines").set_value("a\nb\nc\nd\ne")
    app.chat_input[0].set_value("Hello").run()
    assert not app.exception
    assert "At most 4 stop strings" in app.warning[0].value
    assert app.chat_input[0].value == "Hello"


def picky(*names: str) -> Handler:
    """Refuses the first of these parameters that a request has."""

    async def handler(exchange: Exchange) -> None:
        for name in names:
            if name in exchange.body:
                error = {"message": f"Unrecognized argument: {name}", "param": name}
                await refusing(400, {"error": error})(exchange)
                return
        await saying(["Without."])(exchange)

    return handler


def test_what_a_server_refuses_can_be_left_out_with_a_press(settings: pytest.MonkeyPatch) -> None:
    with ProtocolServer() as server:
        server.when("Hello", picky("top_k", "stop", "temperature"))
        settings.setenv("STEADY_CHAT_BACKENDS", "vllm")
        settings.setenv("STEADY_CHAT_VLLM_BASE_URL", server.url)
        settings.setenv("STEADY_CHAT_VLLM_API_KEY", "")
        settings.setenv("STEADY_CHAT_TOP_K", "20")
        settings.setenv("STEADY_CHAT_STOP", "###")
        app = page().run()
        app.chat_input[0].set_value("Hello").run()
        for name in ("top_k", "stop", "temperature"):
            assert not app.exception
            assert f"doesn’t take {name} as it is" in app.error[0].value.replace("\\", "")
            assert app.button(key="ask_again").label == "Retry"
            again = app.button(key="ask_again_without")
            assert again.label == f"Retry without {name}"
            again.click().run()
        assert not app.exception
        assert "Without." in [markdown.value for markdown in app.markdown]
        assert not app.error
        assert [button.key for button in app.button if "ask_again" in str(button.key)] == []
        assert app.number_input(key="top_k").value is None
        assert app.text_area(key="stop_lines").value == ""
        assert app.slider(key="temperature").disabled
        assert len(server.exchanges) == 4
        assert "top_p" in server.exchanges[3].body
        resources.servers()[0].close()


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("TEMPERATURE", ["0", "2"]),
        ("TOP_P", ["0.01", "1"]),
        ("MAX_TOKENS", ["1", "1000000"]),
        ("SEED", ["0", "4294967295"]),
        ("TOP_K", ["", "0", "1000000"]),
        ("MIN_P", ["0", "1"]),
        ("REPETITION_PENALTY", ["0.01", "10"]),
        ("PRESENCE_PENALTY", ["-2", "2"]),
        ("FREQUENCY_PENALTY", ["-2", "2"]),
        ("STOP", ["", "###", '["a", "b"]']),
    ],
)
def test_the_sidebar_takes_whatever_the_settings_allow(
    settings: pytest.MonkeyPatch, name: str, values: list[str]
) -> None:
    for value in values:
        settings.setenv(f"STEADY_CHAT_{name}", value)
        st.cache_resource.clear()
        app = page().run()
        assert not app.exception
        assert not app.error


def test_the_setup_page_shows_the_settings_without_the_key(settings: pytest.MonkeyPatch) -> None:
    app = page().run()
    # The page is a function, so it's chosen as a browser does it: by its address.
    app._page_hash = calc_hash("setup")
    app.run()
    assert not app.exception
    table = app.table[0].value
    shown = dict(zip(table["Setting"], table["Value"], strict=True))
    assert shown["STEADY_CHAT_BACKENDS"] == "` scripted,vllm `"
    assert shown["STEADY_CHAT_VLLM_API_KEY"] == "` ********** `"
    assert "sk-very-secret" not in str(app)


def test_the_language_can_be_switched_and_everything_else_stays(
    settings: pytest.MonkeyPatch,
) -> None:
    app = page().run()
    app.slider(key="temperature").set_value(1.2).run()
    app.radio(key="language").set_value("zh").run()
    assert app.slider(key="temperature").label == "温度"
    assert app.slider(key="temperature").value == 1.2


def test_the_browser_can_tell_what_the_controls_hold_from_any_run(
    settings: pytest.MonkeyPatch,
) -> None:
    """What is set in the state alone is told in one run only, which another may overtake: the
    sliders would stand at their lowest then, and be asked with."""
    app = page().run()
    app.slider(key="temperature").set_value(1.3)
    app.slider(key="top_p").set_value(0.5)
    app.number_input(key="top_k").set_value(20)
    app.text_area(key="system_prompt").set_value("Be brief.")
    app.radio(key="backend").set_value("scripted")
    app.chat_input[0].set_value("Hello there").run()
    address = app.query_params["c"]
    again = page()
    again.query_params["c"] = address
    again.run()
    again.run()  # as if the browser had heard of this one only
    assert again.slider(key="temperature").proto.default == [1.3]
    assert again.slider(key="top_p").proto.default == [0.5]
    assert again.text_area(key="system_prompt").proto.default == "Be brief."
    top_k = again.number_input(key="top_k").proto
    assert (top_k.set_value, top_k.value) == (True, 20)


# Limits


HELD = {
    "slots": 1,
    "default": {"text": "You asked: {question}"},
    "rules": [{"when": "hold", "text": "…", "stall_after": 0}],
}


def hold(name: str, person: str) -> GenerationJob:
    """Somebody else's question, which stays where it is until it is stopped."""
    request = GenerationRequest((Message("user", f"hold {name}"),))
    backend = resources.scripted_backend()
    return resources.registry().submit(name, person, backend, request, save=lambda snapshot: None)


def test_a_full_line_is_a_sentence_and_the_question_stays(
    settings: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    settings.setenv("STEADY_CHAT_MAX_WAITING", "1")
    (tmp_path / "scripts.json").write_text(json.dumps(HELD), encoding="utf-8")
    app = page().run()
    jobs = [hold("running", "somebody"), hold("waiting", "somebody else")]
    app.chat_input[0].set_value("Hello").run()
    assert not app.exception
    assert [error.value for error in app.error] == [
        "A question is waiting already, and only one may wait at a time. Try again in a moment."
    ]
    for job in jobs:
        job.cancel()
    app.button(key="ask_again").click().run()
    assert "You asked: Hello" in [markdown.value for markdown in app.markdown]


def test_enough_questions_of_one_person_are_a_sentence_too(
    settings: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    settings.setenv("STEADY_CHAT_MAX_WAITING_EACH", "1")
    (tmp_path / "scripts.json").write_text(json.dumps(HELD), encoding="utf-8")
    app = page().run()
    jobs = [hold("running", "somebody"), hold("waiting", "me")]
    app.session_state.person = "me"
    app.chat_input[0].set_value("Hello").run()
    assert not app.exception
    assert (
        "A question of yours is waiting already, and only one may at a time." in app.error[0].value
    )
    for job in jobs:
        job.cancel()
    app.button(key="ask_again").click().run()
    assert "You asked: Hello" in [markdown.value for markdown in app.markdown]


def test_answers_have_no_more_tokens_than_are_allowed(settings: pytest.MonkeyPatch) -> None:
    settings.setenv("STEADY_CHAT_MAX_ANSWER_TOKENS", "3")
    app = page().run()
    control = app.number_input(key="max_tokens")
    assert (control.max, control.value) == (3, 3)
    app.chat_input[0].set_value("a question of many more tokens than that").run()
    assert "cut at the token limit" in captions(app)
    assert "3 tokens" in captions(app)


def test_what_was_asked_or_kept_with_more_tokens_opens_with_what_is_allowed(
    settings: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    settings.setenv("STEADY_CHAT_DATABASE_URL", f"sqlite:///{tmp_path / 'kept.sqlite3'}")
    app = page().run()
    app.chat_input[0].set_value("Hello").run()
    address = app.query_params["c"]
    long = resources.presets().save(LOCAL, Preset("long", "Be long.", SamplingParams()))
    resources.presets().make_usual(LOCAL, long.preset_id)
    resources.chat().close()
    st.cache_resource.clear()
    settings.setenv("STEADY_CHAT_MAX_ANSWER_TOKENS", "3")
    again = page()
    again.query_params["c"] = address
    again.run()
    assert not again.exception
    assert "You asked: Hello" in [markdown.value for markdown in again.markdown]
    assert again.number_input(key="max_tokens").value == 3
    fresh = page().run()
    assert not fresh.exception
    assert fresh.text_area(key="system_prompt").value == "Be long."
    assert fresh.number_input(key="max_tokens").value == 3
    assert fresh.selectbox(key="preset").label == "Preset"  # and not "changed"


# The line

READY = BackendStatus("ready")


@pytest.mark.parametrize(
    ("language", "said"),
    [
        ("en", "Second in line; the model is getting ready (converting, once only) …"),
        ("zh", "排在第 2 位，模型正在准备（正在转换（仅一次））……"),
    ],
)
def test_those_in_line_are_told_what_the_model_waits_for(language: str, said: str) -> None:
    converting = BackendStatus("converting", "New")
    assert in_line(Place(2), converting).sentence(catalogue(language)) == said
    meanwhile = replace(converting, meanwhile="Old")
    assert in_line(Place(2, 20), meanwhile) == in_line(Place(2, 20), READY)


@pytest.mark.parametrize(
    ("left_s", "said"),
    [
        (None, "First in line …"),
        (-5, "First in line, any moment now …"),
        (1.4, "First in line, any moment now …"),
        (1.6, "First in line, about 2 s …"),
        (19.7, "First in line, about 20 s …"),
        (20.3, "First in line, about 25 s …"),
        (59, "First in line, about 60 s …"),
        (61, "First in line, about 2 min …"),
        (600, "First in line, about 10 min …"),
    ],
)
def test_the_time_in_line_is_said_as_exactly_as_it_is_known(
    left_s: float | None, said: str
) -> None:
    assert in_line(Place(1, left_s), READY).sentence(catalogue("en")) == said


def test_places_in_line_have_their_ordinals() -> None:
    english = {
        number: in_line(Place(number), READY).sentence(catalogue("en"))
        for number in (1, 2, 3, 4, 11, 12, 13, 21, 22, 23, 101, 111)
    }
    told = [sentence.partition(" ")[0] for sentence in english.values()]
    assert told == [
        "First",
        "Second",
        "Third",
        "4th",
        "11th",
        "12th",
        "13th",
        "21st",
        "22nd",
        "23rd",
        "101st",
        "111th",
    ]
    chinese = [in_line(Place(number, 20), READY).sentence(catalogue("zh")) for number in (1, 2, 21)]
    assert chinese == [
        "下一个就轮到您，大约还需 20 秒……",
        "排在第 2 位，大约还需 20 秒……",
        "排在第 21 位，大约还需 20 秒……",
    ]


def test_a_browser_is_told_by_its_token_whatever_masks_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def named(cookie: str | None) -> str | None:
        cookies = {} if cookie is None else {browser.COOKIE: cookie}
        told = SimpleNamespace(context=SimpleNamespace(cookies=cookies))
        monkeypatch.setattr(browser, "st", told)
        return browser.browser()

    masked = [generate_xsrf_token_string(b"a" * 16, time) for time in (1, 2)]
    other = generate_xsrf_token_string(b"b" * 16, 1)
    assert masked[0] != masked[1]
    assert named(masked[0]) == named(masked[1])
    assert named(masked[0]) not in (None, named(other))
    for wrong in (None, "", "nonsense", "2|zz|zz|1", "2||6161|1", "1|00|6161|1", "2|00||1"):
        assert named(wrong) is None, wrong
