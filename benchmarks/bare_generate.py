"""transformers' own `generate()` on a loaded model, with nothing of the app in between.

The model is the app's: where a CPU has its weights packed (`llm.local_packed`), so has bare.

torch is imported by the functions, after whatever has to be set before it is.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from benchmarks.beside_bare import Run

if TYPE_CHECKING:
    from llm.local_loader import LoadedModel

SAME_MODEL = "bare generate has the app's loaded model, with its packed weights"
"""What a table says above figures that stand beside bare's."""


@contextmanager
def without_hooks(model: Any) -> Iterator[None]:
    """The model as transformers made it: the backend hooks its layers to be able to stop.

    Thread-safety: none; nothing else may use the model meanwhile.
    """
    kept = [(module, dict(module._forward_pre_hooks)) for module in model.modules()]
    for module, _ in kept:
        module._forward_pre_hooks.clear()
    try:
        yield
    finally:
        for module, hooks in kept:
            module._forward_pre_hooks.update(hooks)


class _Clock:
    """A streamer that only notes when the first generated token came."""

    def __init__(self) -> None:
        self.puts = 0
        self.first_s = 0.0

    def put(self, value: Any) -> None:
        self.puts += 1
        if self.puts == 2:  # The prompt is put first.
            self.first_s = time.perf_counter()

    def end(self) -> None:
        pass


def bare_run(
    loaded: LoadedModel, question: str, tokens: int, seed: int, max_s: float | None = None
) -> Run:
    """One answer with the app's default parameters, sampled by transformers.

    Args:
        max_s: it ends there, however far it has come.
    """
    import torch

    clock = _Clock()
    torch.manual_seed(seed)
    started_s = time.perf_counter()
    inputs = _encode(loaded, question)
    ids = loaded.model.generate(**inputs, **_sampling(tokens, max_s), streamer=clock)
    took_s = time.perf_counter() - clock.first_s
    made = int(ids.shape[1] - inputs["input_ids"].shape[1])
    return Run(made, (made - 1) / took_s, clock.first_s - started_s)


def static_batch(
    loaded: LoadedModel, questions: Sequence[str], tokens: int, max_s: float
) -> tuple[int, float]:
    """One `generate()` over all the questions, which begins and ends with all of them.

    Returns:
        The tokens of all answers together, and the seconds from the call to the end.

    Raises:
        ValueError: the questions have different numbers of tokens, and would need padding.
    """
    import torch

    started_s = time.perf_counter()
    each = [_encode(loaded, question) for question in questions]
    if len({one["input_ids"].shape[1] for one in each}) > 1:
        raise ValueError("a static batch is asked questions of one length here")
    inputs = {name: torch.cat([one[name] for one in each]) for name in each[0]}  # (B, T)
    ids = loaded.model.generate(**inputs, **_sampling(tokens, max_s)).cpu()
    made = (ids.shape[1] - inputs["input_ids"].shape[1]) * ids.shape[0]
    return int(made), time.perf_counter() - started_s


def plain_threads(
    loaded: LoadedModel, questions: Sequence[str], tokens: int, max_s: float
) -> tuple[int, float]:
    """A thread with a `generate()` of its own for each question, all at once.

    Returns:
        The tokens of all answers together, and the seconds from the first start to the last end.
    """
    made: list[int] = []
    failures: list[BaseException] = []

    def answer(question: str) -> None:
        try:
            made.append(static_batch(loaded, [question], tokens, max_s)[0])
        except BaseException as error:  # noqa: BLE001 - raised again below, on the asking thread
            failures.append(error)

    threads = [threading.Thread(target=answer, args=(question,)) for question in questions]
    started_s = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]
    return sum(made), time.perf_counter() - started_s


def _encode(loaded: LoadedModel, question: str) -> Any:
    """Model inputs of shape (1, T), on the model's device."""
    return loaded.tokenizer.apply_chat_template(
        [{"role": "user", "content": question}],
        add_generation_prompt=True,
        return_dict=True,
        return_tensors="pt",
    ).to(loaded.device)


def _sampling(tokens: int, max_s: float | None) -> dict[str, Any]:
    from llm.types import SamplingParams

    params = SamplingParams()
    return {
        "do_sample": True,
        "temperature": params.temperature,
        "top_p": params.top_p,
        "top_k": 0,  # transformers' own default is 50; the app has none
        "max_new_tokens": tokens,
        "max_time": max_s,
    }
