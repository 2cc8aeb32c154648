"""Conversations in the database: plain reads and writes, each one transaction."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Sequence

import sqlalchemy as sa
from sqlalchemy import delete, insert, select, update
from sqlalchemy.engine import Connection
from sqlalchemy.exc import IntegrityError

from llm import conversation_search
from llm.conversation_access import (
    STALE_S,
    ChangedMeanwhileError,
    Loaded,
    SearchHit,
    TakenError,
)
from llm.conversation_rows import OWNER_CHARS, clean, head_of, head_row, turn_of, turn_row
from llm.conversation_tables import conversations, runners, turns
from llm.conversation_tree import (
    Conversation,
    ConversationKey,
    ConversationState,
    Turn,
    interrupted,
)
from llm.database import Database
from llm.search_snippet import snippet_of

_ID_CHARS = 64
_TITLES_FOUND = 20
_ROWS_FOUND = 500
_SNIPPET_CHARS = 120


class ConversationDatabase(Database):
    """The database with the conversations in it.

    Args:
        url: as in `Database`, as is the clock.
        runner: this process, as other processes on the same database see it.

    Thread-safety: every method may be called from any thread.

    Every method may raise:
        StoreError: the database can't be had, or refuses.
    """

    def __init__(self, url: str, runner: str, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__(url, clock)
        self.runner = runner

    # -- reading --

    def load(self, key: ConversationKey, *, unhurried: bool = False) -> Loaded | None:
        """The conversation; None where this person has none of that id.

        Args:
            unhurried: it may take long; nobody waits for it.
        """
        if not _possible(key):
            return None
        with self.reading(unhurried=unhurried) as connection:
            head = (
                connection.execute(
                    select(conversations).where(
                        conversations.c.conversation_id == key.conversation_id,
                        conversations.c.owner == key.owner,
                    )
                )
                .mappings()
                .one_or_none()
            )
            if head is None:
                return None
            rows = connection.execute(
                select(turns)
                .where(turns.c.conversation_id == key.conversation_id)
                .order_by(turns.c.row)
            ).mappings()
            found = {row["turn_id"]: turn_of(row) for row in rows}
            others = {
                turn.runner
                for turn in found.values()
                if turn.state != "ended" and turn.runner != self.runner
            }
            alive = _beating(connection, others)
        elsewhere = {
            turn.turn_id
            for turn in found.values()
            if turn.state != "ended" and turn.runner in alive
        }
        found = {
            turn_id: interrupted(turn)
            if turn.state != "ended" and turn.runner != self.runner and turn_id not in elsewhere
            else turn
            for turn_id, turn in found.items()
        }
        return Loaded(
            ConversationState(head_of(head), found), int(head["version"]), frozenset(elsewhere)
        )

    def beating(self, others: Collection[str]) -> frozenset[str]:
        """Those of these processes that live, as far as they say so."""
        with self.reading() as connection:
            return _beating(connection, others)

    def version(self, key: ConversationKey) -> int | None:
        """What a write now would have to say; None where this person has none of that id."""
        if not _possible(key):
            return None
        with self.reading() as connection:
            return connection.execute(
                select(conversations.c.version).where(
                    conversations.c.conversation_id == key.conversation_id,
                    conversations.c.owner == key.owner,
                )
            ).scalar_one_or_none()

    def listed(
        self, owner: str, limit: int, offset: int = 0, *, deleted: bool = False
    ) -> list[Conversation]:
        """A person's conversations: the pinned ones first, then by the last question.

        Args:
            deleted: those that can be brought back instead, the one deleted last first.
        """
        c = conversations.c
        wanted = select(conversations).where(c.owner == clean(owner))
        if deleted:
            wanted = wanted.where(c.deleted_s.is_not(None)).order_by(c.deleted_s.desc())
        else:
            wanted = wanted.where(c.deleted_s.is_(None)).order_by(
                c.pinned.desc(), c.updated_s.desc(), c.row.desc()
            )
        with self.reading() as connection:
            rows = connection.execute(wanted.limit(limit).offset(offset)).mappings()
            return [head_of(row) for row in rows]

    def search(self, owner: str, query: str, limit: int) -> list[SearchHit]:
        """A person's conversations that hold all the words, in a title or in one turn.

        Those found by their title come first, then those with the newest turn.

        Args:
            query: as it was typed; nothing in it is syntax, but for quotes around a phrase.
            limit: the most that are returned.
        """
        wanted, owner = clean(query).strip(), clean(owner)
        if not wanted:
            return []
        c = conversations.c
        own = (c.owner == owner) & c.deleted_s.is_(None)
        with self.reading() as connection:
            titled = connection.execute(
                select(conversations)
                .where(own, c.title.icontains(wanted, autoescape=True))
                .order_by(c.updated_s.desc())
                .limit(min(limit, _TITLES_FOUND))
            ).mappings()
            hits = {row["conversation_id"]: SearchHit(head_of(row)) for row in titled}
            newest: dict[str, int] = {}
            for conversation_id, row in conversation_search.find(
                connection, owner, wanted, _ROWS_FOUND
            ):
                if conversation_id not in hits:
                    newest.setdefault(conversation_id, row)
            there = set(
                connection.execute(
                    select(c.conversation_id).where(own, c.conversation_id.in_(newest))
                ).scalars()
            )
            shown = [row for conversation_id, row in newest.items() if conversation_id in there]
            found = (
                connection.execute(
                    select(conversations, turns.c.question, turns.c.text)
                    .join(turns, turns.c.conversation_id == c.conversation_id)
                    .where(own, turns.c.row.in_(shown[:limit]))
                    .order_by(turns.c.row.desc())
                )
                .mappings()
                .all()
            )
        for hit in found:
            snippet = snippet_of(f"{hit['question']}\n{hit['text']}", wanted, _SNIPPET_CHARS)
            hits.setdefault(hit["conversation_id"], SearchHit(head_of(hit), snippet))
        return list(hits.values())[:limit]

    # -- writing --

    def write(
        self,
        key: ConversationKey,
        base: int | None,
        head: Conversation,
        changed: Sequence[Turn],
        *,
        indexed: Iterable[str] = (),
        unhurried: bool = False,
    ) -> int:
        """Keep a change; all of it or nothing.

        Args:
            base: the version that it was made from; None for a new conversation.
            changed: the turns that are new or another than before.
            indexed: the turns among them whose words are to be found from now on.
            unhurried: it may take long; nobody waits for it.

        Returns:
            The new version.

        Raises:
            ChangedMeanwhileError: that isn't the version any more.
            TakenError: the id is another person's, or can't be anybody's.
        """
        if not _possible(key):
            raise TakenError
        version = (base or 0) + 1
        values = {**head_row(head), "version": version}
        with self.writing(unhurried=unhurried) as connection:
            if base is None:
                owner = connection.execute(
                    select(conversations.c.owner).where(
                        conversations.c.conversation_id == key.conversation_id
                    )
                ).scalar_one_or_none()
                if owner is not None:
                    raise ChangedMeanwhileError if owner == key.owner else TakenError
                try:
                    connection.execute(insert(conversations).values(values))
                except IntegrityError as fault:
                    if "conversation_id" not in str(fault.orig):
                        raise  # another rule
                    raise ChangedMeanwhileError from None  # begun in another process just now
            else:
                done = connection.execute(
                    update(conversations)
                    .where(
                        conversations.c.conversation_id == key.conversation_id,
                        conversations.c.owner == key.owner,
                        conversations.c.version == base,
                    )
                    .values(values)
                )
                if done.rowcount != 1:
                    raise ChangedMeanwhileError
            self._write_turns(connection, key, changed, frozenset(indexed))
        return version

    def _write_turns(
        self,
        connection: Connection,
        key: ConversationKey,
        changed: Sequence[Turn],
        indexed: frozenset[str],
    ) -> None:
        for turn in changed:
            row = turn_row(key, turn)
            done = connection.execute(
                update(turns)
                .where(
                    turns.c.turn_id == turn.turn_id,
                    turns.c.conversation_id == key.conversation_id,
                )
                .values(row)
            )
            if done.rowcount == 0:
                connection.execute(insert(turns).values({**row, "stop_wanted": False}))
        if indexed:
            ids = {turn.turn_id: turn for turn in changed if turn.turn_id in indexed}
            rows = connection.execute(
                select(turns.c.turn_id, turns.c.row).where(turns.c.turn_id.in_(ids))
            ).all()
            conversation_search.forget(connection, [row for _, row in rows])
            for turn_id, row in rows:
                turn = ids[turn_id]
                if turn.deleted_s is None:
                    words = _words(turn.question, turn.text)
                    conversation_search.index(
                        connection, row, key.owner, key.conversation_id, words
                    )
        if any(turn.state != "ended" and turn.runner == self.runner for turn in changed):
            self._beat(connection)

    # -- who is answering --

    def beat(self) -> frozenset[str]:
        """Say that this process lives.

        Returns:
            Its turns that somebody, through another process, wants stopped.
        """
        with self.writing() as connection:
            self._beat(connection)
            return frozenset(
                connection.execute(
                    select(turns.c.turn_id).where(
                        turns.c.runner == self.runner,
                        turns.c.state != "ended",
                        turns.c.stop_wanted.is_(True),
                    )
                ).scalars()
            )

    def _beat(self, connection: Connection) -> None:
        # Two threads may beat for the first time at once.
        connection.execute(
            sa.text(
                "INSERT INTO runners (runner, beat_s) VALUES (:runner, :now)"
                " ON CONFLICT (runner) DO UPDATE SET beat_s = excluded.beat_s"
            ),
            {"runner": self.runner, "now": _now(connection)},
        )

    def want_stop(self, key: ConversationKey, turn_id: str) -> None:
        """Have the process that answers this turn stop, within a beat."""
        if not _possible(key):
            return
        own = select(conversations.c.conversation_id).where(
            conversations.c.conversation_id == key.conversation_id,
            conversations.c.owner == key.owner,
        )
        with self.writing() as connection:
            connection.execute(
                update(turns)
                .where(turns.c.turn_id == clean(turn_id), turns.c.conversation_id.in_(own))
                .values(stop_wanted=True)
            )

    def farewell(self) -> None:
        """Say that this process is going: whatever it still had under way is interrupted."""
        with self.writing() as connection:
            _forget_runners(connection, [self.runner])

    def forget_the_silent(self) -> None:
        """Forget processes that were killed, and have what their answers had said be found.

        Whoever looks at such an answer takes it for interrupted, before and after. A process that
        was only slow says again that it lives, and indexes its answer anew at the end.
        """
        with self.reading() as connection:
            silent = _silent(connection)
        if silent:
            with self.writing() as connection:
                _forget_runners(connection, _silent(connection))


def _now(connection: Connection) -> float:
    """Seconds since 1970 by the database's clock, which all processes share."""
    if connection.dialect.name == "sqlite":
        told = connection.exec_driver_sql("SELECT (julianday('now') - 2440587.5) * 86400.0")
    else:
        told = connection.exec_driver_sql("SELECT extract(epoch FROM clock_timestamp())")
    return float(told.scalar_one())


