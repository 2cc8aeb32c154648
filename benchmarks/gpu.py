"""What the engine makes of a GPU: one command, under eight minutes, nothing downloaded.

    python -m benchmarks.gpu              # on a machine with a GPU
    python -m benchmarks.gpu --tiny       # the same machinery on a tiny model: does it run at all?
    python -m benchmarks.gpu --only stop --only quantized   # some parts, by how their names begin

It needs torch, transformers, accelerate and this repository; bitsandbytes and torchao are measured
where they are installed. The model has the shape of Qwen2.5-1.5B and random weights, made on the
device and loaded by the app's own loader. Every part runs in a window of time and is left out, with
a line that says so, when it may not fit into `--limit-s` any more; one that fails is a line with
the reason. The status is 1 when a part that is required has no figures.

- **bare**: `model.generate` with transformers' own sampling. **engine**: `LocalBackend` through a
  `GenerationJob`, the app's default parameters. Where the engine can answer several requests in one
  batch, *batched* has it on and *a thread each* has it off.
- **one answer at a time**: bare and engine in turns (ABBA), after a round that isn't counted; the
  ratio and the added TTFT are each round's engine against its own bare, in brackets the lowest and
  the highest.
- **N answers at once**: all tokens over the time from the first question to the last end, reading
  the prompts included. A *static batch* is one `generate` over all of them, which nobody can join
  or leave: the ceiling. *Plain threads* are that many `generate`s beside each other.
- **first text, worst**: the longest that one of them waited.
- **event loop**: what anything due at any moment had to wait in a loop of the same process, while
  the engine gave those answers.
- **Stop**: from `cancel` to the answer's end, for one answer alone, for eight stopped one after the
  other while the rest go on, and a third into the reading of a long prompt.
- **memory**: the most that was allocated on the device; on a CPU the most that the process has had
  up to then.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, fields
from datetime import datetime
from functools import partial
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import Any, get_args, get_type_hints

from benchmarks.bare_generate import bare_run, plain_threads, static_batch, without_hooks
from benchmarks.beside_bare import added_ttft_ms, in_turns, speed_ratios, through_a_job
from benchmarks.jobs_at_once import ask_together, stop_in_turn, stop_while_reading
from benchmarks.loop_delay import loop_delay, percentile
from benchmarks.parts import Measured, Outcome, Part, failed, run_parts, sections
from benchmarks.random_model import QWEN_1_5B, TINY, Shape, make_random_model
from benchmarks.table import Goal, Row, render, row, spread
from llm.errors import MissingPackageError
from llm.local_backend import LocalBackend, LocalOptions
from llm.local_ready import _wait_without_spinning
from llm.types import SamplingParams

QUESTION = "Write a long story about a lighthouse keeper who learns to paint the sea."
SEED = 7
RESULTS = Path(__file__).parent / "results"
LIMIT_S = 420.0
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
                self._open[key] = LocalBackend(options)
                _get_ready(self._open[key])
        return [self._open[key] for key in keys]

    def close(self) -> None:
        self.backends()


def _get_ready(backend: LocalBackend) -> None:
    backend.prepare()
    while not (status := backend.status()).ready:
        if status.error is not None:
            raise status.error
        time.sleep(0.02)


def _plain() -> dict[str, Any]:
    """The options of the backend whose model is used bare, too."""
    return {**ways()["a thread each"], "slots": max(AT_ONCE)}


def _questions(count: int) -> list[str]:
    """Different ones of one length."""
    return [f"{number:02d}. {QUESTION}" for number in range(count)]


def measure_model(bench: Bench) -> Measured:
    """Make the model, and have the app load it."""
    started_s = time.perf_counter()
    parameters = make_random_model(bench.model_folder, bench.sizes.shape, _device())
    _free()
    made_s = time.perf_counter() - started_s
    started_s = time.perf_counter()
    (backend,) = bench.backends(_plain())
    loaded_s = time.perf_counter() - started_s
    model = backend._loaded.model
    dtype, device = str(model.dtype).removeprefix("torch."), str(model.device)
    rows = (
        row("parameters", {"app": parameters / 1e9}, "{:.3f} billion".format),
        Row("number type, device", {"app": f"{dtype}, {device}"}),
        row("made and written", {"app": made_s}, "{:.1f} s".format),
        row("loaded and warmed up", {"app": loaded_s}, "{:.1f} s".format),
        _memory_row("weights", weights := _allocated_gb()),
    )
    figures = {"parameters": parameters, "dtype": dtype, "device": device, "made_s": made_s}
    return Measured(rows, {**figures, "loaded_s": loaded_s, "weights_gb": weights})


def measure_one(bench: Bench, way: str) -> Measured:
    """Bare and engine in turns."""
    options = {**ways()[way], "slots": max(AT_ONCE) if way == "a thread each" else AT_ONCE[0]}
    backend, plain = bench.backends(options, _plain())
    loaded = plain._loaded
    model, rounds = loaded.model, bench.sizes.rounds

    def bare(tokens: int, max_s: float | None = None) -> Any:
        with without_hooks(model):
            return bare_run(loaded, QUESTION, tokens, SEED, max_s)

    # On a slower device than was thought of, shorter answers fit into the time.
    tokens_per_s = bare(bench.sizes.tokens, max_s=5).tokens_per_s
    each_s = 2 * bench.sizes.window_s / (2 * (rounds + 1))
    tokens = max(8, min(bench.sizes.tokens, int(tokens_per_s * each_s)))
    params = SamplingParams(max_tokens=tokens, seed=SEED)
    bares, engines = in_turns(
        lambda: bare(tokens), lambda: through_a_job(backend, QUESTION, params), rounds
    )
    speeds = [run.tokens_per_s for run in engines]
    if bench.bare_tokens_per_s is None:  # the other way, later, is no yardstick for the rest
        bench.bare_tokens_per_s = statistics.median(run.tokens_per_s for run in bares)
        bench.engine_tokens_per_s = statistics.median(speeds)
    ratios, added_ms = speed_ratios(bares, engines), added_ttft_ms(bares, engines)
    rows = (
        spread("bare, tok/s", [run.tokens_per_s for run in bares], "{:.1f}"),
        spread("engine, tok/s", speeds, "{:.1f}"),
        spread("engine / bare", ratios, "{:.3f}", Goal(0.97, at_least=True)),
        spread("TTFT, bare", [1000 * run.ttft_s for run in bares], "{:.0f} ms"),
        spread("added TTFT", added_ms, "{:.0f} ms", Goal(100, " ms")),
    )
    both = {"bare": [asdict(run) for run in bares], "engine": [asdict(run) for run in engines]}
    return Measured(rows, {**both, "ratio": ratios, "added_ttft_ms": added_ms})


def measure_stop(bench: Bench, way: str) -> Measured:
    """Stop one answer alone, several times; eight, one after the other; and long prompts."""
    (backend,) = bench.backends({**ways()[way], "slots": AT_ONCE[0]})
    alone_ms = [
        1000 * stopped_s
        for _ in range(bench.sizes.stops)
        for stopped_s in stop_in_turn(backend, _questions(1))
    ]
    beside_ms = [1000 * stopped_s for stopped_s in stop_in_turn(backend, _questions(AT_ONCE[0]))]
    # The tokenizer takes text byte by byte.
    more = " and again" * (bench.sizes.long_prompt // len(" and again"))
    long = [question + more for question in _questions(1 + bench.sizes.stops)]
    read_s, reading_s = stop_while_reading(backend, long)
    reading_ms = [1000 * stopped_s for stopped_s in reading_s]
    rows = (
        _p50_max("alone, p50 (max)", alone_ms),
        _p50_max(f"of {AT_ONCE[0]}, p50 (max)", beside_ms),
        row(
            f"{bench.sizes.long_prompt:,} tokens of prompt, first text",
            {"app": read_s},
            "{:.2f} s".format,
        ),
        _p50_max("while that is read, p50 (max)", reading_ms),
    )
    stops = {"alone_ms": alone_ms, "beside_ms": beside_ms, "reading_ms": reading_ms}
    return Measured(rows, {**stops, "long_prompt_ttft_s": read_s})


def measure_static(bench: Bench, count: int) -> Measured:
    """One `generate` over all of them."""
    (backend,) = bench.backends(_plain())
    with without_hooks(backend._loaded.model):
        ask = partial(static_batch, backend._loaded, _questions(count), max_s=bench.sizes.window_s)
        return _together("static batch", *_warm(ask, bench.sizes.tokens))


def measure_threads(bench: Bench, count: int) -> Measured:
    """A `generate` each, on as many threads."""
    (backend,) = bench.backends(_plain())
    with without_hooks(backend._loaded.model):
        ask = partial(plain_threads, backend._loaded, _questions(count), max_s=bench.sizes.window_s)
        return _together("plain threads", *_warm(ask, bench.sizes.tokens))


def _warm(ask: Callable[..., tuple[int, float]], tokens: int) -> tuple[int, float]:
    """The second time's figures; what the device does once, such as choosing kernels, is over."""
    ask(tokens=4)
    _reset_peak()
    return ask(tokens=tokens)


