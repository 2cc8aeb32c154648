"""`python -m benchmarks.gpu` runs where there is little else than torch, and tells how it went."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import make_dataclass
from functools import cache
from importlib.metadata import PackageNotFoundError, packages_distributions, requires
from pathlib import Path
from typing import Any

import pytest
import torch

from benchmarks import gpu_bench
from benchmarks.gpu_bench import quantizations, ways
from benchmarks.loop_delay import loop_delay, percentile
from benchmarks.parts import Measured, Outcome, Part, failed, reason_of, run_parts, sections
from benchmarks.random_model import QWEN_1_5B, make_tokenizer
from benchmarks.table import Row
from llm.errors import MissingPackageError

ROOT = Path(__file__).parents[1]
LIMIT_S = 400
"""Far more than it takes on a machine that does something else as well."""

NEEDED = ("torch", "transformers", "accelerate")

HIDE = """
import runpy, sys
from importlib.machinery import PathFinder

class Hider(PathFinder):
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        if name.partition(".")[0] in HIDDEN:
            return None
        return super().find_spec(name, path, target)

sys.meta_path[:] = [Hider if finder is PathFinder else finder for finder in sys.meta_path]
sys.argv = ["benchmarks.gpu", *ARGUMENTS]
runpy.run_module("benchmarks.gpu", run_name="__main__", alter_sys=True)
"""


def name_of(package: str) -> str:
    return re.sub(r"[-_.]+", "-", package).lower()


@cache
def with_all_it_needs(package: str) -> frozenset[str]:
    """A package and what it can't be installed without, all the way down."""
    found, waiting = set(), [name_of(package)]
    while waiting:
        if (one := waiting.pop()) in found:
            continue
        try:
            needed = requires(one) or []
        except PackageNotFoundError:  # for another system, or another Python
            continue
        found.add(one)
        names = (re.match(r"[\w.-]+", line) for line in needed if "extra ==" not in line)
        waiting += [name_of(name[0]) for name in names if name]
    return frozenset(found)


def hidden_modules(*packages: str) -> list[str]:
    """Every module that is installed here, but for what these packages bring with them.

    pydantic is hidden in any case: just some versions bring it, for their command lines.
    """
    kept = frozenset().union(*(with_all_it_needs(package) for package in packages))
    return sorted(
        module
        for module, providers in packages_distributions().items()
        if module == "pydantic" or not any(name_of(provider) in kept for provider in providers)
    )


def run_gpu(results: Path, packages: tuple[str, ...], *arguments: str) -> tuple[Any, str]:
    """Run it where only these packages are installed; the process, and its file as a dictionary."""
    hidden = hidden_modules(*packages)
    assert {"streamlit", "pydantic", "sqlalchemy", "fluent", "playwright", "openai"} <= {*hidden}
    code = f"HIDDEN = {set(hidden)!r}\nARGUMENTS = {[*arguments, '--results', str(results)]!r}\n"
    done = subprocess.run(
        [sys.executable, "-c", code + HIDE],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
    )
    (path,) = results.iterdir()
    return done, json.loads(path.read_text(encoding="utf-8"))


def rows(printed: str) -> dict[str, str]:
    """The table's figures and their values."""
    lines = [line for line in printed.splitlines() if line.startswith("|")]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return {row[0]: row[1] for row in cells[2:]}


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, Any]:
    return run_gpu(tmp_path_factory.mktemp("results"), NEEDED, "--tiny")


