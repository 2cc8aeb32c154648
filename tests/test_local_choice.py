"""A model that was chosen is the first one after a restart, where settings still offer it."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from llm.local_backend import LocalBackend
from llm.local_choice import keep_choice
from llm.settings import Settings
from tests.local_answers import TIMEOUT_S, ask, cut, read

pytest_plugins = "tests.local_fixtures"
pytestmark = pytest.mark.usefixtures("no_generating_thread_is_left")

Start = Callable[..., LocalBackend]


@pytest.fixture
def models(tiny_folder: Path, tmp_path: Path) -> Path:
    """Two models: settings name the first, the second is found."""
    for name in ("First", "Second"):
        shutil.copytree(tiny_folder, tmp_path / "models" / name)
    return tmp_path / "models"


@pytest.fixture
def start(models: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Start]:
    """Starts an app whose data folder others have had before."""
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hf"))
    for variable in ("HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE"):
        monkeypatch.delenv(variable, raising=False)
    started: list[LocalBackend] = []

    def begin(**settings: Any) -> LocalBackend:
        for earlier in started:
            earlier.close()
        first = {"model": str(models / "First"), "model_folders": str(models)}
        started.append(
            LocalBackend.from_settings(Settings(data_dir=tmp_path / "data", **(first | settings)))
        )
        return started[-1]

    yield begin
    for backend in started:
        backend.close()


def choose(backend: LocalBackend, **options: Any) -> str:
    """Have another model, and say which one answers then, everything written down."""
    backend.choose(replace(backend.chosen, **options))
    read(backend, ask(max_tokens=1))
    with backend._changed:
        assert backend._changed.wait_for(lambda: not backend._working, TIMEOUT_S)
    return backend.status().model


def test_a_model_that_was_chosen_is_the_first_one_after_a_restart(
    start: Start, models: Path
) -> None:
    assert choose(start(), model=str(models / "Second")) == "Second"
    again = start()
    assert again.chosen.called == "Second"
    assert read(again, ask(max_tokens=1))[1]
    assert choose(again, model=str(models / "First")) == "First"
    assert start().chosen.called == "First"


def test_a_model_that_settings_name_comes_back_in_its_own_way(start: Start, models: Path) -> None:
    named = [{"model": str(models / "Second"), "name": "Small", "dtype": "bfloat16"}]
    second = {"model": str(models / "Second"), "name": "Small", "dtype": "bfloat16"}
    assert choose(start(models=named), **second) == "Small"
    assert start(models=named).chosen.dtype == "bfloat16"
    assert start(models=[named[0] | {"dtype": "float32"}]).chosen.called == "First"
    assert start().chosen.called == "First"


def test_one_of_the_hubs_cache_comes_back_unless_settings_leave_it_out(
    start: Start, models: Path, tmp_path: Path
) -> None:
    first = start()
    keep_choice(first.chosen, replace(first.chosen, model="owner/Cached"))
    assert start().chosen.called == "First"
    (tmp_path / "hf" / "hub" / "models--owner--Cached").mkdir(parents=True)
    assert start().chosen.model == "owner/Cached"
    assert start(list_hub_cache=False).chosen.called == "First"


@pytest.mark.parametrize(
    "settings",
    [
        {"model": "embedded"},
        {"dtype": "float32"},
        {"trust_remote_code": True},
        {"model_folders": ""},
    ],
    ids=str,
)
def test_settings_that_have_changed_win(
    start: Start, models: Path, settings: dict[str, Any]
) -> None:
    assert choose(start(), model=str(models / "Second")) == "Second"
    changed = start(**settings)
    assert changed.chosen.model == settings.get("model", str(models / "First"))


def test_a_model_that_has_gone_leaves_the_one_of_the_settings(start: Start, models: Path) -> None:
    assert choose(start(), model=str(models / "Second")) == "Second"
    shutil.rmtree(models / "Second")
    assert start().chosen.called == "First"


def test_one_that_cannot_be_loaded_any_more_gives_way_and_stays_chosen(
    start: Start, models: Path
) -> None:
    assert choose(start(), model=str(models / "Second")) == "Second"
    whole = (models / "Second" / "model.safetensors").read_bytes()
    cut(models / "Second" / "model.safetensors")
    again = start()
    read(again, ask(max_tokens=1))
    status = again.status()
    assert status.model == "First"
    assert status.notice is not None
    assert "Second" in str(status.notice)
    (models / "Second" / "model.safetensors").write_bytes(whole)
    assert start().chosen.called == "Second"


def test_one_that_was_never_ready_is_not_kept(start: Start, models: Path) -> None:
    cut(models / "Second" / "model.safetensors")
    assert choose(start(), model=str(models / "Second")) == "First"
    assert start().chosen.called == "First"


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"usual": 1, "chosen": []}', "\0"])
def test_a_file_of_nonsense_is_no_choice(start: Start, tmp_path: Path, text: str) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "chosen_model.json").write_text(text)
    assert start().chosen.called == "First"


def test_a_data_folder_that_cannot_be_written_harms_no_choice(
    start: Start, models: Path, tmp_path: Path
) -> None:
    (tmp_path / "data").write_text("a file in its place")
    assert choose(start(), model=str(models / "Second")) == "Second"
    assert start().chosen.called == "First"
