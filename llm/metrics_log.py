"""Keeps the figures of answers, off every answer's path, in the conversations' database.

Nothing waits for it and nothing depends on it: where the database is in trouble, figures wait in
memory for a while, the oldest are lost first, and the log says so once.
"""

from __future__ import annotations

import logging
import math
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, fields
from typing import TYPE_CHECKING, Any

from sqlalchemy import case, delete, func, select
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.engine import Connection
from sqlalchemy.sql import ColumnElement

from llm.answer_figures import AnswerFigures
from llm.conversation_rows import clean
from llm.conversation_tables import answer_figures, process_samples
from llm.database import Database
from llm.errors import StoreError, StoreFaultError
from llm.fault_log import log_fault
from llm.screen_figures import WORST, ScreenFigures

if TYPE_CHECKING:
    from llm.metrics_prometheus import PrometheusFigures

DAY_S = 86_400.0
KEPT_S = 90 * DAY_S
MOST_ANSWERS = 200_000
MOST_PENDING = 2_000
SAMPLE_S = 60.0
RETRY_S = 10.0
_PURGE_S = 3600.0
_BATCH = 500
_MOST_REFUSED = 3
_ID_CHARS = 64
_SCREEN = tuple(each.name for each in fields(ScreenFigures))
_CUT = {"backend": 16, "finish": 16, "cached": 16, "error": 64}
_MOST = {"bytes_sent": 2**53, "ended_s": 2**53}

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ProcessSample:
    """What this process took at a moment.

    Args:
        at_s: seconds since 1970.
        queue_depth: questions in line.
    """

    at_s: float
    queue_depth: int
    memory_bytes: int


@dataclass(frozen=True, slots=True)
class _Seen:
    turn_id: str
    at_s: float
    screen: ScreenFigures


class MetricsLog:
    """What happened, as figures: kept for 90 days, at most 200,000 answers.

    Args:
        database: where they are kept.
        gauges: tells queue depth and memory in bytes, about once a minute from `start` on.
        exporter: is told everything, too.
        clock: seconds since 1970.

    Thread-safety: every method may be called from any thread; none but `flush` and `close` waits,
    and none raises what the database does.
    """

    def __init__(
        self,
        database: Database,
        *,
        gauges: Callable[[], tuple[int, int]] | None = None,
        exporter: PrometheusFigures | None = None,
        clock: Callable[[], float] = time.time,
        retry_s: float = RETRY_S,
    ) -> None:
        self._database = database
        self._gauges = gauges
        self._exporter = exporter
        self._clock = clock
        self._retry_s = retry_s
        self._changed = threading.Condition()
        self._pending: deque[AnswerFigures | _Seen | ProcessSample] = deque(maxlen=MOST_PENDING)
        self._writing = False
        self._in_trouble = False
        self._refused = 0
        self._closed = False
        self._thread: threading.Thread | None = None
        # Not at once: while the process starts, others open the database and bring it up to date.
        self._sample_at_s = self._purge_at_s = time.monotonic() + SAMPLE_S

    def start(self) -> None:
        """Sample and tidy up from now on, without waiting for the first answer."""
        with self._changed:
            self._ensure_thread()

    def answered(self, figures: AnswerFigures) -> None:
        """An answer is over."""
        if self._exporter is not None:
            self._exporter.answered(figures)
        self._note(figures)

    def seen(self, turn_id: str, screen: ScreenFigures) -> None:
        """How an answer looked, once it is over; may come before `answered` or after.

        Of several tabs that showed the same answer, `ScreenFigures.worst` is kept.
        """
        if not 0 < len(turn_id) <= _ID_CHARS or clean(turn_id) != turn_id:
            return
        if self._exporter is not None:
            self._exporter.seen(turn_id, screen)
        self._note(_Seen(turn_id, self._clock(), screen))

    def sample(self, queue_depth: int, memory_bytes: int) -> None:
        """What this process takes now."""
        self._note(ProcessSample(self._clock(), queue_depth, memory_bytes))

    def flush(self, timeout_s: float) -> bool:
        """Wait until what was noted so far is kept; whether it is."""
        with self._changed:
            self._changed.wait_for(lambda: self._settled() or self._in_trouble, timeout_s)
            return self._settled()

    def close(self) -> None:
        """Keep what can be kept, and take no more."""
        with self._changed:
            self._closed = True
            thread = self._thread
            self._changed.notify_all()
        if thread is not None:
            thread.join(5)

    # -- within --

    def _settled(self) -> bool:
        return not self._pending and not self._writing

    def _note(self, item: AnswerFigures | _Seen | ProcessSample) -> None:
        with self._changed:
            if self._closed:
                return
            self._pending.append(item)
            self._ensure_thread()
            self._changed.notify_all()

    def _ensure_thread(self) -> None:
        """Called with the lock held."""
        if self._thread is None and not self._closed:
            thread = threading.Thread(target=self._run, name="metrics-log", daemon=True)
            thread.start()
            self._thread = thread

    def _run(self) -> None:
        while True:
            try:
                self._take_sample()
                self._write_all()
                self._purge()
            except Exception as error:  # noqa: BLE001 - figures are no reason to end
                log_fault(logger, "Keeping figures failed", error)
            with self._changed:
                if self._closed:
                    return
                self._changed.wait_for(
                    lambda: self._closed or (bool(self._pending) and not self._in_trouble),
                    self._retry_s if self._in_trouble else SAMPLE_S,
                )

    def _take_sample(self) -> None:
        if self._gauges is None or time.monotonic() < self._sample_at_s:
            return
        self._sample_at_s = time.monotonic() + SAMPLE_S
        self.sample(*self._gauges())

    def _write_all(self) -> None:
        while batch := self._take():
            trouble: StoreError | None = None
            try:
                with self._database.writing() as connection:
                    _write(connection, batch)
            except StoreError as error:
                trouble = error
            finally:
                with self._changed:
                    self._refused = self._refused + 1 if isinstance(trouble, StoreFaultError) else 0
                    # What the database takes offence at itself would be in the way for ever.
                    if trouble is not None and self._refused < _MOST_REFUSED:
                        room = MOST_PENDING - len(self._pending)
                        self._pending.extendleft(reversed(batch[max(0, len(batch) - room) :]))
                    self._tell(trouble)
                    self._writing = False
                    self._changed.notify_all()
            if trouble is not None:
                return

    def _take(self) -> list[AnswerFigures | _Seen | ProcessSample]:
        with self._changed:
            count = min(_BATCH, len(self._pending))
            self._writing = count > 0
            return [self._pending.popleft() for _ in range(count)]

    def _tell(self, trouble: StoreError | None) -> None:
        """Called with the lock held."""
        if trouble is not None and not self._in_trouble:
            logger.warning("Figures of answers can't be kept now: %s", trouble)
        self._in_trouble = trouble is not None

    def _purge(self) -> None:
        """Have no more than is to be kept, a little at a time: others write too."""
        if self._in_trouble or time.monotonic() < self._purge_at_s:
            return
        try:
            before_s = self._clock() - KEPT_S
            a, p = answer_figures.c, process_samples.c
            unfinished = (a.finish == "") & (a.ended_s < self._clock() - DAY_S)
            done = [
                self._delete(answer_figures, (a.ended_s < before_s) | unfinished),
                # Of a clock that was ahead: it would be there for longer than any other.
                self._delete(answer_figures, a.ended_s > self._clock() + DAY_S),
                self._delete(process_samples, p.at_s < before_s),
                self._delete(answer_figures, a.row <= self._row_too_many()),
            ]
        except StoreError as error:
            with self._changed:
                self._tell(error)
            return
        if not any(done):
            self._purge_at_s = time.monotonic() + _PURGE_S

    def _delete(self, table: Any, which: ColumnElement[bool]) -> bool:
        """Delete some; whether there may be more."""
        with self._database.writing() as connection:
            rows = select(table.c.row).where(which).order_by(table.c.row).limit(_BATCH)
            gone = connection.execute(delete(table).where(table.c.row.in_(rows)))
        return bool(gone.rowcount >= _BATCH)

    def _row_too_many(self) -> int:
        rows = answer_figures.c.row
        with self._database.reading() as connection:
            count = connection.execute(select(func.count()).select_from(answer_figures))
            over = count.scalar_one() - MOST_ANSWERS
            if over <= 0:
                return -1
            last = select(rows).order_by(rows).offset(over - 1).limit(1)
            return int(connection.execute(last).scalar_one())


