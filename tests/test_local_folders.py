from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from llm.errors import (
    HubDownloadError,
    InvalidRequestError,
    LLMError,
    MissingPackageError,
    ModelError,
    ModelNotFoundError,
    NoChatTemplateError,
    NotAModelError,
    Reason,
    RemoteCodeError,
    WeightsTooLargeError,
)
from llm.local_backend import LocalBackend, LocalOptions
from llm.local_errors import generate_error, load_error
from tests.local_answers import ask, cut, read
from tests.tiny_model import make_tiny_model

pytest_plugins = "tests.local_fixtures"
pytestmark = pytest.mark.usefixtures("no_generating_thread_is_left")


def broken(tiny_folder: Path, folder: Path, name: str, change: Callable[[Path], object]) -> Path:
    shutil.copytree(tiny_folder, folder)
    change(folder / name)
    return folder


def cut_to_nothing(path: Path) -> None:
    path.write_bytes(b"")


def name_another_type(path: Path) -> None:
    path.write_text(json.dumps({**json.loads(path.read_text()), "model_type": "no-such-type"}))


def name_an_encoder(path: Path) -> None:
    path.write_text(json.dumps({"model_type": "t5", "architectures": ["T5Model"]}))


def double_the_size(path: Path) -> None:
    path.write_text(json.dumps({**json.loads(path.read_text()), "hidden_size": 128}))


def add_a_layer(path: Path) -> None:
    path.write_text(json.dumps({**json.loads(path.read_text()), "num_hidden_layers": 3}))


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("model.safetensors", cut),
        ("model.safetensors", cut_to_nothing),
        ("config.json", name_another_type),
        ("config.json", name_an_encoder),
        ("config.json", double_the_size),
        ("config.json", add_a_layer),
        ("tokenizer.json", cut),
        ("tokenizer.json", Path.unlink),
    ],
)
def test_a_damaged_folder_is_told_as_no_model(
    tiny_folder: Path,
    tmp_path: Path,
    make_backend: Callable[..., LocalBackend],
    name: str,
    change: Callable[[Path], object],
) -> None:
    backend = make_backend(broken(tiny_folder, tmp_path / "m", name, change))
    with pytest.raises(NotAModelError) as caught:
        read(backend, ask())
    assert caught.value.values["model"] == "m"
    assert caught.value.values["reason"]


@pytest.mark.parametrize("batching", ["auto", "off"])
@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_a_model_whose_answers_would_be_no_numbers_is_refused(
    tiny_folder: Path, tmp_path: Path, value: float, batching: str
) -> None:
    folder = shutil.copytree(tiny_folder, tmp_path / "M")
    weights = load_file(folder / "model.safetensors")
    weights["model.norm.weight"][3] = value
    save_file(weights, folder / "model.safetensors", {"format": "pt"})
    backend = LocalBackend(LocalOptions(tmp_path / "data", str(folder), batching=batching))
    with pytest.raises(NotAModelError, match="isn’t numbers"):
        read(backend, ask())
    backend.close()


def test_a_window_that_no_model_has_is_not_believed(tiny_folder: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(tiny_folder, tmp_path / "M")
    told = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**told, "max_position_embeddings": 10**400}))
    backend = LocalBackend(LocalOptions(tmp_path / "data", str(folder)))
    assert read(backend, ask(max_tokens=2))[1].reason == "length"
    assert backend.window_tokens(ask()) is None
    backend.close()


