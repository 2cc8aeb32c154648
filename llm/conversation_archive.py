"""All of a person's conversations at once: out, in again, and for good away.

Works on the database past the store that the pages look through: what is imported is new there,
and what is purged isn't shown any more; where a conversation that is open loses turns, its version
tells the store to read it anew.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from sqlalchemy import delete, func, insert, select, update
from sqlalchemy.engine import Connection
from sqlalchemy.exc import IntegrityError

from llm import conversation_search
from llm.conversation_database import ConversationDatabase
from llm.conversation_import import own_mark
from llm.conversation_rows import head_of, head_row, turn_of, turn_row
from llm.conversation_tables import conversations, turns
from llm.conversation_tree import Conversation, ConversationKey, ConversationState
from llm.errors import StoreLockedError

BATCH = 100
"""Conversations in one transaction, at most."""
BATCH_CHARS = 300_000
"""Of texts in one transaction, about: on SQLite everybody else who writes waits for it, and waits
for a second only (database.BUSY_S)."""
PAUSE_S = 0.02
"""Between two transactions. SQLite has no line: who waits looks now and then whether it is free."""

_MOST_TRIES = 3


@dataclass(frozen=True, slots=True)
class Imported:
    """How many conversations came in.

    Args:
        added: that weren't here.
        known: that were here already and stayed as they are.
        restored: that were here, deleted, and are in the list again.
    """

    added: int = 0
    known: int = 0
    restored: int = 0

    def __add__(self, other: Imported) -> Imported:
        return Imported(
            self.added + other.added, self.known + other.known, self.restored + other.restored
        )


class ConversationArchive:
    """Every person's conversations, taken together.

    Args:
        pause: waits so many seconds.

    Thread-safety: every method may be called from any thread.

    Every method may raise:
        StoreError: the database can't be had, or refuses.
    """

    def __init__(
        self, database: ConversationDatabase, pause: Callable[[float], None] = time.sleep
    ) -> None:
        self._database = database
        self._pause = pause

    # -- out --

    def count(self, owner: str) -> int:
        """How many conversations `export_all` gives."""
        c = conversations.c
        with self._database.reading() as connection:
            return connection.execute(
                select(func.count()).where(c.owner == owner, c.deleted_s.is_(None))
            ).scalar_one()

    def export_all(self, owner: str) -> Iterator[ConversationState]:
        """A person's conversations but for deleted ones, those made first first.

        Each is read when it is asked for, in a transaction of its own: memory and the database are
        held for one at a time.
        """
        row = 0
        while heads := self._heads_after(owner, row):
            for _, head in heads:
                with self._database.reading(unhurried=True) as connection:
                    found = connection.execute(
                        select(turns)
                        .where(turns.c.conversation_id == head.key.conversation_id)
                        .order_by(turns.c.row)
                    ).mappings()
                    found_turns = {each["turn_id"]: turn_of(each) for each in found}
                yield ConversationState(head, found_turns)
            row = heads[-1][0]

    def _heads_after(self, owner: str, row: int) -> list[tuple[int, Conversation]]:
        c = conversations.c
        with self._database.reading(unhurried=True) as connection:
            found = connection.execute(
                select(conversations)
                .where(c.owner == owner, c.deleted_s.is_(None), c.row > row)
                .order_by(c.row)
                .limit(BATCH)
            ).mappings()
            return [(each["row"], head_of(each)) for each in found]

    # -- in --

    def import_all(self, owner: str, states: Iterable[ConversationState]) -> Imported:
        """Take conversations in as this person's, `import_some` by `import_some`."""
        total = Imported()
        for imported, _ in self.import_some(owner, states):
            total += imported
        return total

    def import_some(
        self, owner: str, states: Iterable[ConversationState]
    ) -> Iterator[tuple[Imported, int]]:
        """The same in steps, so that somebody can look on; each step is kept before it is told.

        A conversation that is here already, made here or imported before, stays as it is; where it
        was deleted it is brought back.

        Args:
            states: with ids that are new, as `conversation_import.read` gives them.

        Yields:
            What a step brought, and how many of the states it took.
        """
        for batch in _batches(states):
            for tried in itertools.count(1):
                try:
                    imported = self._import_batch(owner, batch)
                    break
                except _MeanwhileError:
                    if tried == _MOST_TRIES:
                        raise StoreLockedError(place=self._database.place) from None
            yield imported, len(batch)
            self._pause(PAUSE_S)

    def _import_batch(self, owner: str, batch: Sequence[ConversationState]) -> Imported:
        wanted: dict[str, ConversationState] = {}
        for number, state in enumerate(batch):
            wanted.setdefault(state.head.import_mark or f"{number}", state)
        with self._database.writing(unhurried=True) as connection:
            here = _here_already(connection, owner, [mark for mark in wanted if ":" in mark])
            new = [_owned(state, owner) for mark, state in wanted.items() if mark not in here]
            try:
                _insert(connection, new)
            except IntegrityError:  # imported in another tab just now, through another process
                raise _MeanwhileError from None
            gone = [key for key in set(here.values()) if key]
            for conversation_id in gone:
                connection.execute(
                    update(conversations)
                    .where(conversations.c.conversation_id == conversation_id)
                    .values(deleted_s=None, version=conversations.c.version + 1)
                )
        return Imported(len(new), len(batch) - len(new) - len(gone), len(gone))

    # -- away --

    def deleted(self, owner: str, limit: int) -> list[Conversation]:
        """A person's conversations that can be brought back, the one deleted last first."""
        return self._database.listed(owner, limit, deleted=True)

    def delete_for_good(self, key: ConversationKey) -> None:
        """Have nothing left of a deleted conversation; nothing where it isn't deleted."""
        with self._database.writing() as connection:
            c = conversations.c
            mine = (c.conversation_id == key.conversation_id) & (c.owner == key.owner)
            found = connection.execute(
                select(c.conversation_id).where(mine, c.deleted_s.is_not(None)).with_for_update()
            ).scalars()
            _forget(connection, list(found))

    def purge(self, before_s: float) -> int:
        """Have nothing left of what was deleted before a moment, everybody's.

        Several processes may do so at once.

        Returns:
            How many conversations went, and single turns of others.
        """
        return self._purge_conversations(before_s) + self._purge_turns(before_s)

    def _purge_conversations(self, before_s: float) -> int:
        c, gone = conversations.c, 0
        while True:
            with self._database.writing(unhurried=True) as connection:
                ids = list(
                    connection.execute(
                        select(c.conversation_id)
                        .where(c.deleted_s < before_s)
                        .limit(BATCH)
                        .with_for_update(skip_locked=True)
                    ).scalars()
                )
                _forget(connection, ids)
            gone += len(ids)
            if len(ids) < BATCH:
                return gone
            self._pause(PAUSE_S)

    def _purge_turns(self, before_s: float) -> int:
        with self._database.reading(unhurried=True) as connection:
            ids = list(
                connection.execute(
                    select(turns.c.conversation_id).where(turns.c.deleted_s < before_s).distinct()
                ).scalars()
            )
        gone = 0
        for conversation_id in ids:
            with self._database.writing(unhurried=True) as connection:
                gone += _purge_turns_of(connection, conversation_id, before_s)
            self._pause(PAUSE_S)
        return gone


