"""What a server's `/v1/models` says, read without trusting it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field

from llm.served_values import told_count, whole_text

# Not `created` and not vLLM's `permission`, which are new each time the list is asked for.
# Source: the model cards of vLLM, SGLang and llama.cpp, which tells the weights' sizes in `meta`.
_TELLING = ("id", "root", "parent", "owned_by", "revision", "quantization", "dtype", "digest")
_META = ("n_vocab", "n_ctx_train", "n_embd", "n_params", "size")
_MOST_PARENTS = 4
_WINDOW = ("max_model_len", "context_length", "context_window", "max_context_length")


@dataclass(frozen=True, slots=True)
class ModelInfo:
    """A model as its server lists it.

    Args:
        name: what a request calls it.
        context_tokens: its window, prompt and answer together; None where it isn't told.
        identity: a hash of all that is told of it, and of what it is an adapter to, that stays the
            same from start to start; empty where nothing was told.
    """

    name: str
    context_tokens: int | None = None
    identity: str = field(default="", compare=False)


def read_model_list(told: object) -> tuple[ModelInfo, ...] | None:
    """The models listed; None where it isn't a list of models at all."""
    entries = told.get("data") if isinstance(told, Mapping) else None
    if not isinstance(entries, list):
        return None
    by_name = {
        entry["id"]: entry
        for entry in entries
        if isinstance(entry, Mapping) and _is_name(entry.get("id"))
    }
    return tuple(
        ModelInfo(name, _window(entry), _identity(entry, by_name))
        for name, entry in by_name.items()
    )


def _identity(entry: Mapping[str, object], by_name: Mapping[str, Mapping[str, object]]) -> str:
    """The hash of what is told of a model, and of what it stands on: a LoRA adapter's base."""
    told: list[dict[str, object]] = []
    one: Mapping[str, object] | None = entry
    while one is not None and len(told) < _MOST_PARENTS:
        meta = one.get("meta")
        facts = {name: one.get(name) for name in (*_TELLING, *_WINDOW)}
        if isinstance(meta, Mapping):
            facts |= {f"meta.{name}": meta.get(name) for name in (*_META, "n_ctx")}
        told.append({n: fact for n, fact in facts.items() if isinstance(fact, str | int | float)})
        parent = one.get("parent")
        one = by_name.get(parent) if isinstance(parent, str) else None
    return hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()


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