def _together(what: str, made: int, took_s: float) -> Measured:
    figures = {"tokens": made, "took_s": took_s, "tokens_per_s": made / took_s}
    rows = (
        row(f"{what}, tok/s", {"app": made / took_s}, "{:.1f}".format),
        _memory_row(f"{what}, memory", peak := _peak_gb()),
    )
    return Measured(rows, {**figures, "peak_gb": peak})


def measure_at_once(
    bench: Bench, way: str, count: int, static: Callable[[], float | None]
) -> Measured:
    """As many jobs at once, beside an event loop."""
    slots = max(AT_ONCE) if way == "a thread each" else count
    (backend,) = bench.backends({**ways()[way], "slots": slots})
    questions, window_s = _questions(count), bench.sizes.window_s
    ask_together(backend, questions, SamplingParams(max_tokens=4, seed=SEED), window_s)
    _reset_peak()
    params = SamplingParams(max_tokens=bench.sizes.tokens, seed=SEED)
    with loop_delay() as late_ms:
        done = ask_together(backend, questions, params, window_s)
    of_static = done.tokens_per_s / ceiling if (ceiling := static()) else None
    p50, p99 = (percentile(late_ms, share) for share in (0.5, 0.99))
    rows = (
        row(f"{way}, tok/s", {"app": done.tokens_per_s}, "{:.1f}".format),
        row(f"{way} / static batch", {"app": of_static}, "{:.2f}".format),
        row(f"{way}, first text, worst", {"app": max(done.ttft_s)}, "{:.2f} s".format),
        Row(
            f"{way}, event loop, p50 / p99 / max",
            {"app": f"{p50:.1f} / {p99:.1f} / {max(late_ms):.1f} ms"},
        ),
        _memory_row(f"{way}, memory", peak := _peak_gb()),
    )
    loop = {"p50": p50, "p99": p99, "max": max(late_ms)}
    figures = {**asdict(done), "tokens_per_s": done.tokens_per_s, "of_static": of_static}
    return Measured(rows, {**figures, "loop_ms": loop, "peak_gb": peak})


