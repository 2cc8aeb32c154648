"""The list of local models and what it says of them, without a browser."""

from __future__ import annotations

import json
import shutil
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

from llm import model_list_local
from llm.job import GenerationJob
from llm.model_facts import facts_of_folder
from llm.model_fit import fit
from tests.local_answers import TIMEOUT_S, Gate, ask, cut, model_of
from tests.test_app import captions, page
from tests.tiny_model import make_tiny_model
from ui import resources
from ui.model_pick import LABEL_WIDTH, shortened


@pytest.fixture
def folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Path]:
    """Two models of which the settings name one, in a process of its own."""
    folder = tmp_path / "models"
    make_tiny_model(folder / "Tiny-A")
    shutil.copytree(folder / "Tiny-A", folder / "Tiny-B")
    monkeypatch.chdir(tmp_path)
    for name, value in {
        "BACKENDS": "local,scripted",
        "DATA_DIR": str(tmp_path),
        "MODEL": str(folder / "Tiny-A"),
        "MODEL_FOLDERS": str(folder),
        "LOCAL_SLOTS": "1",
    }.items():
        monkeypatch.setenv(f"STEADY_CHAT_{name}", value)
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hf"))
    st.cache_resource.clear()
    yield folder
    resources.registry().close()
    resources.local_backend().close()
    st.cache_resource.clear()


def looking_at(name: str, language: str) -> AppTest:
    """A page that looks at another model."""
    assert resources.local_models().wait(TIMEOUT_S)
    (model,) = (m for m in resources.local_models().models() if m.options.called == name)
    app = page()
    app.session_state["language"] = language
    app.session_state["local_model_looked"] = model.key  # a pick's labels are English for AppTest
    app.run()
    assert not app.exception
    return app


@pytest.mark.parametrize(
    ("language", "running", "waiting", "stop"),
    [
        (
            "en",
            "1 answer is running.",
            "2 questions are waiting; the new model answers them.",
            "Stop it and load",
        ),
        (
            "zh",
            "有 1 个回答正在进行。",
            "有 2 个问题正在等待，将由新模型回答。",
            "停止这 1 个回答并加载",
        ),
    ],
)
def test_whom_another_model_would_affect_are_those_in_line_too(
    folder: Path, language: str, running: str, waiting: str, stop: str
) -> None:
    backend = resources.local_backend()
    gate = Gate(model_of(backend))

    def asked(person: str) -> GenerationJob:
        registry = resources.registry()
        request = ask(max_tokens=5)
        return registry.submit(person, person, backend, request, save=lambda snapshot: None)

    jobs = [asked(person) for person in "abc"]
    try:
        assert gate.reached.wait(TIMEOUT_S)
        app = looking_at("Tiny-B", language)
        told = captions(app)
        assert running in told
        assert waiting in told
        assert app.button(key="model_load_now").label == stop
    finally:
        for job in jobs:
            job.cancel()
        gate.open.set()
        gate.hook.remove()


def buttons(app: AppTest) -> list[str]:
    keys = [str(button.key) for button in app.button]
    return [key.removeprefix("model_") for key in keys if key.startswith("model_")]


def test_what_cannot_be_loaded_has_a_reason_and_no_button_to_load_it(folder: Path) -> None:
    cut(folder / "Tiny-B" / "model.safetensors")
    app = looking_at("Tiny-B", "en")
    told = captions(app)
    assert "“Tiny-B” can’t be used: its weights are damaged or cut short." in told
    assert "shares one model" not in told
    assert buttons(app) == ["leave"]


def test_a_model_without_a_chat_template_cannot_be_loaded_either(folder: Path) -> None:
    shutil.rmtree(folder / "Tiny-B")
    make_tiny_model(folder / "Tiny-B", chat_template=None)
    app = looking_at("Tiny-B", "en")
    assert "“Tiny-B” can’t be used: it has no chat template" in captions(app)
    assert buttons(app) == ["leave"]


