"""One forward pass of a model over several answers at once, each with keys and values of its own.

The answers' new tokens are laid end to end, shape (1, T), however many each has: one of an answer
that is being written, many of a prompt that is being read. All that a model does token by token is
done for all of them together. Attention alone is done answer by answer, over the keys and values of
that answer and of no other: nothing is padded, and no mask has to keep the answers apart.

Source: the layout is that of vLLM and of transformers' continuous batching; Yu et al., "Orca",
OSDI 2022 (selective batching).

Imports torch and transformers; import this module where a model is loaded, not before.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from transformers import AttentionInterface, Cache

from llm.local_sdpa import attend

_LAYERS = {"full_attention", "sliding_attention"}

# These choose their frequencies by the longest text in the pass: one answer would change another.
_ROPES_OF_A_PASS = {"dynamic", "longrope"}

_running = threading.local()
"""The pass that this thread is in."""


class NotBatchableError(Exception):
    """This model can't answer several at once in one pass. The text says why, for the log."""


class KeyValues:
    """What a model remembers of one answer's tokens: keys and values, (1, H, T, D) for each layer.

    Until `length` is raised, tokens written behind it don't count: a pass that failed is repeated
    as if it had never been.

    Thread-safety: none; the thread that runs the passes uses it.
    """

    def __init__(self) -> None:
        self.length = 0
        self.capacity = 0
        """Tokens that there is room for; a layer grows when it is next written to."""
        self._layers: dict[int, tuple[Any, Any]] = {}

    def write(self, layer: int, keys: Any, values: Any) -> tuple[Any, Any]:
        """Put new ones, (1, H, N, D), behind those that count; returns all, (1, H, length + N, D)."""
        end = self.length + keys.shape[2]
        kept = self._layers.get(layer)
        if kept is None or kept[0].shape[2] < self.capacity:
            kept = self._grown(keys, kept, 0), self._grown(values, kept, 1)
            self._layers[layer] = kept
        for store, new in zip(kept, (keys, values), strict=True):
            store[:, :, self.length : end] = new
        return kept[0][:, :, :end], kept[1][:, :, :end]

    def forget(self) -> None:
        """Give the memory back; the tokens have to be read again."""
        self._layers.clear()
        self.length = self.capacity = 0

    def bytes_per_token(self) -> int:
        """Of all layers together; 0 while nothing was written."""
        return sum(
            one[:, :, :1].numel() * one.element_size()
            for pair in self._layers.values()
            for one in pair
        )

    def _grown(self, new: Any, kept: tuple[Any, Any] | None, which: int) -> Any:
        heads, width = new.shape[1], new.shape[3]
        grown = new.new_empty((1, heads, self.capacity, width))
        if kept is not None:
            grown[:, :, : self.length] = kept[which][:, :, : self.length]
        return grown


@dataclass(frozen=True, slots=True)
class Part:
    """What one answer has in a pass: the ids to read behind those that its memory has."""

    memory: KeyValues
    ids: Sequence[int]


class RaggedModel:
    """A loaded model that reads several answers' tokens in one pass.

    Thread-safety: several threads may run passes, each over memories of its own.

    Args:
        model: a transformers causal language model, in eval mode.
        device: where ids go.

    Raises:
        NotBatchableError: its architecture, attention or positions don't allow for it.
    """

    def __init__(self, model: Any, device: Any) -> None:
        self._model = model
        self._device = device
        self._windows = _windows(model)
        register_attention()

    def logits(self, parts: Sequence[Part], wanted: Sequence[int]) -> Any:
        """Read the parts' ids. To be called without gradients.

        Memories must have room for them, and their `length` is the caller's to raise afterwards.

        Args:
            wanted: the parts, by number, whose last token's logits are asked for; at least one.

        Returns:
            Logits of shape (len(wanted), V), in float32.
        """
        ids = [token for part in parts for token in part.ids]
        places = [
            place
            for part in parts
            for place in range(part.memory.length, part.memory.length + len(part.ids))
        ]
        ends, end = [], 0
        for part in parts:
            end += len(part.ids)
            ends.append(end - 1)
        _running.ragged = ragged = _RaggedPass(parts, self._windows)
        try:
            output = self._model(
                input_ids=torch.tensor([ids], device=self._device),
                position_ids=torch.tensor([places], device=self._device),
                cache=ragged,
                use_cache=True,
                # On no device: the last layer's may be another than the first's.
                logits_to_keep=torch.tensor([ends[number] for number in wanted]),
            )
            ragged.check()
        finally:
            _running.ragged = None
        return output.logits[0].to(dtype=torch.float32, device=self._device)


