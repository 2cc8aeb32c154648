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
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.device import device_kind, machine
from benchmarks.gpu_bench import AT_ONCE, SMALL, Bench, Sizes, quantizations, ways
from benchmarks.gpu_parts import (
    measure_at_once,
    measure_loop,
    measure_model,
    measure_one,
    measure_quantized,
    measure_static,
    measure_stop,
    measure_threads,
    measure_torchao,
)
from benchmarks.parts import Measured, Outcome, Part, failed, run_parts, sections
from benchmarks.table import render
from llm.local_libraries import wait_without_spinning

RESULTS = Path(__file__).parent / "results"
LIMIT_S = 420.0


def plan(bench: Bench) -> list[Part]:
    """All parts, what matters most first."""
    sizes = bench.sizes
    load_s, window_s = sizes.load_s, sizes.window_s
    parts: list[Part] = []
    static: dict[int, float] = {}

    def add(
        name: str,
        title: str,
        needs_s: float,
        measure: Callable[[], Measured],
        required: bool = True,
    ) -> None:
        parts.append(Part(name.replace(" ", "-"), title, needs_s, required, measure))

    def add_at_once(count: int, required: bool) -> None:
        title = f"{count} answers at once"

        def keep_static() -> Measured:
            measured = measure_static(bench, count)
            static[count] = measured.figures["tokens_per_s"]
            return measured

        add(f"static {count}", title, load_s + window_s, keep_static, required)
        for way in ways():
            measure = partial(measure_at_once, bench, way, count, lambda: static.get(count))
            add(f"{way} {count}", title, load_s + 1.5 * window_s, measure, required)

    model = f"random weights in the shape of {sizes.shape.name}"
    add("model", model, sizes.make_s + load_s, partial(measure_model, bench))
    endings = {way: "" if len(ways()) == 1 else f", {way}" for way in ways()}
    for way, ending in endings.items():
        title, measure_way = f"one answer at a time{ending}", partial(measure_one, bench, way)
        add(f"one {way}", title, load_s + 3 * window_s, measure_way)
    few, many = AT_ONCE
    add_at_once(few, required=True)
    for way, ending in endings.items():
        add(f"stop {way}", f"Stop{ending}", load_s + window_s, partial(measure_stop, bench, way))
    add("loop", "event loop beside nothing", 3, partial(measure_loop, bench))
    add_at_once(many, required=False)
    title, threads = f"{few} plain `generate` threads", partial(measure_threads, bench, few)
    add(f"threads {few}", title, load_s + 1.5 * window_s, threads, required=False)
    quantized = {mode: partial(measure_quantized, bench, mode) for mode in quantizations()}
    for mode, measure_mode in {**quantized, "torchao": partial(measure_torchao, bench)}.items():
        title = "quantized, one answer at a time"
        add(f"quantized {mode}", title, load_s + window_s, measure_mode, required=False)
    return parts


def _tell(outcome: Outcome) -> None:
    """At once, so that whoever ends it before its end has what there was."""
    reason = f": {outcome.reason}" if outcome.reason else ""
    said = f"{outcome.part.name}: {outcome.state}{reason}, {outcome.took_s:.1f} s"
    rows = [f"  {row.figure}: {row.values['app']}" for row in outcome.measured.rows]
    print("\n".join([said, *rows]), file=sys.stderr, flush=True)


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
    wait_without_spinning()  # before torch is imported, as the app does
    if device_kind() == "cpu" and not chosen.tiny:
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
