from __future__ import annotations

import os
import shutil
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from llm.errors import NotAModelError, Reason
from llm.local_backend import LocalBackend
from llm.local_conversions import is_whole, sign
from tests.local_answers import TIMEOUT_S, ask, cut, model_of, read

pytest_plugins = "tests.local_fixtures"
pytestmark = pytest.mark.usefixtures("no_generating_thread_is_left")


def models_of(tmp_path: Path) -> list[str]:
    folder = tmp_path / "data" / "models"
    return sorted(path.name for path in folder.iterdir() if path.name != ".lock")


def test_a_gguf_file_cut_short_is_told_as_no_model_and_leaves_nothing(
    tmp_path: Path, make_backend: Callable[..., LocalBackend]
) -> None:
    file = tmp_path / "cut.gguf"
    file.write_bytes(b"GGUF\x03\0\0\0" + b"\x01" * 100)
    backend = make_backend(file)
    with pytest.raises(NotAModelError) as caught:
        read(backend, ask())
    assert caught.value.values["model"] == "cut"
    left = [path.name for path in (tmp_path / "data" / "models").iterdir()]
    assert [name for name in left if name != ".lock"] == []


def test_a_gguf_file_is_converted_once_and_answers_as_its_origin(
    tiny_gguf: Path,
    tiny_folder: Path,
    tmp_path: Path,
    make_backend: Callable[..., LocalBackend],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    request = ask(max_tokens=30, temperature=0)
    backend = make_backend(tiny_gguf)
    text, _ = read(backend, request)
    assert text == read(make_backend(tiny_folder, dtype="bfloat16"), request)[0]
    (folder,) = models_of(tmp_path)
    assert folder.startswith("Tiny.F32-")
    monkeypatch.setattr(
        "llm.local_source.run_converter", lambda *_: pytest.fail("it was converted again")
    )
    assert read(make_backend(tiny_gguf), request)[0] == text
    assert is_whole(tmp_path / "data" / "models" / folder)


@pytest.fixture
def copied(tiny_folder: Path, monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """Conversions are quick: the tiny model's folder, copied. The folders that were made."""
    made: list[Path] = []

    def copy(source: Path, folder: Path, *_: Any) -> None:
        shutil.copytree(tiny_folder, folder)
        sign(folder, source)
        made.append(folder)

    monkeypatch.setattr("llm.local_source.run_converter", copy)
    return made


def test_a_conversion_that_got_damaged_is_thrown_away_and_the_next_try_mends_it(
    tiny_gguf: Path, copied: list[Path], make_backend: Callable[..., LocalBackend]
) -> None:
    backend = make_backend(tiny_gguf)
    model_of(backend)
    cut(copied[0] / "model.safetensors")
    with pytest.raises(NotAModelError):
        read(make_backend(tiny_gguf), ask())
    assert not copied[0].exists()
    assert read(make_backend(tiny_gguf), ask(max_tokens=1))[1].reason == "length"
    assert copied == [copied[0]] * 2


def test_a_conversion_that_is_whole_but_cannot_be_loaded_is_not_made_again(
    tiny_gguf: Path,
    copied: list[Path],
    make_backend: Callable[..., LocalBackend],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def unknown(*_: Any) -> Any:
        raise NotAModelError(model="m", reason=Reason("reason-unknown-type"))

    monkeypatch.setattr("llm.local_loader.load_model", unknown)
    backend = make_backend(tiny_gguf)
    for _ in range(3):
        with pytest.raises(NotAModelError):
            read(backend, ask())
    assert len(copied) == 1


def test_the_conversion_of_what_a_file_was_before_is_removed(
    tiny_gguf: Path,
    tmp_path: Path,
    copied: list[Path],
    make_backend: Callable[..., LocalBackend],
) -> None:
    file, other = tmp_path / "A.gguf", tmp_path / "B.gguf"
    for path in (file, other):
        shutil.copy(tiny_gguf, path)
        model_of(make_backend(path))
    os.utime(file, (1, 1))
    model_of(make_backend(file))
    assert len(copied) == 3
    assert [path.exists() for path in copied] == [False, True, True]


def test_a_gguf_file_whose_weights_are_cut_is_told_as_no_model(
    tiny_gguf: Path, tmp_path: Path, make_backend: Callable[..., LocalBackend]
) -> None:
    file = tmp_path / "Cut.gguf"
    file.write_bytes(tiny_gguf.read_bytes()[:-50_000])
    with pytest.raises(NotAModelError):
        read(make_backend(file), ask())
    assert models_of(tmp_path) == []


def test_closing_ends_a_conversion_and_leaves_no_half_model(
    tiny_gguf: Path, tmp_path: Path, make_backend: Callable[..., LocalBackend]
) -> None:
    backend = make_backend(tiny_gguf)
    backend.prepare()
    models = tmp_path / "data" / "models"
    while not list(models.glob("*.part")):
        assert backend.status().phase != "failed"
    backend.close()
    for thread in threading.enumerate():
        if thread.name == "load-model":
            thread.join(TIMEOUT_S)
    assert all(name.endswith(".part") for name in models_of(tmp_path))
    # The next one clears what was left.
    assert read(make_backend(tiny_gguf), ask(max_tokens=1))[1].reason == "length"
    assert [name.startswith("Tiny.F32-") for name in models_of(tmp_path)] == [True]
    assert not list(models.glob("*.part"))
