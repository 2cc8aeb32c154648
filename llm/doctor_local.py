"""Whether the local model is well: its files, its tokenizer, how it computes, what it takes.

Never loads it: while it isn't in memory, only its files are looked at.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from llm.doctor import Finding, Level
from llm.errors import LLMError, Reason, Value
from llm.local_revision import revision_of
from llm.local_source import conversion_of
from llm.model_list_local import hub_cache
from llm.models import resolve
from llm.types import CancelToken, GenerationRequest, Message, SamplingParams

if TYPE_CHECKING:
    from llm.local_backend import LocalBackend, LocalOptions
    from llm.local_loader import LoadedModel
    from llm.model_fit import Fit
    from llm.model_list_local import ListedModel, LocalModelList

GROUP = Reason("doctor-group-local")

SAMPLE = "你好，世界！春眠不觉晓 🙂 👨‍👩‍👧 café"
"""Characters of one to four bytes each, and one of several characters."""

SLOW_WARM_UP_S = 30.0
_HASH_CHARS = 12
_LIST_S = 15.0
_PIECES = 10_000


def folder_of(options: LocalOptions) -> Path | None:
    """Where a model's files are that would be loaded; None while they have yet to be fetched or
    converted.

    Raises:
        LLMError: the model isn't there, and won't be.
    """
    spec = resolve(options.model)
    if spec.kind == "folder":
        return spec.path
    if spec.kind != "hub":
        return conversion_of(spec, options.data_dir / "models")
    assert spec.hub_id is not None
    cached = hub_cache() / f"models--{spec.hub_id.replace('/', '--')}"
    try:
        commit = (cached / "refs" / "main").read_text(encoding="utf-8").strip()
    except (OSError, ValueError):
        return None
    found = cached / "snapshots" / commit
    return found if (found / "config.json").is_file() else None


@dataclass(frozen=True)
class FilesCheck:
    """Whether the model's files are there, and still those that were loaded."""

    backend: LocalBackend

    group = GROUP
    name = "doctor-check-files"
    limit_s = 30.0

    def run(self, cancel: CancelToken) -> Finding:
        """As in `Check`.

        Raises:
            LLMError: there is no such model.
        """
        options = self.backend.chosen
        spec, folder = resolve(options.model), folder_of(options)
        model = {"model": options.called}
        if folder is None:
            return Finding("skipped", Reason("doctor-files-not-fetched", model))
        try:
            revision = revision_of(spec, folder, remote_code=options.trust_remote_code)
        except OSError:
            return Finding("bad", Reason("doctor-files-unreadable", model))
        told = {**model, "hash": revision[:_HASH_CHARS]}
        with self.backend.in_use() as loaded:
            print_of = loaded.fingerprint if loaded is not None else None
            same = print_of is None or print_of.fixed.revision == revision
        if self.backend.holds == options and not same:
            return Finding("warn", Reason("doctor-files-changed", told))
        return Finding("ok", Reason("doctor-files-ok", told))


class _LoadedCheck(ABC):
    """A look at the model in memory; without one there is nothing to say.

    Args:
        backend: has it, or not.
    """

    group = GROUP
    limit_s = 20.0

    def __init__(self, backend: LocalBackend) -> None:
        self._backend = backend

    def run(self, cancel: CancelToken) -> Finding:
        """As in `Check`."""
        with self._backend.in_use() as loaded:
            options = self._backend.holds
            if loaded is not None and options is not None:
                return self.look(loaded, options)
        return _not_loaded(self._backend)

    @abstractmethod
    def look(self, loaded: LoadedModel, options: LocalOptions) -> Finding:
        """What there is to say of a model that is in memory; it stays as long as this lasts."""


def _not_loaded(backend: LocalBackend) -> Finding:
    status = backend.status()
    if status.error is not None:
        return Finding("skipped", Reason("doctor-not-loadable"))
    return Finding("skipped", Reason("doctor-loading" if status.preparing else "doctor-not-loaded"))


def why_not(backend: LocalBackend) -> Reason | None:
    """Why no model answers now; None where one does."""
    return None if backend.status().ready else _not_loaded(backend).reason


