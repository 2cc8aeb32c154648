"""What the engine adds to the model: `generate()` through it and without it, and its start.

    python -m benchmarks.local_engine

On the embedded model, with the app's default parameters:

- **bare**: `model.generate` on this thread with transformers' own sampling and a streamer that
  only notes the time. **engine**: `LocalBackend.stream` in a `GenerationJob`, read by a waiting
  thread as the page does. Both on one loaded model, in turns (ABAB), medians of the rounds, after
  one round that isn't counted.
- **tok/s**: tokens after the first over the time from the first to the end. Tokens are those that
  were generated, the one that ends the answer too.
- **TTFT**: from the call to the first token (bare) or the first text in a snapshot (engine).
- **through the app**: what the receipt under an answer in the browser says.
- **first start, second start**: a fresh Python process until the model is ready, with an empty
  data folder and again with what the first left there. The first one's download comes from pip's
  index, or from pip's cache if it is there: then it looks quicker than it is.
"""

from __future__ import annotations

import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser

from benchmarks.browser_probe import chromium, open_page
from benchmarks.chat_page import APP, PAGE_TIMEOUT_S, SCRIPTS
from benchmarks.server import ROOT, serve
from benchmarks.table import Goal, Section, render, row

QUESTION = "Write a long story about a lighthouse keeper who learns to paint the sea."
SEED = 7
START_TIMEOUT_S = 900.0
_RECEIPT = re.compile(r"first text after ([\d.]+) s · ([\d.]+) tokens/s")


@dataclass(frozen=True, slots=True)
class Run:
    """One answer."""

    tokens: int
    tokens_per_s: float
    ttft_s: float


@dataclass(frozen=True, slots=True)
class LocalFigures:
    """See the module's docstring."""

    bare: tuple[Run, ...]
    engine: tuple[Run, ...]
    app: Run | None
    first_start_s: float
    second_start_s: float


def measure_local(tokens: int, rounds: int, browser: Browser) -> LocalFigures:
    """Start twice, compare engine and bare model in a process of their own, then ask the app."""
    with tempfile.TemporaryDirectory(prefix="steady-chat-bench-") as folder:
        first_s, second_s = (_timed(["start", folder]) for _ in range(2))
        told = json.loads(_python(["compare", folder, str(tokens), str(rounds)]))
        return LocalFigures(
            bare=tuple(Run(**run) for run in told["bare"]),
            engine=tuple(Run(**run) for run in told["engine"]),
            app=_through_the_app(browser, folder, tokens),
            first_start_s=first_s,
            second_start_s=second_s,
        )


def local_section(figures: LocalFigures) -> Section:
    """The rows of the table; the ratio compares medians."""
    bare, engine = _median(figures.bare), _median(figures.engine)
    app = figures.app
    added_ms = 1000 * (engine.ttft_s - bare.ttft_s)
    sooner = figures.first_start_s / figures.second_start_s
    return Section(
        "the local model",
        (
            row("bare, tok/s", {"app": bare.tokens_per_s}, "{:.1f}".format),
            row("engine, tok/s", {"app": engine.tokens_per_s}, "{:.1f}".format),
            row(
                "engine / bare",
                {"app": engine.tokens_per_s / bare.tokens_per_s},
                "{:.3f}".format,
                Goal(0.97, at_least=True),
            ),
            row("TTFT, bare", {"app": 1000 * bare.ttft_s}, "{:.0f} ms".format),
            row("added TTFT", {"app": added_ms}, "{:.0f} ms".format, Goal(100, " ms")),
            row("through the app, tok/s", {"app": app and app.tokens_per_s}, "{:.1f}".format),
            row("through the app, TTFT", {"app": app and 1000 * app.ttft_s}, "{:.0f} ms".format),
            row("first start", {"app": figures.first_start_s}, "{:.1f} s".format),
            row("second start", {"app": figures.second_start_s}, "{:.1f} s".format),
            row("sooner by", {"app": sooner}, "{:.1f}x".format, Goal(5, "x", at_least=True)),
        ),
    )