def test_every_row_is_there_with_nothing_but_torch_transformers_and_accelerate(
    tiny: tuple[Any, Any],
) -> None:
    done, _ = tiny
    assert done.returncode == 0, done.stderr
    told = rows(done.stdout)
    wanted = [
        "parameters",
        "loaded and warmed up",
        "bare, tok/s",
        "engine, tok/s",
        "engine / bare",
        "TTFT, bare",
        "added TTFT",
        "static batch, tok/s",
        "static batch, memory",
        "plain threads, tok/s",
        "alone, p50 (max)",
        "of 8, p50 (max)",
        "2,000 tokens of prompt, first text",
        "p50 / p99 / max",
    ]
    for way in ways():
        wanted += [f"{way}, tok/s", f"{way} / static batch", f"{way}, first text, worst"]
        wanted += [f"{way}, event loop, p50 / p99 / max", f"{way}, memory"]
    assert [figure for figure in wanted if not re.search(r"\d", told.get(figure, ""))] == []
    assert "**8 answers at once**" in told
    assert "**32 answers at once**" in told
    assert told["torchao int8, bare"] == "not installed: torchao"
    assert told["8bit"] == told["4bit"] == "not installed: bitsandbytes"
    for mode in quantizations():
        assert mode in told or f"{mode}, tok/s" in told


def test_every_figure_is_in_the_file_and_none_is_nothing(tiny: tuple[Any, Any]) -> None:
    _, told = tiny
    assert told["tiny"] is True
    assert set(told["states"].values()) == {"measured"}
    assert told["machine"]["packages"]["torch"]
    figures = told["figures"]
    assert figures["model"]["parameters"] > 0
    for way in ways():
        name = way.replace(" ", "-")
        one = figures[f"one-{name}"]
        for run in (*one["bare"], *one["engine"]):
            assert run["tokens"] > 1, "an answer is as long as it was asked to be"
            assert run["tokens_per_s"] > 0
            assert run["ttft_s"] > 0
        assert len({run["tokens"] for run in (*one["bare"], *one["engine"])}) == 1
        assert min(one["ratio"]) > 0
        for count in (8, 32):
            together = figures[f"{name}-{count}"]
            assert len(together["tokens"]) == len(together["ttft_s"]) == count
            assert min(together["tokens"]) >= 1
            assert min(together["ttft_s"]) > 0
            assert together["tokens_per_s"] > 0
            assert together["of_static"] > 0
            assert 0 <= together["loop_ms"]["p50"] <= together["loop_ms"]["p99"]
        stop = figures[f"stop-{name}"]
        assert (len(stop["alone_ms"]), len(stop["beside_ms"])) == (2, 8)
        assert min(*stop["alone_ms"], *stop["beside_ms"], *stop["reading_ms"]) > 0
        assert stop["long_prompt_ttft_s"] > 0
    for count in (8, 32):
        static = figures[f"static-{count}"]
        assert static["tokens_per_s"] > 0
        assert static["tokens"] % count == 0
    assert figures["threads-8"]["tokens_per_s"] > 0


def test_quantized_weights_are_measured_where_bitsandbytes_is_installed(tmp_path: Path) -> None:
    done, told = run_gpu(tmp_path, (*NEEDED, "bitsandbytes"), "--tiny", "--only", "quantized")
    assert done.returncode == 0, done.stderr
    assert float(rows(done.stdout)["8bit, tok/s"]) > 0
    assert float(rows(done.stdout)["4bit, tok/s"]) > 0
    assert {"model", "quantized-8bit", "quantized-4bit"} <= set(told["states"])
    assert "one-a-thread-each" not in told["states"]


def test_without_time_nothing_is_begun_which_is_a_failure(tmp_path: Path) -> None:
    done, told = run_gpu(tmp_path, NEEDED, "--tiny", "--limit-s", "1")
    assert done.returncode == 1
    assert set(told["states"].values()) == {"left out"}
    assert told["figures"] == {}
    assert re.fullmatch(
        r"left out: it may take \d+ s, and 0 s are left", rows(done.stdout)["model"]
    )


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_without_a_gpu_it_says_so_at_once(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "benchmarks.gpu", "--results", str(tmp_path)]
    done = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, timeout=LIMIT_S, check=False
    )
    assert done.returncode == 2
    assert "no GPU here" in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_where_the_engine_can_batch_both_ways_are_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    batching = make_dataclass("Batching", [("batching", str, "auto")])
    monkeypatch.setattr(gpu_bench, "LocalOptions", batching)
    assert ways() == {"a thread each": {"batching": "off"}, "batched": {"batching": "on"}}


