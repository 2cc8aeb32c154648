"""What the GPU benchmark measures, each by itself; benchmarks/gpu.py says what the rows mean."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from benchmarks.bare_generate import bare_run, plain_threads, static_batch, without_hooks
from benchmarks.beside_bare import added_ttft_ms, in_turns, speed_ratios, through_a_job
from benchmarks.device import allocated_gb, device_kind, free, memory_row, peak_gb, reset_peak
from benchmarks.gpu_bench import AT_ONCE, QUESTION, SEED, Bench, plain_options, questions, ways
from benchmarks.jobs_at_once import ask_together, stop_in_turn, stop_while_reading
from benchmarks.loop_delay import loop_delay, percentile
from benchmarks.parts import Measured
from benchmarks.random_model import make_random_model
from benchmarks.table import Goal, Row, row, spread
from llm.errors import MissingPackageError
from llm.types import SamplingParams


def measure_model(bench: Bench) -> Measured:
    """Make the model, and have the app load it."""
    started_s = time.perf_counter()
    parameters = make_random_model(bench.model_folder, bench.sizes.shape, device_kind())
    free()
    made_s = time.perf_counter() - started_s
    started_s = time.perf_counter()
    (backend,) = bench.backends(plain_options())
    loaded_s = time.perf_counter() - started_s
    model = backend._loaded.model
    dtype, device = str(model.dtype).removeprefix("torch."), str(model.device)
    rows = (
        row("parameters", {"app": parameters / 1e9}, "{:.3f} billion".format),
        Row("number type, device", {"app": f"{dtype}, {device}"}),
        row("made and written", {"app": made_s}, "{:.1f} s".format),
        row("loaded and warmed up", {"app": loaded_s}, "{:.1f} s".format),
        memory_row("weights", weights := allocated_gb()),
    )
    figures = {"parameters": parameters, "dtype": dtype, "device": device, "made_s": made_s}
    return Measured(rows, {**figures, "loaded_s": loaded_s, "weights_gb": weights})


def measure_one(bench: Bench, way: str) -> Measured:
    """Bare and engine in turns."""
    options = {**ways()[way], "slots": max(AT_ONCE) if way == "a thread each" else AT_ONCE[0]}
    backend, plain = bench.backends(options, plain_options())
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
        for stopped_s in stop_in_turn(backend, questions(1))
    ]
    beside_ms = [1000 * stopped_s for stopped_s in stop_in_turn(backend, questions(AT_ONCE[0]))]
    # The tokenizer takes text byte by byte.
    more = " and again" * (bench.sizes.long_prompt // len(" and again"))
    long = [question + more for question in questions(1 + bench.sizes.stops)]
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
    (backend,) = bench.backends(plain_options())
    with without_hooks(backend._loaded.model):
        ask = partial(static_batch, backend._loaded, questions(count), max_s=bench.sizes.window_s)
        return _together("static batch", *_warm(ask, bench.sizes.tokens))


def measure_threads(bench: Bench, count: int) -> Measured:
    """A `generate` each, on as many threads."""
    (backend,) = bench.backends(plain_options())
    with without_hooks(backend._loaded.model):
        ask = partial(plain_threads, backend._loaded, questions(count), max_s=bench.sizes.window_s)
        return _together("plain threads", *_warm(ask, bench.sizes.tokens))


def _warm(ask: Callable[..., tuple[int, float]], tokens: int) -> tuple[int, float]:
    """The second time's figures; what the device does once, such as choosing kernels, is over."""
    ask(tokens=4)
    reset_peak()
    return ask(tokens=tokens)


def _together(what: str, made: int, took_s: float) -> Measured:
    figures = {"tokens": made, "took_s": took_s, "tokens_per_s": made / took_s}
    rows = (
        row(f"{what}, tok/s", {"app": made / took_s}, "{:.1f}".format),
        memory_row(f"{what}, memory", peak := peak_gb()),
    )
    return Measured(rows, {**figures, "peak_gb": peak})


def measure_at_once(
    bench: Bench, way: str, count: int, static: Callable[[], float | None]
) -> Measured:
    """As many jobs at once, beside an event loop."""
    slots = max(AT_ONCE) if way == "a thread each" else count
    (backend,) = bench.backends({**ways()[way], "slots": slots})
    asked, window_s = questions(count), bench.sizes.window_s
    ask_together(backend, asked, SamplingParams(max_tokens=4, seed=SEED), window_s)
    reset_peak()
    params = SamplingParams(max_tokens=bench.sizes.tokens, seed=SEED)
    with loop_delay() as late_ms:
        done = ask_together(backend, asked, params, window_s)
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
        memory_row(f"{way}, memory", peak := peak_gb()),
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
    reset_peak()
    try:
        (backend,) = bench.backends({"quantization": mode, "slots": 1})
    except MissingPackageError as error:
        package = str(error.values["package"])
        return Measured(
            (Row(mode, {"app": f"not installed: {package}"}),), {"not_installed": package}
        )
    weights = allocated_gb()
    question = questions(1)
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
    reset_peak()
    int8 = import_module("torchao.quantization").Int8WeightOnlyConfig()
    model = AutoModelForCausalLM.from_pretrained(
        bench.model_folder,
        dtype=choose_dtype("auto"),
        device_map="auto",
        quantization_config=TorchAoConfig(int8),
    )
    weights = allocated_gb()
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
        memory_row(f"{name}, weights", weights),
        memory_row(f"{name}, memory", peak := peak_gb()),
    )
    figures = {"tokens_per_s": speed, "of_unquantized": of_none, "weights_gb": weights}
    return Measured(rows, {**figures, "peak_gb": peak})


def _p50_max(figure: str, values_ms: Sequence[float]) -> Row:
    """A dash where nothing was measured."""
    if not values_ms:
        return Row(figure, {"app": "–"})
    text = f"{percentile(values_ms, 0.5):.0f} ms ({max(values_ms):.0f} ms) of {len(values_ms)}"
    return Row(figure, {"app": text})
