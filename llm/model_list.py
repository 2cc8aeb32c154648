"""What a server's `/v1/models` says, read without trusting it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from llm.served_values import told_count, whole_text

_WINDOW = ("max_model_len", "context_length", "context_window", "max_context_length")


@dataclass(frozen=True, slots=True)
class ModelInfo:
    """A model as its server lists it.

    Args:
        name: what a request calls it.
        context_tokens: its window, prompt and answer together; None where it isn't told.
    """

    name: str
    context_tokens: int | None = None


def read_model_list(told: object) -> tuple[ModelInfo, ...] | None:
    """The models listed; None where it isn't a list of models at all."""
    entries = told.get("data") if isinstance(told, Mapping) else None
    if not isinstance(entries, list):
        return None
    models = {
        entry["id"]: ModelInfo(entry["id"], _window(entry))
        for entry in entries
        if isinstance(entry, Mapping) and _is_name(entry.get("id"))
    }
    return tuple(models.values())


def _window(entry: Mapping[str, object]) -> int | None:
    """The window's size, by the names that vLLM, gateways and llama.cpp give it.

    llama.cpp's `n_ctx_train` isn't one of them: the server may well have been given less.
    """
    meta = entry.get("meta")
    told = [entry.get(name) for name in _WINDOW]
    told.append(meta.get("n_ctx") if isinstance(meta, Mapping) else None)
    for size in told:
        if window := told_count(size):
            return window
    return None


def _is_name(told: object) -> bool:
    """Whether a model can be asked for by this: half a character can't even be sent."""
    return isinstance(told, str) and bool(told) and told == whole_text(told)