class _MeanwhileError(Exception):
    """Somebody else imported the same at the same moment."""


def _batches(states: Iterable[ConversationState]) -> Iterator[list[ConversationState]]:
    batch: list[ConversationState] = []
    chars = 0
    for state in states:
        batch.append(state)
        chars += sum(len(turn.question) + len(turn.text) for turn in state.turns.values())
        if len(batch) == BATCH or chars >= BATCH_CHARS:
            yield batch
            batch, chars = [], 0
    if batch:
        yield batch


def _owned(state: ConversationState, owner: str) -> ConversationState:
    key = replace(state.head.key, owner=owner)
    return replace(state, head=replace(state.head, key=key, deleted_s=None))


def _here_already(connection: Connection, owner: str, marks: Sequence[str]) -> dict[str, str]:
    """Of these marks those that are here; to each the id where it is deleted, else ""."""
    c = conversations.c
    made_here = own_mark("")
    ids = [mark.removeprefix(made_here) for mark in marks if mark.startswith(made_here)]
    found = connection.execute(
        select(c.conversation_id, c.import_mark, c.deleted_s).where(
            c.owner == owner, c.import_mark.in_(marks) | c.conversation_id.in_(ids)
        )
    )
    here: dict[str, str] = {}
    for conversation_id, mark, deleted_s in found:
        for each in {mark, own_mark(conversation_id)} & set(marks):
            there = deleted_s is None or here.get(each) == ""
            here[each] = "" if there else conversation_id
    return here


