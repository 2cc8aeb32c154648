"""What a report says is what counting by hand says, on both databases."""

from __future__ import annotations

import csv
import io
import math
import random
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from llm import metrics_report
from llm.answer_figures import AnswerFigures
from llm.database import Database
from llm.metrics_log import ProcessSample, _Seen, _write
from llm.metrics_report import COLUMNS, ModelFigures, csv_file, report
from llm.screen_figures import ScreenFigures

NOW_S = 1_764_460_800.0  # midnight, UTC
HOUR_S = 3600.0
SECRET_ID = "turn-of-somebody"


@pytest.fixture
def database(database_url: str) -> Iterator[Database]:
    made = Database(database_url)
    yield made
    made.close()


def fill(database: Database, items: Sequence[Any]) -> None:
    with database.writing() as connection:
        _write(connection, items)


def answer(number: int, ago_s: float, **given: Any) -> AnswerFigures:
    told = AnswerFigures(
        f"{SECRET_ID}-{number}", NOW_S - ago_s, "vllm", "m", ttft_s=0.5, tpot_ms=20.0
    )
    return replace(told, **given)


def many(count: int, seed: int = 1) -> list[tuple[AnswerFigures, ScreenFigures | None]]:
    dice = random.Random(seed)
    told = []
    for number in range(count):
        finish, error = dice.choice(
            [("stop", ""), ("stop", ""), ("length", ""), ("abort", ""), ("error", "StalledError")]
        )
        figures = answer(
            number,
            dice.uniform(0, 30 * 86_400),
            backend=dice.choice(["local", "vllm"]),
            model=dice.choice(["a", "b"]),
            server=dice.choice(["", "gpu-1"]),
            finish=finish,
            error=error,
            cached=dice.choice(["", "", "", "exact", "similar"]),
            ttft_s=dice.choice([None, dice.expovariate(2)]),
            tpot_ms=dice.choice([None, dice.uniform(5, 90)]),
            itl_p50_ms=dice.uniform(5, 90),
            itl_p95_ms=dice.uniform(50, 900),
        )
        screen = ScreenFigures(dice.uniform(16, 900), dice.uniform(8, 400))
        told.append((figures, screen if dice.random() < 0.7 else None))
    return told


def items(told: Sequence[tuple[AnswerFigures, ScreenFigures | None]]) -> list[Any]:
    seen = [_Seen(each.turn_id, each.ended_s, screen) for each, screen in told if screen]
    return [*(each for each, _ in told), *seen]


def by_hand(values: Sequence[float | None], share: float) -> float | None:
    known = sorted(value for value in values if value is not None)
    return next((v for v in known if sum(k <= v for k in known) >= share * len(known) - 1e-9), None)


def names_of(told: AnswerFigures | ModelFigures) -> tuple[str, str, str]:
    return told.backend, told.model, told.server


def test_a_report_is_what_counting_by_hand_gives(database: Database) -> None:
    told = many(400)
    fill(database, items(told))
    for period in metrics_report.PERIODS:
        for backend, model in (
            ("", ""),
            ("vllm", ""),
            ("", "b"),
            ("local", "a"),
            ("local", "none"),
        ):
            check(database, told, period, backend, model)


def check(
    database: Database,
    told: Sequence[tuple[AnswerFigures, ScreenFigures | None]],
    period: metrics_report.Period,
    backend: str,
    model: str,
) -> None:
    back_s = metrics_report.PERIODS[period] or math.inf
    chosen = [
        (each, screen)
        for each, screen in told
        if each.ended_s >= NOW_S - back_s
        and backend in ("", each.backend)
        and model in ("", each.model)
    ]
    said = report(database, period, backend=backend, model=model, now_s=NOW_S)
    finishes = Counter(each.finish for each, _ in chosen)
    assert said.answers == len(chosen)
    assert (said.stopped, said.failed) == (finishes["abort"], finishes["error"])
    cached = Counter(each.cached for each, _ in chosen)
    assert (said.exact, said.similar) == (cached["exact"], cached["similar"])
    assert said.errors == ({"StalledError": finishes["error"]} if finishes["error"] else {})
    assert said.every == 1
    given = [each for each, _ in chosen if not each.cached]
    for name in ("ttft_s", "tpot_ms", "itl_p50_ms", "itl_p95_ms"):
        values = [getattr(each, name) for each in given]
        assert said.times[name].count == sum(value is not None for value in values)
        assert said.times[name].values == tuple(by_hand(values, s) for s in (0.5, 0.95, 0.99))
    for name in ("longest_freeze_ms", "inp_ms"):
        values = [getattr(screen, name) for _, screen in chosen if screen]
        assert said.times[name].values == tuple(by_hand(values, s) for s in (0.5, 0.75, 0.95))
    counts = Counter(map(names_of, (each for each, _ in chosen)))
    assert {names_of(each): each.answers for each in said.models} == dict(counts)
    for each in said.models:
        own = [one for one, _ in chosen if names_of(one) == names_of(each)]
        ended = Counter(one.finish for one in own)
        assert (each.stopped, each.failed) == (ended["abort"], ended["error"])
        assert each.from_cache == sum(bool(one.cached) for one in own)
        ttfts = [one.ttft_s for one in own if not one.cached]
        assert each.ttft_s.values[1] == by_hand(ttfts, 0.95)
    assert sum(bucket.answers for bucket in said.buckets) == len(chosen)
    assert sum(bucket.failed for bucket in said.buckets) == finishes["error"]
    for bucket in said.buckets:
        within = [
            (each, screen)
            for each, screen in chosen
            if bucket.from_s <= each.ended_s < bucket.from_s + said.width_s
        ]
        assert bucket.answers == len(within)
        ttfts = [each.ttft_s for each, _ in within if not each.cached]
        assert (bucket.ttft_p50_s, bucket.ttft_p95_s) == (by_hand(ttfts, 0.5), by_hand(ttfts, 0.95))
        freezes = [screen.longest_freeze_ms for _, screen in within if screen]
        assert bucket.freeze_p75_ms == by_hand(freezes, 0.75)


