"""The process that converts: what it tells, what its end means, when it is ended."""

from __future__ import annotations

import itertools
import logging
import subprocess
import sys
from pathlib import Path

import pytest

from llm import local_converter
from llm.errors import LLMError, MissingPackageError, ModelError, NotAModelError, Reason
from llm.local_convert import convert
from llm.local_converter import run_converter
from llm.types import CancelToken
from tests.local_answers import TIMEOUT_S
from tests.tiny_gguf import write_tiny_gguf

pytest_plugins = "tests.local_fixtures"


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """Only the beginning of a GGUF file."""
    file = tmp_path / "M.gguf"
    file.write_bytes(b"GGUF\x03\0\0\0" + b"\x01" * 100)
    return file


def run(source: Path, folder: Path) -> list[float | None]:
    seen: list[float | None] = []
    run_converter(source, folder, CancelToken(), seen.append)
    return seen


def failure_of(source: Path, folder: Path) -> LLMError:
    with pytest.raises(LLMError) as caught:
        run(source, folder)
    assert not folder.exists()
    return caught.value


def run_instead(monkeypatch: pytest.MonkeyPatch, code: str) -> list[subprocess.Popen[bytes]]:
    """Run `code` where the converter would run; the processes that were started."""
    started: list[subprocess.Popen[bytes]] = []
    popen = subprocess.Popen

    def start(command: list[str], **options: object) -> subprocess.Popen[bytes]:
        assert command[1:3] == ["-m", "llm.local_convert"]
        command = [sys.executable, "-c", code, *command[3:]]
        started.append(popen(command, **options))  # type: ignore[call-overload]
        return started[-1]

    monkeypatch.setattr(subprocess, "Popen", start)
    return started


def test_a_reason_comes_through_as_a_reason(source: Path, tmp_path: Path) -> None:
    failure = failure_of(source, tmp_path / "m")
    assert type(failure) is NotAModelError
    assert failure.values == {"model": "M.gguf", "reason": Reason("reason-gguf-damaged")}


def test_an_architecture_that_transformers_does_not_know_is_not_called_damaged(
    tiny_folder: Path, tmp_path: Path
) -> None:
    file = write_tiny_gguf(tiny_folder, tmp_path / "New.gguf", architecture="nosuch")
    failure = failure_of(file, tmp_path / "m")
    assert failure.values["reason"] == Reason("reason-unknown-type")


def test_a_missing_library_is_told_by_its_name_and_not_as_a_damaged_file(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    libraries = tmp_path / "libraries"
    libraries.mkdir()
    (libraries / "gguf.py").write_text(
        "raise ModuleNotFoundError(\"No module named 'gguf'\", name='gguf')"
    )
    monkeypatch.setenv("PYTHONPATH", str(libraries))
    failure = failure_of(source, tmp_path / "m")
    assert type(failure) is MissingPackageError
    assert failure.values == {"package": "gguf"}


def test_a_library_that_is_too_old_is_told_by_its_name(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def too_old(*_: object) -> None:
        raise ImportError("Please install torch and gguf>=0.10.0 to load a GGUF checkpoint.")

    monkeypatch.setattr("llm.local_convert._write", too_old)
    with pytest.raises(MissingPackageError) as caught:
        convert(source, tmp_path / "m")
    assert caught.value.values == {"package": "gguf"}


def test_where_a_failure_came_from_is_in_the_log(
    source: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    failure_of(source, tmp_path / "m")
    (record,) = [r for r in caplog.records if r.name == "llm.local_converter"]
    assert record.levelno == logging.WARNING
    assert "Traceback" in record.getMessage()
    assert "gguf_reader.py" in record.getMessage()


def test_only_the_end_of_a_long_complaint_is_logged(
    source: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    run_instead(monkeypatch, "import sys; sys.exit('begin ' + 'x' * 300_000 + ' the end')")
    assert failure_of(source, tmp_path / "m").values["reason"] == Reason(
        "reason-gguf-not-converted"
    )
    assert "the end" in caplog.text
    assert "begin" not in caplog.text
    assert len(caplog.text) < 2300


def test_a_conversion_that_stands_still_is_ended(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started = run_instead(monkeypatch, "import time; time.sleep(600)")
    monkeypatch.setattr(local_converter, "_STALL_S", 0.3)
    failure = failure_of(source, tmp_path / "m")
    assert type(failure) is ModelError
    assert isinstance(failure.values["reason"], Reason)
    assert failure.values["reason"].message_id == "reason-conversion-stalled"
    assert started[0].poll() is not None


def test_a_conversion_that_says_nothing_but_writes_is_left_alone(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    go_on = tmp_path / "go-on"
    code = (
        "import os, sys, time\n"
        f"while not os.path.exists({str(go_on)!r}): time.sleep(0.01)\n"
        "os.mkdir(sys.argv[2])\n"
    )
    run_instead(monkeypatch, code)
    sizes = itertools.count(1)

    def growing(_: Path) -> int:
        size = next(sizes)
        if size == 3:
            go_on.touch()
        assert size < TIMEOUT_S / 0.05
        return size

    monkeypatch.setattr(local_converter, "bytes_in", growing)
    monkeypatch.setattr(local_converter, "_STALL_S", 0.05)
    assert run(source, tmp_path / "m") == []
    assert next(sizes) > 3


def test_a_process_that_was_killed_ran_out_of_memory(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_instead(monkeypatch, "import os, signal; os.kill(os.getpid(), signal.SIGKILL)")
    assert type(failure_of(source, tmp_path / "m")).__name__ == "WeightsTooLargeError"


def test_a_folder_that_got_its_name_is_whole_whatever_came_after(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code = "import os, sys; print('{\"progress\": 1.0}', flush=True); os.mkdir(sys.argv[2]); os.abort()"
    run_instead(monkeypatch, code)
    assert run(source, tmp_path / "m") == [1.0]