class _RaggedPass(Cache):  # type: ignore[misc]
    """The cache that a model is given in one pass: it hands every token to its own answer."""

    def __init__(self, parts: Sequence[Part], windows: Sequence[int | None]) -> None:
        super().__init__(layers=[])
        self._parts = parts
        self._windows = windows
        self._written: list[tuple[Any, Any]] | None = None
        self._window: int | None = None
        self._masks: dict[tuple[int, int, int | None, Any], Any] = {}

    def update(
        self, key_states: Any, value_states: Any, layer_idx: int, *_: Any, **__: Any
    ) -> tuple[Any, Any]:
        """Keep a layer's new keys and values, (1, H, T, D), for the attention that comes next."""
        self.check()
        self._written, begin = [], 0
        self._window = self._windows[layer_idx]
        for part in self._parts:
            end = begin + len(part.ids)
            new = key_states[:, :, begin:end], value_states[:, :, begin:end]
            self._written.append(part.memory.write(layer_idx, *new))
            begin = end
        return key_states, value_states

    def check(self) -> None:
        """Raises:
        RuntimeError: a layer has looked at the tokens of all answers as if they were one text.
        """
        if self._written is not None:
            raise RuntimeError("another attention has taken the batch's place")

    def attend(self, module: Any, query: Any, **kwargs: Any) -> Any:
        """Attention of all new tokens, (1, H, T, D), each over its own answer: (1, T, H, D)."""
        written, self._written = self._written, None
        if written is None:
            raise NotBatchableError("a layer has no keys and values of its own")
        outputs, begin = [], 0
        for part, (keys, values) in zip(self._parts, written, strict=True):
            count = len(part.ids)
            if self._window is not None and keys.shape[2] > self._window + count - 1:
                first = keys.shape[2] - (self._window + count - 1)
                keys, values = keys[:, :, first:], values[:, :, first:]
            own_query = query[:, :, begin : begin + count]
            mask = self._mask(count, keys.shape[2], query.device)
            outputs.append(attend(module, own_query, keys, values, mask, **kwargs)[0])
            begin += count
        return torch.cat(outputs, dim=1) if len(outputs) > 1 else outputs[0]

    def _mask(self, count: int, keys: int, device: Any) -> Any:
        """Which of the last `keys` tokens each of `count` new ones looks at; None for the usual."""
        window = self._window
        if count == 1 or (count == keys and (window is None or keys <= window)):
            return None
        kind = count, keys, window, device  # a model's layers may lie on several
        mask = self._masks.get(kind)
        if mask is None:
            mask = torch.ones(count, keys, dtype=torch.bool, device=device).tril(keys - count)
            if window is not None:
                mask = mask.triu(keys - count - window + 1)
            self._masks[kind] = mask = mask[None, None]
        return mask

    # What transformers asks for where it would make the masks of one text of this pass.

    def get_seq_length(self, layer_idx: int = 0) -> int:
        return 0

    def get_mask_sizes(self, query_length: int, layer_idx: int) -> tuple[int, int]:
        return query_length, 0


def register_attention() -> None:
    """Have every model of this process that computes with `sdpa` do it as here.

    The answers' own attention is found where transformers looks for its own. There is one such
    place in a process: whatever registers another there has passes mix up their answers.
    """
    AttentionInterface.register("sdpa", _attention)


def _attention(
    module: Any, query: Any, key: Any, value: Any, attention_mask: Any, **kwargs: Any
) -> tuple[Any, None]:
    """Attention as ever, but for a pass over several answers."""
    ragged = getattr(_running, "ragged", None)
    if ragged is None:
        return attend(module, query, key, value, attention_mask, **kwargs)
    return ragged.attend(module, query, **kwargs), None


def _windows(model: Any) -> list[int | None]:
    """For each layer how many tokens it looks back at, itself counted; None for all.

    Raises:
        NotBatchableError: the model isn't one of such layers.
    """
    config = model.config.get_text_config(decoder=True)
    if config.is_encoder_decoder or getattr(model, "_is_stateful", False):
        raise NotBatchableError("it isn't a decoder with a cache of keys and values")
    if config._attn_implementation != "sdpa":
        raise NotBatchableError(f"its attention is {config._attn_implementation}")
    if ropes := _ropes(getattr(config, "rope_parameters", None)) & _ROPES_OF_A_PASS:
        raise NotBatchableError(f"its positions are {ropes.pop()}")
    window = getattr(config, "sliding_window", None)
    count = config.num_hidden_layers
    types = getattr(config, "layer_types", None)
    if types is None:
        types = ["sliding_attention" if window else "full_attention"] * count
    if not set(types) <= _LAYERS or getattr(config, "kv_sharing_modes", None):
        raise NotBatchableError(f"its layers are {', '.join(sorted(set(types)))}")
    return [window if kind == "sliding_attention" else None for kind in types]


def _ropes(parameters: Any) -> set[str]:
    """All kinds of rotary positions that a config names, for all layers or for each kind of them."""
    if not isinstance(parameters, dict):
        return set()
    here = {str(parameters.get("rope_type"))}
    return here.union(*(_ropes(value) for value in parameters.values()))
