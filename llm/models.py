"""What the setting `model` means: the embedded default, a folder, a GGUF file or a hub id.

Looks at names and at a few small files only: no weights are read, no library is loaded and no
network is asked, so a wrong setting is told before anything slow begins.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from llm.errors import ModelNotFoundError, NotAModelError, Reason
from llm.model_facts import NoFactsError, read_config
from llm.model_files import open_file

ModelKind = Literal["embedded", "folder", "gguf", "hub"]

EMBEDDED = "embedded"
EMBEDDED_NAME = "SmolLM2-135M-Instruct"
WEIGHTS = ("*.safetensors",)
"""Files of weights that are downloaded and loaded.

`*.bin` are pickles, which can run code when they are read. torch's `weights_only` forbids it, and
has had holes; nearly every chat model of the hub comes as safetensors, so nothing else is read.
Source: https://huggingface.co/docs/transformers/main_classes/model, `use_safetensors`;
https://nvd.nist.gov/vuln/detail/CVE-2025-32434.
"""

_GGUF_MAGIC = b"GGUF"
_HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*", re.ASCII)
# The hub's cache keeps a model's files in `models--<owner>--<name>/snapshots/<commit>`.
_HUB_CACHE = re.compile(r"models--[^/\\]+?--([^/\\]+)")


@dataclass(frozen=True, slots=True)
class ModelSpec:
    """A model that was asked for.

    Args:
        kind: which of the four ways it is kept.
        name: what people call it.
        path: the folder or the GGUF file; None for `embedded` and `hub`.
        hub_id: `owner/name`; None for the others.
    """

    kind: ModelKind
    name: str
    path: Path | None = None
    hub_id: str | None = None


def display_name(spec: str) -> str:
    """What people call the model, from its spec alone; touches no file and never raises."""
    spec = spec.strip()
    if spec == EMBEDDED:
        return EMBEDDED_NAME
    if cached := _HUB_CACHE.search(spec):
        return cached[1]
    last = re.split(r"[/\\]", spec.rstrip("/\\"))[-1] or spec
    return last[: -len(".gguf")] if last.lower().endswith(".gguf") else last


def told_name(spec: str) -> str:
    """What errors call the model: a hub id as it is, its owner may be wrong; of a path no folder.

    Touches no file and never raises. Where it lies on this machine is for the log.
    """
    spec = spec.strip()
    return spec if _HUB_ID.fullmatch(spec) else display_name(spec)


def as_meant(spec: str) -> str:
    """Without the white space around it, which somebody may have typed; names may have it, too."""
    try:
        return spec if Path(spec).expanduser().exists() else spec.strip()
    except (OSError, RuntimeError, ValueError):
        return spec.strip()


def resolve(spec: str) -> ModelSpec:
    """Say what a spec means. A folder that exists wins over a hub id of the same spelling.

    Raises:
        ModelNotFoundError: there is nothing of that name.
        NotAModelError: there is, but it can be seen at once that it isn't a model.
    """
    spec = as_meant(spec)
    name = display_name(spec)
    if spec == EMBEDDED:
        return ModelSpec("embedded", name)
    try:
        path = Path(spec).expanduser()
        is_folder, is_file = path.is_dir(), path.is_file()
    except (OSError, RuntimeError, ValueError) as error:
        raise ModelNotFoundError(model=told_name(spec)) from error
    if is_folder:
        _check_folder(path, spec)
        return ModelSpec("folder", name if spec not in (".", "..") else path.resolve().name, path)
    if is_file:
        _check_gguf(path, spec)
        return ModelSpec("gguf", name, path)
    if _HUB_ID.fullmatch(spec) and not spec.lower().endswith(".gguf"):
        return ModelSpec("hub", name, hub_id=spec)
    raise ModelNotFoundError(model=told_name(spec))


def _check_folder(folder: Path, spec: str) -> None:
    try:
        read_config(folder)
    except NoFactsError as error:
        raise _no_model(spec, error.reason) from None
    if not any(True for pattern in WEIGHTS for _ in folder.glob(pattern)):
        pickled = any(folder.glob("*.bin"))
        raise _no_model(spec, "reason-only-bin-weights" if pickled else "reason-no-weights")


def _check_gguf(path: Path, spec: str) -> None:
    if path.suffix.lower() != ".gguf":
        raise _no_model(spec, "reason-neither-folder-nor-gguf")
    try:
        with open_file(path) as file:
            magic = file.read(len(_GGUF_MAGIC))
    except (OSError, ValueError) as error:
        raise _no_model(spec, "reason-file-unreadable") from error
    if magic != _GGUF_MAGIC:
        raise _no_model(spec, "reason-not-gguf")


def _no_model(spec: str, reason: str | Reason) -> NotAModelError:
    reason = Reason(reason) if isinstance(reason, str) else reason
    return NotAModelError(model=told_name(spec), reason=reason)