@dataclass(frozen=True)
class StateCheck:
    """Whether the model is in memory and answers, and if it can't, why."""

    backend: LocalBackend

    group = GROUP
    name = "doctor-check-state"
    limit_s = 5.0

    def run(self, cancel: CancelToken) -> Finding:
        status = self.backend.status()
        if status.error is not None:
            return Finding("bad", status.error.reason)
        if not status.ready:
            return _not_loaded(self.backend)
        if status.notice is not None:
            return Finding("warn", status.notice)
        with self.backend.in_use() as loaded:
            took_s = loaded.warm_up_s if loaded is not None else None
        if took_s is None:
            return Finding("ok", Reason("doctor-state-ready", {"model": status.model}))
        told: dict[str, Value] = {"model": status.model, "seconds": round(took_s, 1)}
        slow = took_s > SLOW_WARM_UP_S
        return Finding(
            "warn" if slow else "ok", Reason(f"doctor-state-{'slow' if slow else 'warm'}", told)
        )


class TokenizerCheck(_LoadedCheck):
    """Sends Chinese and emoji through tokenizer and streamer, token by token, as answers go."""

    name = "doctor-check-tokenizer"

    def look(self, loaded: LoadedModel, options: LocalOptions) -> Finding:
        came, tokens = round_trip(loaded.tokenizer, SAMPLE)
        told = {"tokens": tokens}
        if came != SAMPLE:
            return Finding("warn", Reason("doctor-tokenizer-lossy", told))
        if not getattr(loaded.tokenizer, "is_fast", False):
            return Finding("warn", Reason("doctor-tokenizer-slow", told))
        return Finding("ok", Reason("doctor-tokenizer-ok", told))


def round_trip(tokenizer: Any, text: str) -> tuple[str, int]:
    """What a text becomes that goes to tokens and comes back one by one through our streamer, and
    how many tokens that were. What is no whole character is left out there, so it is missed here.
    """
    import numpy as np

    from llm.local_streamer import BoundedTextStreamer

    ids = tokenizer.encode(text, add_special_tokens=False)
    streamer = BoundedTextStreamer(tokenizer, _PIECES)
    streamer.put(np.array([], dtype=np.int64))  # the prompt
    for each in ids:
        streamer.put(np.array([each]))
    streamer.end()
    came = "".join(piece for piece in streamer if isinstance(piece, str))
    return came.strip(), len(ids)


class TemplateCheck(_LoadedCheck):
    """Has the chat template make a prompt, with a system prompt and without."""

    name = "doctor-check-template"

    def __init__(self, backend: LocalBackend, models: LocalModelList) -> None:
        super().__init__(backend)
        self._models = models

    def run(self, cancel: CancelToken) -> Finding:
        """As in `Check`."""
        finding = super().run(cancel)
        listed = _listed(self._models, self._backend) if finding.level == "skipped" else None
        if listed is None:
            return finding
        if listed.impossible and listed.trouble is not None:
            return Finding("bad", Reason("doctor-files-trouble", {"reason": listed.trouble}))
        if listed.facts is not None and listed.facts.has_template:
            return Finding("ok", Reason("doctor-template-there"))
        return finding

    def look(self, loaded: LoadedModel, options: LocalOptions) -> Finding:
        from llm.local_generation import encode

        question = Message("user", SAMPLE)
        params = SamplingParams(max_tokens=1)
        try:
            ids = encode(loaded, GenerationRequest((question,), params))["input_ids"]
        except LLMError as error:
            return Finding("bad", error.reason)
        try:
            encode(loaded, GenerationRequest((Message("system", "Be brief."), question), params))
        except LLMError:
            return Finding("warn", Reason("doctor-template-no-system"))
        return Finding("ok", Reason("doctor-template-ok", {"tokens": int(ids.shape[1])}))


