"""The benchmarks run, and say what they measured; what they measure is no test's business."""

from __future__ import annotations

import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from benchmarks.answers import BLOCK_MARK, missing_blocks
from benchmarks.batching import BatchingFigures, batching_section
from benchmarks.beside_bare import Run
from benchmarks.browser_probe import chromium
from benchmarks.faces import FaceFigures, faces_section, measure_faces
from benchmarks.interactions import UNTOLD_MS, filled, p75
from benchmarks.local_engine import LocalFigures, local_section
from benchmarks.long_answer import long_answer, long_end_mark
from benchmarks.ratios import share
from benchmarks.store import measure_store, store_section
from benchmarks.table import render

ROOT = Path(__file__).parents[1]
LIMIT_S = 240
"""Far more than it takes on a machine that does something else as well."""

ROWS = {
    "complete",
    "followed",
    "behind at the end",
    "first text",
    "to the browser",
    "frames > 50 ms",
    "longest task",
    "busy share",
    "server CPU",
}


@pytest.mark.browser
def test_the_quick_stream_benchmark_prints_its_table_and_writes_its_figures(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "benchmarks", "--quick", "--only", "stream"]
    command += ["--pages", "app", "--results", str(tmp_path)]
    done = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, timeout=LIMIT_S, check=False
    )
    assert done.returncode == 0, done.stderr

    lines = [line for line in done.stdout.splitlines() if line.startswith("|")]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    assert cells[0] == ["figure", "app", "goal", ""]
    assert {len(row) for row in cells} == {4}
    assert {row[0] for row in cells} >= ROWS
    assert [row[1] for row in cells if row[0] == "complete"] == ["yes", "yes"]
    assert "this app, against" not in done.stdout, "there is nothing to compare it with"

    (path,) = tmp_path.iterdir()
    told = json.loads(path.read_text(encoding="utf-8"))
    assert set(told) == {"machine", "quick", "took_s", "failed", "missed", "figures"}
    assert told["quick"] is True
    assert told["failed"] == []
    assert {"cores", "processor", "python", "chromium", "packages"} <= set(told["machine"])
    plain, slow = told["figures"]["stream"]
    assert (plain["page"], plain["throttle"], slow["throttle"]) == ("app", 1, 4)
    assert plain["complete"]
    assert slow["complete"]
    assert plain["behind_s"] is not None
    assert plain["sent_mb"] > 0


@pytest.mark.browser
def test_the_quick_people_benchmark_has_every_answer_whole(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "benchmarks", "--quick", "--only", "people"]
    command += ["--results", str(tmp_path)]
    done = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, timeout=LIMIT_S, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "2 people at once, 600 tokens each at 300 tok/s" in done.stdout
    (path,) = tmp_path.iterdir()
    (figures,) = json.loads(path.read_text(encoding="utf-8"))["figures"]["people"]
    assert figures["people"] == len(figures["first_text_s"]) == len(figures["behind_s"]) == 2
    assert min(figures["first_text_s"]) > 0
    assert figures["cpu_share"] > 0
    assert 20 < figures["sent_kb"] < 600, "all of the text, and not once a token"


@pytest.mark.browser
@pytest.mark.slow
def test_the_quick_loop_benchmark_has_a_person_type_and_click(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "benchmarks", "--quick", "--only", "loop"]
    command += ["--pages", "app", "--results", str(tmp_path)]
    done = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, timeout=3 * LIMIT_S, check=False
    )
    assert done.returncode == 0, done.stderr
    for title in (
        "somebody types and clicks: 8,000 characters at 300 tok/s, browser CPU 2x slower",
        "a frame as the answer grows: 8,000 characters",
        "2 tabs at once, 600 tokens each",
        "a line of 50 kB/s and 400 ms: 8,000 characters",
        "what measuring costs, browser CPU 2x slower",
    ):
        assert title in done.stdout
    (path,) = tmp_path.iterdir()
    figures = json.loads(path.read_text(encoding="utf-8"))["figures"]["loop"]
    *typed, growth, tabs, slow_line, measuring = figures
    assert len(typed) == 3
    assert all(answer["complete"] for answer in typed)
    assert all(answer["keys_p75_ms"] > 0 for answer in typed)
    assert all(answer["sent_bytes"] > answer["answer_bytes"] for answer in typed)
    assert min(growth["first_ms"] + growth["last_ms"]) > 0
    assert all(tab["complete"] for tab in tabs["tabs"])
    assert slow_line["slow"]["complete"]
    assert slow_line["stop_seen_s"] > 0.3, "all of the page comes over the slow line then"
    assert measuring["reports_per_s"] > 0
    assert min(measuring["browser_with"] + measuring["browser_without"]) > 0