def measure_loop(bench: Bench) -> Measured:
    """The event loop beside nothing."""
    with loop_delay() as late_ms:
        time.sleep(1)
    p50, p99 = (percentile(late_ms, share) for share in (0.5, 0.99))
    text = f"{p50:.1f} / {p99:.1f} / {max(late_ms):.1f} ms"
    figures = {"p50": p50, "p99": p99, "max": max(late_ms)}
    return Measured((Row("p50 / p99 / max", {"app": text}),), {"loop_ms": figures})


def measure_quantized(bench: Bench, mode: str) -> Measured:
    """One answer at a time by quantized weights."""
    bench.close()
    _reset_peak()
    try:
        (backend,) = bench.backends({"quantization": mode, "slots": 1})
    except MissingPackageError as error:
        package = str(error.values["package"])
        return Measured(
            (Row(mode, {"app": f"not installed: {package}"}),), {"not_installed": package}
        )
    weights = _allocated_gb()
    question = _questions(1)
    ask_together(backend, question, SamplingParams(max_tokens=4, seed=SEED), bench.sizes.window_s)
    params = SamplingParams(max_tokens=bench.sizes.quantized_tokens, seed=SEED)
    done = ask_together(backend, question, params, bench.sizes.window_s)
    speed = (done.tokens[0] - 1) / (done.took_s - done.ttft_s[0])
    return _quantized(mode, speed, bench.engine_tokens_per_s, weights)


def measure_torchao(bench: Bench) -> Measured:
    """A bare answer by torchao's 8-bit weights: whether it would be worth offering."""
    name = "torchao int8, bare"
    if find_spec("torchao") is None:
        return Measured(
            (Row(name, {"app": "not installed: torchao"}),), {"not_installed": "torchao"}
        )
    from transformers import AutoModelForCausalLM, AutoTokenizer, TorchAoConfig

    from llm.local_loader import LoadedModel, choose_dtype

    bench.close()
    _reset_peak()
    int8 = import_module("torchao.quantization").Int8WeightOnlyConfig()
    model = AutoModelForCausalLM.from_pretrained(
        bench.model_folder,
        dtype=choose_dtype("auto"),
        device_map="auto",
        quantization_config=TorchAoConfig(int8),
    )
    weights = _allocated_gb()
    tokenizer = AutoTokenizer.from_pretrained(bench.model_folder)
    loaded = LoadedModel(name, model, tokenizer, model.device, None, ())
    bare_run(loaded, QUESTION, 4, SEED, bench.sizes.window_s)
    run = bare_run(loaded, QUESTION, bench.sizes.quantized_tokens, SEED, bench.sizes.window_s)
    return _quantized(name, run.tokens_per_s, bench.bare_tokens_per_s, weights)


