"""What identifies a local model: what is in it, and when it is told."""

from __future__ import annotations

import importlib.metadata
import json
import os
import shutil
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

import llm.local_fingerprint
from llm.local_backend import LocalBackend
from llm.local_fingerprint import LocalFingerprint, clock_formats
from llm.local_revision import END_BYTES, WHOLE_BYTES, revision_of
from llm.models import ModelSpec
from llm.types import CancelToken, Fingerprint, Finish
from tests.local_answers import Gate, ask, begun, model_of, read
from tests.tiny_model import CHAT_TEMPLATE

pytest_plugins = "tests.local_fixtures"
pytestmark = pytest.mark.usefixtures("no_generating_thread_is_left")

Make = Callable[..., LocalBackend]
FOLDER = ModelSpec("folder", "Tiny")


@pytest.fixture
def folder(tiny_folder: Path, tmp_path: Path) -> Path:
    """A model which a test may change."""
    return shutil.copytree(tiny_folder, tmp_path / "Tiny")


def told(backend: LocalBackend) -> Fingerprint:
    """What it says once it is ready, which must be what answers."""
    finish = read(backend, ask(max_tokens=1))[1]
    known = backend.fingerprint(ask())
    assert known is not None
    assert finish.fingerprint == known
    return known


def other_weights(folder: Path) -> None:
    file = folder / "model.safetensors"
    weights = load_file(file)
    weights["model.norm.weight"] += 1
    save_file(weights, file, metadata={"format": "pt"})


def edit(file: Path, **changes: Any) -> None:
    file.write_text(json.dumps({**json.loads(file.read_text()), **changes}))


# What is in it.


def test_it_names_the_model_and_how_it_is_computed(make_backend: Make, folder: Path) -> None:
    known = told(make_backend(folder, dtype="bfloat16", batching="off"))
    assert (known.kind, known.server, known.model) == ("local", "", "Tiny")
    numerics = json.loads(known.numerics)
    assert numerics["torch"] == torch.__version__
    assert numerics["transformers"] == importlib.metadata.version("transformers")
    assert (numerics["dtypes"], numerics["attention"]) == (["torch.bfloat16"], "sdpa")
    assert str(folder.parent) not in repr(known), "where it lies is nobody's business"


@pytest.mark.parametrize(
    "options",
    [
        {"dtype": "bfloat16"},
        {"attn_implementation": "eager"},
        {"batching": "on"},
        {"threads": 1},
        {"quantization": "8bit"},
        {"quantization": "4bit"},
    ],
    ids=repr,
)
def test_another_way_to_compute_is_another_fingerprint(
    make_backend: Make, folder: Path, options: dict[str, Any]
) -> None:
    usual: dict[str, Any] = {"dtype": "float32", "batching": "off", "threads": 2}
    one = told(make_backend(folder, **usual))
    other = told(make_backend(folder, **(usual | options)))
    assert replace(one, numerics="") == replace(other, numerics="")
    assert one != other


@pytest.mark.parametrize(
    "change",
    [
        other_weights,
        lambda folder: edit(folder / "config.json", rms_norm_eps=0.5),
        lambda folder: edit(folder / "generation_config.json", temperature=0.3),
        lambda folder: edit(folder / "tokenizer_config.json", model_max_length=99),
        lambda folder: (folder / "chat_template.jinja").write_text(CHAT_TEMPLATE + "{# #}"),
    ],
    ids=["weights", "config", "generation-config", "tokenizer", "template"],
)
def test_other_files_are_another_model(
    make_backend: Make, folder: Path, change: Callable[[Path], None]
) -> None:
    before = told(make_backend(folder))
    change(folder)
    after = told(make_backend(folder))
    assert after.revision != before.revision
    assert after.numerics == before.numerics


def test_another_template_shows_by_itself(make_backend: Make, folder: Path) -> None:
    before = told(make_backend(folder))
    (folder / "chat_template.jinja").write_text(CHAT_TEMPLATE.replace("user", "person") + " ")
    assert told(make_backend(folder)).template != before.template


def test_a_copy_is_the_same_model_whatever_lies_beside_it(
    make_backend: Make, folder: Path, tmp_path: Path
) -> None:
    copy = shutil.copytree(folder, tmp_path / "elsewhere" / "Tiny", copy_function=shutil.copyfile)
    (copy / "README.md").write_text("Notes")
    (copy / "checkpoint-1").mkdir()
    assert told(make_backend(copy)) == told(make_backend(folder))


def test_a_gguf_file_goes_by_what_is_in_it(
    make_backend: Make, tiny_gguf: Path, tmp_path: Path
) -> None:
    before = told(make_backend(tiny_gguf))
    assert before.model == "Tiny.F32"
    again = shutil.copy(tiny_gguf, tmp_path / tiny_gguf.name)
    assert told(make_backend(again)) == before, "the same, converted once more"
    data = bytearray(again.read_bytes())
    data[-100:] = bytes(100)  # of the last tensor
    again.write_bytes(data)
    assert told(make_backend(again)).revision != before.revision


