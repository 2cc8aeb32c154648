"""Every benchmark, one table, one JSON file.

    python -m benchmarks                  # about 90 minutes, on a machine that does nothing else
    python -m benchmarks --only stream    # or click, memory, history, store, cache, many, local,
                                          # cpu, vllm, people, batching, loop, faces; repeatable
    python -m benchmarks --quick          # the same machinery on tiny inputs: do they run at all?

The figures are explained where they are taken: stream.py, memory.py, history.py, store.py,
many.py, answer_cache.py, local_engine.py, cpu.py, vllm_engine.py, people.py, batching.py, faces.py;
those of `loop` in closed_loop.py, frame_growth.py, tabs.py, slow_line.py, measuring.py. What needs a
GPU is a command of its own, gpu.py; so are other people's pages beside this one, peers/, and what
the answer cache takes for the same question, cache/.
The table goes to standard output, what was measured to benchmarks/results/<date>.json. After the
table comes a small one for README, the app against the other pages, where they were compared.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import time
import traceback
from collections.abc import Callable
from dataclasses import asdict, dataclass
from datetime import datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import psutil
from playwright.sync_api import Browser

from benchmarks.answer_cache import cache_section, measure_cache
from benchmarks.batching import batching_section, measure_batching
from benchmarks.browser_probe import chromium
from benchmarks.chat_page import APP, SCRIPTS
from benchmarks.closed_loop import by_chars, by_tokens, loop_section, measure_loop
from benchmarks.cpu import cpu_section, measure_cpu
from benchmarks.faces import faces_section, measure_faces
from benchmarks.frame_growth import growth_section, measure_growth
from benchmarks.history import measure_history
from benchmarks.local_engine import local_section, measure_local
from benchmarks.many import many_section, measure_many
from benchmarks.measuring import measure_measuring, measuring_section
from benchmarks.memory import measure_memory
from benchmarks.people import COUNTS, measure_people, people_section
from benchmarks.ratios import render_ratios
from benchmarks.slow_line import measure_slow_line, slow_line_section
from benchmarks.store import measure_store, store_section
from benchmarks.stream import click_section, measure_click, measure_stream, stream_section
from benchmarks.table import Goal, Section, render, row, spread
from benchmarks.tabs import measure_tabs, tabs_section
from benchmarks.vllm_engine import measure_vllm, vllm_section

RESULTS = Path(__file__).parent / "results"


@dataclass(frozen=True, slots=True)
class Sizes:
    """How much is asked."""

    fast: tuple[int, float] = (12_000, 400)
    slow: tuple[int, float] = (4_000, 100)
    click: tuple[int, float] = (4_000, 200)
    memory: tuple[int, int, float] = (10, 12_000, 4_000)
    history: tuple[int, int, float, int] = (100, 2_000, 200, 3)
    store: tuple[int, int, int] = (10_000, 100_000, 40)
    many: tuple[int, int, int] = (10_000, 100_000, 5)
    cache: tuple[int, int, int] = (100_000, 10_000, 40)
    local_tokens: int = 64
    local_rounds: int = 16
    cpu: tuple[int, int, int] = (64, 12, 30)
    people: tuple[tuple[int, ...], int, float] = (COUNTS, 600, 30)
    batching_tokens: int = 48
    batching_rounds: int = 8
    vllm_tokens: int = 128
    vllm_rounds: int = 12
    loop: tuple[int, float] = (60_000, 400)
    loop_throttles: tuple[float, ...] = (1, 4, 8)
    loop_rounds: int = 3
    tabs: tuple[tuple[int, ...], int, float] = ((5, 10, 20), 900, 30)
    measuring: tuple[int, int] = (6, 32)
    faces: tuple[tuple[int, float], ...] = ((3_000, 100), (12_000, 400))


QUICK = Sizes(
    fast=(600, 300),
    slow=(600, 300),
    click=(600, 100),
    memory=(3, 600, 2_000),
    history=(3, 600, 150, 1),
    store=(60, 1_100, 3),
    many=(60, 1_100, 2),
    cache=(100, 20, 2),
    local_tokens=8,
    local_rounds=1,
    cpu=(8, 1, 1),
    people=((2,), 600, 300),
    batching_tokens=8,
    batching_rounds=1,
    vllm_tokens=8,
    vllm_rounds=1,
    loop=(8_000, 300),
    loop_throttles=(2,),
    loop_rounds=1,
    tabs=((2,), 600, 150),
    measuring=(1, 12),
    faces=((600, 300),),
)

Result = tuple[list[Section], list[Any]]


def run_stream(browser: Browser, sizes: Sizes, pages: list[str]) -> Result:
    sections, raw = [], []
    for (tokens, rate), throttle in ((sizes.fast, 1), (sizes.slow, 4)):
        figures = [measure_stream(browser, page, tokens, rate, throttle) for page in pages]
        sections.append(stream_section(figures))
        raw += figures
    return sections, raw


def run_click(browser: Browser, sizes: Sizes, pages: list[str]) -> Result:
    figures = [measure_click(browser, page, *sizes.click) for page in pages]
    return [click_section(figures)], list(figures)


def run_memory(browser: Browser, sizes: Sizes, pages: list[str]) -> Result:
    figures = measure_memory(browser, *sizes.memory)
    rows = (
        row(
            "growth from the third on",
            {APP: 100 * figures.growth},
            "{:+.1f} %".format,
            Goal(5, " %"),
        ),
        row("memory at last", {APP: figures.after_mb[-1]}, "{:.0f} MB".format),
    )
    title = f"{len(figures.after_mb)} answers of {figures.tokens:,} tokens in one conversation"
    return [Section(title, rows)], [figures]


def run_history(browser: Browser, sizes: Sizes, pages: list[str]) -> Result:
    figures = measure_history(browser, *sizes.history)
    rows = (
        spread("a frame without", figures.frame_ms_without, "{:.1f} ms"),
        spread("a frame with", figures.frame_ms_with, "{:.1f} ms"),
        row("ratio", {APP: figures.ratio}, "{:.2f}x".format, Goal(1.2, "x")),
        row("a frame with all shown", {APP: figures.frame_ms_all_shown}, "{:.1f} ms".format),
        row("ratio with all shown", {APP: figures.ratio_all_shown}, "{:.2f}x".format),
    )
    title = f"{figures.messages} messages of history, {figures.turns_shown} turns shown"
    return [Section(title, rows)], [figures]


def run_store(browser: Browser, sizes: Sizes, pages: list[str]) -> Result:
    figures = measure_store(*sizes.store)
    return [store_section(figures)], [figures]


def run_many(browser: Browser, sizes: Sizes, pages: list[str]) -> Result:
    figures = measure_many(browser, *sizes.many)
    return [many_section(figures)], [figures]


def run_local(browser: Browser, sizes: Sizes, pages: list[str]) -> Result:
    figures = measure_local(sizes.local_tokens, sizes.local_rounds, browser)
    return [local_section(figures)], [figures]


def run_cpu(browser: Browser, sizes: Sizes, pages: list[str]) -> Result:
    figures = measure_cpu(*sizes.cpu)
    return [cpu_section(figures)], [figures]


def run_people(browser: Browser, sizes: Sizes, pages: list[str]) -> Result:
    counts, tokens, rate = sizes.people
    figures = [measure_people(count, tokens, rate) for count in counts]
    return [people_section(f) for f in figures], list(figures)


def run_batching(browser: Browser, sizes: Sizes, pages: list[str]) -> Result:
    figures = measure_batching(sizes.batching_tokens, sizes.batching_rounds)
    return [batching_section(figures)], [figures]


def run_vllm(browser: Browser, sizes: Sizes, pages: list[str]) -> Result:
    figures = measure_vllm(sizes.vllm_tokens, sizes.vllm_rounds, browser)
    return [vllm_section(figures)], [figures]


def run_cache(browser: Browser, sizes: Sizes, pages: list[str]) -> Result:
    figures = measure_cache(browser, *sizes.cache)
    return [cache_section(figures)], [figures]


def run_loop(browser: Browser, sizes: Sizes, pages: list[str]) -> Result:
    sections: list[Section] = []
    raw: list[Any] = []
    long = by_chars(*sizes.loop)
    for asked in (long, by_tokens(*sizes.fast), by_tokens(*sizes.slow)):
        for throttle in sizes.loop_throttles:
            figures = [measure_loop(browser, page, asked, throttle) for page in pages]
            sections.append(loop_section(figures))
            raw += figures
    growth = measure_growth(browser, long, sizes.loop_rounds)
    slow_line = measure_slow_line(browser, long)
    counts, tokens, rate = sizes.tabs
    tabs = [measure_tabs(browser, count, tokens, rate) for count in counts]
    rounds, pieces = sizes.measuring
    measuring = [
        measure_measuring(browser, rounds, throttle, pieces) for throttle in sizes.loop_throttles
    ]
    sections += [growth_section(growth), *map(tabs_section, tabs), slow_line_section(slow_line)]
    sections += map(measuring_section, measuring)
    return sections, [*raw, growth, *tabs, slow_line, *measuring]


def run_faces(browser: Browser, sizes: Sizes, pages: list[str]) -> Result:
    figures = [measure_faces(browser, tokens, rate) for tokens, rate in sizes.faces]
    return [faces_section(f) for f in figures], [each for f in figures for each in f]


RUNS: dict[str, Callable[[Browser, Sizes, list[str]], Result]] = {
    "stream": run_stream,
    "click": run_click,
    "memory": run_memory,
    "history": run_history,
    "store": run_store,
    "cache": run_cache,
    "many": run_many,
    "local": run_local,
    "cpu": run_cpu,
    "people": run_people,
    "batching": run_batching,
    "vllm": run_vllm,
    "loop": run_loop,
    "faces": run_faces,
}


def machine() -> dict[str, Any]:
    """What the figures were taken on."""
    packages = ("streamlit", "transformers", "torch", "openai", "playwright")
    return {
        "cores": os.cpu_count(),
        "memory_gb": round(psutil.virtual_memory().total / 1e9, 1),
        "processor": _processor(),
        "python": platform.python_version(),
        "load_before": os.getloadavg()[0],
        "packages": {name: version(name) for name in packages},
    }


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    return next((x.split(":", 1)[1].strip() for x in lines if x.startswith("model name")), "")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--only", action="append", choices=RUNS, help="run only this")
    parser.add_argument(
        "--quick", action="store_true", help="tiny inputs; the figures mean nothing"
    )
    parser.add_argument("--pages", default=",".join(SCRIPTS), help="of " + ", ".join(SCRIPTS))
    parser.add_argument("--results", type=Path, default=RESULTS, help="folder for the JSON file")
    chosen = parser.parse_args()
    sizes = QUICK if chosen.quick else Sizes()
    host = machine()
    sections: list[Section] = []
    through_faces: list[Section] = []
    raw: dict[str, list[Any]] = {}
    took_s: dict[str, float] = {}
    with chromium() as browser:
        host["chromium"] = browser.version
        for name in chosen.only or RUNS:
            print(f"{name} …", file=sys.stderr, flush=True)
            started_s = time.monotonic()
            try:
                some, raw[name] = RUNS[name](browser, sizes, chosen.pages.split(","))
                # Its columns are its own.
                (through_faces if name == "faces" else sections).extend(some)
            except Exception:  # noqa: BLE001 - what the others took minutes to measure is kept
                traceback.print_exc()
            took_s[name] = round(time.monotonic() - started_s, 1)
    failed = [name for name in took_s if name not in raw]
    missed = [f"{s.title}: {r.figure}" for s in sections for r in s.rows if r.met is False]
    if sections:
        print(render(sections))
    if through_faces:
        print(f"\n{render(through_faces)}")
    if ratios := render_ratios(raw.get("stream", [])):
        print(f"\n{ratios}")
    chosen.results.mkdir(parents=True, exist_ok=True)
    quick = "-quick" if chosen.quick else ""
    path = chosen.results / f"{datetime.now():%Y-%m-%dT%H-%M-%S}{quick}.json"
    told = {
        "machine": host,
        "quick": chosen.quick,
        "took_s": took_s,
        "failed": failed,
        "missed": missed,
        "figures": {name: [asdict(f) for f in figures] for name, figures in raw.items()},
    }
    path.write_text(json.dumps(told, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    print(f"\n{path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
