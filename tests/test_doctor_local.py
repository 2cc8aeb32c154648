"""The doctor's look at the local model: a real one, tiny, and what is said while there is none."""

from __future__ import annotations

import json
import shutil
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from llm.doctor import Check, Doctor, Finding
from llm.doctor_access import LineCheck
from llm.doctor_local import (
    GROUP,
    SAMPLE,
    AttentionCheck,
    DeviceCheck,
    FilesCheck,
    MemoryCheck,
    StateCheck,
    TemplateCheck,
    ThreadsCheck,
    TokenizerCheck,
    memory_finding,
    round_trip,
    usable_cores,
    why_not,
)
from llm.errors import ModelNotFoundError, Reason
from llm.local_backend import LocalBackend
from llm.local_loader import LoadedModel
from llm.model_fit import Fit
from llm.model_list_local import LocalModelList
from llm.registry import JobRegistry
from llm.types import CancelToken, GenerationRequest, Message, SamplingParams
from tests.driven_backend import DrivenBackend
from tests.local_answers import TIMEOUT_S
from tests.tiny_model import CHAT_TEMPLATE, make_tiny_model, make_tiny_tokenizer

pytest_plugins = "tests.local_fixtures"

MakeBackend = Callable[..., LocalBackend]


def told(finding: Finding) -> tuple[str, str]:
    return finding.level, finding.reason.message_id


def found_by(check: Check) -> Finding:
    return check.run(CancelToken())


def listing(backend: LocalBackend) -> LocalModelList:
    return LocalModelList(backend, backend.chosen, with_hub_cache=False)


def loaded(backend: LocalBackend) -> LocalBackend:
    request = GenerationRequest((Message("user", "Hi"),), SamplingParams(max_tokens=1))
    for _ in backend.stream(request, CancelToken()):
        pass
    return backend


def of_the_loaded(backend: LocalBackend) -> list[Check]:
    return [
        TokenizerCheck(backend),
        DeviceCheck(backend),
        AttentionCheck(backend),
        ThreadsCheck(backend),
        StateCheck(backend),
    ]


def test_all_is_well_with_a_model_that_answers(shared: LocalBackend) -> None:
    loaded(shared)
    for check in (
        *of_the_loaded(shared),
        FilesCheck(shared),
        TemplateCheck(shared, listing(shared)),
    ):
        finding = found_by(check)
        # The machine may have more processors than torch takes.
        allowed = ("ok", "warn") if isinstance(check, ThreadsCheck) else ("ok",)
        assert finding.level in allowed, finding
    memory = found_by(MemoryCheck(shared, listing(shared)))
    assert told(memory) == ("ok", "doctor-memory-fits")
    device = found_by(DeviceCheck(shared)).reason.values
    assert "cpu" in str(device["device"])
    warm = found_by(StateCheck(shared)).reason
    assert warm.message_id == "doctor-state-warm"
    assert float(str(warm.values["seconds"])) >= 0
    kind = "batched" if shared.batched else "plain"
    assert found_by(AttentionCheck(shared)).reason.message_id == f"doctor-attention-{kind}"


def test_a_model_that_is_not_loaded_is_not_loaded_for_this(
    make_backend: MakeBackend, tiny_folder: Path
) -> None:
    backend = make_backend(tiny_folder)
    checks = [*of_the_loaded(backend), MemoryCheck(backend, listing(backend))]
    for check in checks[:-1]:
        assert told(found_by(check)) == ("skipped", "doctor-not-loaded")
    found_by(checks[-1])  # it may be known already, as others have loaded the libraries
    assert told(found_by(FilesCheck(backend))) == ("ok", "doctor-files-ok")
    template = found_by(TemplateCheck(backend, listing(backend)))
    assert told(template) == ("ok", "doctor-template-there")
    assert backend.status().phase == "idle"