def _write(connection: Connection, batch: Sequence[AnswerFigures | _Seen | ProcessSample]) -> None:
    dialect: Any = postgresql if connection.dialect.name == "postgresql" else sqlite
    columns = answer_figures.c
    answers = [_answer_row(each) for each in batch if isinstance(each, AnswerFigures)]
    if answers:
        put = dialect.insert(answer_figures)
        told = {name: put.excluded[name] for name in answers[0] if name != "turn_id"}
        connection.execute(
            put.on_conflict_do_update(index_elements=[columns.turn_id], set_=told), answers
        )
    seen = [_seen_row(each) for each in batch if isinstance(each, _Seen)]
    if seen:
        put = dialect.insert(answer_figures)
        told = _worst(put.excluded, columns, connection.dialect.name)
        connection.execute(
            put.on_conflict_do_update(index_elements=[columns.turn_id], set_=told), seen
        )
    samples = [asdict(each) for each in batch if isinstance(each, ProcessSample)]
    if samples:
        connection.execute(process_samples.insert(), samples)


def _worst(new: Any, old: Any, dialect: str) -> dict[str, Any]:
    """`ScreenFigures.worst` of two rows."""
    greatest = func.max if dialect == "sqlite" else func.greatest
    told = {
        name: greatest(func.coalesce(new[name], old[name]), func.coalesce(old[name], new[name]))
        for name in WORST
    }
    new_ms, old_ms = (func.coalesce(each.longest_freeze_ms, -1.0) for each in (new, old))
    rest = [name for name in _SCREEN if name not in WORST]
    return told | {name: case((new_ms >= old_ms, new[name]), else_=old[name]) for name in rest}


def _answer_row(figures: AnswerFigures) -> dict[str, Any]:
    return {name: _kept(name, value) for name, value in asdict(figures).items()}


def _seen_row(seen: _Seen) -> dict[str, Any]:
    names = ("backend", "model", "server", "finish", "error", "cached")
    screen = {name: _kept(name, value) for name, value in asdict(seen.screen).items()}
    return {"turn_id": seen.turn_id, "ended_s": seen.at_s, **dict.fromkeys(names, ""), **screen}


def _kept(name: str, value: Any) -> Any:
    """As any database can keep it."""
    if isinstance(value, str):
        return clean(value)[: _CUT.get(name)]
    if value is None or not math.isfinite(value) or abs(value) >= _MOST.get(name, 2**31):
        return None
    return value
