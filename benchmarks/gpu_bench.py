"""What the parts of the GPU benchmark share: sizes, the model's folder, the backends open on it."""

from __future__ import annotations

import time
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, get_args, get_type_hints

from benchmarks.random_model import QWEN_1_5B, TINY, Shape
from llm.local_backend import LocalBackend, LocalOptions

QUESTION = "Write a long story about a lighthouse keeper who learns to paint the sea."
SEED = 7
AT_ONCE = (8, 32)


@dataclass(frozen=True, slots=True)
class Sizes:
    """How much is asked.

    Args:
        shape: of the model.
        tokens: of an answer.
        rounds: of bare and engine in turns.
        window_s: what answers at once may take; then they are stopped, and what came counts.
        stops: of an answer alone, and of one whose long prompt is being read.
        long_prompt: its tokens, about.
        quantized_tokens: of an answer by quantized weights.
        make_s: making the model takes at most so long.
        load_s: loading it and warming it up.
    """

    shape: Shape = QWEN_1_5B
    tokens: int = 96
    rounds: int = 4
    window_s: float = 20
    stops: int = 6
    long_prompt: int = 16_000
    quantized_tokens: int = 48
    make_s: float = 90
    load_s: float = 25


SMALL = Sizes(
    TINY, tokens=16, rounds=1, window_s=10, stops=2, long_prompt=2_000, quantized_tokens=8
)


def ways() -> dict[str, dict[str, Any]]:
    """The ways in which this version's engine answers several requests, with their options."""
    if "batching" in {field.name for field in fields(LocalOptions)}:
        return {"a thread each": {"batching": "off"}, "batched": {"batching": "on"}}
    return {"a thread each": {}}


def quantizations() -> list[str]:
    """What this version's loader offers."""
    modes = get_args(get_type_hints(LocalOptions)["quantization"])
    return [mode for mode in modes if mode not in ("none", "auto")]


def plain_options() -> dict[str, Any]:
    """The options of the backend whose model is used bare, too."""
    return {**ways()["a thread each"], "slots": max(AT_ONCE)}


def questions(count: int) -> list[str]:
    """Different ones of one length."""
    return [f"{number:02d}. {QUESTION}" for number in range(count)]


class Bench:
    """The model's folder, and the backends that are open on it.

    Thread-safety: none; one part after the other uses it.
    """

    def __init__(self, folder: Path, sizes: Sizes) -> None:
        self.sizes = sizes
        self._folder = folder
        self._open: dict[tuple[tuple[str, Any], ...], LocalBackend] = {}
        self.bare_tokens_per_s: float | None = None
        self.engine_tokens_per_s: float | None = None

    @property
    def model_folder(self) -> Path:
        return self._folder / "model"

    def backends(self, *wanted: dict[str, Any]) -> list[LocalBackend]:
        """A backend with each of these options, ready, and none beside them.

        Raises:
            LLMError: one can't be made ready.
        """
        keys = [tuple(sorted(options.items())) for options in wanted]
        for key in [key for key in self._open if key not in keys]:
            self._open.pop(key).close()
        for key in keys:
            if key not in self._open:
                options = LocalOptions(self._folder, model=str(self.model_folder), **dict(key))
                self._open[key] = _ready(LocalBackend(options))
        return [self._open[key] for key in keys]

    def close(self) -> None:
        self.backends()


def _ready(backend: LocalBackend) -> LocalBackend:
    backend.prepare()
    while not (status := backend.status()).ready:
        if status.error is not None:
            backend.close()
            raise status.error
        time.sleep(0.02)
    return backend
