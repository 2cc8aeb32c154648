"""The app's engine beside what it builds on: the same answer both ways, in turns."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from llm.types import Backend, SamplingParams


@dataclass(frozen=True, slots=True)
class Run:
    """One answer."""

    tokens: int
    tokens_per_s: float
    ttft_s: float


def in_turns(
    bare: Callable[[], Run], app: Callable[[], Run], rounds: int
) -> tuple[tuple[Run, ...], tuple[Run, ...]]:
    """The runs of both, in pairs (ABBA), after one round that isn't counted."""
    runs: dict[Callable[[], Run], list[Run]] = {bare: [], app: []}
    for number in range(rounds + 1):
        # A machine that gets slower or quicker meanwhile favours neither.
        for one in (bare, app) if number % 2 else (app, bare):
            runs[one].append(one())
    return tuple(runs[bare][1:]), tuple(runs[app][1:])


def speed_ratios(bare: Sequence[Run], app: Sequence[Run]) -> list[float]:
    """Each round's app against its own bare."""
    return [b.tokens_per_s / a.tokens_per_s for a, b in zip(bare, app, strict=True)]


def added_ttft_ms(bare: Sequence[Run], app: Sequence[Run]) -> list[float]:
    """Each round's app against its own bare."""
    return [1000 * (b.ttft_s - a.ttft_s) for a, b in zip(bare, app, strict=True)]


def through_a_job(backend: Backend, question: str, params: SamplingParams) -> Run:
    """Ask as the app does: a `GenerationJob`, read by a waiting thread as the page reads it.

    Raises:
        LLMError: it failed.
    """
    from llm.job import GenerationJob
    from llm.types import GenerationRequest, Message

    request = GenerationRequest((Message("user", question),), params)
    job = GenerationJob("bench", "bench", backend, request, save=lambda snapshot: None)
    first_s: float | None = None
    started_s = time.perf_counter()
    job.start()
    version = -1
    while not (snapshot := job.wait(version, 1.0)).done:
        version = snapshot.version
        if first_s is None and snapshot.text:
            first_s = time.perf_counter()
    ended_s = time.perf_counter()
    if snapshot.error is not None:
        raise snapshot.error
    assert snapshot.finish is not None
    made = snapshot.finish.usage.completion_tokens
    assert made is not None
    assert first_s is not None
    return Run(made, (made - 1) / (ended_s - first_s), first_s - started_s)
