"""What the figures of answers come to: counts, percentiles, and their course over time.

All percentiles are by nearest rank (`llm.arrivals.nearest_rank`). Counts are of all answers;
percentiles of about 5,000 of them where there are more, which the report says.
An answer from the cache counts for the screen's figures, and not for TTFT, TPOT and ITL: those
would be the cache's. One that was stopped, or failed, counts with what is known of it: without
those that people gave up on, a slow model would look quick.
"""

from __future__ import annotations

import csv
import io
import math
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from datetime import UTC, datetime
from typing import Any, Literal

from sqlalchemy import Integer, cast, func, select
from sqlalchemy.engine import Connection
from sqlalchemy.sql import ColumnElement, Select

from llm.answer_figures import AnswerFigures
from llm.arrivals import nearest_rank
from llm.conversation_tables import answer_figures, process_samples
from llm.database import Database
from llm.metrics_log import KEPT_S
from llm.screen_figures import ScreenFigures

Period = Literal["hour", "day", "all"]
PERIODS: dict[Period, float | None] = {"hour": 3600.0, "day": 86_400.0, "all": None}
"""How far back each goes, in seconds; None as far as figures are kept."""

MOST_SAMPLED = 5_000
INP_GOOD_MS = 200.0
"""Of the p75. Source: https://web.dev/articles/inp#what-is-a-good-inp-score"""

SPEED_SHARES = (0.5, 0.95, 0.99)
SCREEN_SHARES = (0.5, 0.75, 0.95)

_WIDTHS_S = (300.0, 3600.0, 86_400.0)
_PERIOD_WIDTHS_S = {"hour": 300.0, "day": 3600.0}
_MOST_BUCKETS = 72
_LEAST_BUCKETS = 12
_MODEL_TIMES = ("ttft_s", "tpot_ms", "itl_p50_ms", "itl_p95_ms")
_SCREEN_TIMES = ("longest_freeze_ms", "inp_ms")
_SAMPLED = ("ended_s", "backend", "model", "server", "cached", *_MODEL_TIMES, *_SCREEN_TIMES)
_HOUR_S = 3600.0
_EXPORTED_AT_ONCE = 2_000
_GOLDEN = 2_654_435_769  # 2**32 by the golden ratio
_HASHED_ROWS = 2**30  # a product that 64 bits hold

_answers = answer_figures.c


@dataclass(frozen=True, slots=True)
class Percentiles:
    """Of one figure.

    Args:
        count: of how many answers it was known.
        values: one for each share asked for; None where it was known of none.
    """

    count: int
    values: tuple[float | None, ...]


@dataclass(frozen=True, slots=True)
class ModelFigures:
    """What one model of one backend did, on one server where there are several."""

    backend: str
    model: str
    server: str
    answers: int
    stopped: int
    failed: int
    from_cache: int
    ttft_s: Percentiles
    tpot_ms: Percentiles

    @property
    def tokens_per_s(self) -> float | None:
        """Of the answer in the middle."""
        return _speed(self.tpot_ms)


@dataclass(frozen=True, slots=True)
class Bucket:
    """A stretch of time, for a plot.

    Args:
        from_s: its beginning, seconds since 1970.
    """

    from_s: float
    answers: int
    stopped: int
    failed: int
    ttft_p50_s: float | None
    ttft_p95_s: float | None
    freeze_p75_ms: float | None


@dataclass(frozen=True, slots=True)
class ProcessFigures:
    """Of the samples, about one a minute and process: each is one process's, none is added up.

    Args:
        queue_p95: questions in line.
    """

    queue_p95: float
    queue_most: int
    memory_most_bytes: int


