"""From what was asked for to a folder that transformers loads quickly.

A folder is taken as it is. The embedded model is fetched, a GGUF file (the embedded one is one)
is converted, both once and under a lock between processes; a hub id is brought into the hub's own
cache.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from llm.embedded_model import embedded_path, fetch_embedded
from llm.errors import ModelError, Reason
from llm.local_conversions import (
    folder_for,
    is_whole,
    locked,
    remove,
    remove_leftovers,
    remove_older,
)
from llm.local_converter import run_converter
from llm.local_hub import from_hub
from llm.models import ModelSpec
from llm.types import BackendPhase, CancelToken

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
        return from_hub(spec.hub_id, trust_remote_code, cancel)
    return _from_gguf(spec, data_dir / "models", cancel, report)


def discard_if_damaged(folder: Path, cancel: CancelToken) -> None:
    """Remove a conversion that lacks something, so that the next try makes it anew.

    One that is whole stays, whatever is wrong with it: another would be the same.

    Raises:
        FetchStopped: cancelled.
    """
    with locked(folder.parent, cancel):
        if not is_whole(folder):
            remove(folder)


def _from_gguf(spec: ModelSpec, models: Path, cancel: CancelToken, report: Report) -> Path:
    try:
        models.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        reason = Reason("reason-folder-not-writable", {"folder": str(models)})
        raise ModelError(model=spec.name, reason=reason) from error
    # What is finished was given its name in one step, so it can be used without the lock.
    if (source := spec.path or embedded_path(models)) is not None:
        folder = folder_for(models, spec.name, source)
        if folder.is_dir():
            return folder
    report("fetching", None)
    with locked(models, cancel):
        if (source := spec.path) is None:
            source = fetch_embedded(models, cancel, lambda done: report("fetching", done))
        folder = folder_for(models, spec.name, source)
        if not folder.is_dir():
            report("converting", None)
            remove_leftovers(models)
            run_converter(source, folder, cancel, lambda done: report("converting", done))
            remove_older(folder, source)
        return folder