def test_files_that_were_changed_since_they_were_loaded_are_told(
    make_backend: MakeBackend, tiny_folder: Path, tmp_path: Path
) -> None:
    folder = Path(shutil.copytree(tiny_folder, tmp_path / "mine"))
    backend = loaded(make_backend(folder))
    before = found_by(FilesCheck(backend))
    assert told(before) == ("ok", "doctor-files-ok")
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    (folder / "config.json").write_text(json.dumps({**config, "note": 1}), encoding="utf-8")
    after = found_by(FilesCheck(backend))
    assert told(after) == ("warn", "doctor-files-changed")
    assert after.reason.values["hash"] != before.reason.values["hash"]


def test_a_model_that_is_not_there_or_not_fetched_is_told(
    make_backend: MakeBackend, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(ModelNotFoundError):
        found_by(FilesCheck(make_backend("/no/such/model")))
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    for model in ("embedded", "owner/some-model"):
        finding = found_by(FilesCheck(make_backend(model)))
        assert told(finding) == ("skipped", "doctor-files-not-fetched")


def test_a_model_that_cannot_be_loaded_is_told_once(
    make_backend: MakeBackend, tmp_path: Path
) -> None:
    backend = make_backend(make_tiny_model(tmp_path / "silent", chat_template=None))
    listed = found_by(TemplateCheck(backend, listing(backend)))
    assert told(listed) == ("bad", "doctor-files-trouble")
    with pytest.raises(Exception, match="template"):
        loaded(backend)
    assert told(found_by(StateCheck(backend))) == ("bad", "error-no-chat-template")
    assert told(found_by(TokenizerCheck(backend))) == ("skipped", "doctor-not-loadable")


def test_chinese_and_emoji_come_whole_through_the_streamer() -> None:
    tokenizer = make_tiny_tokenizer()
    came, tokens = round_trip(tokenizer, SAMPLE)
    assert came == SAMPLE
    # Most characters are several tokens, none of which is a whole one.
    assert tokens > len(SAMPLE)


def test_a_tokenizer_that_loses_characters_is_told(shared: LocalBackend) -> None:
    from tokenizers import normalizers

    loaded(shared)
    with shared.in_use() as model:
        assert isinstance(model, LoadedModel)
        lossy = make_tiny_tokenizer()
        lossy._tokenizer.normalizer = normalizers.Replace("🙂", "")
        finding = TokenizerCheck(shared).look(replace(model, tokenizer=lossy), shared.chosen)
    assert told(finding) == ("warn", "doctor-tokenizer-lossy")


def test_a_tokenizer_without_a_rust_part_is_told(shared: LocalBackend) -> None:
    class Slow(type(make_tiny_tokenizer())):  # type: ignore[misc]
        is_fast = False

    loaded(shared)
    with shared.in_use() as model:
        assert isinstance(model, LoadedModel)
        slow = Slow(tokenizer_object=make_tiny_tokenizer()._tokenizer)
        finding = TokenizerCheck(shared).look(replace(model, tokenizer=slow), shared.chosen)
    assert told(finding) == ("warn", "doctor-tokenizer-slow")


def test_what_computes_is_told_and_why_it_is_no_flash_attention(shared: LocalBackend) -> None:
    loaded(shared)
    with shared.in_use() as model:
        assert isinstance(model, LoadedModel)
        device = DeviceCheck(shared).look(model, shared.chosen).reason.values
        noted = replace(model, notes=(Reason("doctor-clock-untold"),))
        attention = AttentionCheck(shared).look(noted, shared.chosen)
    assert device["dtype"] == str(model.model.dtype).removeprefix("torch.")
    # Of what settings leave open, what it came to.
    assert shared.chosen.quantization == "auto"
    assert device["quantization"] == Reason("doctor-quantization-none")
    assert told(attention) == ("warn", "doctor-attention-note")
    assert attention.reason.values["attention"] == model.model.config._attn_implementation


def test_a_warm_up_that_took_long_is_told(
    shared: LocalBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded(shared)
    monkeypatch.setattr("llm.doctor_local.SLOW_WARM_UP_S", -1.0)
    assert told(found_by(StateCheck(shared))) == ("warn", "doctor-state-slow")


def test_a_template_that_refuses_a_system_prompt_is_told(shared: LocalBackend) -> None:
    loaded(shared)
    template = (
        "{% if messages[0]['role'] == 'system' %}"
        "{{ raise_exception('System role not supported') }}{% endif %}" + CHAT_TEMPLATE
    )
    with shared.in_use() as model:
        assert isinstance(model, LoadedModel)
        strict = make_tiny_tokenizer(chat_template=template)
        check = TemplateCheck(shared, listing(shared))
        finding = check.look(replace(model, tokenizer=strict), shared.chosen)
    assert told(finding) == ("warn", "doctor-template-no-system")


@pytest.mark.parametrize(
    ("times", "expected"),
    [(0.5, "doctor-threads-many"), (1, "doctor-threads-ok"), (5, "doctor-threads-few")],
)
def test_threads_against_processors(
    make_backend: MakeBackend, tiny_folder: Path, times: float, expected: str
) -> None:
    backend = loaded(make_backend(tiny_folder, threads=2))
    finding = found_by(ThreadsCheck(backend, lambda: round(2 * times)))
    assert finding.reason.message_id == expected
    assert finding.reason.values["threads"] == 2
    assert usable_cores() >= 1


@pytest.mark.parametrize(
    ("free", "tokens", "expected"),
    [
        (100, 2048, ("ok", "doctor-memory-fits")),
        (55, 1024, ("warn", "doctor-memory-short")),
        (10, 0, ("bad", "doctor-memory-no")),
    ],
)
def test_memory_against_need(free: int, tokens: int, expected: tuple[str, str]) -> None:
    assert told(memory_finding(Fit(50, 10, 2048, free, tokens))) == expected


def test_the_line_in_front_of_a_model() -> None:
    backend, registry = DrivenBackend(slots=1), JobRegistry()
    check = LineCheck(GROUP, registry, backend, lambda: None)
    mute = LineCheck(GROUP, registry, backend, lambda: Reason("doctor-loading"))
    assert told(found_by(check)) == ("ok", "doctor-line-ok")
    assert told(found_by(mute)) == ("skipped", "doctor-loading")
    for number in range(3):
        request = GenerationRequest((Message("user", "Hi"),))
        registry.submit(number, "p", backend, request, save=lambda snapshot: None)
    findings = [found_by(each) for each in (check, mute)]
    registry.close()
    for finding in findings:
        assert told(finding) == ("warn", "doctor-line-long")
        assert finding.reason.values == {"waiting": 2, "slots": 1}


def test_a_line_before_a_model_that_is_not_loaded_is_not_called_well(
    make_backend: MakeBackend, tiny_folder: Path, shared: LocalBackend
) -> None:
    assert why_not(make_backend(tiny_folder)) == Reason("doctor-not-loaded")
    assert why_not(loaded(shared)) is None


def test_another_model_may_be_chosen_while_a_round_runs(
    make_backend: MakeBackend, tiny_folder: Path, tmp_path: Path
) -> None:
    """No check keeps the old one for longer than it looks at it."""
    other = Path(shutil.copytree(tiny_folder, tmp_path / "other"))
    backend = loaded(make_backend(tiny_folder))
    run = Doctor().run(lambda: of_the_loaded(backend))
    backend.choose(replace(backend.chosen, model=str(other)))
    assert run.wait(1, TIMEOUT_S)
    ready = threading.Event()
    for _ in range(600):
        if backend.status().ready and backend.holds == backend.chosen:
            break
        ready.wait(0.1)
    assert backend.holds is not None
    assert backend.holds.model == str(other)
    assert all(
        each is not None and each.level in ("ok", "warn", "skipped") for each in run.findings
    )
