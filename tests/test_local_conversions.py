"""The folders of converted models, without any model in them."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from llm.local_conversions import folder_for, is_whole, locked, remove, remove_older, sign
from llm.local_source import discard_if_damaged
from llm.types import CancelToken
from llm.wheel_download import FetchStopped
from tests.local_answers import TIMEOUT_S, cut


def make(folder: Path, source: Path) -> Path:
    folder.mkdir(parents=True)
    (folder / "config.json").write_text("{}")
    (folder / "model.safetensors").write_bytes(bytes(100))
    sign(folder, source)
    return folder


def lose(path: Path) -> None:
    path.unlink()


@pytest.mark.parametrize("name", ["config.json", "model.safetensors", "source.json"])
@pytest.mark.parametrize("harm", [lose, cut])
def test_only_a_conversion_that_lacks_something_is_discarded(
    tmp_path: Path, name: str, harm: Callable[[Path], None]
) -> None:
    folder = make(tmp_path / "m-1", tmp_path / "m.gguf")
    discard_if_damaged(folder, CancelToken())
    assert is_whole(folder)
    harm(folder / name)
    assert not is_whole(folder)
    discard_if_damaged(folder, CancelToken())
    assert [path.name for path in tmp_path.iterdir() if path.name != ".lock"] == []


def test_nothing_is_discarded_while_another_process_holds_the_lock(tmp_path: Path) -> None:
    folder = make(tmp_path / "m-1", tmp_path / "m.gguf")
    lose(folder / "config.json")
    cancel = CancelToken()
    outcome: list[str] = []

    def run() -> None:
        try:
            discard_if_damaged(folder, cancel)
        except FetchStopped:
            outcome.append("stopped")

    thread = threading.Thread(target=run)
    with locked(tmp_path, CancelToken()):
        cancel.cancel()  # it looks once, and doesn't wait
        thread.start()
        thread.join(TIMEOUT_S)
    assert outcome == ["stopped"]
    assert folder.is_dir()


def test_older_conversions_of_the_same_path_go_and_others_stay(tmp_path: Path) -> None:
    source, other = tmp_path / "m.gguf", tmp_path / "n.gguf"
    older, newer = make(tmp_path / "m-1", source), make(tmp_path / "m-2", source)
    foreign = make(tmp_path / "n-1", other)
    unsigned = make(tmp_path / "m-0", source)
    lose(unsigned / "source.json")
    source.write_bytes(b"")
    remove_older(newer, source)
    assert [path.is_dir() for path in (older, newer, foreign, unsigned)] == [
        False,
        True,
        True,
        True,
    ]


def test_removing_what_is_not_there_is_nothing(tmp_path: Path) -> None:
    remove(tmp_path / "m-1")
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_changed_has_another_folder(tmp_path: Path) -> None:
    file = tmp_path / "m.gguf"
    file.write_bytes(b"1")
    before = folder_for(tmp_path, "m", file)
    assert folder_for(tmp_path, "m", file) == before
    file.write_bytes(b"12")
    assert folder_for(tmp_path, "m", file) != before