def _quantized(
    name: str, speed: float, unquantized: float | None, weights: float | None
) -> Measured:
    of_none = speed / unquantized if unquantized else None
    rows = (
        row(f"{name}, tok/s", {"app": speed}, "{:.1f}".format),
        row(f"{name} / unquantized", {"app": of_none}, "{:.2f}".format),
        _memory_row(f"{name}, weights", weights),
        _memory_row(f"{name}, memory", peak := _peak_gb()),
    )
    figures = {"tokens_per_s": speed, "of_unquantized": of_none, "weights_gb": weights}
    return Measured(rows, {**figures, "peak_gb": peak})


def plan(bench: Bench) -> list[Part]:
    """All parts, what matters most first."""
    sizes = bench.sizes
    window_s, load_s = sizes.window_s, sizes.load_s
    static: dict[int, float] = {}

    def keep_static(count: int) -> Measured:
        measured = measure_static(bench, count)
        static[count] = measured.figures["tokens_per_s"]
        return measured

    def at_once(count: int, title: str, required: bool) -> list[Part]:
        parts = [
            Part(f"static-{count}", title, load_s + window_s, required, partial(keep_static, count))
        ]
        for way in ways():
            name = f"{way.replace(' ', '-')}-{count}"
            measure = partial(measure_at_once, bench, way, count, partial(static.get, count))
            parts.append(Part(name, title, load_s + 1.5 * window_s, required, measure))
        return parts

    parts = [
        Part(
            "model",
            f"random weights in the shape of {sizes.shape.name}",
            sizes.make_s + load_s,
            True,
            partial(measure_model, bench),
        )
    ]
    for way in ways():
        ending = "" if len(ways()) == 1 else f", {way}"
        title = f"one answer at a time{ending}"
        needs_s = load_s + 3 * window_s
        name = f"one-{way.replace(' ', '-')}"
        parts.append(Part(name, title, needs_s, True, partial(measure_one, bench, way)))
    parts += at_once(AT_ONCE[0], f"{AT_ONCE[0]} answers at once", required=True)
    for way in ways():
        ending = "" if len(ways()) == 1 else f", {way}"
        name = f"stop-{way.replace(' ', '-')}"
        measure = partial(measure_stop, bench, way)
        parts.append(Part(name, f"Stop{ending}", load_s + window_s, True, measure))
    parts.append(Part("loop", "event loop beside nothing", 3, True, partial(measure_loop, bench)))
    parts += at_once(AT_ONCE[1], f"{AT_ONCE[1]} answers at once", required=False)
    parts += [
        Part(
            f"threads-{AT_ONCE[0]}",
            f"{AT_ONCE[0]} plain `generate` threads",
            load_s + 1.5 * window_s,
            False,
            partial(measure_threads, bench, AT_ONCE[0]),
        )
    ]
    parts += [
        Part(
            f"quantized-{mode}",
            "quantized, one answer at a time",
            load_s + window_s,
            False,
            partial(measure_quantized, bench, mode),
        )
        for mode in quantizations()
    ]
    title, needs_s = "quantized, one answer at a time", load_s + window_s
    measure_ao = partial(measure_torchao, bench)
    parts.append(Part("quantized-torchao", title, needs_s, False, measure_ao))
    return parts


def _p50_max(figure: str, values_ms: Sequence[float]) -> Row:
    """A dash where nothing was measured."""
    if not values_ms:
        return Row(figure, {"app": "–"})
    text = f"{percentile(values_ms, 0.5):.0f} ms ({max(values_ms):.0f} ms) of {len(values_ms)}"
    return Row(figure, {"app": text})


def _device() -> str:
    import torch

    if torch.cuda.is_available():
        return "cuda"
    return "mps" if torch.backends.mps.is_available() else "cpu"


def _free() -> None:
    from llm.local_memory import free_memory

    free_memory()