def test_what_was_stopped_counts_for_a_models_speed(database: Database) -> None:
    """Without those that people gave up on, a slow model would look quick."""
    quick = [answer(n, 60, tpot_ms=10.0) for n in range(3)]
    slow = [answer(n, 60, tpot_ms=200.0, finish="abort") for n in range(3, 10)]
    fill(database, [*quick, *slow])
    told = report(database, "hour", now_s=NOW_S)
    assert told.times["tpot_ms"].values[0] == 200.0
    assert told.models[0].tpot_ms.values[0] == 200.0


def test_all_answers_are_counted_in_the_order_of_an_index(tmp_path: Path) -> None:
    """Without sorting them: 40 ms for 200,000, not 700."""
    database = Database(f"sqlite:///{tmp_path / 'kept.sqlite3'}")
    fill(database, items(many(10)))
    counted = metrics_report._counted(metrics_report._choice("all", "", "", NOW_S))
    with database.reading() as connection:
        sql = counted.compile(connection, compile_kwargs={"literal_binds": True})
        steps = [row[-1] for row in connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {sql}")]
    database.close()
    assert steps == ["SCAN answer_figures USING COVERING INDEX answer_figures_by_kind"]


def test_nothing_kept_is_a_report_of_nothing(database: Database) -> None:
    said = report(database, "all", now_s=NOW_S)
    assert (said.answers, said.models, said.buckets, said.process) == (0, (), (), None)
    assert said.times["ttft_s"].values == (None, None, None)
    assert said.tokens_per_s is None
    assert said.share(0) == 0


def test_what_only_the_screen_has_told_of_is_no_answer_yet(database: Database) -> None:
    fill(database, [_Seen("early", NOW_S, ScreenFigures(100.0))])
    said = report(database, "all", now_s=NOW_S)
    assert said.answers == 0
    assert said.times["longest_freeze_ms"].count == 0
    assert said.names == ()


@pytest.mark.parametrize("period", ["hour", "day", "all"])
def test_a_clock_that_was_wrong_makes_no_years_of_empty_time(
    database: Database, period: metrics_report.Period
) -> None:
    year_s = 365 * 86_400.0
    fill(database, [answer(1, 60), answer(2, -year_s), answer(3, 20 * year_s)])
    said = report(database, period, now_s=NOW_S)
    assert said.answers == 1
    assert len(said.buckets) < 200


def test_the_names_to_choose_from_dont_depend_on_the_choice(database: Database) -> None:
    fill(database, [answer(1, 60), answer(2, 60, backend="local", model="other")])
    said = report(database, "hour", backend="local", now_s=NOW_S)
    assert said.names == (("local", "other"), ("vllm", "m"))
    assert said.answers == 1


@pytest.mark.parametrize(
    ("ages_s", "width_s"),
    [((0, 60), 300), ((0, 6 * HOUR_S + 1), HOUR_S), ((0, 40 * 86_400.0), 86_400)],
)
def test_stretches_of_time_are_neither_few_nor_many(
    database: Database, ages_s: Sequence[float], width_s: float
) -> None:
    fill(database, [answer(number, ago_s) for number, ago_s in enumerate(ages_s)])
    assert report(database, "all", now_s=NOW_S).width_s == width_s


@pytest.mark.parametrize(("period", "least"), [("hour", 12), ("day", 24), ("all", 12)])
def test_a_course_has_no_holes_and_isnt_one_bar_alone(
    database: Database, period: metrics_report.Period, least: int
) -> None:
    fill(database, [answer(1, 100)])
    said = report(database, period, now_s=NOW_S)
    assert least <= len(said.buckets) <= least + 1
    begins = [bucket.from_s for bucket in said.buckets]
    assert begins == [begins[0] + said.width_s * at for at in range(len(begins))]
    assert [bucket.answers for bucket in said.buckets if bucket.answers] == [1]
    empty = said.buckets[0]
    assert (empty.answers, empty.ttft_p50_s, empty.freeze_p75_ms) == (0, None, None)


def test_days_begin_where_the_reader_is(database: Database) -> None:
    fill(database, [answer(1, 30 * 86_400.0), answer(2, 7 * HOUR_S), answer(3, 9 * HOUR_S)])
    here = report(database, "all", now_s=NOW_S)
    assert [bucket.answers for bucket in here.buckets if bucket.answers] == [1, 2]
    shanghai = report(database, "all", offset_s=8 * HOUR_S, now_s=NOW_S)
    assert [bucket.answers for bucket in shanghai.buckets if bucket.answers] == [1, 1, 1]
    assert shanghai.buckets[-1].from_s == NOW_S - 8 * HOUR_S


def test_of_very_many_percentiles_are_of_some_and_counts_of_all(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(metrics_report, "MOST_SAMPLED", 100)
    fill(database, [answer(n, 60, ttft_s=float(n)) for n in range(1, 1001)])
    said = report(database, "hour", now_s=NOW_S)
    assert (said.answers, said.every) == (1000, 10)
    assert said.times["ttft_s"].count == pytest.approx(100, abs=3)
    p50_s, p95_s, _ = said.times["ttft_s"].values
    assert p50_s == pytest.approx(500, abs=10)
    assert p95_s == pytest.approx(950, abs=10)
    assert sum(bucket.answers for bucket in said.buckets) == 1000


@pytest.mark.parametrize("count", [200, 300, 400])
def test_what_is_kept_in_turn_is_sampled_evenly(
    database: Database, monkeypatch: pytest.MonkeyPatch, count: int
) -> None:
    """Each answer takes two numbers of PostgreSQL's rows, and models are asked in turn."""
    monkeypatch.setattr(metrics_report, "MOST_SAMPLED", 100)
    with database.writing() as connection:
        for number in range(count):
            told = answer(number, 60, model="ab"[number % 2], ttft_s=float(number))
            _write(connection, [told])
            screen = ScreenFigures(longest_freeze_ms=float(number))
            _write(connection, [_Seen(told.turn_id, told.ended_s, screen)])
    said = report(database, "hour", now_s=NOW_S)
    assert said.every == count // 100
    for name in ("ttft_s", "longest_freeze_ms"):
        assert said.times[name].count == pytest.approx(100, abs=3)
        assert said.times[name].values[0] == pytest.approx(count / 2, rel=0.05)
    assert [each.ttft_s.count for each in said.models] == [pytest.approx(50, abs=3)] * 2
    alone = report(database, "hour", model="a", now_s=NOW_S)
    assert alone.times["ttft_s"].count == pytest.approx(count / 2 / alone.every, abs=3)


def test_samples_of_the_process_are_told(database: Database) -> None:
    samples = [ProcessSample(NOW_S - n, n, 1000 * n) for n in range(100)]
    fill(database, [*samples, ProcessSample(NOW_S - 2 * HOUR_S, 10_000, 10**12)])
    told = report(database, "hour", now_s=NOW_S).process
    assert told is not None
    assert (told.queue_p95, told.queue_most) == (94, 99)
    assert told.memory_most_bytes == 99_000


def read(file: bytes) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(file.decode("utf-8"), newline="")))