def test_a_missing_path_is_told_in_one_sentence_that_names_the_right_settings(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STEADY_CHAT_MODELS", json.dumps([{"model": str(folder / "Nowhere")}]))
    app = looking_at("Nowhere", "en")
    (told,) = (line for line in captions(app).split("\n") if "can’t be used" in line)
    assert told.strip() == (
        "“Nowhere” can’t be used: there is no model at this path or of this name; check it in the "
        "settings (STEADY_CHAT_MODEL, or [[models]] in steady_chat.toml)."
    )
    assert buttons(app) == ["leave"]


def test_what_does_not_fit_is_loaded_by_a_second_press_that_says_what_it_costs(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    backend = resources.local_backend()
    model_of(backend)
    monkeypatch.setattr(model_list_local, "free_bytes", lambda: 1000)
    app = looking_at("Tiny-B", "en")
    assert buttons(app) == ["load", "leave"]
    app.button(key="model_load").click().run()
    assert backend.chosen.called == "Tiny-A", "one press loads nothing"
    assert "Loading it takes the model from everybody first." in captions(app)
    assert buttons(app) == ["load_anyway", "leave"]
    app.button(key="model_load_anyway").click().run()
    assert backend.chosen.called == "Tiny-B"


def test_what_leaves_memory_is_said_only_of_what_is_in_it(folder: Path) -> None:
    backend = resources.local_backend()
    model_of(backend)
    told = captions(looking_at("Tiny-B", "en"))
    assert "“Tiny-B” needs about" in told
    assert "“Tiny-A” leaves memory for it." in told
    backend.unload()
    with backend._changed:
        assert backend._changed.wait_for(lambda: backend.holds is None, TIMEOUT_S)
    told = captions(looking_at("Tiny-B", "en"))
    assert "Everybody here shares one model." in told
    assert "leaves memory" not in told


@pytest.mark.parametrize(("windows", "is_told"), [(2, True), (9, False)])
def test_what_all_who_are_answered_at_once_may_take_is_told_where_it_is_too_much(
    folder: Path, monkeypatch: pytest.MonkeyPatch, windows: int, is_told: bool
) -> None:
    monkeypatch.setenv("STEADY_CHAT_LOCAL_SLOTS", "8")
    monkeypatch.setenv("STEADY_CHAT_DTYPE", "float32")
    one = fit(facts_of_folder(folder / "Tiny-B"), "auto", 4, 0)
    room = one.needed_by(windows) - one.weights_bytes  # those of the loaded one come to it
    monkeypatch.setattr(model_list_local, "free_bytes", lambda: room)
    model_of(resources.local_backend())
    app = looking_at("Tiny-B", "en")
    assert "it fits" in captions(app)
    assert ("Up to 8 are answered at once." in captions(app)) == is_told


@pytest.mark.parametrize(
    ("name", "width", "short"),
    [
        ("Short", 9, "Short"),
        ("Qwen2.5-Coder-7B-Instruct", 13, "Qwen2.…struct"),
        ("通义千问大模型指令版", 9, "通义…令版"),
    ],
)
def test_a_long_name_loses_its_middle_and_says_so(name: str, width: int, short: str) -> None:
    assert shortened(name, width) == short


def test_a_long_name_leaves_the_size_to_be_seen(folder: Path) -> None:
    shutil.copytree(folder / "Tiny-B", folder / ("Tiny-" + "very-" * 20 + "long"))
    app = looking_at("Tiny-B", "en")
    labels = app.selectbox(key="local_model_pick").options
    (long,) = (label for label in labels if "…" in label)
    assert len(long) <= LABEL_WIDTH
    assert long.endswith(" MB")


def test_a_failed_load_is_an_error_above_the_input_until_it_is_closed_or_another_fails(
    folder: Path,
) -> None:
    backend = resources.local_backend()
    model_of(backend)
    broken = replace(backend.chosen, model=str(folder / "Tiny-B"))
    cut(folder / "Tiny-B" / "model.safetensors")

    def fail() -> None:
        backend.choose(broken)
        with backend._changed:
            assert backend._changed.wait_for(lambda: backend.status().ready, TIMEOUT_S)

    fail()
    app = page().run()
    (error,) = app.error
    assert "“Tiny-B” is there, but it isn’t a chat model that can be loaded" in error.value
    assert "Back to “Tiny-A”." in error.value
    app.button(key="model_trouble_close").click().run()
    assert not app.error
    fail()
    assert len(app.run().error) == 1
    backend.choose(replace(backend.chosen, name="Again"))
    with backend._changed:
        assert backend._changed.wait_for(lambda: backend.status().ready, TIMEOUT_S)
    assert not app.run().error, "another has been loaded"


def test_whose_answer_was_ended_for_another_model_is_told_so_and_may_ask_again(
    folder: Path,
) -> None:
    backend = resources.local_backend()
    model = model_of(backend)
    gate = Gate(model, at_token=3)
    app = page()

    def change() -> None:
        assert gate.reached.wait(TIMEOUT_S)
        backend.choose(replace(backend.chosen, model=str(folder / "Tiny-B")), stop_answers=True)
        with backend._changed:
            assert backend._changed.wait_for(lambda: backend._got is not None, TIMEOUT_S)
        gate.open.set()

    changing = threading.Thread(target=change)
    changing.start()
    app.run()
    app.chat_input[0].set_value("Who are you?").run()
    changing.join(TIMEOUT_S)
    gate.hook.remove()
    assert "Tiny-A · stopped, because somebody has had “Tiny-B” loaded for everybody" in captions(
        app
    )
    assert "Retry" in [button.label for button in app.button]


def test_what_was_stopped_in_line_says_that_it_never_began(folder: Path) -> None:
    backend = resources.local_backend()
    gate = Gate(model_of(backend))
    registry = resources.registry()
    first = registry.submit("a", "a", backend, ask(max_tokens=5), save=lambda snapshot: None)
    assert gate.reached.wait(TIMEOUT_S)

    def stop() -> None:
        while not (waiting := [job for job in registry.jobs() if job is not first]):
            time.sleep(0.05)
        waiting[0].cancel()

    stopping = threading.Thread(target=stop)
    stopping.start()
    app = page().run()
    app.chat_input[0].set_value("Who are you?").run()
    stopping.join(TIMEOUT_S)
    first.cancel()
    gate.open.set()
    gate.hook.remove()
    assert "Local · stopped before it began" in captions(app)
    assert "Retry" in [button.label for button in app.button]