def _insert(connection: Connection, states: Sequence[ConversationState]) -> None:
    if not states:
        return
    connection.execute(
        insert(conversations), [{**head_row(state.head), "version": 1} for state in states]
    )
    rows = [
        {**turn_row(state.head.key, turn), "stop_wanted": False}
        for state in states
        for turn in state.turns.values()
    ]
    if not rows:
        return
    connection.execute(insert(turns), rows)
    owners = {state.head.key.conversation_id: state.head.key.owner for state in states}
    found = connection.execute(
        select(turns.c.row, turns.c.conversation_id, turns.c.question, turns.c.text).where(
            turns.c.conversation_id.in_(owners)
        )
    )
    for row, conversation_id, question, text in found.all():
        conversation_search.index(
            connection, row, owners[conversation_id], conversation_id, f"{question}\n{text}"
        )


def _forget(connection: Connection, conversation_ids: Sequence[str]) -> None:
    """Delete conversations, with their turns and their words."""
    if not conversation_ids:
        return
    found = connection.execute(
        select(turns.c.row).where(turns.c.conversation_id.in_(conversation_ids))
    ).scalars()
    conversation_search.forget(connection, list(found))
    # Their turns go with them: the tables say so.
    connection.execute(
        delete(conversations).where(conversations.c.conversation_id.in_(conversation_ids))
    )


def _purge_turns_of(connection: Connection, conversation_id: str, before_s: float) -> int:
    """Delete a conversation's turns that were deleted before a moment.

    What followed one of them follows the turn before it from now on, as it was shown all along.
    """
    c, t = conversations.c, turns.c
    # First, so that whoever changes the conversation meanwhile waits, and then reads it anew.
    connection.execute(
        update(conversations)
        .where(c.conversation_id == conversation_id)
        .values(version=c.version + 1)
    )
    found = connection.execute(
        select(t.row, t.turn_id, t.parent, t.deleted_s).where(t.conversation_id == conversation_id)
    ).all()
    gone = {
        each.turn_id: each
        for each in found
        if each.deleted_s is not None and each.deleted_s < before_s
    }
    if not gone:
        return 0

    def above(turn_id: str) -> str:
        """The nearest turn from this one upwards that stays."""
        seen: set[str] = set()  # a damaged tree may hold a ring
        while turn_id in gone and turn_id not in seen:
            seen.add(turn_id)
            turn_id = gone[turn_id].parent
        return "" if turn_id in gone else turn_id

    for each in found:
        if each.turn_id not in gone and each.parent in gone:
            connection.execute(
                update(turns).where(t.row == each.row).values(parent=above(each.parent))
            )
    leaf = connection.execute(
        select(c.leaf).where(c.conversation_id == conversation_id)
    ).scalar_one_or_none()
    if leaf is not None and leaf in gone:
        connection.execute(
            update(conversations)
            .where(c.conversation_id == conversation_id)
            .values(leaf=above(leaf))
        )
    rows = [each.row for each in gone.values()]
    conversation_search.forget(connection, rows)
    connection.execute(
        delete(turns).where(t.conversation_id == conversation_id, t.deleted_s < before_s)
    )
    return len(rows)
