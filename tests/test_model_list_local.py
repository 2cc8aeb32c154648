"""Which local models are listed, and what is told of those that can't be used."""

from __future__ import annotations

import json
import os
import shutil
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from llm import model_list_local
from llm.catalogue import catalogue
from llm.local_backend import LocalBackend, LocalOptions
from llm.local_memory import packs_weights
from llm.model_facts import ModelFacts, NoFactsError
from llm.model_list_local import ListedModel, LocalModelList, hub_cache, list_models
from llm.models import EMBEDDED
from llm.settings import Settings
from tests.local_answers import TIMEOUT_S, ask, cut, read
from tests.model_data import model_data_dir

pytest_plugins = "tests.local_fixtures"


@pytest.fixture(autouse=True)
def empty_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A hub's cache of the test's own, empty at first."""
    for variable in ("HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hf"))
    return tmp_path / "hf" / "hub"


@pytest.fixture
def base(tmp_path: Path) -> LocalOptions:
    return LocalOptions(tmp_path / "data")


def found_in(base: LocalOptions, *folders: Path) -> dict[str, ListedModel]:
    """By their names, without the embedded one."""
    embedded, *others = list_models(base, (base,), folders)
    assert embedded.options.model == EMBEDDED
    return {model.options.called: model for model in others}


def reason(model: ListedModel) -> str:
    return model.trouble.message_id if model.trouble else ""


def test_a_name_that_is_no_text_and_a_config_of_nonsense_keep_no_other_from_being_listed(
    base: LocalOptions, tiny_folder: Path, tmp_path: Path
) -> None:
    root = tmp_path / "models"
    shutil.copytree(tiny_folder, root / "Good")
    shutil.copytree(tiny_folder, os.fsdecode(os.fsencode(root) + b"/mod\xe8le"))
    odd = shutil.copytree(tiny_folder, root / "Odd") / "config.json"
    odd.write_text(json.dumps({**json.loads(odd.read_text()), "architectures": 5}))
    found = found_in(base, root)
    assert {name: reason(model) for name, model in found.items()} == {
        "Good": "",
        "Odd": "reason-part-unreadable",
    }


def test_the_code_of_models_that_nobody_named_is_not_run(
    base: LocalOptions, tiny_folder: Path, tmp_path: Path
) -> None:
    root = tmp_path / "models"
    named = replace(base, model=str(shutil.copytree(tiny_folder, root / "Named")))
    shutil.copytree(tiny_folder, root / "Found")
    trusted = [replace(options, trust_remote_code=True) for options in (base, named)]
    listed = list_models(trusted[0], tuple(trusted), (root,))
    told = {model.options.called: model.options.trust_remote_code for model in listed[1:]}
    assert told == {"Named": True, "Found": False}


def test_the_same_files_named_twice_are_listed_twice_where_they_are_loaded_in_two_ways(
    base: LocalOptions, tiny_folder: Path
) -> None:
    first = replace(base, model=str(tiny_folder))
    second = replace(first, quantization="4bit")
    listed = list_models(first, (first, second, first), ())
    assert [model.options.quantization for model in listed] == [first.quantization, "4bit"]
    assert len({model.key for model in listed}) == 2


def test_model_folders_and_gguf_files_are_found_up_to_three_folders_deep(
    base: LocalOptions, tiny_folder: Path, tiny_gguf: Path, tmp_path: Path
) -> None:
    root = tmp_path / "models"
    shutil.copytree(tiny_folder, root / "Near")
    shutil.copytree(tiny_folder, root / "a" / "b" / "Deep")
    shutil.copytree(tiny_folder, root / "a" / "b" / "c" / "Too-Deep")
    shutil.copytree(tiny_folder, root / ".hidden" / "Unseen")
    (root / "a" / "b" / "Flat.Q8_0.gguf").write_bytes(tiny_gguf.read_bytes())
    (root / "mmproj-Flat.gguf").write_bytes(b"GGUF")
    (root / "notes.txt").write_text("no model")
    (root / "loop").symlink_to(root)
    found = found_in(base, root)
    assert set(found) == {"Near", "Deep", "Flat.Q8_0"}
    assert [reason(model) for model in found.values()] == [""] * 3
    assert found["Near"].options == LocalOptions(base.data_dir, str(root / "Near"))
    for model in found.values():
        assert model.facts is not None
        assert model.facts.context_tokens == 512


def no_folder(path: Path) -> None:
    pass


def a_file(path: Path) -> None:
    path.write_text("")


def a_link_to_itself(path: Path) -> None:
    """What nobody can look into, not even root."""
    path.symlink_to(path)


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (no_folder, "reason-folder-missing"),
        (a_file, "reason-folder-missing"),
        (a_link_to_itself, "reason-file-unreadable"),
    ],
)
def test_a_folder_that_cannot_be_looked_into_is_listed_with_the_reason(
    base: LocalOptions, tmp_path: Path, make: Callable[[Path], None], why: str
) -> None:
    make(tmp_path / "models")
    assert reason(found_in(base, tmp_path / "models")["models"]) == why


def test_a_folder_that_the_system_refuses_is_listed_and_the_others_are_looked_into(
    base: LocalOptions, tiny_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(tiny_folder, tmp_path / "good" / "Tiny")
    scandir = os.scandir

    def refusing(path: Path) -> object:
        if Path(path).name == "locked":
            raise PermissionError(13, "Permission denied")
        return scandir(path)

    (tmp_path / "good" / "locked").mkdir()
    monkeypatch.setattr(model_list_local.os, "scandir", refusing)
    found = found_in(base, tmp_path / "locked", tmp_path / "good")
    assert {name: reason(model) for name, model in found.items()} == {
        "locked": "reason-file-unreadable",
        "Tiny": "",
    }


def half_of(name: str) -> Callable[[Path], None]:
    return lambda folder: cut(folder / name)


def without(name: str) -> Callable[[Path], None]:
    return lambda folder: (folder / name).unlink()


def instead(name: str, what: bytes) -> Callable[[Path], None]:
    return lambda folder: bool((folder / name).write_bytes(what)) and None


def pipe_instead(name: str) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        (folder / name).unlink(missing_ok=True)
        os.mkfifo(folder / name)

    return change


_HEAD = json.dumps({"w": {"dtype": "F32", "shape": [10**400, 2], "data_offsets": [0, 8]}}).encode()
HUGE = len(_HEAD).to_bytes(8, "little") + _HEAD + bytes(8)


def say(**told: object) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        file = folder / "config.json"
        file.write_text(json.dumps({**json.loads(file.read_text()), **told}))

    return change


@pytest.mark.parametrize(
    ("damage", "why"),
    [
        (half_of("model.safetensors"), "reason-weights-damaged"),
        (lambda folder: (folder / "model.safetensors").write_bytes(b""), "reason-weights-damaged"),
        (half_of("config.json"), "reason-config-unreadable"),
        (say(model_type=""), "reason-config-without-type"),
        (say(architectures=["BertModel"]), "reason-unknown-type"),
        (say(architectures=7), "reason-part-unreadable"),
        (instead("config.json", b"[" * 200_000), "reason-config-unreadable"),
        (pipe_instead("config.json"), "reason-config-unreadable"),
        (pipe_instead("model.safetensors.index.json"), "reason-part-unreadable"),
        (instead("model.safetensors", HUGE), "reason-weights-damaged"),
        (
            instead("model.safetensors.index.json", b'{"weight_map": {"w": "a\\u0000b"}}'),
            "reason-file-unreadable",
        ),
    ],
)
def test_a_damaged_folder_is_listed_with_the_reason(
    base: LocalOptions, tiny_folder: Path, tmp_path: Path, damage: Callable[[Path], None], why: str
) -> None:
    damage(shutil.copytree(tiny_folder, tmp_path / "models" / "M"))
    model = found_in(base, tmp_path / "models")["M"]
    assert (reason(model), model.facts) == (why, None)


@pytest.mark.parametrize(
    ("told", "kept"),
    [
        ({"max_position_embeddings": 10**400}, "context_tokens"),
        ({"num_hidden_layers": 10**400}, "cached_values"),
    ],
)
def test_a_number_that_no_model_has_is_not_believed(
    base: LocalOptions, tiny_folder: Path, tmp_path: Path, told: dict[str, int], kept: str
) -> None:
    say(**told)(shutil.copytree(tiny_folder, tmp_path / "models" / "M"))
    model = found_in(base, tmp_path / "models")["M"]
    assert model.facts is not None
    assert not getattr(model.facts, kept)


def test_numbers_that_are_nonsense_together_are_no_facts() -> None:
    with pytest.raises(NoFactsError):
        ModelFacts(cached_values=1 << 60)


def test_whatever_reading_one_model_raises_the_others_are_listed(
    base: LocalOptions,
    tiny_folder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    facts_of_folder = model_list_local.facts_of_folder
    resolve = model_list_local.resolve

    def failing(what: Callable[..., Any]) -> Callable[..., Any]:
        def look(place: Path | str) -> Any:
            if Path(place).name.startswith("Bad"):
                raise RecursionError("-".join(["words", "of", "the", "file"]))
            return what(place)

        return look

    for name in ("Good", "Bad", "Bad-named"):
        shutil.copytree(tiny_folder, tmp_path / "models" / name)
    monkeypatch.setattr(model_list_local, "facts_of_folder", failing(facts_of_folder))
    monkeypatch.setattr(model_list_local, "resolve", failing(resolve))
    named = replace(base, model=str(tmp_path / "models" / "Bad-named"))
    listed = list_models(base, (base, named), (tmp_path / "models",))
    assert {m.options.called: reason(m) for m in listed[1:]} == {
        "Bad-named": "reason-part-unreadable",
        "Bad": "reason-part-unreadable",
        "Good": "",
    }
    assert "RecursionError" in caplog.text
    assert str(tmp_path / "models" / "Bad") in caplog.text
    assert "words-of" not in caplog.text


def test_a_pipe_named_as_a_model_keeps_no_other_from_being_listed(
    base: LocalOptions, tiny_folder: Path, tmp_path: Path, empty_cache: Path
) -> None:
    shutil.copytree(tiny_folder, tmp_path / "models" / "Good")
    os.mkfifo(tmp_path / "models" / "Pipe.gguf")
    refs = empty_cache / "models--a--b" / "refs"
    refs.mkdir(parents=True)
    os.mkfifo(refs / "main")
    found: dict[str, ListedModel] = {}
    looking = threading.Thread(
        target=lambda: found.update(found_in(base, tmp_path / "models")), daemon=True
    )
    looking.start()
    looking.join(TIMEOUT_S)
    assert not looking.is_alive()
    assert {name: reason(model) for name, model in found.items()} == {
        "Good": "",
        "Pipe": "reason-file-unreadable",
    }


def test_of_several_ways_to_a_model_the_shortest_is_listed(
    base: LocalOptions, tiny_folder: Path, tmp_path: Path
) -> None:
    root = tmp_path / "models"
    shutil.copytree(tiny_folder, root / "sub" / "Trail")
    shutil.copytree(tiny_folder, root / "Z")
    (root / "A-loop").symlink_to(root)
    (root / "A-way-to-z").symlink_to(root / "Z")
    (root / "sub" / "up").symlink_to(root)
    (root / "self").symlink_to("self")
    found = list_models(base, (), (root,))
    assert [m.options.model for m in found] == [str(root / "sub" / "Trail"), str(root / "Z")]


def test_a_shard_that_is_missing_is_told(
    base: LocalOptions, tiny_folder: Path, tmp_path: Path
) -> None:
    folder = shutil.copytree(tiny_folder, tmp_path / "models" / "M")
    index = {"weight_map": {"a": "model.safetensors", "b": "gone.safetensors"}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    assert reason(found_in(base, tmp_path / "models")["M"]) == "reason-weights-missing"


@pytest.mark.parametrize("kept", [0, 3, 4, 10, 24, 100, 0.3, 0.5, 0.99])
def test_a_gguf_file_cut_anywhere_is_listed_with_the_reason(
    base: LocalOptions, tiny_gguf: Path, tmp_path: Path, kept: float
) -> None:
    (tmp_path / "models").mkdir()
    whole = tiny_gguf.read_bytes()
    length = kept if isinstance(kept, int) else int(kept * len(whole))
    (tmp_path / "models" / "M.gguf").write_bytes(whole[:length])
    assert reason(found_in(base, tmp_path / "models")["M"]) == "reason-gguf-damaged"


def test_a_gguf_file_of_nonsense_is_refused_quickly(base: LocalOptions, tmp_path: Path) -> None:
    (tmp_path / "models").mkdir()
    huge = b"GGUF" + (3).to_bytes(4, "little") + b"\xff" * 4096
    (tmp_path / "models" / "M.gguf").write_bytes(huge)
    assert reason(found_in(base, tmp_path / "models")["M"]) == "reason-gguf-damaged"


def test_a_gguf_model_in_several_files_is_one_entry_that_says_so(
    base: LocalOptions, tiny_gguf: Path, tmp_path: Path
) -> None:
    (tmp_path / "models").mkdir()
    for part in (1, 2, 3):
        file = tmp_path / "models" / f"M-0000{part}-of-00003.gguf"
        file.write_bytes(tiny_gguf.read_bytes())
    found = found_in(base, tmp_path / "models")
    assert {name: reason(model) for name, model in found.items()} == {
        "M-00001-of-00003": "reason-gguf-split"
    }


# The hub's cache


def cached(cache: Path, source: Path, hub_id: str = "owner/Name") -> Path:
    """As huggingface_hub keeps a model: files by their hash, and links that name them."""
    folder = cache / f"models--{hub_id.replace('/', '--')}"
    snapshot = folder / "snapshots" / "abc123"
    snapshot.mkdir(parents=True)
    (folder / "blobs").mkdir()
    (folder / "refs").mkdir()
    (folder / "refs" / "main").write_text("abc123")
    for number, file in enumerate(sorted(source.iterdir())):
        blob = folder / "blobs" / f"{number:040x}"
        shutil.copy(file, blob)
        (snapshot / file.name).symlink_to(blob)
    return folder


def test_the_hubs_cache_is_listed_by_its_ids(
    base: LocalOptions, tiny_folder: Path, empty_cache: Path
) -> None:
    cached(empty_cache, tiny_folder)
    model = found_in(base)["Name"]
    assert model.options.model == "owner/Name"
    assert (reason(model), model.facts is None) == ("", False)


def test_the_hubs_cache_is_left_out_where_settings_say_so(
    tiny_folder: Path, tmp_path: Path, empty_cache: Path
) -> None:
    cached(empty_cache, tiny_folder)
    names = {}
    for listed in (True, False):
        settings = Settings(data_dir=tmp_path / "data", list_hub_cache=listed)
        base = LocalOptions.from_settings(settings)
        models = LocalModelList.from_settings(settings, LocalBackend(base), base)
        assert models.wait(TIMEOUT_S)
        names[listed] = [model.options.called for model in models.models()]
    assert names == {
        True: ["SmolLM2-135M-Instruct", "Name"],
        False: ["SmolLM2-135M-Instruct"],
    }


def a_blob_is_missing(folder: Path) -> None:
    (folder / "snapshots" / "abc123" / "model.safetensors").resolve().unlink()


def a_download_was_killed(folder: Path) -> None:
    snapshot = folder / "snapshots" / "abc123"
    blob = (snapshot / "model.safetensors").resolve()
    blob.rename(blob.with_suffix(".incomplete"))
    (snapshot / "model.safetensors").unlink()


@pytest.mark.parametrize("damage", [a_blob_is_missing, a_download_was_killed])
def test_a_model_downloaded_in_part_says_so(
    base: LocalOptions, tiny_folder: Path, empty_cache: Path, damage: Callable[[Path], None]
) -> None:
    damage(cached(empty_cache, tiny_folder))
    assert reason(found_in(base)["Name"]) == "reason-half-downloaded"


def no_snapshot(folder: Path) -> None:
    shutil.rmtree(folder / "snapshots")


def no_reference(folder: Path) -> None:
    shutil.rmtree(folder / "refs")


def an_embedding_model(folder: Path) -> None:
    config = (folder / "snapshots" / "abc123" / "config.json").resolve()
    config.write_text(json.dumps({"model_type": "bert", "architectures": ["BertModel"]}))


def only_its_tokenizer(folder: Path) -> None:
    (folder / "snapshots" / "abc123" / "model.safetensors").unlink()


@pytest.mark.parametrize(
    "damage", [no_snapshot, no_reference, an_embedding_model, only_its_tokenizer]
)
def test_what_is_no_chat_model_in_the_hubs_cache_is_left_out(
    base: LocalOptions, tiny_folder: Path, empty_cache: Path, damage: Callable[[Path], None]
) -> None:
    damage(cached(empty_cache, tiny_folder))
    assert found_in(base) == {}


def test_the_hubs_cache_is_where_the_hub_keeps_it(tmp_path: Path) -> None:
    assert hub_cache({"HF_HOME": "/x"}) == Path("/x/hub")
    assert hub_cache({"HF_HOME": "/x", "HF_HUB_CACHE": "/y"}) == Path("/y")
    assert hub_cache({"XDG_CACHE_HOME": "/c"}) == Path("/c/huggingface/hub")
    assert hub_cache({}) == Path("~/.cache/huggingface/hub").expanduser()


# What settings name


def test_named_models_come_first_each_in_its_own_way_and_are_not_listed_twice(
    tiny_folder: Path, tmp_path: Path, empty_cache: Path
) -> None:
    here = shutil.copytree(tiny_folder, tmp_path / "models" / "Here")
    cached(empty_cache, tiny_folder, "owner/Cached")
    settings = Settings(
        data_dir=tmp_path / "data",
        models=[
            {"model": str(here), "name": "Small", "quantization": "4bit", "threads": 2},
            {"model": "owner/Cached", "dtype": "float32"},
            {"model": "/no/such/model"},
        ],
        model_folders=str(tmp_path / "models"),
        attn_implementation="eager",
    )
    base = LocalOptions.from_settings(settings)
    models = LocalModelList.from_settings(settings, LocalBackend(base), base)
    assert [m.options.called for m in models.models()][:2] == ["SmolLM2-135M-Instruct", "Small"]
    assert models.wait(TIMEOUT_S)
    embedded, small, hub, missing = models.models()
    assert embedded.options == base
    assert (small.options.quantization, small.options.threads) == ("4bit", 2)
    assert (hub.options.dtype, hub.options.quantization) == ("float32", "auto")
    assert small.options.attn_implementation == hub.options.attn_implementation == "eager"
    assert [reason(m) for m in (embedded, small, hub, missing)] == [
        *["", "", ""],
        "reason-not-there",
    ]
    assert missing.trouble is not None
    told = missing.trouble.sentence(catalogue("en"))
    assert "[[models]]" in told, "the path may stand in either"
    assert not told.endswith("."), "it stands within another sentence"
    assert [m.impossible for m in models.models()] == [False, False, False, True]


def test_looking_never_holds_up_who_asks_and_is_done_once_at_a_time(
    base: LocalOptions, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked: list[int] = []
    go_on = threading.Event()
    now_s = 0.0

    def slow(*_: object, **__: object) -> tuple[ListedModel, ...]:
        looked.append(len(looked))
        assert go_on.wait(TIMEOUT_S)
        return (ListedModel(base),)

    monkeypatch.setattr(model_list_local, "list_models", slow)
    models = LocalModelList(LocalBackend(base), base, clock=lambda: now_s)
    for _ in range(3):
        assert [m.options for m in models.models()] == [base]
    go_on.set()
    assert models.wait(TIMEOUT_S)
    models.models()
    assert looked == [0]
    now_s = 100.0
    models.models()
    now_s = 200.0
    with models._lock:
        assert models._looking or len(looked) == 2


def test_what_fits_is_told_for_the_place_of_the_loaded_model(
    tiny_folder: Path,
    make_backend: Callable[..., LocalBackend],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    backend = make_backend(tiny_folder, dtype="float32")
    models = LocalModelList(backend, backend.chosen)
    read(backend, ask(max_tokens=1))
    monkeypatch.setattr(model_list_local, "free_bytes", lambda: 10_000_000)
    assert models.wait(TIMEOUT_S)
    (tiny,) = models.models()
    assert models.sizes_are_known == (True, True)
    held = models.fit(tiny)
    assert held is not None
    assert held.weights_bytes == models.weights_bytes(tiny)
    assert held.free_bytes == 10_000_000 + held.weights_bytes
    assert held.level == "fits"


def test_a_packed_copy_is_counted_for_models_that_get_one(
    tiny_folder: Path, make_backend: Callable[..., LocalBackend]
) -> None:
    backend = make_backend(tiny_folder, dtype="bfloat16")
    models = LocalModelList(backend, backend.chosen)
    read(backend, ask(max_tokens=1))
    assert models.wait(TIMEOUT_S)
    facts = ModelFacts(matrix_weights=1_000_000, packed_bytes=625_000)

    def told(**ways: str) -> int:
        told = models.weights_bytes(ListedModel(replace(backend.chosen, **ways), facts))  # type: ignore[arg-type]
        assert told is not None
        return told

    packed = 625_000 if packs_weights() else 0
    assert told() == 2_000_000 + packed
    assert told(quantization="none") == told(dtype="float16") == 2_000_000
    assert told(dtype="float32") == 4_000_000
    assert told(quantization="8bit") == 1_000_000


def test_what_fits_is_not_told_while_a_model_is_on_its_way_into_memory(
    tiny_folder: Path,
    make_backend: Callable[..., LocalBackend],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    import llm.local_loader

    reached, go_on = threading.Event(), threading.Event()
    load_model = llm.local_loader.load_model

    def slow(*args: object) -> object:
        reached.set()
        assert go_on.wait(TIMEOUT_S)
        return load_model(*args)  # type: ignore[arg-type]

    monkeypatch.setattr(llm.local_loader, "load_model", slow)
    backend = make_backend(tiny_folder)
    backend.prepare()
    assert reached.wait(TIMEOUT_S)
    models = LocalModelList(backend, backend.chosen)
    assert models.wait(TIMEOUT_S)
    assert models.sizes_are_known == (True, False)
    assert models.fit(models.models()[0]) is None
    go_on.set()
    read(backend, ask(max_tokens=1))


@pytest.mark.model
def test_the_embedded_model_is_told_of_before_it_is_fetched_as_after_it(tmp_path: Path) -> None:
    from llm.model_facts import facts_of_gguf

    before = list_models(base := LocalOptions(tmp_path), (base,), ())[0].facts
    (file,) = (model_data_dir() / "models").glob("*.gguf")
    assert before == facts_of_gguf(file)