def part(name: str, measure: Callable[[], Measured], required: bool = True, s: float = 60) -> Part:
    return Part(name, "some", s, required, measure)


def good() -> Measured:
    return Measured((Row("figure", {"app": "1"}),), {"figure": 1})


def bad() -> Measured:
    raise ValueError("it | broke\nfor a reason")


def test_a_part_that_fails_is_a_line_and_the_others_go_on(
    capsys: pytest.CaptureFixture[str],
) -> None:
    told: list[Outcome] = []
    outcomes = run_parts([part("a", bad, False), part("b", good)], 100, told.append)
    assert outcomes == told
    assert [one.state for one in outcomes] == ["failed", "measured"]
    (section,) = sections(outcomes)
    assert section.rows == (
        Row("a", {"app": "failed: ValueError: it / broke"}),
        Row("figure", {"app": "1"}),
    )
    assert not failed(outcomes)
    assert failed(run_parts([part("a", bad)], 100))
    assert "for a reason" in capsys.readouterr().err


def test_a_part_that_does_not_fit_is_left_out_and_a_shorter_one_is_not() -> None:
    now_s = iter(range(0, 1000, 10))
    parts = [part("long", good, False, s=50), part("short", good, s=5)]
    outcomes = run_parts(parts, 40, clock=lambda: next(now_s))
    assert [one.state for one in outcomes] == ["left out", "measured"]
    assert outcomes[0].reason == "it may take 50 s, and 30 s are left"
    assert not failed(outcomes)
    assert failed(run_parts([part("long", good, s=50)], 40))


def test_after_one_that_hangs_nothing_else_is_begun() -> None:
    over = threading.Event()

    def hang() -> Measured:
        over.wait(LIMIT_S)
        return good()

    try:
        outcomes = run_parts([part("a", hang, False, s=0.05), part("b", good)], 100)
    finally:
        over.set()
    assert [one.state for one in outcomes] == ["hung", "left out"]
    assert outcomes[1].reason == "“a” hangs"
    assert failed(outcomes)


def test_the_apps_own_errors_are_told_without_its_sentences() -> None:
    error = MissingPackageError(package="flash-attn")
    assert reason_of(error) == "MissingPackageError (package: flash-attn)"


def test_a_loop_that_is_held_up_is_seen_to_be() -> None:
    """A thread that keeps the interpreter's lock keeps the loop from waking."""
    interval_s = sys.getswitchinterval()
    with loop_delay() as calm_ms:
        threading.Event().wait(0.2)
    sys.setswitchinterval(1)
    try:
        with loop_delay() as busy_ms:
            ends_s = time.monotonic() + 0.4
            while time.monotonic() < ends_s:
                pass
    finally:
        sys.setswitchinterval(interval_s)
    assert len(calm_ms) >= 10
    assert max(busy_ms) > 200
    assert percentile(busy_ms, 0.9) > 100, "it is late for all that could have come meanwhile"


def test_percentiles_are_values_that_were_measured() -> None:
    values = [5.0, 1.0, 4.0, 2.0, 3.0]
    assert [percentile(values, share) for share in (0, 0.5, 0.99, 1)] == [1, 3, 5, 5]


def test_the_tokenizer_has_as_many_entries_as_the_model_and_an_end_that_it_cannot_say() -> None:
    tokenizer = make_tokenizer(QWEN_1_5B.vocab_size)
    assert len(tokenizer) == QWEN_1_5B.vocab_size + 1
    assert tokenizer.eos_token_id == QWEN_1_5B.vocab_size
    ids = tokenizer("Grüße, 世界")["input_ids"]
    assert tokenizer.decode(ids) == "Grüße, 世界"
    last = tokenizer.decode([QWEN_1_5B.vocab_size - 2, QWEN_1_5B.vocab_size - 1])
    assert re.fullmatch(r" [a-z]+ [a-z]+", last)