def test_the_file_has_an_answer_a_line_and_no_ids(database: Database) -> None:
    told = many(30)
    fill(database, items(told))
    file = csv_file(database, "all", now_s=NOW_S)
    lines = read(file)
    assert tuple(lines[0]) == COLUMNS
    assert len(lines) == 30
    assert SECRET_ID.encode() not in file
    ordered = sorted(told, key=lambda each: each[0].ended_s)
    for line, (figures, screen) in zip(lines, ordered, strict=True):
        assert line["model"] == figures.model
        assert line["ttft_s"] == ("" if figures.ttft_s is None else f"{figures.ttft_s:.6g}")
        assert line["inp_ms"] == (f"{screen.inp_ms:.6g}" if screen else "")
        ended = datetime.fromisoformat(line["ended"])
        assert (ended.minute, ended.second, ended.microsecond) == (0, 0, 0), "to the hour"
        assert 0 <= figures.ended_s - ended.timestamp() < HOUR_S
    chosen = [each for each, _ in told if each.model == "a" and each.backend == "local"]
    part = read(csv_file(database, "all", backend="local", model="a", now_s=NOW_S))
    assert len(part) == len(chosen)


@pytest.mark.parametrize("name", ["=1+1", "+1", "-1", "@a", '"quoted", and\nmore', "模型"])
def test_a_name_in_the_file_is_a_name(database: Database, name: str) -> None:
    fill(database, [answer(1, 60, model=name)])
    (line,) = read(csv_file(database, "all", now_s=NOW_S))
    assert line["model"].removeprefix("'") == name
    assert not line["model"].startswith(("=", "+", "-", "@"))
