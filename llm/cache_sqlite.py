"""The answer cache in a SQLite file of its own."""

from __future__ import annotations

import threading
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
    pack_decision,
    possible,
    to_bytes,
    to_text,
    unpack_answer,
    unpack_decision,
)
from llm.cache_tables import (
    EVERYBODY,
    TABLES,
    VERSION,
    bodies,
    clearings,
    decisions,
    entries,
    is_near,
    rejections,
    size_of,
    totals,
)
from llm.cache_types import (
    CLEARING_KEPT_S,
    DECISIONS_KEPT,
    DECISIONS_KEPT_S,
    REJECTIONS_KEPT,
    REJECTIONS_KEPT_S,
    AnswerStore,
    CachedAnswer,
    CacheEntry,
    CacheKey,
    CacheStoreError,
    CacheTotals,
    Candidate,
    Decision,
    DecisionCount,
    Rejection,
)
from llm.served_values import keepable

_AT_ONCE = 200
_MOST = 1_000_000
_MOST_TOKENS = 2**53  # what a server says may be any number
_c = entries.c

# Made once: making them takes longer than what SQLite does.
_own = (_c.scope == bindparam("of_scope"), _c.digest == bindparam("of_digest"))
_GET = (
    sa.select(bodies.c.body)
    .join(entries, bodies.c.row == _c.row)
    .where(*_own, _c.expires_s > bindparam("now_s"))
)
_USED = (
    sa.update(entries)
    .where(*_own)
    .values(hits=_c.hits + 1, used_s=sa.func.max(_c.used_s, bindparam("now_s")))
)
_ADD, _ADD_BODY = sa.insert(entries), sa.insert(bodies)
_expired = sa.select(_c.row).where(_c.expires_s <= bindparam("now_s")).limit(_AT_ONCE)
_forget = sa.delete(entries).returning(_c.scope, _c.size)
_FORGET_ONE = _forget.where(*_own)
_FORGET_ROWS = _forget.where(_c.row.in_(bindparam("rows", expanding=True)))
# A row's number may have become another's meanwhile.
_FORGET_SOME = _FORGET_ROWS.where(_c.scope == bindparam("of_scope"))
_FORGET_EXPIRED = _forget.where(_c.row.in_(_expired))
_OLDEST = sa.select(_c.row, _c.size).order_by(_c.used_s, _c.size, _c.row).limit(_AT_ONCE)
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
_REJECT, _noted = sa.insert(rejections), insert(decisions)
_NOTE = _noted.on_conflict_do_update(
    index_elements=["scope", "decision_id"],
    set_={
        column.name: _noted.excluded[column.name]
        for column in decisions.c
        if column.name not in ("row", "scope", "decision_id")
    },
)


def _surplus(table: sa.Table, *own: sa.ColumnElement[bool]) -> sa.Delete:
    """All but the newest so many of those."""
    kept = sa.select(table.c.row).where(*own).order_by(table.c.at_s.desc(), table.c.row.desc())
    return sa.delete(table).where(
        table.c.row.in_(kept.limit(_AT_ONCE).offset(bindparam("kept", type_=sa.Integer)))
    )


_FORGET_MANY_DECISIONS = _surplus(decisions, decisions.c.scope == bindparam("of_scope"))
_FORGET_MANY_REJECTIONS = _surplus(
    rejections,
    rejections.c.scope == bindparam("of_scope"),
    rejections.c.partition == bindparam("of_partition"),
)
_FORGET_OLD_DECISIONS = sa.delete(decisions).where(decisions.c.at_s < bindparam("before_s"))
_FORGET_OLD_REJECTIONS = sa.delete(rejections).where(rejections.c.at_s < bindparam("before_s"))


