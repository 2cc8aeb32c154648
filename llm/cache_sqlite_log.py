"""The log of the answer cache in its SQLite file, and what a person said of matches."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

import sqlalchemy as sa
from sqlalchemy import bindparam
from sqlalchemy.dialects.sqlite import insert

from llm.cache_file import CacheFile
from llm.cache_packing import pack_decision, possible, to_bytes, unpack_decision
from llm.cache_tables import decisions, is_near, rejections
from llm.cache_types import (
    DECISIONS_KEPT,
    DECISIONS_KEPT_S,
    REJECTIONS_KEPT,
    REJECTIONS_KEPT_S,
    CacheStoreError,
    Decision,
    DecisionCount,
    Rejection,
)
from llm.served_values import keepable

AT_ONCE = 200
_MOST = 1_000_000
_MOST_TOKENS = 2**53  # what a server says may be any number

# Made once: making them takes longer than what SQLite does.
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
        table.c.row.in_(kept.limit(AT_ONCE).offset(bindparam("kept", type_=sa.Integer)))
    )


_FORGET_MANY_DECISIONS = _surplus(decisions, decisions.c.scope == bindparam("of_scope"))
_FORGET_MANY_REJECTIONS = _surplus(
    rejections,
    rejections.c.scope == bindparam("of_scope"),
    rejections.c.partition == bindparam("of_partition"),
)
_FORGET_OLD_DECISIONS = sa.delete(decisions).where(decisions.c.at_s < bindparam("before_s"))
_FORGET_OLD_REJECTIONS = sa.delete(rejections).where(rejections.c.at_s < bindparam("before_s"))


class SqliteCacheLog:
    """The half of `SqliteAnswerStore` that isn't answers: decisions and rejections.

    Thread-safety: every method may be called from any thread.
    """

    def __init__(self, file: CacheFile) -> None:
        self._file = file
        self._own = threading.local()

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
                .limit(within(limit))
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

    def _afterwards(self, name: str, tidy: Callable[[], None]) -> None:
        """Have it done at the end of several writes, once for each name; else at once."""
        pending: dict[str, Callable[[], None]] | None = getattr(self._own, "pending", None)
        if pending is None:
            tidy()
        else:
            pending[name] = tidy


def within(number: int) -> int:
    """A limit that the database takes."""
    return min(max(number, 0), _MOST)
