"""The list of local models and what it says of them, without a browser."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

from llm.job import GenerationJob
from tests.local_answers import TIMEOUT_S, Gate, ask, model_of
from tests.test_app import captions, page
from tests.tiny_model import make_tiny_model
from ui import resources


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
    ("language", "running", "waiting"),
    [
        ("en", "1 answer is running.", "2 questions are waiting; the new model answers them."),
        ("zh", "有 1 个回答正在进行。", "有 2 个问题正在等待，将由新模型回答。"),
    ],
)
def test_whom_another_model_would_affect_are_those_in_line_too(
    folder: Path, language: str, running: str, waiting: str
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
        told = captions(looking_at("Tiny-B", language))
        assert running in told
        assert waiting in told
    finally:
        for job in jobs:
            job.cancel()
        gate.open.set()
        gate.hook.remove()
