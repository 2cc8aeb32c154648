"""Converted models on disk: what they are called, whether they are whole, when they go.

    models/<name>-<key>/       a conversion; it got this name in one step, when it was whole
    models/<name>-<key>.part/  one in the making, or one that is being removed
    models/.lock               held by whoever makes or removes one

`source.json` in each says what it was made of, and how large each of its files must be.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from filelock import FileLock

from llm.types import CancelToken
from llm.wheel_download import FetchStopped

# Part of a converted folder's name: raise it when the conversion changes.
_CONVERTER_VERSION = 1
_LOCK_POLL_S = 0.2
_MANIFEST = "source.json"


@contextmanager
def locked(models: Path, cancel: CancelToken) -> Iterator[None]:
    """Hold the lock between processes; another one may be fetching or converting.

    Raises:
        FetchStopped: cancelled while waiting for it.
    """
    lock = FileLock(models / ".lock", poll_interval=_LOCK_POLL_S)
    try:
        lock.acquire(cancel_check=lambda: cancel.cancelled)
    except TimeoutError:
        raise FetchStopped from None
    try:
        yield
    finally:
        lock.release()


def folder_for(models: Path, name: str, source: Path) -> Path:
    """Where the conversion of `source` is kept: one folder for each path, size and change."""
    stat = source.stat()
    key = f"{source.resolve()}\n{stat.st_size}\n{stat.st_mtime_ns}\n{_CONVERTER_VERSION}"
    return models / f"{name}-{hashlib.sha256(key.encode()).hexdigest()[:12]}"


def part_of(folder: Path) -> Path:
    """Where `folder` is while it isn't whole."""
    return folder.with_name(folder.name + ".part")


def sign(folder: Path, source: Path) -> None:
    """Write down what `folder` was made of and what belongs into it: all that lies there now."""
    files = {path.name: path.stat().st_size for path in folder.iterdir()}
    said = {"source": str(source.resolve()), "files": files}
    (folder / _MANIFEST).write_text(json.dumps(said), encoding="utf-8")


def is_whole(folder: Path) -> bool:
    """Whether every file is there, at its full length."""
    files = _manifest(folder).get("files")
    if not isinstance(files, dict):
        return False
    try:
        return all((folder / name).stat().st_size == size for name, size in files.items())
    except OSError:
        return False


def remove(folder: Path) -> None:
    """Remove a conversion; its name goes first, so nobody takes half of it for the whole.

    The lock is held.
    """
    part = part_of(folder)
    shutil.rmtree(part, ignore_errors=True)
    with suppress(OSError):  # Windows: a file of it is open
        os.replace(folder, part)
    shutil.rmtree(part, ignore_errors=True)


def remove_leftovers(models: Path) -> None:
    """What killed conversions left. The lock is held, so none is running."""
    for part in models.glob("*.part"):
        shutil.rmtree(part, ignore_errors=True)


def remove_older(folder: Path, source: Path) -> None:
    """Conversions of what lay at the path of `source` before; `folder` is the one to keep.

    The lock is held. An app that has one of them loaded keeps what it has.
    """
    for other in folder.parent.iterdir():
        if other != folder and _manifest(other).get("source") == str(source.resolve()):
            remove(other)


def _manifest(folder: Path) -> dict[str, Any]:
    try:
        said = json.loads((folder / _MANIFEST).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return said if isinstance(said, dict) else {}