@pytest.mark.browser
def test_the_faces_benchmark_has_the_answer_whole_through_each(tmp_path: Path) -> None:
    faces = ("engine", "pipe", "terminal", "openai", "stream", "socketio")

    def measure() -> list[FaceFigures]:
        with chromium() as browser:
            return measure_faces(browser, 600, 300, faces)

    # Another test's Playwright may have an event loop in this thread.
    with ThreadPoolExecutor(1) as thread:
        figures = thread.submit(measure).result()
    assert [each.face for each in figures] == [*faces]
    for each in figures:
        assert each.complete, each
        assert each.p50_ms is not None, each
        assert each.p50_ms > 0, each
        assert each.arrivals > 1, each
    engine, *others = figures
    assert engine.sent_bytes == 0
    assert all(each.sent_bytes > 0 for each in others)
    title = "through each face: 600 tokens at 300 tok/s"
    assert title in render([faces_section(figures)])


@pytest.mark.parametrize("chars", [6_000, 60_000])
def test_the_long_answer_is_exactly_as_long_and_marked_throughout(chars: int) -> None:
    text = long_answer(chars)
    assert len(text) == chars
    assert missing_blocks(text, text) == []
    assert len(BLOCK_MARK.findall(text)) > chars / 500
    assert text.endswith(long_end_mark(chars))
    assert text.count(long_end_mark(chars)) == 1
    assert text == long_answer(chars)
    assert text != long_answer(chars, seed=8)


def test_presses_that_were_too_quick_to_be_told_count() -> None:
    assert p75(filled([40, 300], 8)) == UNTOLD_MS
    assert p75(filled([40, 300, 200], 4)) == 200
    assert p75(()) is None


def test_the_store_benchmark_finds_what_it_put_there() -> None:
    figures = measure_store(conversations=20, turns=600, rounds=2)
    section = store_section(figures)
    assert section.title == "20 conversations, 1,200 messages in SQLite"
    assert {len(told) for told in figures.times_ms.values()} == {2}
    assert min(min(told) for told in figures.times_ms.values()) > 0
    goals = [row.figure for row in section.rows if row.goal]
    assert len(goals) == 8
    assert all(name.startswith(("list", "search")) for name in goals)


@pytest.mark.parametrize(
    ("ours", "theirs", "said"),
    [
        (1.0, 140.4, "1/140 of"),
        (1.0, 1432.0, "1/1,400 of"),
        (2.0, 5.0, "1/2.5 of"),
        (1.0, 1.1, "0.91 of"),
        (3.0, 2.0, "1.5 of"),
        (0.0, 2.0, "none of"),
        (0.0, 0.0, "none, as there"),
        (1.0, 0.0, "some, there none"),
    ],
)
def test_a_share_is_said_as_a_fraction(ours: float, theirs: float, said: str) -> None:
    assert share(ours, theirs) == said


def test_a_page_that_never_caught_up_gives_a_bound_only() -> None:
    assert share(1, 40, at_least=True) == "under 1/40 of"


def test_the_local_models_table_says_whose_model_bare_has() -> None:
    run = Run(tokens=64, tokens_per_s=40.0, ttft_s=0.1)
    section = local_section(LocalFigures((run,), (run,), (run,), 16.0, 6.0))
    assert section.title.endswith(
        "bare generate has the app's loaded model, with its packed weights"
    )


def test_batching_is_held_against_its_bars_round_by_round() -> None:
    figures = BatchingFigures(
        tokens=48,
        batch_tokens_per_s=(40.0, 20.0, 60.0),
        threads_tokens_per_s=(20.0, 10.0, 40.0),
        static_tokens_per_s=(50.0, 40.0, 60.0),
        first_ttft_s=(0.5, 1.0, 0.1),
        last_ttft_s=(0.6, 1.1, 0.4),
        alone_tokens_per_s=(9.0, 5.0, 10.0),
        bare_tokens_per_s=(10.0, 5.0, 10.0),
    )
    section = batching_section(figures)
    assert section.title.startswith("8 people at once on the local model, 48 tokens each, 3 rounds")
    assert section.title.endswith("with its packed weights")
    told = {row.figure: (row.values["app"], row.met) for row in section.rows if row.goal}
    assert told == {
        "in one batch / as threads": ("2.00 (1.50 to 2.00)", True),
        "in one batch / static batch": ("0.80 (0.50 to 1.00)", False),
        "TTFT of the eighth / of the first": ("1.20 (1.10 to 4.00)", True),
        "one alone / bare": ("1.00 (0.90 to 1.00)", True),
    }
