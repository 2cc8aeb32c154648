"""What the engine asks of the device for each token: on a GPU every read makes the host wait."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from torch.utils._python_dispatch import TorchDispatchMode
from transformers import TopPLogitsWarper

from benchmarks.gpu_bench import ways
from llm.local_backend import LocalBackend
from llm.local_generation import generate
from llm.types import CancelToken
from tests.local_answers import ask, model_of

pytest_plugins = "tests.local_fixtures"

READ = "aten._local_scalar_dense.default"
"""What `item()`, `bool()` and the like of a tensor come to, whatever device it is on."""

EVERYTHING = {
    "temperature": 0.7,
    "top_p": 0.95,
    "top_k": 40,
    "min_p": 0.01,
    "repetition_penalty": 1.1,
    "presence_penalty": 0.5,
    "frequency_penalty": 0.5,
    "seed": 7,
}


class Operations(TorchDispatchMode):  # type: ignore[misc]
    """Counts what this thread asks torch to do."""

    def __init__(self) -> None:
        super().__init__()
        self.counts: Counter[str] = Counter()

    def __torch_dispatch__(self, op: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.counts[str(op)] += 1
        return op(*args, **(kwargs or {}))


@pytest.mark.parametrize("params", [{"seed": 7}, EVERYTHING], ids=["defaults", "everything"])
def test_a_token_is_read_from_the_device_no_oftener_than_generate_itself_reads(
    tiny_folder: Path,
    make_backend: Callable[..., LocalBackend],
    monkeypatch: pytest.MonkeyPatch,
    params: dict[str, Any],
) -> None:
    # On a GPU the nucleus is found without looking whether a few tokens hold it.
    monkeypatch.setattr("llm.local_sampling.NucleusWarper", TopPLogitsWarper)
    backend = make_backend(tiny_folder, **ways()["a thread each"])
    model = model_of(backend)
    bare = model.generate
    counts: list[Counter[str]] = []

    def counted(**kwargs: Any) -> Any:
        with Operations() as operations:
            counts.append(operations.counts)
            return bare(**kwargs)

    monkeypatch.setattr(model, "generate", counted)
    made = []
    for tokens in (10, 30):
        *_, finish = generate(backend._loaded, ask(max_tokens=tokens, **params), CancelToken())
        made.append(finish.usage.completion_tokens)
    short, long = counts
    assert made == [10, 30]
    assert (long - short)[READ] == 20, "once a token: whether the answer is over"
