"""The sidebar's presets and the page of all conversations, as AppTest sees them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa
import streamlit as st
from streamlit.testing.v1 import AppTest
from streamlit.util import calc_hash

from llm.conversation_tables import presets as presets_table
from llm.named_backends import NamedBackends
from llm.presets import Preset
from llm.types import SamplingParams
from tests.local_answers import at_rest
from ui import resources
from ui.owner import LOCAL

ROOT = Path(__file__).parents[1]
KIND = Preset("Kind", "Be kind.", SamplingParams(temperature=1.3, max_tokens=99, stop=("###",)))


@pytest.fixture
def settings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[pytest.MonkeyPatch]:
    """A process of its own as far as the app can tell."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("STEADY_CHAT_BACKENDS", "scripted,local")
    monkeypatch.setenv("STEADY_CHAT_DATA_DIR", str(tmp_path))
    monkeypatch.setenv("STEADY_CHAT_SYSTEM_PROMPT", "As set up.")
    st.cache_resource.clear()
    local = at_rest(tmp_path)
    monkeypatch.setattr(NamedBackends, "local", lambda backends: local)
    yield monkeypatch
    resources.chat().close()
    st.cache_resource.clear()


def page() -> AppTest:
    return AppTest.from_file(str(ROOT / "streamlit_app.py"), default_timeout=60)


def picker(app: AppTest) -> str:
    """The label, and what is picked by its name."""
    box = app.selectbox(key="preset")
    names = {each.preset_id: each.name for each in resources.presets().listed(LOCAL)}
    return f"{box.label}: {names.get(box.value, 'none')}"


def pick(app: AppTest, preset: Preset | None) -> None:
    app.selectbox(key="preset").set_value(preset.preset_id if preset else "").run()
    assert not app.exception


def prompt(app: AppTest) -> str:
    return str(app.text_area(key="system_prompt").value)


def test_picking_fills_all_that_a_preset_is_of_and_none_brings_the_settings_back(
    settings: pytest.MonkeyPatch,
) -> None:
    kind = resources.presets().save(LOCAL, KIND)
    app = page().run()
    assert (picker(app), prompt(app)) == ("Preset: none", "As set up.")
    pick(app, kind)
    assert (picker(app), prompt(app)) == ("Preset: Kind", "Be kind.")
    assert app.slider(key="temperature").value == 1.3
    assert app.number_input(key="max_tokens").value == 99
    assert app.text_area(key="stop_lines").value == "###"
    pick(app, None)
    assert (picker(app), prompt(app)) == ("Preset: none", "As set up.")
    assert app.slider(key="temperature").value == 0.7
    assert app.number_input(key="max_tokens").value == 512


@pytest.mark.parametrize("control", ["prompt", "slider", "left out", "unusable"])
def test_a_changed_control_is_told_until_it_is_back(
    settings: pytest.MonkeyPatch, control: str
) -> None:
    kind = resources.presets().save(LOCAL, KIND)
    app = page().run()
    pick(app, kind)
    if control == "prompt":
        app.text_area(key="system_prompt").set_value("Be rude.").run()
    elif control == "slider":
        app.slider(key="temperature").set_value(1.25).run()
    elif control == "left out":
        app.session_state.left_out = ["top_p"]
        app.run()
    else:
        app.text_area(key="stop_lines").set_value("a\nb\nc\nd\ne").run()
    assert not app.exception
    assert picker(app) == "Preset · changed: Kind"
    app.button(key="preset_revert").click().run()
    assert (picker(app), prompt(app)) == ("Preset: Kind", "Be kind.")


def test_another_backend_changes_nothing_of_a_picked_preset(settings: pytest.MonkeyPatch) -> None:
    """Not its temperature either, which without a preset follows the backend."""
    usual = Preset("Usual", "", SamplingParams(temperature=0.7))
    usual = resources.presets().save(LOCAL, usual)
    app = page().run()
    pick(app, usual)
    app.radio(key="backend").set_value("local").run()
    assert picker(app) == "Preset: Usual"
    assert app.slider(key="temperature").value == 0.7


def test_the_default_begins_a_visit_and_a_conversation_comes_back_as_it_was_asked(
    settings: pytest.MonkeyPatch,
) -> None:
    kind = resources.presets().save(LOCAL, KIND)
    other = resources.presets().save(LOCAL, Preset("Other", "Be brief.", SamplingParams()))
    resources.presets().make_usual(LOCAL, kind.preset_id)
    app = page().run()
    assert (picker(app), prompt(app)) == ("Preset: Kind", "Be kind.")
    pick(app, other)
    app.chat_input[0].set_value("Hello").run()
    assert not app.exception

    again = page()
    again.query_params["c"] = app.query_params["c"]
    again.run()
    assert (picker(again), prompt(again)) == ("Preset: Other", "Be brief.")
    assert picker(page().run()) == "Preset: Kind"


