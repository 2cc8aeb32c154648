from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from llm.errors import ModelNotFoundError, NotAModelError
from llm.models import EMBEDDED_NAME, ModelSpec, display_name, resolve, told_name


def make_folder(folder: Path, config: object = None) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(config or {"model_type": "llama"}))
    (folder / "model.safetensors").write_bytes(b"")
    return folder


def test_embedded_is_the_default_model_and_has_no_path() -> None:
    assert resolve(" embedded ") == ModelSpec("embedded", EMBEDDED_NAME)


def test_a_folder_with_config_and_weights_is_a_model(tmp_path: Path) -> None:
    folder = make_folder(tmp_path / "My-Model")
    assert resolve(str(folder)) == ModelSpec("folder", "My-Model", folder)
    assert resolve(f"{folder}/").name == "My-Model"


def test_the_home_folder_may_be_written_as_a_tilde(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    folder = make_folder(tmp_path / "models" / "m")
    assert resolve("~/models/m").path == folder


def test_space_around_a_path_is_taken_away_only_where_there_is_no_such_path(tmp_path: Path) -> None:
    make_folder(tmp_path / "m")
    assert resolve(f" {tmp_path / 'm'} ").path == tmp_path / "m"
    make_folder(tmp_path / "m ")
    assert resolve(f"{tmp_path / 'm'} ").path == tmp_path / "m "


def test_a_gguf_file_is_a_model_named_without_its_ending(tmp_path: Path) -> None:
    file = tmp_path / "Some-Model.Q4_K_M.GGUF"
    file.write_bytes(b"GGUF\x03\0\0\0")
    assert resolve(str(file)) == ModelSpec("gguf", "Some-Model.Q4_K_M", file)


def test_owner_and_name_is_a_hub_id(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    spec = "Qwen/Qwen2.5-1.5B-Instruct"
    assert resolve(spec) == ModelSpec("hub", "Qwen2.5-1.5B-Instruct", hub_id=spec)


def test_a_folder_that_exists_wins_over_a_hub_id_of_the_same_spelling(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    make_folder(tmp_path / "owner" / "name")
    assert resolve("owner/name").kind == "folder"


@pytest.mark.parametrize(
    "spec",
    ["/no/such/folder", "./nothing", "~/nothing-here", "embeded", "a/b/c", "missing.gguf",
     "owner/missing.gguf", "https://example.com/model", "nul\0byte", "-owner/name", "C:\\models\\x"],
)  # fmt: skip
def test_what_is_nowhere_is_not_found(
    spec: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ModelNotFoundError) as caught:
        resolve(spec)
    assert caught.value.values == {"model": told_name(spec)}


def test_a_folder_without_config_is_no_model(tmp_path: Path) -> None:
    with pytest.raises(NotAModelError, match=r"no config\.json"):
        resolve(str(tmp_path))


@pytest.mark.parametrize("text", ["", "{", "[]", '"llama"', "{}", '{"model_type": ""}', "\xff"])
def test_a_config_that_says_nothing_is_no_model(text: str, tmp_path: Path) -> None:
    folder = make_folder(tmp_path / "m")
    (folder / "config.json").write_bytes(text.encode("latin-1"))
    with pytest.raises(NotAModelError):
        resolve(str(folder))


DEEP = '{"model_type": "llama", "x": ' + "[" * 100_000 + "]" * 100_000 + "}"


def test_a_config_that_is_nested_too_deeply_is_no_model(tmp_path: Path) -> None:
    folder = make_folder(tmp_path / "m")
    (folder / "config.json").write_text(DEEP)
    with pytest.raises(NotAModelError, match=r"config\.json can’t be read"):
        resolve(str(folder))


def test_a_folder_without_weights_is_no_model(tmp_path: Path) -> None:
    folder = make_folder(tmp_path / "m")
    (folder / "model.safetensors").unlink()
    with pytest.raises(NotAModelError, match=r"no \.safetensors weights"):
        resolve(str(folder))
    (folder / "pytorch_model.bin").write_bytes(b"")
    with pytest.raises(NotAModelError, match=r"as \.bin only"):
        resolve(str(folder))


def test_a_file_of_another_kind_is_no_model(tmp_path: Path) -> None:
    file = tmp_path / "weights.pt"
    file.write_bytes(b"GGUF")
    with pytest.raises(NotAModelError, match=r"neither a folder nor a \.gguf file"):
        resolve(str(file))


@pytest.mark.parametrize("start", [b"", b"GG", b"PK\x03\x04", b"<html>"])
def test_a_gguf_file_that_starts_otherwise_is_no_model(start: bytes, tmp_path: Path) -> None:
    file = tmp_path / "m.gguf"
    file.write_bytes(start)
    with pytest.raises(NotAModelError, match="not a GGUF file"):
        resolve(str(file))


@pytest.mark.parametrize(
    ("spec", "name"),
    [
        ("embedded", "SmolLM2-135M-Instruct"),
        ("/data/models/Qwen2.5/", "Qwen2.5"),
        ("C:\\models\\Phi-4", "Phi-4"),
        ("/a/b/model.Q4_0.gguf", "model.Q4_0"),
        ("/c/models--Qwen--Qwen3-0.6B/snapshots/abc123", "Qwen3-0.6B"),
        ("/", "/"),
    ],
)
def test_display_names_are_what_people_say(spec: str, name: str) -> None:
    assert display_name(spec) == name


@pytest.mark.parametrize("module", ["llm.models", "llm.local_backend", "llm.embedded_model"])
def test_importing_loads_no_heavy_library(module: str) -> None:
    heavy = "{'torch', 'transformers', 'tokenizers', 'gguf', 'huggingface_hub', 'streamlit'}"
    code = f"import sys, {module}; print(sorted({heavy} & set(sys.modules)))"
    root = Path(__file__).parent.parent
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=root, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"
