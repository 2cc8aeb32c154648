"""Which local model was chosen last, kept over a restart of the app.

A file in the data folder says it, beside how models were loaded then. Where settings say otherwise
now, or the model isn't there any more, the settings' own model is the first one again.
"""

from __future__ import annotations

import json
import logging
import os
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from llm.errors import LLMError
from llm.fault_log import log_fault
from llm.model_list_local import hub_cache
from llm.models import resolve

if TYPE_CHECKING:
    from llm.local_backend import LocalOptions

log = logging.getLogger(__name__)

_FILE = "chosen_model.json"


def keep_choice(usual: LocalOptions, chosen: LocalOptions) -> None:
    """Write down what was chosen. Never raises: then the next start has the usual model.

    Args:
        usual: the model of the settings.
    """
    file = usual.data_dir / _FILE
    part = file.with_suffix(".part")
    try:
        usual.data_dir.mkdir(parents=True, exist_ok=True)
        told = {"usual": _told(usual), "chosen": _told(chosen)}
        part.write_text(json.dumps(told), encoding="utf-8")
        os.replace(part, file)
    except (OSError, ValueError) as error:
        log_fault(log, "Which model was chosen couldn't be kept", error)


def kept_choice(
    usual: LocalOptions,
    named: tuple[LocalOptions, ...],
    folders: tuple[Path, ...],
    *,
    with_hub_cache: bool = True,
) -> LocalOptions:
    """The model to begin with: the one that was chosen, where settings still offer just it.

    Args:
        usual: the model of the settings.
        named: the others that they name.
        folders: where they have models looked for.
        with_hub_cache: whether the hub's cache is another such place.
    """
    try:
        kept = json.loads((usual.data_dir / _FILE).read_text(encoding="utf-8"))
        if kept["usual"] != _told(usual):
            return usual
        chosen = kept["chosen"]
        found = replace(usual, model=str(chosen["model"]), name="", trust_remote_code=False)
        offered = [*named, *([found] if _is_found(found.model, folders, with_hub_cache) else [])]
        return next((options for options in offered if _told(options) == chosen), usual)
    except (OSError, ValueError, KeyError, TypeError):
        return usual


def _told(options: LocalOptions) -> dict[str, Any]:
    return {name: value for name, value in asdict(options).items() if name != "data_dir"}


def _is_found(model: str, folders: tuple[Path, ...], with_hub_cache: bool) -> bool:
    """Whether it is still where models are looked for."""
    try:
        spec = resolve(model)
    except LLMError:
        return False
    if spec.hub_id is not None:
        return (
            with_hub_cache and (hub_cache() / f"models--{spec.hub_id.replace('/', '--')}").is_dir()
        )
    return any(Path(model).is_relative_to(folder.expanduser()) for folder in folders)
