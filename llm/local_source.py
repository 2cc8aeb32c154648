"""From what was asked for to a folder that transformers loads quickly.

A folder is taken as it is. The embedded model is fetched, a GGUF file (the embedded one is one)
is converted, both once and under a lock between processes; a hub id is brought into the hub's own
cache.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from filelock import FileLock

from llm import errors
from llm.embedded_model import FetchStopped, embedded_path, fetch_embedded
from llm.errors import LLMError, NotAModelError, OutOfMemoryError
from llm.local_errors import load_error
from llm.models import ModelSpec
from llm.types import BackendPhase, CancelToken

# Part of a converted folder's name: raise it when the conversion changes.
_CONVERTER_VERSION = 1
_LOCK_POLL_S = 0.2
_HUB_FILES = ["*.json", "*.safetensors", "*.txt", "*.model", "*.jinja", "*.tiktoken"]

Report = Callable[[BackendPhase, float | None], None]


def obtain(
    spec: ModelSpec, data_dir: Path, trust_remote_code: bool, cancel: CancelToken, report: Report
) -> Path:
    """The folder of a model, fetched and converted if need be.

    Raises:
        LLMError: why it can't be had.
        FetchStopped: cancelled.
    """
    if spec.kind == "folder":
        assert spec.path is not None
        return spec.path
    if spec.kind == "hub":
        assert spec.hub_id is not None
        report("fetching", None)
        return _from_hub(spec.hub_id, trust_remote_code)
    return _from_gguf(spec, data_dir / "models", cancel, report)


def _from_gguf(spec: ModelSpec, models: Path, cancel: CancelToken, report: Report) -> Path:
    try:
        models.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        reason = f"the folder {models} can’t be written"
        raise errors.ModelError(model=spec.name, reason=reason) from error
    # What is finished was given its name in one step, so it can be used without the lock.
    if (source := spec.path or embedded_path(models)) is not None:
        folder = models / _folder_name(spec.name, source)
        if folder.is_dir():
            return folder
    report("fetching", None)
    with _locked(models / ".lock", cancel):
        if (source := spec.path) is None:
            source = fetch_embedded(models, cancel, lambda done: report("fetching", done))
        folder = models / _folder_name(spec.name, source)
        if not folder.is_dir():
            report("converting", None)
            _remove_leftovers(models)
            _convert(source, folder, cancel, lambda done: report("converting", done))
        return folder


@contextmanager
def _locked(path: Path, cancel: CancelToken) -> Iterator[None]:
    """Hold the lock between processes; another one may be fetching or converting."""
    lock = FileLock(path, poll_interval=_LOCK_POLL_S)
    try:
        lock.acquire(cancel_check=lambda: cancel.cancelled)
    except TimeoutError:
        raise FetchStopped from None
    try:
        yield
    finally:
        lock.release()


def _folder_name(name: str, source: Path) -> str:
    """One converted folder for each path, size and time of change."""
    stat = source.stat()
    key = f"{source.resolve()}\n{stat.st_size}\n{stat.st_mtime_ns}\n{_CONVERTER_VERSION}"
    return f"{name}-{hashlib.sha256(key.encode()).hexdigest()[:12]}"


def _remove_leftovers(models: Path) -> None:
    """What killed conversions left. The lock is held, so none is running."""
    for part in models.glob("*.part"):
        shutil.rmtree(part, ignore_errors=True)


def _convert(
    source: Path, folder: Path, cancel: CancelToken, progress: Callable[[float | None], None]
) -> None:
    """Run `llm.local_convert` in a process of its own."""
    root = str(Path(__file__).parent.parent)
    paths = [root, *filter(None, [os.environ.get("PYTHONPATH")])]
    process = subprocess.Popen(
        [sys.executable, "-m", "llm.local_convert", str(source.resolve()), str(folder.resolve())],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(paths)},
    )
    forget = cancel.on_cancel(process.kill)
    failure: dict[str, Any] | None = None
    try:
        with process:
            assert process.stdout is not None
            for line in process.stdout:
                said = _parse(line)
                if "progress" in said:
                    progress(said["progress"])
                if "error" in said:
                    failure = said
    finally:
        forget()
        process.kill()
        process.wait()
    if cancel.cancelled:
        raise FetchStopped
    if process.returncode != 0 or not folder.is_dir():
        raise _conversion_error(failure, process.returncode, source)


def _parse(line: bytes) -> dict[str, Any]:
    try:
        said = json.loads(line)
    except ValueError:  # a library printed something
        return {}
    return said if isinstance(said, dict) else {}


def _conversion_error(failure: dict[str, Any] | None, code: int, source: Path) -> LLMError:
    leaf = getattr(errors, str(failure["error"]), None) if failure else None
    if failure and isinstance(leaf, type) and issubclass(leaf, LLMError):
        return leaf(**failure["values"])
    if code == -9:  # the kernel's out-of-memory killer
        return OutOfMemoryError(model=source.name)
    return NotAModelError(model=source.name, reason="the GGUF file can’t be converted")


def _from_hub(hub_id: str, trust_remote_code: bool) -> Path:
    from huggingface_hub import snapshot_download
    from huggingface_hub.utils.tqdm import disable_progress_bars

    disable_progress_bars()
    files = [*_HUB_FILES, *(["*.py"] if trust_remote_code else [])]
    try:
        return Path(snapshot_download(hub_id, allow_patterns=files))
    except Exception as error:
        raise load_error(error, hub_id) from error