def _median(runs: tuple[Run, ...]) -> Run:
    return Run(
        tokens=min(run.tokens for run in runs),
        tokens_per_s=statistics.median(run.tokens_per_s for run in runs),
        ttft_s=statistics.median(run.ttft_s for run in runs),
    )


def _python(arguments: list[str]) -> str:
    """This module in a process of its own; the last line it prints."""
    command = [sys.executable, "-m", "benchmarks.local_engine", *arguments]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(arguments)} failed:\n{done.stderr[-2000:]}")
    return done.stdout.strip().splitlines()[-1]


def _timed(arguments: list[str]) -> float:
    started_s = time.perf_counter()
    _python(arguments)
    return time.perf_counter() - started_s


def _through_the_app(browser: Browser, data_dir: str, tokens: int) -> Run | None:
    """Ask in the browser and read the receipt; None if there is none to read."""
    environment = {
        "STEADY_CHAT_BACKENDS": "local",
        "STEADY_CHAT_DATA_DIR": data_dir,
        "STEADY_CHAT_MAX_TOKENS": str(tokens),
        "STEADY_CHAT_SEED": str(SEED),
        "STEADY_CHAT_LANGUAGE": "en",
    }
    told: list[tuple[str, str]] = []
    with serve(SCRIPTS[APP], environment) as server:
        for _ in range(2):  # In two conversations: the first also waits for the model.
            with open_page(browser, server.url) as probe:
                field = probe.page.get_by_test_id("stChatInputTextArea")
                field.wait_for(timeout=PAGE_TIMEOUT_S * 1000)
                field.fill(QUESTION)
                field.press("Enter")
                receipt = probe.page.get_by_text(_RECEIPT)
                receipt.wait_for(timeout=START_TIMEOUT_S * 1000)
                told = _RECEIPT.findall(receipt.inner_text())
    return Run(tokens, float(told[0][1]), float(told[0][0])) if told else None


def _backend(data_dir: Path) -> Any:
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
    """Bare and engine in turns; the first round is thrown away."""
    backend = _backend(data_dir)
    runs: dict[str, list[dict[str, Any]]] = {"bare": [], "engine": []}
    for _ in range(rounds + 1):
        runs["bare"].append(asdict(_bare(backend._loaded, tokens)))
        runs["engine"].append(asdict(_engine(backend, tokens)))
    return {name: some[1:] for name, some in runs.items()}


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


def _bare(loaded: Any, tokens: int) -> Run:
    import torch

    from llm.types import SamplingParams

    params = SamplingParams()
    clock = _Clock()
    torch.manual_seed(SEED)
    started_s = time.perf_counter()
    inputs = loaded.tokenizer.apply_chat_template(
        [{"role": "user", "content": QUESTION}],
        add_generation_prompt=True,
        return_dict=True,
        return_tensors="pt",
    )
    ids = loaded.model.generate(
        **inputs.to(loaded.device),
        do_sample=True,
        temperature=params.temperature,
        top_p=params.top_p,
        max_new_tokens=tokens,
        streamer=clock,
    )
    took_s = time.perf_counter() - clock.first_s
    made = int(ids.shape[1] - inputs["input_ids"].shape[1])
    return Run(made, (made - 1) / took_s, clock.first_s - started_s)


def _engine(backend: Any, tokens: int) -> Run:
    from llm.job import GenerationJob
    from llm.types import GenerationRequest, Message, SamplingParams

    params = SamplingParams(max_tokens=tokens, seed=SEED)
    request = GenerationRequest((Message("user", QUESTION),), params)
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


def main(arguments: list[str]) -> None:
    if arguments[:1] == ["start"]:
        _backend(Path(arguments[1]))
        # What follows a start isn't part of it: leave without tidying up.
        print("ready", flush=True)
        os._exit(0)
    if arguments[:1] == ["compare"]:
        folder, tokens, rounds = arguments[1:]
        print(json.dumps(_compare(Path(folder), int(tokens), int(rounds))))
        return
    with chromium() as browser:
        print(render([local_section(measure_local(96, 4, browser))]))


if __name__ == "__main__":
    main(sys.argv[1:])