def _reset_peak() -> None:
    if _device() == "cuda":
        import torch

        torch.cuda.reset_peak_memory_stats()


def _allocated_gb() -> float | None:
    """What is allocated on the device; None where it can't be told."""
    if _device() != "cuda":
        return None
    import torch

    return float(torch.cuda.memory_allocated() / 1e9)


def _peak_gb() -> float | None:
    """The most that was allocated since `_reset_peak`; on a CPU, the process's most of all."""
    if _device() == "cuda":
        import torch

        return float(torch.cuda.max_memory_allocated() / 1e9)
    if sys.platform == "win32":
        return None
    import resource

    # Kilobytes on Linux, bytes on macOS.
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1e9


def _memory_row(figure: str, gb: float | None) -> Row:
    return row(figure, {"app": gb}, "{:.2f} GB".format)


def machine() -> dict[str, Any]:
    """What the figures were taken on."""
    import torch

    packages = {}
    for name in ("torch", "transformers", "accelerate", "bitsandbytes", "torchao", "flash-attn"):
        try:
            packages[name] = version(name)
        except PackageNotFoundError:
            packages[name] = None
    cuda = torch.cuda.is_available()
    return {
        "device": torch.cuda.get_device_name() if cuda else _device(),
        "device_memory_gb": torch.cuda.get_device_properties(0).total_memory / 1e9
        if cuda
        else None,
        "cuda": torch.version.cuda if cuda else None,
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "packages": packages,
    }


def _tell(outcome: Outcome) -> None:
    reason = f": {outcome.reason}" if outcome.reason else ""
    said = f"{outcome.part.name}: {outcome.state}{reason}, {outcome.took_s:.1f} s"
    print(said, file=sys.stderr, flush=True)


def report(outcomes: Sequence[Outcome], host: dict[str, Any], chosen: argparse.Namespace) -> Path:
    """Write what was measured as JSON; the file."""
    chosen.results.mkdir(parents=True, exist_ok=True)
    tiny = "-tiny" if chosen.tiny else ""
    path = chosen.results / f"{datetime.now():%Y-%m-%dT%H-%M-%S}-gpu{tiny}.json"
    rows = [row for outcome in outcomes for row in outcome.rows]
    told = {
        "machine": host,
        "tiny": chosen.tiny,
        "took_s": {one.part.name: round(one.took_s, 1) for one in outcomes},
        "states": {one.part.name: one.state for one in outcomes},
        "reasons": {one.part.name: one.reason for one in outcomes if one.reason},
        "missed": [row.figure for row in rows if row.met is False],
        "figures": {one.part.name: one.measured.figures for one in outcomes if one.measured.rows},
    }
    path.write_text(json.dumps(told, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    return path


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gpu", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument(
        "--tiny", action="store_true", help="a tiny model; the figures mean nothing"
    )
    parser.add_argument("--limit-s", type=float, default=LIMIT_S, help="begin no part after this")
    parser.add_argument(
        "--only",
        action="append",
        metavar="PART",
        help="only parts whose names begin so; repeatable",
    )
    parser.add_argument("--results", type=Path, default=RESULTS, help="folder for the JSON file")
    chosen = parser.parse_args()
    started_s = time.monotonic()
    _wait_without_spinning()  # before torch is imported, as the app does
    if _device() == "cpu" and not chosen.tiny:
        parser.error("torch sees no GPU here; with --tiny it runs on a CPU")
    host = machine()
    with tempfile.TemporaryDirectory(prefix="steady-chat-gpu-") as folder:
        bench = Bench(Path(folder), SMALL if chosen.tiny else Sizes())
        parts = plan(bench)
        if chosen.only:
            wanted = ("model", *chosen.only)
            parts = [part for part in parts if part.name.startswith(wanted)]
        # Importing torch took a while, too.
        left_s = chosen.limit_s - (time.monotonic() - started_s)
        outcomes = run_parts(parts, left_s, _tell)
        hung = any(one.state == "hung" for one in outcomes)
        if not hung:
            bench.close()
        versions = ", ".join(f"{name} {v}" for name, v in host["packages"].items() if v)
        print(f"{host['device']}, {versions}\n")
        print(render(sections(outcomes)))
        path = report(outcomes, host, chosen)
        print(f"\n{path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path}")
    if hung:
        sys.stdout.flush()
        os._exit(1)  # its thread may hold the interpreter's end up
    return 1 if failed(outcomes) else 0


if __name__ == "__main__":
    sys.exit(main())