def test_a_folder_whose_name_ends_in_a_space_is_loaded(tiny_folder: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(tiny_folder, tmp_path / "Trail ")
    backend = LocalBackend(LocalOptions(tmp_path / "data", str(folder)))
    assert read(backend, ask(max_tokens=2))[1].reason == "length"
    backend.close()


def test_pickled_weights_are_never_loaded(
    tiny_folder: Path, tmp_path: Path, make_backend: Callable[..., LocalBackend]
) -> None:
    """Not even where an empty .safetensors file lies beside them."""
    from safetensors.torch import load_file

    folder = tmp_path / "m"
    shutil.copytree(tiny_folder, folder)
    torch.save(load_file(folder / "model.safetensors"), folder / "pytorch_model.bin")
    (folder / "model.safetensors").rename(folder / "other.safetensors")
    with pytest.raises(NotAModelError) as caught:
        read(make_backend(folder), ask())
    assert caught.value.values["reason"] == Reason("reason-no-weights")


def test_a_base_model_without_chat_template_is_told_so(
    tmp_path: Path, make_backend: Callable[..., LocalBackend]
) -> None:
    backend = make_backend(make_tiny_model(tmp_path / "m", chat_template=None))
    with pytest.raises(NoChatTemplateError):
        read(backend, ask())


def test_a_model_that_brings_code_is_not_run_unless_allowed(
    tiny_folder: Path, tmp_path: Path, make_backend: Callable[..., LocalBackend]
) -> None:
    folder = tmp_path / "m"
    shutil.copytree(tiny_folder, folder)
    config = json.loads((folder / "config.json").read_text())
    config |= {
        "model_type": "own-type",
        "auto_map": {"AutoConfig": "own.OwnConfig", "AutoModelForCausalLM": "own.OwnModel"},
    }
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "own.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w').close()\n")
    with pytest.raises(RemoteCodeError):
        read(make_backend(folder), ask())
    assert not (tmp_path / "ran").exists()


# What the vendors raise


class GatedRepoError(OSError):
    """As the hub's."""


class LocalEntryNotFoundError(FileNotFoundError):
    """As the hub's."""


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (GatedRepoError("403 Client Error"), ModelError),
        (LocalEntryNotFoundError("offline"), HubDownloadError),
        (OSError("x/y is not a local folder and is not a valid model identifier"), ModelNotFoundError),
        (ImportError("Using `bitsandbytes` requires: pip install -U bitsandbytes"), MissingPackageError),
        (ModuleNotFoundError("No module named 'einops'", name="einops"), MissingPackageError),
        (torch.OutOfMemoryError("CUDA out of memory"), WeightsTooLargeError),
        (ValueError("Some modules are dispatched on the CPU or the disk."), WeightsTooLargeError),
        (NotImplementedError("odd"), ModelError),
    ],
)  # fmt: skip
def test_what_goes_wrong_while_loading_has_its_own_sentence(
    error: Exception, kind: type[LLMError]
) -> None:
    mapped = load_error(error, "owner/name")
    assert type(mapped) is kind
    assert str(mapped)


@pytest.mark.parametrize(
    "spec", ["{}/No-Such", "{}/No-Such.gguf", "{}/Empty", "{}/Cut", "~/No-Such"]
)
@pytest.mark.parametrize("name", ["", "My model"])
def test_no_sentence_says_where_a_model_lies_but_the_log_does(
    tiny_folder: Path,
    tmp_path: Path,
    make_backend: Callable[..., LocalBackend],
    caplog: pytest.LogCaptureFixture,
    spec: str,
    name: str,
) -> None:
    (tmp_path / "Empty").mkdir()
    broken(tiny_folder, tmp_path / "Cut", "model.safetensors", cut)
    spec = spec.format(tmp_path)
    backend = make_backend(spec, name=name)
    with pytest.raises(ModelError) as caught:
        read(backend, ask())
    told = str(caught.value)
    assert (name or Path(spec).stem) in told
    assert str(Path(spec).parent) not in told
    assert spec in caplog.text


def test_a_hub_id_is_told_with_its_owner() -> None:
    assert LocalOptions(Path(), "owner/name").told == "owner/name"
    assert LocalOptions(Path(), "owner/name", name="Mine").told == "Mine"


def test_an_error_of_the_tree_stays_what_it_is() -> None:
    error = InvalidRequestError(reason="no")
    assert generate_error(error, "m") is error
    assert load_error(error, "m") is error
