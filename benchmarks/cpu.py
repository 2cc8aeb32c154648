"""How fast the embedded model answers on a CPU: against llama.cpp, and against transformers alone.

    python -m benchmarks.cpu

The same weights and the same question, greedily, each in a process of its own, in turns and after
one round that isn't counted:

- **llama.cpp**: the GGUF file as it is, by llama-cpp-python, where that can be imported (`pip
  install llama-cpp-python` builds it for the machine). Without it the rows of it are missing.
- **bare**: `generate` of transformers on the converted weights, not packed, in the number type
  that the app chooses here, with the app's settings for threads.
- **app**: a `GenerationJob` over `LocalBackend`, as it comes.

All take as many threads as there are cores. tok/s are tokens after the first over the time from
the first to the end; the ratios are medians over the rounds, each round's runs against each other;
in brackets the lowest and the highest. A busy machine favours llama.cpp with one thread and ruins
it with several, whose threads wait for one another without sleeping: see docs/decisions.md.

Then the answers themselves, the app's and bare's against float32: see agreement.py.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks.agreement import PROMPTS, Agreement, measure_agreement
from benchmarks.beside_bare import speed_ratios, through_a_job
from benchmarks.server import ROOT
from benchmarks.table import Goal, Section, render, row, spread
from benchmarks.through_page import Run

QUESTION = "Write a long story about a lighthouse keeper who learns to paint the sea."
ANSWER_TOKENS = 64
"""What answers are compared over."""


@dataclass(frozen=True, slots=True)
class CpuFigures:
    """See the module's docstring; runs of the same number were run one after the other.

    Args:
        llama_cpp: empty where there is none.
    """

    llama_cpp: tuple[Run, ...]
    bare: tuple[Run, ...]
    app: tuple[Run, ...]
    load: float
    agreement: Agreement
    bare_agreement: Agreement


def measure_cpu(tokens: int, rounds: int, prompts: int) -> CpuFigures:
    """Fetch the model into a folder of its own, then measure.

    Args:
        prompts: how many answers are compared.
    """
    with tempfile.TemporaryDirectory(prefix="steady-chat-bench-") as folder:
        _told(["fetch", folder])
        runs = _in_turns(folder, tokens, rounds)
        same = _told(["agreement", folder, str(prompts)])
    return CpuFigures(
        llama_cpp=runs.get("llama.cpp", ()),
        bare=runs["bare"],
        app=runs["app"],
        load=os.getloadavg()[0],
        agreement=Agreement(**same["app"]),
        bare_agreement=Agreement(**same["bare"]),
    )


def cpu_section(figures: CpuFigures) -> Section:
    """The rows of the table."""
    rows = []
    if figures.llama_cpp:
        rows.append(spread("llama.cpp, tok/s", _speeds(figures.llama_cpp), "{:.1f}"))
    rows.append(spread("bare, tok/s", _speeds(figures.bare), "{:.1f}"))
    rows.append(spread("app, tok/s", _speeds(figures.app), "{:.1f}"))
    if figures.llama_cpp:
        ratios = speed_ratios(figures.llama_cpp, figures.app)
        rows.append(spread("app / llama.cpp", ratios, "{:.2f}", Goal(0.5, at_least=True)))
        ratios = speed_ratios(figures.llama_cpp, figures.bare)
        rows.append(spread("bare / llama.cpp", ratios, "{:.2f}"))
    rows.append(spread("app / bare", speed_ratios(figures.bare, figures.app), "{:.2f}"))
    mine, bares = figures.agreement, figures.bare_agreement
    off = [100 * (a.perplexity / a.exact_perplexity - 1) for a in (mine, bares)]
    rows += [
        row("answers as in float32", {"app": mine.identical / mine.answers}, "{:.0%}".format),
        row("the same, bare", {"app": bares.identical / bares.answers}, "{:.0%}".format),
        row(
            f"tokens as in float32, of {mine.answer_tokens:.0f}",
            {"app": mine.together_tokens},
            "{:.1f}".format,
        ),
        row(
            f"the same, bare, of {bares.answer_tokens:.0f}",
            {"app": bares.together_tokens},
            "{:.1f}".format,
        ),
        row("perplexity over float32's", {"app": off[0]}, "{:+.2f} %".format, Goal(1, " %")),
        row("the same, bare", {"app": off[1]}, "{:+.2f} %".format),
    ]
    return Section(
        f"the local model's speed on {os.cpu_count()} cores, {len(figures.app)} rounds", tuple(rows)
    )


def _speeds(runs: tuple[Run, ...]) -> list[float]:
    return [run.tokens_per_s for run in runs]


def _in_turns(folder: str, tokens: int, rounds: int) -> dict[str, tuple[Run, ...]]:
    """Each way's runs, in pairs of rounds there and back."""
    names = ["bare", "app"]
    if importlib.util.find_spec("llama_cpp"):
        names.insert(0, "llama.cpp")
    runs: dict[str, list[Run]] = {name: [] for name in names}
    with ExitStack() as stack:
        ask = {name: stack.enter_context(_process(name, folder)) for name in names}
        for number in range(rounds + 1):
            for name in names if number % 2 else reversed(names):
                runs[name].append(ask[name](tokens))
    return {name: tuple(each[1:]) for name, each in runs.items()}