@pytest.mark.parametrize("usual", [True, False])
def test_a_new_chat_begins_with_the_default_else_with_the_settings(
    settings: pytest.MonkeyPatch, usual: bool
) -> None:
    kind = resources.presets().save(LOCAL, KIND)
    if usual:
        resources.presets().make_usual(LOCAL, kind.preset_id)
    app = page().run()
    app.text_area(key="system_prompt").set_value("Made up.").run()
    app.chat_input[0].set_value("Hello").run()
    app.button(key="new_chat").click().run()
    assert not app.exception
    begun = ("Preset: Kind", "Be kind.") if usual else ("Preset: none", "As set up.")
    assert (picker(app), prompt(app)) == begun


def test_a_conversation_asked_with_no_preset_comes_back_with_none(
    settings: pytest.MonkeyPatch,
) -> None:
    kind = resources.presets().save(LOCAL, KIND)
    resources.presets().make_usual(LOCAL, kind.preset_id)
    app = page().run()
    app.text_area(key="system_prompt").set_value("Made up.").run()
    app.chat_input[0].set_value("Hello").run()
    again = page()
    again.query_params["c"] = app.query_params["c"]
    again.run()
    assert (picker(again), prompt(again)) == ("Preset: none", "Made up.")


def test_a_name_that_is_taken_is_a_sentence_and_nothing_is_lost(
    settings: pytest.MonkeyPatch,
) -> None:
    resources.presets().save(LOCAL, KIND)
    app = page().run()
    app.text_area(key="system_prompt").set_value("Mine.").run()
    app.text_input(key="preset_name").set_value("kind").run()
    app.button(key="preset_new").click().run()
    assert any("preset called “kind” already" in caption.value for caption in app.caption)
    assert prompt(app) == "Mine."
    app.text_input(key="preset_name").set_value("Mine").run()
    app.button(key="preset_new").click().run()
    assert picker(app) == "Preset: Mine"
    assert not any("already" in caption.value for caption in app.caption)


def test_what_another_tab_deleted_is_none_here_and_the_controls_stay(
    settings: pytest.MonkeyPatch,
) -> None:
    kind = resources.presets().save(LOCAL, KIND)
    app = page().run()
    pick(app, kind)
    resources.presets().delete(LOCAL, kind.preset_id)
    del app.session_state["presets_known"]  # as when it is two seconds old
    app.run()
    assert not app.exception
    assert (picker(app), prompt(app)) == ("Preset: none", "Be kind.")


def test_presets_that_cant_be_had_are_a_sentence_and_the_chat_goes_on(
    settings: pytest.MonkeyPatch,
) -> None:
    with resources.database().writing() as connection:
        presets_table.drop(connection)
    app = page().run()
    assert not app.exception
    assert any("conversations.sqlite3" in caption.value for caption in app.caption)
    app.text_input(key="preset_name").set_value("Mine").run()
    app.button(key="preset_new").click().run()
    assert not app.exception
    app.chat_input[0].set_value("Hello").run()
    assert not app.exception
    assert app.chat_message


def conversations_page(app: AppTest) -> AppTest:
    app._page_hash = calc_hash("conversations")
    app.run()
    assert not app.exception
    return app


def test_what_was_deleted_is_restored_or_goes_for_good(settings: pytest.MonkeyPatch) -> None:
    app = page().run()
    app.chat_input[0].set_value("Hello").run()
    (head,) = resources.chat().store.listed(LOCAL, 5)
    resources.chat().delete(head.key)
    archive = conversations_page(page().run())
    assert "Nothing is deleted." not in [caption.value for caption in archive.caption]
    archive.button(key=f"restore-{head.key.conversation_id}").click().run()
    assert resources.chat().state(head.key) is not None
    assert "Nothing is deleted." in [caption.value for caption in archive.caption]
    resources.chat().delete(head.key)
    archive.run()
    archive.button(key=f"for-good-{head.key.conversation_id}").click().run()
    assert not archive.exception
    assert resources.archive().deleted(LOCAL, 5) == []
    with resources.database().reading() as connection:
        assert connection.execute(sa.text("SELECT count(*) FROM turns")).scalar_one() == 0