class DeviceCheck(_LoadedCheck):
    """Where the weights are, and in which numbers."""

    name = "doctor-check-device"

    def look(self, loaded: LoadedModel, options: LocalOptions) -> Finding:
        from llm.local_fingerprint import numerics_of

        told = numerics_of(loaded, options)
        devices = _texts(told["devices"])
        values: dict[str, Value | Reason] = {
            "device": ", ".join(devices),
            "dtype": ", ".join(each.removeprefix("torch.") for each in _texts(told["dtypes"])),
            "quantization": _quantization(loaded.model, options, packed=bool(told["packed"])),
        }
        if len({device.partition(" ")[0] for device in devices}) > 1:
            return Finding("warn", Reason("doctor-device-split", values))
        return Finding("ok", Reason("doctor-device-ok", values))


class AttentionCheck(_LoadedCheck):
    """Which attention computes, and why it isn't flash attention where that was to be had."""

    name = "doctor-check-attention"

    def look(self, loaded: LoadedModel, options: LocalOptions) -> Finding:
        told: dict[str, Value | Reason] = {
            "attention": str(getattr(loaded.model.config, "_attn_implementation", "?")),
            "slots": self._backend.slots,
        }
        if loaded.notes:
            return Finding(
                "warn", Reason("doctor-attention-note", {**told, "reason": loaded.notes[0]})
            )
        kind = "batched" if loaded.batch is not None else "plain"
        return Finding("ok", Reason(f"doctor-attention-{kind}", told))


class ThreadsCheck(_LoadedCheck):
    """Whether torch computes with as many threads as there are cores for it."""

    name = "doctor-check-threads"

    def __init__(self, backend: LocalBackend, cores: Callable[[], int] | None = None) -> None:
        super().__init__(backend)
        self._cores = cores or usable_cores

    def look(self, loaded: LoadedModel, options: LocalOptions) -> Finding:
        from llm.local_fingerprint import numerics_of

        if str(loaded.device).partition(":")[0] != "cpu":
            return Finding("skipped", Reason("doctor-threads-gpu"))
        threads, cores = int(str(numerics_of(loaded, options)["threads"])), self._cores()
        told = {"threads": threads, "cores": cores}
        if threads > cores:
            return Finding("warn", Reason("doctor-threads-many", told))
        # torch counts cores, the system two for each where they have hyper-threading.
        if 2 * threads < cores:
            return Finding("warn", Reason("doctor-threads-few", told))
        return Finding("ok", Reason("doctor-threads-ok", told))


def usable_cores() -> int:
    """The processors that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@dataclass(frozen=True)
class MemoryCheck:
    """Whether what the model takes fits into what is free."""

    backend: LocalBackend
    models: LocalModelList

    group = GROUP
    name = "doctor-check-memory"
    limit_s = 30.0

    def run(self, cancel: CancelToken) -> Finding:
        listed = _listed(self.models, self.backend)
        needs = self.models.fit(listed) if listed is not None else None
        if needs is None:
            return _not_loaded(self.backend)
        return memory_finding(needs)


def memory_finding(needs: Fit) -> Finding:
    """What there is to say of what a model takes."""
    told: dict[str, int | float] = {
        "needed": round(needs.needed_bytes / 1e9, 2),
        "free": round(needs.free_bytes / 1e9, 2),
        "tokens": needs.fitting_tokens or 0,
    }
    levels: dict[str, Level] = {"fits": "ok", "short": "warn", "no": "bad"}
    return Finding(levels[needs.level], Reason(f"doctor-memory-{needs.level}", told))


def _listed(models: LocalModelList, backend: LocalBackend) -> ListedModel | None:
    """The chosen model as the list has it; None where it isn't there, or looking takes long."""
    if not models.wait(_LIST_S):
        return None
    return next((each for each in models.models() if each.options == backend.chosen), None)


def _quantization(model: Any, options: LocalOptions, *, packed: bool) -> Value | Reason:
    """How the weights are packed in fact, whatever was left to be found."""
    if packed:
        return "4/8-bit (CPU)"
    if options.quantization in ("4bit", "8bit"):
        return options.quantization
    method = getattr(getattr(model.config, "quantization_config", None), "quant_method", None)
    if method is None:
        return Reason("doctor-quantization-none")
    return str(getattr(method, "value", method))


def _texts(told: object) -> list[str]:
    return [str(each) for each in told] if isinstance(told, list) else [str(told)]