def test_a_model_of_the_hub_goes_by_its_commit(
    make_backend: Make, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commits = ["1" * 40, "2" * 40]
    snapshots = tmp_path / "models--owner--tiny" / "snapshots"
    for commit in commits:
        shutil.copytree(folder, snapshots / commit)
    known = []
    for commit in commits:
        where = snapshots / commit
        monkeypatch.setattr("llm.local_source.from_hub", lambda *_, w=where: w)
        known.append(told(make_backend("owner/tiny")))
    assert [each.revision for each in known] == commits
    assert known[0].model == "owner/tiny"


# Large files, which aren't read whole.


@pytest.fixture
def large(tmp_path: Path) -> Path:
    """A file with a hole in it, a byte over what is read whole."""
    file = tmp_path / "large" / "model.safetensors"
    file.parent.mkdir()
    with file.open("wb") as opened:
        opened.truncate(WHOLE_BYTES + 1)
    os.utime(file, (1, 1))
    return file


def write_at(file: Path, place: int, *, changed_s: int = 1) -> None:
    with file.open("r+b") as opened:
        opened.seek(place)
        opened.write(b"x")
    os.utime(file, (changed_s, changed_s))


@pytest.mark.parametrize("place", [0, END_BYTES - 1, WHOLE_BYTES + 1 - END_BYTES, WHOLE_BYTES])
def test_the_ends_of_a_large_file_are_read(large: Path, place: int) -> None:
    before = revision_of(FOLDER, large.parent)
    assert revision_of(FOLDER, large.parent) == before
    write_at(large, place)
    assert revision_of(FOLDER, large.parent) != before


def test_its_middle_goes_by_the_time_of_its_change(large: Path) -> None:
    before = revision_of(FOLDER, large.parent)
    write_at(large, END_BYTES)
    assert revision_of(FOLDER, large.parent) == before, "the bound: a time that was put back"
    write_at(large, END_BYTES, changed_s=2)
    assert revision_of(FOLDER, large.parent) != before


def test_its_size_counts(large: Path) -> None:
    before = revision_of(FOLDER, large.parent)
    with large.open("r+b") as opened:
        opened.truncate(WHOLE_BYTES + 2)
    os.utime(large, (1, 1))
    assert revision_of(FOLDER, large.parent) != before


def test_a_name_counts(large: Path) -> None:
    before = revision_of(FOLDER, large.parent)
    large.rename(large.with_name("other.safetensors"))
    assert revision_of(FOLDER, large.parent) != before


def test_code_counts_where_it_may_be_run(tmp_path: Path) -> None:
    (tmp_path / "parts").mkdir()
    code = tmp_path / "parts" / "modeling.py"
    code.write_text("A = 1")
    before = [revision_of(FOLDER, tmp_path, remote_code=may) for may in (False, True)]
    code.write_text("A = 2")
    after = [revision_of(FOLDER, tmp_path, remote_code=may) for may in (False, True)]
    assert before[0] == after[0]
    assert before[1] != after[1]


# When it is told.


def test_while_no_model_is_there_nothing_is_told(make_backend: Make, folder: Path) -> None:
    backend = make_backend(folder)
    assert backend.fingerprint(ask()) is None
    told(backend)
    backend.unload()
    assert backend.fingerprint(ask()) is None


def test_a_loaded_model_keeps_its_name_when_its_files_change(
    make_backend: Make, folder: Path
) -> None:
    backend = make_backend(folder)
    before = told(backend)
    other_weights(folder)
    assert told(backend) == before
    backend.unload()
    end_s = time.monotonic() + 60.0
    while backend.holds is not None:  # a question that comes before that is answered by it
        assert time.monotonic() < end_s
        time.sleep(0.01)
    assert told(backend).revision != before.revision


def test_files_that_change_while_they_are_read_are_nobodys(
    make_backend: Make, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import llm.local_loader

    load_model = llm.local_loader.load_model

    def load(*args: Any) -> Any:
        loaded = load_model(*args)
        other_weights(folder)
        return loaded

    monkeypatch.setattr(llm.local_loader, "load_model", load)
    backend = make_backend(folder)
    assert read(backend, ask(max_tokens=1))[1].fingerprint is None
    assert backend.status().ready
    assert backend.fingerprint(ask()) is None


@pytest.mark.parametrize("batching", ["on", "off"])
def test_another_model_chosen_in_mid_answer_takes_no_credit_for_it(
    make_backend: Make, folder: Path, tmp_path: Path, batching: str
) -> None:
    second = shutil.copytree(folder, tmp_path / "Second")
    other_weights(second)
    backend = make_backend(folder, batching=batching)
    before = told(backend)
    gate = Gate(model_of(backend))
    stream = backend.stream(ask(max_tokens=8), CancelToken())
    next(stream)
    try:
        backend.choose(replace(backend.chosen, model=str(second)))
        assert backend.fingerprint(ask()) is None, "from this moment on"
        # And back again: whoever compares before and after must not be fooled by that.
        backend.choose(replace(backend.chosen, model=str(folder)))
        backend.choose(replace(backend.chosen, model=str(second)))
    finally:
        gate.open.set()
        gate.hook.remove()
    finish = list(stream)[-1]
    assert isinstance(finish, Finish)
    assert finish.fingerprint == before
    after = told(backend)
    assert after.model == "Second"
    assert after.revision != before.revision


def test_a_question_that_waited_for_another_model_tells_that_one(
    make_backend: Make, folder: Path, tmp_path: Path
) -> None:
    second = shutil.copytree(folder, tmp_path / "Second")
    backend = make_backend(folder)
    before = told(backend)
    backend.choose(replace(backend.chosen, model=str(second)))
    finish = list(begun(backend, ask(max_tokens=1)))[-1]
    assert isinstance(finish, Finish)
    assert finish.fingerprint == backend.fingerprint(ask())
    assert finish.fingerprint != before


# Templates that tell the time.


class Clock:
    now_at = datetime(2026, 11, 30, 23, 59)

    @classmethod
    def now(cls) -> datetime:
        return cls.now_at


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> type[Clock]:
    class Moving(Clock):
        pass

    monkeypatch.setattr(llm.local_fingerprint, "datetime", Moving)
    return Moving


def dated(folder: Path) -> Path:
    template = "{{ strftime_now('%d %b %Y') }}" + CHAT_TEMPLATE
    (folder / "chat_template.jinja").write_text(template)
    return folder


def test_a_template_with_the_date_is_another_each_day(
    make_backend: Make, folder: Path, clock: type[Clock]
) -> None:
    backend = make_backend(dated(folder))
    before = told(backend)
    clock.now_at = datetime(2026, 12, 1)
    after = told(backend)
    assert before.template != after.template
    assert replace(before, template="") == replace(after, template="")


def test_an_answer_given_over_midnight_is_nobodys(
    make_backend: Make, folder: Path, clock: type[Clock]
) -> None:
    backend = make_backend(dated(folder))
    told(backend)
    stream = begun(backend, ask(max_tokens=8))
    next(stream)
    clock.now_at = datetime(2026, 12, 1)
    finish = list(stream)[-1]
    assert isinstance(finish, Finish)
    assert (finish.reason, finish.fingerprint) == ("length", None)


@pytest.mark.parametrize(
    ("template", "formats"),
    [
        (CHAT_TEMPLATE, ()),
        ("{{ strftime_now('%d %b %Y') }}", ("%d %b %Y",)),
        (
            '{% if strftime_now is defined %}{{ strftime_now( "%H:%M" ) }}{% endif %}',
            ("%H:%M",),
        ),
        ({"default": "{{ strftime_now('%Y') }}", "tool": "{{ strftime_now('%m') }}"}, ("%Y", "%m")),
        ("{% set f = '%d' %}{{ strftime_now(f) }}", None),
        ("{% set clock = strftime_now %}{{ clock('%d') }}", None),
    ],
)
def test_how_a_template_writes_the_time_is_found_or_in_doubt(
    template: Any, formats: tuple[str, ...] | None
) -> None:
    assert clock_formats(template) == formats


def test_a_template_in_doubt_gives_no_fingerprint(make_backend: Make, folder: Path) -> None:
    template = "{% set f = '%d' %}{{ strftime_now(f) }}" + CHAT_TEMPLATE
    (folder / "chat_template.jinja").write_text(template)
    backend = make_backend(folder)
    assert read(backend, ask(max_tokens=1))[1].fingerprint is None
    assert backend.fingerprint(ask()) is None


def test_the_present_time_costs_little() -> None:
    fixed = Fingerprint("local", "", "m", "r", "t", "n")
    assert LocalFingerprint(fixed).now() is fixed
    assert LocalFingerprint(fixed, ("%Y",)).now() != fixed


# A model whose weights come from two places.


def test_an_adapter_gives_no_fingerprint(
    make_backend: Make, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from transformers import LlamaForCausalLM

    monkeypatch.setattr(LlamaForCausalLM, "_hf_peft_config_loaded", True, raising=False)
    backend = make_backend(folder, batching="off")
    assert read(backend, ask(max_tokens=1))[1].fingerprint is None
    assert backend.fingerprint(ask()) is None