def _beating(connection: Connection, others: Collection[str]) -> frozenset[str]:
    if not others:
        return frozenset()
    since_s = _now(connection) - STALE_S
    living = select(runners.c.runner).where(
        runners.c.runner.in_(others), runners.c.beat_s > since_s
    )
    return frozenset(connection.execute(living).scalars())


def _silent(connection: Connection) -> list[str]:
    since_s = _now(connection) - STALE_S
    return list(
        connection.execute(select(runners.c.runner).where(runners.c.beat_s <= since_s)).scalars()
    )


def _forget_runners(connection: Connection, gone: Sequence[str]) -> None:
    left = connection.execute(
        select(
            turns.c.row,
            conversations.c.owner,
            turns.c.conversation_id,
            turns.c.question,
            turns.c.text,
        )
        .join(conversations, conversations.c.conversation_id == turns.c.conversation_id)
        .where(turns.c.runner.in_(gone), turns.c.state != "ended", turns.c.deleted_s.is_(None))
    ).all()
    for row, owner, conversation_id, question, text in left:
        words = _words(question, text)
        conversation_search.index(connection, row, owner, conversation_id, words)
    connection.execute(delete(runners).where(runners.c.runner.in_(gone)))


def _words(question: str, text: str) -> str:
    """What a turn is found by."""
    return f"{question}\n{text}"


def _possible(key: ConversationKey) -> bool:
    """Whether such an id can be anybody's: what stands in an address may be anything."""
    return all(
        0 < len(part) <= limit and clean(part) == part
        for part, limit in ((key.owner, OWNER_CHARS), (key.conversation_id, _ID_CHARS))
    )
