"""`/v1/models`, and which backend a request's `model` means."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from api.errors import refused


@dataclass(frozen=True, slots=True)
class OfferedModel:
    """A model that can be asked.

    Args:
        backend: the backend's id: `local`, `scripted`, `vllm/` and a server's name.
        model: as the backend's requests call it; empty is whichever it asks by default.
        name: what it is called; empty while unknown.
        context_tokens: its window; None where it isn't known.
        temperature: where none is asked for; None leaves it to the model.
    """

    backend: str
    model: str = ""
    name: str = ""
    context_tokens: int | None = None
    temperature: float | None = None

    @property
    def full_id(self) -> str:
        """The backend's id with the name behind it: always one model's alone."""
        told = self.name and self.name != self.backend
        return f"{self.backend}/{self.name}" if told else self.backend


def named(offered: Sequence[OfferedModel]) -> dict[str, OfferedModel]:
    """The models by the ids under which they are listed.

    That is a model's own name. Where two have the same, the full id is each one's.
    """
    times = Counter(model.name for model in offered)
    return {
        model.name if model.name and times[model.name] == 1 else model.full_id: model
        for model in offered
    }


def find(offered: Sequence[OfferedModel], wanted: str | None) -> tuple[str, OfferedModel]:
    """The id and the model that a request means.

    Besides the listed ids a model's full id is taken, a backend's id (for its first model), and
    any model's name behind a server's id: the list may not be known yet. None is the first of all.

    Raises:
        ApiError: there is none of that name, or none at all.
    """
    by_id = named(offered)
    if wanted is None and by_id:
        return next(iter(by_id.items()))
    if wanted is not None and wanted in by_id:
        return wanted, by_id[wanted]
    for model_id, model in by_id.items() if wanted else ():
        if wanted in (model.full_id, model.backend, model.name, model.backend.partition("/")[0]):
            return model_id, model
    for model in offered:
        if model.backend.startswith("vllm/") and (wanted or "").startswith(f"{model.backend}/"):
            name = (wanted or "").removeprefix(f"{model.backend}/")
            if name and len(name) <= 200:
                return wanted or "", OfferedModel(model.backend, name, name)
    raise refused(404, "model_not_found", "model", model=(wanted or "")[:200])


def listed(model_id: str, model: OfferedModel, created_s: int) -> dict[str, Any]:
    """A model as the list has it."""
    told: dict[str, Any] = {
        "id": model_id,
        "object": "model",
        "created": created_s,
        "owned_by": model.backend,
    }
    if model.context_tokens is not None:
        told["max_model_len"] = model.context_tokens  # vLLM's word for it
    return told
