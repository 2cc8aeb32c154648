"""From what was asked for to a folder that transformers loads quickly.

A folder is taken as it is. The embedded model is fetched, a GGUF file (the embedded one is one)
is converted, both once and under a lock between processes; a hub id is brought into the hub's own
cache.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from llm.embedded_model import embedded_path, fetch_embedded
from llm.errors import ModelError, NoChatTemplateError, Reason
from llm.local_conversions import (
    folder_for,
    is_whole,
    locked,
    remove,
    remove_leftovers,
    remove_older,
)
from llm.local_converter import run_converter
from llm.local_errors import no_facts_error
from llm.local_hub import from_hub
from llm.local_memory import free_main_bytes
from llm.model_facts import EMBEDDED_FACTS, ModelFacts, NoFactsError, facts_of_gguf
from llm.models import ModelSpec
from llm.types import BackendPhase, CancelToken

_CONVERTER_BYTES = 1_000_000_000
_CONVERTED_WEIGHT_BYTES = 4
"""What the converter may take: by itself, and for each weight. Of the embedded model it is told to be
1.5 GB so, and took 0.9."""

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


def conversion_of(spec: ModelSpec, models: Path) -> Path | None:
    """The folder that a GGUF file was converted into; None while there is none."""
    source = spec.path or embedded_path(models)
    if source is None:
        return None
    folder = folder_for(models, spec.name, source)
    return folder if folder.is_dir() else None


def may_be_had_beside(spec: ModelSpec, models: Path) -> bool:
    """Whether a model can be fetched and converted while another is in memory.

    Only converting takes memory, all of the weights at once.

    Raises:
        LLMError: why a GGUF file can't be used.
    """
    if spec.kind not in ("embedded", "gguf") or conversion_of(spec, models) is not None:
        return True
    file = spec.path.name if spec.path is not None else spec.name
    try:
        facts = facts_of_gguf(spec.path) if spec.path is not None else EMBEDDED_FACTS
    except NoFactsError as error:
        raise no_facts_error(error, file) from error
    if not facts.has_template:
        raise NoChatTemplateError(model=file)
    return may_be_converted_beside(facts)


def may_be_converted_beside(facts: ModelFacts) -> bool:
    """Whether there is memory to convert such a GGUF file while a model is loaded."""
    weights = facts.matrix_weights + facts.other_weights
    return _CONVERTER_BYTES + _CONVERTED_WEIGHT_BYTES * weights <= free_main_bytes()


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
