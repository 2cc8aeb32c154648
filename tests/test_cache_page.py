"""The page about the answer cache, by Streamlit's AppTest."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest
from streamlit.util import calc_hash

from llm.cache_guard import CacheGuard
from llm.cache_key import person_scope
from llm.cache_types import AnswerStore, CacheStoreError
from llm.literal_markdown import literal
from pages import cache_page
from tests.cached_answers import answer_of, decision_of
from tests.driven_backend import PATIENCE_S
from ui import resources

ROOT = Path(__file__).parents[1]
MINE = person_scope("local")


@pytest.fixture(autouse=True)
def _settings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    monkeypatch.chdir(tmp_path)
    scripts = tmp_path / "scripts.json"
    scripts.write_text(json.dumps({"default": {"text": "You asked: {question}"}}), encoding="utf-8")
    monkeypatch.setenv("STEADY_CHAT_BACKENDS", "scripted")
    monkeypatch.setenv("STEADY_CHAT_SCRIPTS_FILE", str(scripts))
    monkeypatch.setenv("STEADY_CHAT_DATA_DIR", str(tmp_path))
    monkeypatch.setenv("STEADY_CHAT_DATABASE_URL", f"sqlite:///{tmp_path / 'kept.sqlite3'}")
    st.cache_resource.clear()
    yield
    resources.cache().close()
    resources.chat().close()
    st.cache_resource.clear()


def page() -> AppTest:
    app = AppTest.from_file(str(ROOT / "streamlit_app.py"), default_timeout=60)
    app._page_hash = calc_hash("cache")
    return app.run()


def guard() -> CacheGuard:
    return resources.cache()._guard


def keep(model: str = "a model") -> None:
    kept = answer_of("a", scope=MINE, model=model, created_s=time.time())
    noted = replace(decision_of("a", scope=MINE), at_s=time.time())

    def write(store: AnswerStore) -> None:
        store.put(kept)
        store.note(noted)

    guard().ask(write, PATIENCE_S)


def test_a_models_name_is_shown_as_it_is() -> None:
    name = "**a** [link](http://x) :red[b] <b> &amp; `c`"
    keep(model=name)
    captions = [each.value for each in page().caption]
    assert any(each.startswith(f"{literal(name)} · a server · ") for each in captions)


def test_the_log_is_made_into_a_file_when_it_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    made = []
    monkeypatch.setattr(cache_page, "log_file", made.append)
    keep()
    app = page()
    assert not app.exception
    assert app.get("download_button")
    assert not made


def test_what_could_not_be_forgotten_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object, **__: object) -> int:
        raise CacheStoreError("down")

    keep()
    app = page()
    monkeypatch.setattr(resources.cache().contents, "clear", fails)
    app.button(key="cache_clear_yes").click().run()
    assert any("couldn’t be done" in warning.value for warning in app.warning)
    assert app.session_state["cache_shown"] == cache_page.SHOWN
    app.run()
    assert not app.warning
