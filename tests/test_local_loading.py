from __future__ import annotations

import shutil
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from llm.errors import ModelError, ModelNotFoundError, Reason
from llm.local_backend import LocalBackend
from llm.types import CancelToken, Delta, Finish, Notice
from tests.local_answers import TIMEOUT_S, ask, model_of, read

pytest_plugins = "tests.local_fixtures"
pytestmark = pytest.mark.usefixtures("no_generating_thread_is_left")


def test_preparing_twice_and_asking_meanwhile_loads_once(
    tiny_folder: Path, make_backend: Callable[..., LocalBackend], monkeypatch: pytest.MonkeyPatch
) -> None:
    import llm.local_loader

    loads: list[str] = []
    load_model = llm.local_loader.load_model

    def counted(*args: Any) -> Any:
        loads.append("load")
        return load_model(*args)

    monkeypatch.setattr(llm.local_loader, "load_model", counted)
    backend = make_backend(tiny_folder)
    assert backend.status().phase == "idle"
    backend.prepare()
    assert backend.status().preparing
    answers: list[str] = []

    def run() -> None:
        backend.prepare()
        answers.append(read(backend, ask(max_tokens=5, temperature=0))[0])

    threads = [threading.Thread(target=run) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(TIMEOUT_S)
    assert len(answers) == 4
    assert len(set(answers)) == 1
    assert loads == ["load"]


def test_waiting_for_the_model_can_be_cancelled(
    tiny_folder: Path, make_backend: Callable[..., LocalBackend], monkeypatch: pytest.MonkeyPatch
) -> None:
    import llm.local_loader

    release = threading.Event()
    loading = threading.Event()
    load_model = llm.local_loader.load_model

    def slow(*args: Any) -> Any:
        loading.set()
        assert release.wait(TIMEOUT_S)
        return load_model(*args)

    monkeypatch.setattr(llm.local_loader, "load_model", slow)
    backend = make_backend(tiny_folder)
    cancel = CancelToken()
    got: list[Delta | Notice | Finish] = []
    reader = threading.Thread(target=lambda: got.extend(backend.stream(ask(), cancel)))
    reader.start()
    assert loading.wait(TIMEOUT_S)
    cancel.cancel()
    reader.join(TIMEOUT_S)
    assert got == [Finish("abort", why=Reason("finish-not-begun"))]
    assert backend.status().preparing
    release.set()
    assert read(backend, ask(max_tokens=2))[1].reason == "length"


def test_a_loading_thread_that_cannot_start_is_a_failure_that_can_be_mended(
    tiny_folder: Path, make_backend: Callable[..., LocalBackend], monkeypatch: pytest.MonkeyPatch
) -> None:
    start = threading.Thread.start

    def no_more(thread: threading.Thread) -> None:
        if thread.name == "load-model":
            raise RuntimeError("can't start new thread")
        start(thread)

    backend = make_backend(tiny_folder)
    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", no_more)
        backend.prepare()
        status = backend.status()
        assert status.phase == "failed"
        assert isinstance(status.error, ModelError)
        assert status.error.values["reason"] == Reason("reason-no-thread")
    assert read(backend, ask(max_tokens=2))[1].reason == "length"


def test_a_failure_is_told_by_status_and_stream_and_can_be_mended(
    tiny_folder: Path, tmp_path: Path, make_backend: Callable[..., LocalBackend]
) -> None:
    folder = tmp_path / "later"
    backend = make_backend(folder)
    with pytest.raises(ModelNotFoundError):
        read(backend, ask())
    status = backend.status()
    assert status.phase == "failed"
    assert isinstance(status.error, ModelNotFoundError)
    shutil.copytree(tiny_folder, folder)
    assert read(backend, ask(max_tokens=2))[1].reason == "length"
    assert backend.status().ready
    assert backend.status().error is None


@pytest.mark.parametrize("attention", ["sdpa", "eager"])
def test_options_of_attention_and_number_type_are_obeyed(
    tiny_folder: Path, make_backend: Callable[..., LocalBackend], attention: str
) -> None:
    backend = make_backend(tiny_folder, attn_implementation=attention, dtype="float32")
    model = model_of(backend)
    assert model.config._attn_implementation == attention
    assert model.dtype == torch.float32


@pytest.mark.parametrize("quantization", ["8bit", "4bit"])
@pytest.mark.filterwarnings("ignore:`torch.jit.script_method` is deprecated:DeprecationWarning")
def test_quantized_models_answer_without_a_word_in_the_log_for_each_matmul(
    tiny_folder: Path,
    make_backend: Callable[..., LocalBackend],
    quantization: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    backend = make_backend(tiny_folder, quantization=quantization)
    assert read(backend, ask(max_tokens=4))[1].usage.completion_tokens == 4
    assert "MatMul8bitLt" not in caplog.text


def test_threads_are_set_when_asked_for(
    tiny_folder: Path, make_backend: Callable[..., LocalBackend]
) -> None:
    before = torch.get_num_threads()
    try:
        backend = make_backend(tiny_folder, threads=1)
        seen: list[int] = []
        hook = model_of(backend).register_forward_pre_hook(
            lambda *_: seen.append(torch.get_num_threads())
        )
        read(backend, ask(max_tokens=2))
        hook.remove()
        assert seen == [1, 1]
    finally:
        torch.set_num_threads(before)