@contextmanager
def _process(name: str, folder: str) -> Iterator[Callable[[int], Run]]:
    """One way in a process of its own that answers when it is told how long."""
    command = [sys.executable, "-m", "benchmarks.cpu", name, folder]
    process = subprocess.Popen(
        command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdin is not None
    assert process.stdout is not None

    def ask(tokens: int) -> Run:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(f"{tokens}\n")
        process.stdin.flush()
        line = process.stdout.readline()
        if not line:
            raise RuntimeError(f"{name} ended with {process.wait()}")
        return Run(**json.loads(line))

    try:
        yield ask
    finally:
        process.stdin.close()
        process.terminate()
        process.wait()
        process.stdout.close()


def _told(arguments: list[str]) -> dict[str, Any]:
    """This module in a process of its own; what it prints last."""
    command = [sys.executable, "-m", "benchmarks.cpu", *arguments]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(arguments)} failed:\n{done.stderr[-2000:]}")
    told: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return told


def _backend(folder: Path, quantization: Any) -> Any:
    """The embedded model, ready."""
    from llm.local_backend import LocalBackend, LocalOptions

    backend = LocalBackend(LocalOptions(data_dir=folder, quantization=quantization))
    backend.prepare()
    while not (status := backend.status()).ready:
        if status.error is not None:
            raise status.error
        time.sleep(0.05)
    return backend


def _app(folder: Path) -> Callable[[int], Run]:
    from llm.types import SamplingParams

    backend = _backend(folder, "auto")
    return lambda tokens: through_a_job(
        backend, QUESTION, SamplingParams(max_tokens=tokens, temperature=0)
    )


def _bare(folder: Path) -> Callable[[int], Run]:
    model, tokenizer = _plain(folder, None)
    inputs = tokenizer.apply_chat_template(
        [{"role": "user", "content": QUESTION}],
        add_generation_prompt=True,
        return_dict=True,
        return_tensors="pt",
    )

    class Clock:
        """A streamer that only notes the time; the prompt is put first."""

        def __init__(self) -> None:
            self.times_s: list[float] = []

        def put(self, value: Any) -> None:
            self.times_s.append(time.perf_counter())

        def end(self) -> None:
            pass

    def run(tokens: int) -> Run:
        clock = Clock()
        started_s = time.perf_counter()
        model.generate(**inputs, do_sample=False, max_new_tokens=tokens, streamer=clock)
        _, first_s, *_, last_s = clock.times_s
        made = len(clock.times_s) - 1
        return Run(made, (made - 1) / (last_s - first_s), first_s - started_s)

    return run


def _llama_cpp(folder: Path) -> Callable[[int], Run]:
    from llm.embedded_model import embedded_path

    # Not a requirement: it takes ten minutes to build.
    llama_cpp = importlib.import_module("llama_cpp")
    source = embedded_path(folder / "models")
    model = llama_cpp.Llama(str(source), n_ctx=2048, n_threads=os.cpu_count(), verbose=False)
    system = "You are a helpful AI assistant named SmolLM, trained by Hugging Face"
    prompt = (
        f"<|im_start|>system\n{system}<|im_end|>\n"
        f"<|im_start|>user\n{QUESTION}<|im_end|>\n<|im_start|>assistant\n"
    )
    ids = model.tokenize(prompt.encode(), add_bos=False, special=True)

    def run(tokens: int) -> Run:
        started_s = time.perf_counter()
        answer = model.generate(ids, temp=0, repeat_penalty=1, reset=True)
        model.reset()
        times_s = []
        for _, _ in zip(range(tokens), answer, strict=False):
            times_s.append(time.perf_counter())
        took_s = times_s[-1] - times_s[0]
        return Run(len(times_s), (len(times_s) - 1) / took_s, times_s[0] - started_s)

    return run


def _plain(folder: Path, number_type: str | None) -> tuple[Any, Any]:
    """The converted weights as transformers loads them, and their tokenizer."""
    from transformers import AutoModelForCausalLM, AutoTokenizer

    from llm.local_loader import choose_dtype
    from llm.local_source import obtain
    from llm.models import EMBEDDED, resolve
    from llm.types import CancelToken

    spec = resolve(EMBEDDED)
    converted = obtain(spec, folder, False, CancelToken(), lambda phase, done: None)
    dtype = choose_dtype(number_type or "auto")
    model = AutoModelForCausalLM.from_pretrained(converted, dtype=dtype).eval()
    return model, AutoTokenizer.from_pretrained(converted)


def _agreement(folder: Path, prompts: int) -> dict[str, Any]:
    exact, tokenizer = _plain(folder, "float32")
    bare, _ = _plain(folder, None)
    app = _backend(folder, "auto")._loaded.model
    return {
        name: asdict(measure_agreement(model, exact, tokenizer, PROMPTS[:prompts], ANSWER_TOKENS))
        for name, model in (("app", app), ("bare", bare))
    }


_WAYS = {"llama.cpp": _llama_cpp, "bare": _bare, "app": _app}


def main(arguments: list[str]) -> None:
    from llm.local_libraries import wait_without_spinning

    if not arguments:
        print(render([cpu_section(measure_cpu(64, 6, len(PROMPTS)))]))
        return
    name, folder, *rest = arguments
    if name != "llama.cpp":
        wait_without_spinning()
    if name == "fetch":
        _backend(Path(folder), "none")
        print("{}")
    elif name == "agreement":
        print(json.dumps(_agreement(Path(folder), int(rest[0]))))
    else:
        run = _WAYS[name](Path(folder))
        for line in sys.stdin:
            print(json.dumps(asdict(run(int(line)))), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
