"""What the engine adds to the model: `generate()` through it and without it, and its start.

    python -m benchmarks.local_engine

On the embedded model, with the app's default parameters:

- **bare**: `model.generate` on this thread with transformers' own sampling and a streamer that
  only notes the time. **engine**: `LocalBackend.stream` in a `GenerationJob`, read by a waiting
  thread as the page does. Both in one process, with the threads' settings that the backend makes
  before torch is imported, and on one loaded model (bare without the backend's hooks in it, but
  with the weights that loading has packed), in turns (ABBA), after one round that isn't counted.
  What packing gives is measured by cpu.py, whose bare has the plain weights.
- **engine / bare** and **added TTFT** are medians over the rounds, each round's engine against
  its own bare; in brackets the lowest and the highest.
- **tok/s**: tokens after the first over the time from the first to the end. Tokens are those that
  were generated, the one that ends the answer too.
- **TTFT**: from the call to the first token (bare) or the first text in a snapshot (engine).
- **through the page**: what the receipt under an answer in the browser says, asked three times,
  each in a conversation of its own; after one more that isn't counted and waits for the model.
  Another process than bare's, beside a Streamlit server and a browser: the ratio to bare says
  what a person gets of the model, not what the engine costs.
- **first start, second start**: a fresh Python process until the model is ready, with an empty
  data folder and again with what the first left there. The first one's download comes from pip's
  index, or from pip's cache if it is there: then it looks quicker than it is.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser

from benchmarks.bare_generate import SAME_MODEL, bare_run, without_hooks
from benchmarks.beside_bare import Run, added_ttft_ms, in_turns, speed_ratios, through_a_job
from benchmarks.browser_probe import chromium
from benchmarks.chat_page import APP
from benchmarks.server import ROOT
from benchmarks.table import Goal, Section, render, row, spread
from benchmarks.through_page import through_the_page

QUESTION = "Write a long story about a lighthouse keeper who learns to paint the sea."
SEED = 7


@dataclass(frozen=True, slots=True)
class LocalFigures:
    """See the module's docstring; `bare` and `engine` are pairs, in the order they were run."""

    bare: tuple[Run, ...]
    engine: tuple[Run, ...]
    through_page: tuple[Run, ...]
    first_start_s: float
    second_start_s: float


def measure_local(tokens: int, rounds: int, browser: Browser) -> LocalFigures:
    """Start twice, compare engine and bare model in a process of their own, then ask the app."""
    with tempfile.TemporaryDirectory(prefix="steady-chat-bench-") as folder:
        first_s, second_s = (_timed(["start", folder]) for _ in range(2))
        told = json.loads(run_python("local_engine", ["compare", folder, str(tokens), str(rounds)]))
        return LocalFigures(
            bare=tuple(Run(**run) for run in told["bare"]),
            engine=tuple(Run(**run) for run in told["engine"]),
            through_page=through_the_page(browser, _page_settings(folder, tokens), QUESTION),
            first_start_s=first_s,
            second_start_s=second_s,
        )


def local_section(figures: LocalFigures) -> Section:
    """The rows of the table."""
    bare, engine, page = (
        [run.tokens_per_s for run in runs]
        for runs in (figures.bare, figures.engine, figures.through_page)
    )
    bare_ms, page_ms = (
        [1000 * run.ttft_s for run in runs] for runs in (figures.bare, figures.through_page)
    )
    of_bare = [speed / statistics.median(bare) for speed in page]
    ratios = speed_ratios(figures.bare, figures.engine)
    added_ms = added_ttft_ms(figures.bare, figures.engine)
    sooner = figures.first_start_s / figures.second_start_s
    return Section(
        f"the local model, {len(bare)} rounds; in brackets the lowest and the highest; {SAME_MODEL}",
        (
            spread("bare, tok/s", bare, "{:.1f}"),
            spread("engine, tok/s", engine, "{:.1f}"),
            spread("engine / bare", ratios, "{:.3f}", Goal(0.97, at_least=True)),
            spread("TTFT, bare", bare_ms, "{:.0f} ms"),
            spread("added TTFT", added_ms, "{:.0f} ms", Goal(100, " ms")),
            spread("through the page, tok/s", page, "{:.1f}"),
            spread("through the page (another process) / bare", of_bare, "{:.3f}"),
            spread("through the page, TTFT", page_ms, "{:.0f} ms"),
            row("first start", {APP: figures.first_start_s}, "{:.1f} s".format),
            row("second start", {APP: figures.second_start_s}, "{:.1f} s".format),
            row("sooner by", {APP: sooner}, "{:.1f}x".format, Goal(5, "x", at_least=True)),
        ),
    )


def run_python(module: str, arguments: list[str]) -> str:
    """A benchmark's module in a process of its own; the last line it prints."""
    command = [sys.executable, "-m", f"benchmarks.{module}", *arguments]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(arguments)} failed:\n{done.stderr[-2000:]}")
    return done.stdout.strip().splitlines()[-1]


def _timed(arguments: list[str]) -> float:
    started_s = time.perf_counter()
    run_python("local_engine", arguments)
    return time.perf_counter() - started_s


def _page_settings(data_dir: str, tokens: int) -> dict[str, str]:
    return {
        "STEADY_CHAT_BACKENDS": "local",
        "STEADY_CHAT_DATA_DIR": data_dir,
        "STEADY_CHAT_MAX_TOKENS": str(tokens),
        "STEADY_CHAT_SEED": str(SEED),
    }


def ready_backend(data_dir: Path) -> Any:
    """The embedded model, ready.

    Raises:
        LLMError: it can't be made ready.
    """
    from llm.local_backend import LocalBackend, LocalOptions

    backend = LocalBackend(LocalOptions(data_dir=data_dir))
    backend.prepare()
    while not (status := backend.status()).ready:
        if status.error is not None:
            raise status.error
        time.sleep(0.02)
    return backend


def _compare(data_dir: Path, tokens: int, rounds: int) -> dict[str, list[dict[str, Any]]]:
    """Bare and engine in turns."""
    from llm.types import SamplingParams

    backend = ready_backend(data_dir)
    params = SamplingParams(max_tokens=tokens, seed=SEED)

    def bare() -> Run:
        with without_hooks(backend._loaded.model):
            return bare_run(backend._loaded, QUESTION, tokens, SEED)

    def engine() -> Run:
        return through_a_job(backend, QUESTION, params)

    names = ("bare", "engine")
    each = zip(names, in_turns(bare, engine, rounds), strict=True)
    return {name: [asdict(run) for run in runs] for name, runs in each}


def main(arguments: list[str]) -> None:
    if arguments[:1] == ["start"]:
        ready_backend(Path(arguments[1]))
        # What follows a start isn't part of it: leave without tidying up.
        print("ready", flush=True)
        os._exit(0)
    if arguments[:1] == ["compare"]:
        folder, tokens, rounds = arguments[1:]
        print(json.dumps(_compare(Path(folder), int(tokens), int(rounds))))
        return
    with chromium() as browser:
        print(render([local_section(measure_local(64, 6, browser))]))


if __name__ == "__main__":
    main(sys.argv[1:])
