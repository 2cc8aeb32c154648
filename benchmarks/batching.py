"""What answering several at once in one batch gives, and costs one who asks alone.

    python -m benchmarks.batching

On the embedded model, eight questions at the same moment, with the app's default parameters:

- **in one batch**: `LocalBackend.stream` in eight `GenerationJob`s. **as threads**: eight threads
  of `model.generate`, which is what each answer by itself comes to. **static batch**: one
  `model.generate` over the eight prompts, padded to the same length, all known beforehand: the most
  that transformers gives, as nobody may come later, stop, or be shown anything before the end. The
  last two sample as transformers does, which looks at the 50 likeliest tokens only unless told.
- **tok/s** is all answers' tokens over the time from the first question to the last answer's end.
- **TTFT of the eighth / of the first**: in each round the longest time to the first text over the
  shortest.
- **one alone**: `LocalBackend.stream` against `model.generate`, tokens after the first over the
  time they took, as in local_engine.py.

All in one process and on one loaded model, packed weights included, in turns that change their order from round to round,
after one round that isn't counted. Ratios are medians over the rounds, each against its own round;
in brackets the lowest and the highest.
"""

from __future__ import annotations

import json
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks.bare_generate import (
    SAME_MODEL,
    bare_run,
    plain_threads,
    static_batch,
    without_hooks,
)
from benchmarks.beside_bare import Run, through_a_job
from benchmarks.local_engine import SEED, ready_backend, run_python
from benchmarks.table import Goal, Row, Section, render, spread

PEOPLE = 8
QUESTIONS = tuple(
    f"Write a long story about a {who} who learns to paint the sea."
    for who in ("king", "doctor", "teacher", "farmer", "student", "soldier", "writer", "poet")
)
LIMIT_S = 600.0


@dataclass(frozen=True, slots=True)
class BatchingFigures:
    """See the module's docstring; entries at the same place are of the same round."""

    tokens: int
    batch_tokens_per_s: tuple[float, ...]
    threads_tokens_per_s: tuple[float, ...]
    static_tokens_per_s: tuple[float, ...]
    first_ttft_s: tuple[float, ...]
    last_ttft_s: tuple[float, ...]
    alone_tokens_per_s: tuple[float, ...]
    bare_tokens_per_s: tuple[float, ...]


def measure_batching(tokens: int, rounds: int) -> BatchingFigures:
    """Compare in a process of its own."""
    with tempfile.TemporaryDirectory(prefix="steady-chat-bench-") as folder:
        told = json.loads(run_python("batching", [folder, str(tokens), str(rounds)]))
        return BatchingFigures(**{k: tuple(v) if k != "tokens" else v for k, v in told.items()})


def batching_section(figures: BatchingFigures) -> Section:
    """The rows of the table."""
    rounds = len(figures.batch_tokens_per_s)
    return Section(
        f"{PEOPLE} people at once on the local model, {figures.tokens} tokens each, {rounds} rounds; "
        + SAME_MODEL,
        (
            spread("in one batch, tok/s", figures.batch_tokens_per_s, "{:.1f}"),
            spread("as threads, tok/s", figures.threads_tokens_per_s, "{:.1f}"),
            spread("static batch, tok/s", figures.static_tokens_per_s, "{:.1f}"),
            _ratio(
                "in one batch / as threads",
                figures.batch_tokens_per_s,
                figures.threads_tokens_per_s,
                Goal(1.9, "x", at_least=True),
            ),
            _ratio(
                "in one batch / static batch",
                figures.batch_tokens_per_s,
                figures.static_tokens_per_s,
                Goal(0.85, at_least=True),
            ),
            spread("TTFT of the first", [1000 * s for s in figures.first_ttft_s], "{:.0f} ms"),
            spread("TTFT of the eighth", [1000 * s for s in figures.last_ttft_s], "{:.0f} ms"),
            _ratio(
                "TTFT of the eighth / of the first",
                figures.last_ttft_s,
                figures.first_ttft_s,
                Goal(3, "x"),
            ),
            spread("one alone, tok/s", figures.alone_tokens_per_s, "{:.1f}"),
            _ratio(
                "one alone / bare",
                figures.alone_tokens_per_s,
                figures.bare_tokens_per_s,
                Goal(0.95, at_least=True),
            ),
        ),
    )


def _ratio(name: str, ours: tuple[float, ...], theirs: tuple[float, ...], goal: Goal) -> Row:
    return spread(name, [a / b for a, b in zip(ours, theirs, strict=True)], "{:.2f}", goal)


def _compare(data_dir: Path, tokens: int, rounds: int) -> BatchingFigures:
    from llm.types import SamplingParams

    backend = ready_backend(data_dir)
    loaded = backend._loaded
    if not backend.batched:
        raise RuntimeError("this model isn't answered in a batch here")
    params = SamplingParams(max_tokens=tokens, seed=SEED)
    ttfts: list[list[float]] = []

    def batch() -> float:
        started_s = time.perf_counter()
        runs = _batched(backend, params)
        took_s = time.perf_counter() - started_s
        ttfts.append([run.ttft_s for run in runs])
        return sum(run.tokens for run in runs) / took_s

    def threads() -> float:
        with without_hooks(loaded.model):
            made, took_s = plain_threads(loaded, QUESTIONS, tokens, LIMIT_S)
        return made / took_s

    def static() -> float:
        with without_hooks(loaded.model):
            made, took_s = static_batch(loaded, QUESTIONS, tokens, LIMIT_S)
        return made / took_s

    def alone() -> float:
        return through_a_job(backend, QUESTIONS[0], params).tokens_per_s

    def bare() -> float:
        with without_hooks(loaded.model):
            return bare_run(loaded, QUESTIONS[0], tokens, SEED).tokens_per_s

    ways: list[Callable[[], float]] = [batch, threads, static, alone, bare]
    told: dict[Callable[[], float], list[float]] = {way: [] for way in ways}
    for number in range(rounds + 1):
        # A machine that gets slower or quicker meanwhile favours none.
        for way in ways if number % 2 else reversed(ways):
            told[way].append(way())
    results = [tuple(told[way][1:]) for way in ways]
    return BatchingFigures(
        tokens,
        *results[:3],
        tuple(min(each) for each in ttfts[1:]),
        tuple(max(each) for each in ttfts[1:]),
        *results[3:],
    )


def _batched(backend: Any, params: Any) -> list[Run]:
    """Every question in a job of its own, all at once."""
    runs: list[Run] = []
    threads = [
        threading.Thread(target=lambda q=q: runs.append(through_a_job(backend, q, params)))
        for q in QUESTIONS
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if len(runs) < PEOPLE:
        raise RuntimeError("not everybody was answered")
    return runs


def main(arguments: list[str]) -> None:
    if arguments:
        folder, tokens, rounds = arguments
        print(json.dumps(asdict(_compare(Path(folder), int(tokens), int(rounds)))))
        return
    print(render([batching_section(measure_batching(48, 6))]))


if __name__ == "__main__":
    main(sys.argv[1:])