class SqliteAnswerStore:
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
        self._file = CacheFile(path, TABLES, VERSION, busy_s, clock)
        self._max_bytes = max_bytes
        self._own = threading.local()

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
                self._make_room(connection, row)

            self._afterwards("answers", tidy)

    def _afterwards(self, name: str, tidy: Callable[[], None]) -> None:
        """Have it done at the end of several writes, once for each name; else at once."""
        pending: dict[str, Callable[[], None]] | None = getattr(self._own, "pending", None)
        if pending is None:
            tidy()
        else:
            pending[name] = tidy

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
                    _c.expires_s > now_s,
                )
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
        limit, skip = _within(limit), _within(skip)
        if not possible(scope) or not limit:
            return []
        of_scope = (_c.scope == scope, _c.expires_s > now_s)
        order = (_c.used_s.desc(), _c.row.desc())
        columns = (column for column in _c if column.name not in ("row", "vector"))
        shown, folded = sa.select(*columns).order_by(*order), text.casefold()
        with self._file.reading() as connection:
            if text:
                # Here, and not in the query: SQLite knows the case of English letters only.
                questions = sa.select(_c.row, _c.question).where(*of_scope).order_by(*order)
                with connection.execute(questions) as all_of_them:
                    having = (row for row, question in all_of_them if _has(question, folded))
                    some = list(islice(having, skip, skip + limit))
                rows = [
                    row
                    for start in range(0, len(some), _AT_ONCE)
                    for row in connection.execute(
                        shown.where(*of_scope, _c.row.in_(some[start : start + _AT_ONCE]))
                    ).all()
                ]
            else:
                rows = [*connection.execute(shown.where(*of_scope).limit(limit).offset(skip))]
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
            # Few: each answer that is kept takes expired ones away.
            expired = connection.execute(
                sa.select(sa.func.count(), sa.func.coalesce(sa.func.sum(_c.size), 0)).where(
                    _c.scope == scope, _c.expires_s <= now_s
                )
            ).one()
        return CacheTotals(all_of_it[0] - expired[0], all_of_it[1] - expired[1])

    def clear(
        self,
        scope: str,
        now_s: float,
        *,
        model: str | None = None,
        before_s: float | None = None,
    ) -> int:
        """As in `AnswerStore`. In many short transactions: others write in between."""
        if not possible(scope):
            return 0
        wanted = [_c.scope == scope]
        if model is not None:
            wanted.append(_c.model == keepable(model))
        if before_s is not None:
            wanted.append(_c.created_s < before_s)
        self._note_clearing(scope, model, now_s if before_s is None else min(now_s, before_s))
        with self._file.reading() as connection:
            rows = connection.execute(sa.select(_c.row).where(*wanted)).scalars().all()
        gone = 0
        for start in range(0, len(rows), _AT_ONCE):
            some = rows[start : start + _AT_ONCE]
            with self._file.writing() as connection:
                gone += _forgotten(connection, _FORGET_SOME, {"of_scope": scope, "rows": some})
        if model is None and before_s is None:
            with self._file.writing() as connection:
                for table in (rejections, decisions):
                    connection.execute(sa.delete(table).where(table.c.scope == scope))
        if gone:
            self._file.give_back()
        return gone

    def _note_clearing(self, scope: str, model: str | None, at_s: float) -> None:
        with self._file.writing() as connection:
            connection.execute(
                insert(clearings)
                .values(scope=scope, name=clearing_name(model), at_s=at_s)
                .on_conflict_do_update(index_elements=["scope", "name"], set_={"at_s": at_s})
            )
            old = clearings.c.at_s < at_s - CLEARING_KEPT_S
            connection.execute(sa.delete(clearings).where(old))

    # -- what a person said of it, and the log --

    def reject(self, partition: str, scope: str, rejection: Rejection) -> None:
        """As in `AnswerStore`."""
        if not possible(scope, partition):
            raise CacheStoreError("no key of a rejection")
        values = {
            "scope": scope,
            "partition": partition,
            "at_s": rejection.at_s,
            "similarity": rejection.similarity,
            "embedding": keepable(rejection.embedding),
            "vector": rejection.vector,
        }
        own = {"of_scope": scope, "of_partition": partition, "kept": REJECTIONS_KEPT}
        with self._file.writing() as connection:
            connection.execute(_REJECT, values)
            connection.execute(_FORGET_MANY_REJECTIONS, own)
            old = {"before_s": rejection.at_s - REJECTIONS_KEPT_S}
            connection.execute(_FORGET_OLD_REJECTIONS, old)

    def rejections(self, partition: str, scope: str) -> Sequence[Rejection]:
        """As in `AnswerStore`."""
        if not possible(scope, partition):
            return []
        table = rejections.c
        with self._file.reading() as connection:
            rows = connection.execute(
                sa.select(table.vector, table.embedding, table.similarity, table.at_s)
                .where(table.scope == scope, table.partition == partition)
                .order_by(table.at_s.desc(), table.row.desc())
            ).all()
        return [Rejection(*row) for row in rows]

    def note(self, decision: Decision) -> None:
        """As in `AnswerStore`."""
        if not possible(decision.scope):
            raise CacheStoreError("no scope of a decision")
        scope, at_s = decision.scope, decision.at_s
        values = {
            "scope": scope,
            "decision_id": to_bytes(decision.decision_id),
            "at_s": at_s,
            "judged": None if decision.judged is None else int(decision.judged),
            "kind": decision.kind,
            "reason": keepable(decision.reason),
            "model": keepable(decision.model),
            "saved_tokens": min(decision.saved_tokens, _MOST_TOKENS),
            "saved_s": decision.saved_s,
            "body": pack_decision(decision),
        }
        with self._file.writing() as connection:
            connection.execute(_NOTE, values)

            def tidy() -> None:
                own = {"of_scope": scope, "kept": DECISIONS_KEPT}
                connection.execute(_FORGET_MANY_DECISIONS, own)
                connection.execute(_FORGET_OLD_DECISIONS, {"before_s": at_s - DECISIONS_KEPT_S})

            self._afterwards(f"decisions of {scope}", tidy)

    def decisions(self, scope: str, limit: int = DECISIONS_KEPT) -> Sequence[Decision]:
        """As in `AnswerStore`."""
        if not possible(scope):
            return []
        return self._decisions(scope, decisions.c.scope == scope, limit)

    def near(self, scope: str, limit: int) -> Sequence[Decision]:
        """As in `AnswerStore`."""
        if not possible(scope):
            return []
        return self._decisions(scope, sa.and_(decisions.c.scope == scope, is_near), limit)

    def counts(self, scope: str) -> Sequence[DecisionCount]:
        """As in `AnswerStore`."""
        if not possible(scope):
            return []
        table = decisions.c
        of = (table.kind, table.reason, table.model)
        with self._file.reading() as connection:
            rows = connection.execute(
                sa.select(
                    *of,
                    sa.func.count(),
                    sa.func.sum(table.saved_tokens),
                    sa.func.sum(table.saved_s),
                )
                .where(table.scope == scope)
                .group_by(*of)
            ).all()
        return [DecisionCount(*row) for row in rows]

    def _decisions(
        self, scope: str, wanted: sa.ColumnElement[bool], limit: int
    ) -> Sequence[Decision]:
        table = decisions.c
        with self._file.reading() as connection:
            rows = connection.execute(
                sa.select(table.body, table.judged)
                .where(wanted)
                .order_by(table.at_s.desc(), table.row.desc())
                .limit(_within(limit))
            ).all()
        found = (
            unpack_decision(body, scope, None if judged is None else bool(judged))
            for body, judged in rows
        )
        return [decision for decision in found if decision is not None]

    def judge(self, decision_id: str, scope: str, same: bool) -> None:
        """As in `AnswerStore`."""
        if not possible(scope):
            return
        table = decisions.c
        with self._file.writing() as connection:
            connection.execute(
                sa.update(decisions)
                .where(table.scope == scope, table.decision_id == to_bytes(decision_id))
                .values(judged=int(same))
            )

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


def _within(number: int) -> int:
    return min(max(number, 0), _MOST)


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