@dataclass(frozen=True, slots=True)
class MetricsReport:
    """A period's figures.

    Args:
        stopped: by a person.
        failed: ended with an error.
        errors: by their classes, most often first.
        times: percentiles by `AnswerFigures`' and `ScreenFigures`' names, at `SPEED_SHARES` and
            `SCREEN_SHARES`.
        models: most answers first.
        buckets: oldest first, without a hole: to now, for all to the last answer; none where there
            was no answer.
        width_s: how long each is.
        process: None without a sample.
        every: percentiles are of one answer in so many; 1 is all.
        names: the backends and models of the period, whatever is filtered.
    """

    answers: int
    stopped: int
    failed: int
    exact: int
    similar: int
    errors: Mapping[str, int]
    times: Mapping[str, Percentiles]
    models: tuple[ModelFigures, ...]
    buckets: tuple[Bucket, ...]
    width_s: float
    process: ProcessFigures | None
    every: int
    names: tuple[tuple[str, str], ...]

    @property
    def tokens_per_s(self) -> float | None:
        """Decode speed of the answer in the middle, 1 / TPOT."""
        return _speed(self.times["tpot_ms"])

    def share(self, count: int) -> float:
        """Of all answers, 0 to 1."""
        return count / self.answers if self.answers else 0.0


AHEAD_S = 3600.0
"""Clocks of several machines may differ by so much; an answer further ahead isn't looked at."""


@dataclass(frozen=True, slots=True)
class _Choice:
    """Which answers are meant."""

    now_s: float
    since_s: float | None
    backend: str
    model: str

    def has(self, backend: str, model: str) -> bool:
        return self.backend in ("", backend) and self.model in ("", model)

    def conditions(self) -> list[ColumnElement[bool]]:
        # What a clock that was wrong dated years away would make years of empty time.
        told = [
            _answers.finish != "",
            # Of a sum, which no index has: nearly all are within, and the index by ends would be
            # taken for it instead of the one in whose order answers are counted.
            (_answers.ended_s + 0.0).between(self.now_s - 2 * KEPT_S, self.now_s + AHEAD_S),
        ]
        if self.since_s is not None:
            told.append(_answers.ended_s >= self.since_s)
        if self.backend:
            told.append(_answers.backend == self.backend)
        if self.model:
            told.append(_answers.model == self.model)
        return told


def report(
    database: Database,
    period: Period,
    *,
    backend: str = "",
    model: str = "",
    offset_s: float = 0.0,
    now_s: float | None = None,
) -> MetricsReport:
    """A period's figures.

    Args:
        backend: only this kind's; empty is all.
        model: only this model's; empty is all.
        offset_s: what is to be added to UTC for the days of who reads.

    Raises:
        StoreError: the database can't be had.
    """
    choice = _choice(period, backend, model, now_s)
    with database.reading() as connection:
        groups = list(connection.execute(_counted(choice)))
        chosen = [group for group in groups if choice.has(group.backend, group.model)]
        count = sum(group[-1] for group in chosen)
        every = max(1, math.ceil(count / MOST_SAMPLED))
        sample = _sample(connection, choice, every)
        width_s = _width(connection, period, choice.now_s)
        courses = _courses(connection, choice, width_s, offset_s)
        process = _process(connection, choice.since_s)
    return MetricsReport(
        count,
        *_outcomes(chosen),
        exact=sum(each[-1] for each in chosen if each.cached == "exact"),
        similar=sum(each[-1] for each in chosen if each.cached == "similar"),
        errors=_errors(chosen),
        times=_times(sample),
        models=_models(chosen, sample),
        buckets=_buckets(courses, sample, width_s, offset_s, choice),
        width_s=width_s,
        process=process,
        every=every,
        names=tuple(sorted({(group[0], group[1]) for group in groups})),
    )


def _choice(period: Period, backend: str, model: str, now_s: float | None) -> _Choice:
    back_s = PERIODS[period]
    now_s = time.time() if now_s is None else now_s
    return _Choice(now_s, None if back_s is None else now_s - back_s, backend, model)


# -- reading --


def _counted(choice: _Choice) -> Select[Any]:
    """Backend, model, server, finish, error, cached and how many; of all models."""
    kinds = (
        _answers.backend,
        _answers.model,
        _answers.server,
        _answers.finish,
        _answers.error,
        _answers.cached,
    )
    where = replace(choice, backend="", model="").conditions()
    return select(*kinds, func.count()).where(*where).group_by(*kinds)


