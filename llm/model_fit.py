"""Whether a model fits this machine's memory, and what it would take, before it is loaded.

An estimate: the weights at the number type they get, their packed copy where one is made, and the
KV cache of one conversation that fills the window. What the libraries need beside them is the same for every model, and already
taken once one was loaded.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from llm.model_facts import ModelFacts

Level = Literal["fits", "short", "no"]
"""It fits; it fits with a part of its window; it doesn't."""

_BYTES_A_WEIGHT = {"8bit": 1.0, "4bit": 0.516}
"""Of what bitsandbytes quantizes. nf4 with double quantization: 4 bits, 8 more for each 64 weights
and 32 for each 16,384. Source: https://arxiv.org/abs/2305.14314, section 3."""

MOST_PACKED_BYTES = 2 << 30
"""Of plain weights, a thousand million parameters: of larger models no packed copy is made."""

_USEFUL_TOKENS = 512
"""A window that leaves less is none to talk in."""


@dataclass(frozen=True, slots=True)
class Fit:
    """What a model takes, beside what there is.

    Args:
        weights_bytes: its weights in memory, with the packed copy.
        context_bytes: the KV cache of one conversation as long as the window.
        context_tokens: the window; None while it isn't known.
        free_bytes: what is free, were nothing else loaded.
        fitting_tokens: how long a conversation can be.
    """

    weights_bytes: int
    context_bytes: int
    context_tokens: int | None
    free_bytes: int
    fitting_tokens: int | None

    @property
    def needed_bytes(self) -> int:
        return self.weights_bytes + self.context_bytes

    def needed_by(self, conversations: int) -> int:
        """What it takes with so many conversations, each as long as the window."""
        return self.weights_bytes + conversations * self.context_bytes

    @property
    def level(self) -> Level:
        if self.needed_bytes <= self.free_bytes:
            return "fits"
        useful = self.fitting_tokens is not None and self.fitting_tokens >= _USEFUL_TOKENS
        return "short" if useful else "no"


def weights_bytes(
    facts: ModelFacts, quantization: str, number_bytes: int, *, packs: bool = False
) -> int:
    """What the weights take.

    Args:
        number_bytes: bytes of a plain number, by the number type that is wished.
        packs: whether a packed copy is made of weights that allow it (`llm.local_packed`).
    """
    if facts.kept_bytes is not None:
        return facts.kept_bytes
    matrix = facts.matrix_weights * _BYTES_A_WEIGHT.get(quantization, number_bytes)
    plain = round(matrix) + facts.other_weights * number_bytes
    return plain + (facts.packed_bytes if packs and plain <= MOST_PACKED_BYTES else 0)


def context_bytes(facts: ModelFacts, tokens: int, number_bytes: int) -> int:
    """What the KV cache of a conversation of that many tokens takes."""
    sliding = facts.sliding_values * min(tokens, facts.sliding_tokens or tokens)
    return (facts.cached_values * tokens + sliding) * number_bytes


def fit(
    facts: ModelFacts,
    quantization: str,
    number_bytes: int,
    free_bytes: int,
    *,
    packs: bool = False,
) -> Fit:
    """Hold what a model takes against what is free. Args: as those of `weights_bytes`."""
    weights = weights_bytes(facts, quantization, number_bytes, packs=packs)
    window = facts.context_tokens
    whole = context_bytes(facts, window or 0, number_bytes)
    return Fit(
        weights, whole, window, free_bytes, _fitting(facts, number_bytes, free_bytes - weights)
    )


def _fitting(facts: ModelFacts, number_bytes: int, room: int) -> int | None:
    """The longest conversation whose cache takes no more than `room`; None where that's unknown."""
    window = facts.context_tokens
    if window is None:
        return None
    low, high = 0, window
    while low < high:
        middle = (low + high + 1) // 2
        if context_bytes(facts, middle, number_bytes) <= room:
            low = middle
        else:
            high = middle - 1
    return low if room >= 0 else 0
