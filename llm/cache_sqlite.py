"""The answer cache in a SQLite file of its own."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Any, Literal

import sqlalchemy as sa
from sqlalchemy import bindparam
from sqlalchemy.dialects.sqlite import insert
from sqlalchemy.engine import Connection

from llm.cache_file import BUSY_S, CacheFile
from llm.cache_packing import (
    candidate_of,
    clearing_name,
    clears,
    listed,
    pack_answer,
    possible,
    to_bytes,
    to_text,
    unpack_answer,
)
from llm.cache_sqlite_log import AT_ONCE, SqliteCacheLog, within
from llm.cache_tables import (
    EVERYBODY,
    TABLES,
    VERSION,
    bodies,
    clearings,
    decisions,
    entries,
    rejections,
    size_of,
    totals,
)
from llm.cache_types import (
    CLEARING_KEPT_S,
    CLOCK_AHEAD_S,
    AnswerStore,
    CachedAnswer,
    CacheEntry,
    CacheFullError,
    CacheKey,
    CacheStoreError,
    CacheTotals,
    Candidate,
)
from llm.served_values import keepable

_c = entries.c

_FEW = 10  # at once, where there is hardly room

# Made once: making them takes longer than what SQLite does.
_ahead = _c.used_s > bindparam("now_s") + CLOCK_AHEAD_S  # never before it was made
_gone = sa.or_(_c.expires_s <= bindparam("now_s"), _ahead)
_own = (_c.scope == bindparam("of_scope"), _c.digest == bindparam("of_digest"))
_GET = sa.select(bodies.c.body).join(entries, bodies.c.row == _c.row).where(*_own, ~_gone)
_USED = (
    sa.update(entries)
    .where(*_own)
    .values(hits=_c.hits + 1, used_s=sa.func.max(_c.used_s, bindparam("now_s")))
)
_ADD, _ADD_BODY = sa.insert(entries), sa.insert(bodies)
# Each by its own index.
_expired = sa.select(_c.row).where(_c.expires_s <= bindparam("now_s")).limit(AT_ONCE)
_of_later = sa.select(_c.row).where(_ahead).limit(AT_ONCE)
_forget = sa.delete(entries).returning(_c.scope, _c.size)
_FORGET_ONE = _forget.where(*_own)
_FORGET_ROWS = _forget.where(_c.row.in_(bindparam("rows", expanding=True)))
_FORGET_EXPIRED = _forget.where(_c.row.in_(_expired))
_FORGET_LATER = _forget.where(_c.row.in_(_of_later))
_OLDEST = sa.select(_c.row, _c.size).order_by(_c.used_s, _c.size, _c.row).limit(AT_ONCE)
_TOTAL = sa.select(totals.c.size).where(totals.c.scope == EVERYBODY)
_CLEARED = sa.select(clearings.c.at_s).where(
    clearings.c.scope == bindparam("of_scope"), clearings.c.name.in_(("", bindparam("model_name")))
)
_counted = insert(totals)
_COUNT = _counted.on_conflict_do_update(
    index_elements=["scope"],
    set_={
        "entries": totals.c.entries + _counted.excluded.entries,
        "size": totals.c.size + _counted.excluded.size,
    },
)


class SqliteAnswerStore(SqliteCacheLog):
    """An `AnswerStore` in one file, which several processes may share.

    Args:
        path: the file; its folder is made.
        max_bytes: the size cap.
        busy_s: how long a write waits for another's.
        clock: seconds that never go back.

    Thread-safety: every method may be called from any thread.
    """

    def __init__(
        self,
        path: Path,
        max_bytes: int,
        busy_s: float = BUSY_S,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__(CacheFile(path, TABLES, VERSION, busy_s, clock))
        self._max_bytes = max_bytes

    # -- answers --

    def get(self, digest: str, scope: str, now_s: float) -> CachedAnswer | None:
        """As in `AnswerStore`."""
        if not possible(scope, digest):
            return None
        with self._file.reading() as connection:
            body = connection.execute(
                _GET, {"of_scope": scope, "of_digest": digest, "now_s": now_s}
            ).scalar()
        return None if body is None else unpack_answer(body, digest, scope)

    def put(
        self,
        answer: CachedAnswer,
        vector: bytes = b"",
        embedding: str = "",
        *,
        begun_s: float | None = None,
    ) -> None:
        """As in `AnswerStore`."""
        begun_s = answer.created_s if begun_s is None else begun_s
        key = answer.key
        if not possible(key.scope, key.digest, key.partition):
            raise CacheStoreError("no key of an answer")
        body, shown, question = pack_answer(answer), listed(answer), to_bytes(answer.question)
        values = {
            "scope": key.scope,
            "digest": key.digest,
            "partition": key.partition,
            "created_s": answer.created_s,
            "expires_s": answer.expires_s,
            "used_s": answer.created_s,
            "hits": 0,
            "chars": shown.chars,
            "model": shown.model,
            "server": shown.server,
            "opening": shown.opening,
            "embedding": keepable(embedding),
            "question": question,
            "vector": vector,
        }
        size = size_of(values, len(body))
        with self._file.writing() as connection:
            asked = {"of_scope": key.scope, "model_name": clearing_name(answer.model)}
            cleared = connection.execute(_CLEARED, asked).scalars()
            if any(clears(at_s, begun_s) for at_s in cleared):
                return
            own = {"of_scope": key.scope, "of_digest": key.digest}
            _forgotten(connection, _FORGET_ONE, own)
            row = -1
            if size <= self._max_bytes:
                made = connection.execute(_ADD, {"size": size, **values})
                assert made.inserted_primary_key is not None
                row = made.inserted_primary_key[0]
                connection.execute(_ADD_BODY, {"row": row, "body": body})
                _count(connection, {key.scope: [size]}, 1)

            def tidy() -> None:
                _forgotten(connection, _FORGET_EXPIRED, {"now_s": answer.created_s})
                _forgotten(connection, _FORGET_LATER, {"now_s": answer.created_s})
                self._make_room(connection, row)

            self._afterwards("answers", tidy)

    def _make_room(self, connection: Connection, kept: int) -> None:
        """Forget the least recently used over the cap, but for that row; so many at once that room
        is made sooner than it is taken, and few enough for a moment."""
        over = (connection.execute(_TOTAL).scalar() or 0) - self._max_bytes
        if over <= 0:
            return
        leaving = []
        with connection.execute(_OLDEST) as oldest:
            for row, size in oldest:
                if over <= 0:
                    break
                if row != kept:
                    leaving.append(row)
                    over -= size
        _forgotten(connection, _FORGET_ROWS, {"rows": leaving})

    def embed(self, partition: str, scope: str, candidate: Candidate) -> None:
        """As in `AnswerStore`."""
        if not possible(scope, partition, candidate.digest):
            return
        own = (_c.scope == scope, _c.digest == candidate.digest, _c.partition == partition)
        with self._file.writing() as connection:
            row = connection.execute(
                sa.select(
                    *(column for column in _c if column.name not in ("vector", "embedding")),
                    sa.func.length(bodies.c.body).label("body_bytes"),
                )
                .join(bodies, bodies.c.row == _c.row)
                .where(*own)
            ).first()
            if row is None:
                return
            told = {"vector": candidate.vector, "embedding": keepable(candidate.embedding)}
            size = size_of({**row._mapping, **told}, row.body_bytes)
            connection.execute(
                sa.update(entries).where(_c.row == row.row).values(size=size, **told)
            )
            connection.execute(
                sa.update(totals)
                .where(totals.c.scope.in_((scope, EVERYBODY)))
                .values(size=totals.c.size + (size - row.size))
            )

    def used(self, digest: str, scope: str, now_s: float) -> None:
        """As in `AnswerStore`."""
        if not possible(scope, digest):
            return
        with self._file.writing() as connection:
            connection.execute(_USED, {"of_scope": scope, "of_digest": digest, "now_s": now_s})

    def delete(self, digest: str, scope: str) -> bool:
        """As in `AnswerStore`."""
        if not possible(scope, digest):
            return False
        with self._file.writing() as connection:
            own = {"of_scope": scope, "of_digest": digest}
            return _forgotten(connection, _FORGET_ONE, own) > 0

    def candidates(self, partition: str, scope: str, now_s: float) -> Sequence[Candidate]:
        """As in `AnswerStore`."""
        if not possible(scope, partition):
            return []
        with self._file.reading() as connection:
            rows = connection.execute(
                sa.select(
                    _c.created_s, _c.row, _c.digest, _c.question, _c.vector, _c.embedding
                ).where(
                    _c.scope == scope,
                    _c.partition == partition,
                    ~_gone,
                ),
                {"now_s": now_s},
            ).all()
        # Here, and not in the query: SQLite would carry the vectors through its sorting.
        newest = sorted(rows, key=lambda row: (row.created_s, row.row), reverse=True)
        found = (candidate_of(*row[2:]) for row in newest)
        return [candidate for candidate in found if candidate is not None]

    # -- what a person sees of it --

    def entries(
        self, scope: str, now_s: float, limit: int, skip: int = 0, text: str = ""
    ) -> Sequence[CacheEntry]:
        """As in `AnswerStore`."""
        limit, skip = within(limit), within(skip)
        if not possible(scope) or not limit:
            return []
        of_scope, now = (_c.scope == scope, ~_gone), {"now_s": now_s}
        order = (_c.used_s.desc(), _c.row.desc())
        columns = (column for column in _c if column.name not in ("row", "vector"))
        shown, folded = sa.select(*columns).order_by(*order), text.casefold()
        with self._file.reading() as connection:
            if text:
                # Here, and not in the query: SQLite knows the case of English letters only.
                questions = sa.select(_c.row, _c.question).where(*of_scope).order_by(*order)
                with connection.execute(questions, now) as all_of_them:
                    having = (row for row, question in all_of_them if _has(question, folded))
                    some = list(islice(having, skip, skip + limit))
                rows = [
                    row
                    for start in range(0, len(some), AT_ONCE)
                    for row in connection.execute(
                        shown.where(*of_scope, _c.row.in_(some[start : start + AT_ONCE])), now
                    ).all()
                ]
            else:
                rows = [*connection.execute(shown.where(*of_scope).limit(limit).offset(skip), now)]
        found = []
        for row in rows:
            with suppress(ValueError):  # damaged
                found.append(_entry(row))
        return found

    def totals(self, scope: str, now_s: float) -> CacheTotals:
        """As in `AnswerStore`."""
        if not possible(scope):
            return CacheTotals(0, 0)
        with self._file.reading() as connection:
            all_of_it = connection.execute(
                sa.select(totals.c.entries, totals.c.size).where(totals.c.scope == scope)
            ).first() or (0, 0)
            # Few: each answer that is kept takes such away.
            gone = connection.execute(
                sa.select(sa.func.count(), sa.func.coalesce(sa.func.sum(_c.size), 0)).where(
                    _c.scope == scope, _gone
                ),
                {"now_s": now_s},
            ).one()
        return CacheTotals(all_of_it[0] - gone[0], all_of_it[1] - gone[1])

    def clear(
        self,
        scope: str,
        now_s: float,
        *,
        model: str | None = None,
        before_s: float | None = None,
    ) -> int:
        """As in `AnswerStore`. In many short transactions: others write in between.

        On a full disk not even that has room at first. A file that holds nobody else's is removed
        then; else the log of writes is used over and over, which does where it is long enough.

        Raises:
            CacheFullError: it isn't, and not all is gone.
        """
        if not possible(scope):
            return 0
        wanted = [_c.scope == scope]
        if model is not None:
            wanted.append(_c.model == keepable(model))
        if before_s is not None:
            wanted.append(_c.created_s < before_s)
        at_s = now_s if before_s is None else min(now_s, before_s)
        everything = model is None and before_s is None

        def clear(at_once: int, make_room: Callable[[], None]) -> int:
            make_room()
            self._note_clearing(scope, model, at_s)
            gone = self._cleared(entries, wanted, at_once, make_room)
            if everything:
                for table in (rejections, decisions):
                    self._cleared(table, [table.c.scope == scope], at_once, make_room)
            return gone

        try:
            gone = clear(AT_ONCE, lambda: None)
        except CacheFullError:
            alone = self._alone(scope) if everything else None
            if alone is None:
                gone = clear(_FEW, self._file.reuse_log)
            else:
                self._file.begin_anew()
                gone = alone + clear(AT_ONCE, lambda: None)
        if gone:
            self._file.give_back()
        return gone

    def _cleared(
        self,
        table: sa.Table,
        wanted: Sequence[sa.ColumnElement[bool]],
        at_once: int,
        make_room: Callable[[], None],
    ) -> int:
        with self._file.reading() as connection:
            rows = connection.execute(sa.select(table.c.row).where(*wanted)).scalars().all()
        gone = 0
        for start in range(0, len(rows), at_once):
            # A row's number may have become another's meanwhile.
            some = table.c.row.in_(rows[start : start + at_once])
            make_room()
            with self._file.writing() as connection:
                if table is entries:
                    gone += _forgotten(connection, _forget.where(some, *wanted), {})
                else:
                    connection.execute(sa.delete(table).where(some, *wanted))
        return gone

    def _alone(self, scope: str) -> int | None:
        """How many entries the scope has, where nobody else has anything; else None."""
        with self._file.reading() as connection:
            for table in (entries, rejections, decisions):
                others = sa.select(table.c.row).where(table.c.scope != scope).limit(1)
                if connection.execute(others).first() is not None:
                    return None
            own = sa.select(sa.func.count()).where(_c.scope == scope)
            return connection.execute(own).scalar() or 0

    def _note_clearing(self, scope: str, model: str | None, at_s: float) -> None:
        with self._file.writing() as connection:
            connection.execute(
                insert(clearings)
                .values(scope=scope, name=clearing_name(model), at_s=at_s)
                .on_conflict_do_update(index_elements=["scope", "name"], set_={"at_s": at_s})
            )
            old = clearings.c.at_s < at_s - CLEARING_KEPT_S
            connection.execute(sa.delete(clearings).where(old))

    def together(self, writes: Sequence[Callable[[AnswerStore], object]]) -> None:
        """As in `AnswerStore`. In one transaction: where one fails none is done."""
        with self._file.writing():
            pending: dict[str, Callable[[], None]] = {}
            self._own.pending = pending
            try:
                for write in writes:
                    write(self)
            finally:
                self._own.pending = None
            for tidy in pending.values():
                tidy()

    def close(self) -> None:
        """As in `AnswerStore`."""
        self._file.close()


def _entry(row: Any) -> CacheEntry:
    return CacheEntry(
        key=CacheKey(row.digest, row.partition, row.scope),
        question=keepable(to_text(row.question)),
        opening=row.opening,
        chars=row.chars,
        size=row.size,
        model=row.model,
        server=row.server,
        created_s=row.created_s,
        expires_s=row.expires_s,
        used_s=row.used_s,
        hits=row.hits,
    )


def _has(question: object, folded: str) -> bool:
    with suppress(ValueError):  # damaged
        return folded in keepable(to_text(question)).casefold()
    return False


def _forgotten(connection: Connection, deleting: Any, values: Mapping[str, Any]) -> int:
    """Delete entries and all that belongs to them; returns how many there were."""
    sizes: dict[str, list[int]] = {}
    for scope, size in connection.execute(deleting, values).all():
        sizes.setdefault(scope, []).append(size)
    _count(connection, sizes, -1)
    return sum(map(len, sizes.values()))


def _count(
    connection: Connection, sizes: Mapping[str, Sequence[int]], sign: Literal[1, -1]
) -> None:
    """Add these sizes of scopes' entries to the totals, or take them away."""
    if sizes:
        everybodys = [size for each in sizes.values() for size in each]
        connection.execute(
            _COUNT,
            [
                {"scope": scope, "entries": sign * len(each), "size": sign * sum(each)}
                for scope, each in [*sizes.items(), (EVERYBODY, everybodys)]
            ],
        )