def _sample(connection: Connection, choice: _Choice, every: int) -> list[Any]:
    """Their times, of one answer in so many.

    Chosen by a hash of the row: whatever comes in turn (rows that a database leaves out, models
    that are asked alternately) would be had wholly or not at all by every n-th. This one is even
    along every such series, too.

    Source: Knuth, The Art of Computer Programming 3, 6.4, on Fibonacci hashing
    """
    wanted = select(*(_answers[name] for name in _SAMPLED)).where(*choice.conditions())
    if every > 1:
        hashed = _answers.row % _HASHED_ROWS * _GOLDEN % 2**32
        wanted = wanted.where(hashed < 2**32 // every)
    return list(connection.execute(wanted))


def _width(connection: Connection, period: Period, now_s: float) -> float:
    """How long a bucket is, so that there are neither few nor too many."""
    if period != "all":
        return _PERIOD_WIDTHS_S[period]
    # Of all answers, by the index alone; and each by itself, else it isn't by the index.
    ends = (
        select(func.min(_answers.ended_s)).scalar_subquery(),
        select(func.max(_answers.ended_s)).scalar_subquery(),
    )
    first_s, last_s = connection.execute(select(*ends)).one()
    if first_s is None:
        return _WIDTHS_S[0]
    span_s = min(last_s, now_s) - max(first_s, now_s - 2 * KEPT_S)
    return next((each for each in _WIDTHS_S if span_s <= _MOST_BUCKETS * each), _WIDTHS_S[-1])


def _courses(connection: Connection, choice: _Choice, width_s: float, offset_s: float) -> list[Any]:
    """Number of the bucket, finish, and how many answers."""
    in_widths = (_answers.ended_s + offset_s) / width_s
    # PostgreSQL's cast rounds, SQLite's cuts, and not every SQLite has a floor.
    whole = in_widths if connection.dialect.name == "sqlite" else func.floor(in_widths)
    number = cast(whole, Integer).label("number")
    told: Select[Any] = select(number, _answers.finish, func.count()).where(*choice.conditions())
    return list(connection.execute(told.group_by(number, _answers.finish)))


def _process(connection: Connection, since_s: float | None) -> ProcessFigures | None:
    p = process_samples.c
    where = [p.at_s >= since_s] if since_s is not None else []
    most = select(func.count(), func.max(p.queue_depth), func.max(p.memory_bytes)).where(*where)
    count, queue_most, memory_most = connection.execute(most).one()
    if not count:
        return None
    above = count - math.ceil(0.95 * count)
    ranked = select(p.queue_depth).where(*where).order_by(p.queue_depth.desc())
    queue_p95 = connection.execute(ranked.offset(above).limit(1)).scalar_one()
    return ProcessFigures(queue_p95, queue_most, memory_most)


# -- adding up --


def _outcomes(groups: Iterable[Any]) -> tuple[int, int]:
    by_finish: Counter[str] = Counter()
    for group in groups:
        by_finish[group.finish] += group[-1]
    return by_finish["abort"], by_finish["error"]


def _errors(groups: Iterable[Any]) -> dict[str, int]:
    told: Counter[str] = Counter()
    for group in groups:
        if group.error:
            told[group.error] += group[-1]
    return dict(told.most_common())


def _times(sample: Sequence[Any]) -> dict[str, Percentiles]:
    given = _given_by_models(sample)
    told = {name: _percentiles(given, name, SPEED_SHARES) for name in _MODEL_TIMES}
    return told | {name: _percentiles(sample, name, SCREEN_SHARES) for name in _SCREEN_TIMES}


def _given_by_models(sample: Iterable[Any]) -> list[Any]:
    return [row for row in sample if not row[_SAMPLED.index("cached")]]


def _percentiles(rows: Iterable[Any], name: str, shares: Sequence[float]) -> Percentiles:
    at = _SAMPLED.index(name)
    known = sorted(row[at] for row in rows if row[at] is not None)
    return Percentiles(len(known), tuple(nearest_rank(known, share) for share in shares))


def _models(groups: Sequence[Any], sample: Sequence[Any]) -> tuple[ModelFigures, ...]:
    rows: dict[tuple[str, str, str], list[Any]] = defaultdict(list)
    for row in _given_by_models(sample):
        rows[row.backend, row.model, row.server].append(row)
    counted: dict[tuple[str, str, str], list[Any]] = defaultdict(list)
    for group in groups:
        counted[group.backend, group.model, group.server].append(group)
    told = [
        ModelFigures(
            *names,
            sum(each[-1] for each in own),
            *_outcomes(own),
            sum(each[-1] for each in own if each.cached),
            *(_percentiles(rows[names], name, SPEED_SHARES) for name in ("ttft_s", "tpot_ms")),
        )
        for names, own in counted.items()
    ]
    return tuple(sorted(told, key=lambda each: -each.answers))


def _buckets(
    courses: Sequence[Any],
    sample: Sequence[Any],
    width_s: float,
    offset_s: float,
    choice: _Choice,
) -> tuple[Bucket, ...]:
    finishes: dict[int, Counter[str]] = defaultdict(Counter)
    for number, finish, count in courses:
        finishes[number][finish] += count
    rows: dict[int, list[Any]] = defaultdict(list)
    for row in sample:
        rows[math.floor((row[0] + offset_s) / width_s)].append(row)
    if not finishes:
        return ()
    first, last = min(finishes), max(finishes)
    if choice.since_s is not None:
        first = math.floor((choice.since_s + offset_s) / width_s)
        last = max(last, math.floor((choice.now_s + offset_s) / width_s))
    told = []
    for number in range(min(first, last - _LEAST_BUCKETS + 1), last + 1):
        by_finish = finishes[number]
        ttft_s = _percentiles(_given_by_models(rows[number]), "ttft_s", SPEED_SHARES)
        freeze_ms = _percentiles(rows[number], "longest_freeze_ms", SCREEN_SHARES)
        told.append(
            Bucket(
                number * width_s - offset_s,
                by_finish.total(),
                by_finish["abort"],
                by_finish["error"],
                ttft_s.values[0],
                ttft_s.values[1],
                freeze_ms.values[1],
            )
        )
    return tuple(told)


def _speed(tpot_ms: Percentiles) -> float | None:
    middle = tpot_ms.values[0]
    return 1000 / middle if middle else None


# -- as a file --

COLUMNS = (
    "ended",
    *(each.name for each in fields(AnswerFigures) if each.name not in ("turn_id", "ended_s")),
    *(each.name for each in fields(ScreenFigures)),
)


def csv_file(
    database: Database,
    period: Period,
    *,
    backend: str = "",
    model: str = "",
    now_s: float | None = None,
) -> bytes:
    """One answer a line, oldest first: figures and names, no ids.

    Every user may read it, so of when an answer ended it has the hour alone: to the millisecond it
    would tell who was at work when.

    Raises:
        StoreError: the database can't be had.
    """
    choice = _choice(period, backend, model, now_s)
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\r\n")  # RFC 4180
    writer.writerow(COLUMNS)
    wanted = select(_answers.ended_s, *(_answers[name] for name in COLUMNS[1:]))
    wanted = wanted.where(*choice.conditions()).order_by(_answers.ended_s, _answers.row)
    with database.reading(unhurried=True) as connection:
        rows = connection.execution_options(yield_per=_EXPORTED_AT_ONCE).execute(wanted)
        for ended_s, *values in rows:
            hour_s = ended_s // _HOUR_S * _HOUR_S
            ended = datetime.fromtimestamp(hour_s, UTC).isoformat(timespec="minutes")
            writer.writerow([ended, *map(_cell, values)])
    return text.getvalue().encode()


def _cell(value: Any) -> Any:
    """Six digits are more than any clock here is good for.

    A name that a spreadsheet would take for a formula is a name all the same.

    Source: https://owasp.org/www-community/attacks/CSV_Injection
    """
    if isinstance(value, str) and value.startswith(("=", "+", "-", "@", "\t", "\r")):
        return f"'{value}"
    return f"{value:.6g}" if isinstance(value, float) else value
