"""Conversations in a database: SQLite by default, PostgreSQL for several machines.

Plain reads and writes, each one transaction. What happens where the database can't be had is not
decided here: whatever goes wrong is a `StoreError`.
"""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Callable, Collection, Generator, Iterable, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy import delete, insert, select, update
from sqlalchemy.engine import Connection, Engine, make_url
from sqlalchemy.exc import IntegrityError, SQLAlchemyError

from llm import conversation_search
from llm.conversation_access import (
    STALE_S,
    ChangedMeanwhileError,
    Loaded,
    SearchHit,
    TakenError,
)
from llm.conversation_rows import OWNER_CHARS, clean, head_of, head_row, turn_of, turn_row
from llm.conversation_tables import NEWEST, conversations, runners, turns
from llm.conversation_tree import (
    Conversation,
    ConversationKey,
    ConversationState,
    Turn,
    interrupted,
)
from llm.database_errors import told
from llm.errors import (
    StoreBrokenError,
    StoreError,
    StoreGoneError,
    StoreLockedError,
    StoreNewerError,
)
from llm.search_snippet import snippet_of

BUSY_S = 1.0
"""How long a write waits for another's. Longer, and a page would wait visibly."""

_CONNECT_S = 2
_STATEMENT_MS = 2_000
_UNHURRIED_S = 60
_POOL_WAIT_S = 2.0
_LEFT_ALONE_S = 0.5
_ID_CHARS = 64
_MIGRATION_LOCK = 7_265_104_001  # any number that nobody else locks
_TITLES_FOUND = 20
_ROWS_FOUND = 500
_SNIPPET_CHARS = 120
_MIGRATING = threading.Lock()


class ConversationDatabase:
    """The database of conversations.

    Args:
        url: SQLAlchemy's, `sqlite:///…` or `postgresql+psycopg://…`.
        runner: this process, as other processes on the same database see it.
        clock: seconds that never go back.

    Thread-safety: every method may be called from any thread.

    Every method may raise:
        StoreError: the database can't be had, or refuses.
    """

    def __init__(self, url: str, runner: str, clock: Callable[[], float] = time.monotonic) -> None:
        self.runner = runner
        self.place = place_of(url)
        self._url = url
        self._file = _DatabaseFile(url)
        self._clock = clock
        self._lock = threading.Lock()
        self._engine_made: Engine | None = None
        self._failed: tuple[StoreError, float] | None = None

    # -- reading --

    def load(self, key: ConversationKey, *, unhurried: bool = False) -> Loaded | None:
        """The conversation; None where this person has none of that id.

        Args:
            unhurried: it may take long; nobody waits for it.
        """
        if not _possible(key):
            return None
        with self._reading(unhurried=unhurried) as connection:
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
        with self._reading() as connection:
            return _beating(connection, others)

    def version(self, key: ConversationKey) -> int | None:
        """What a write now would have to say; None where this person has none of that id."""
        if not _possible(key):
            return None
        with self._reading() as connection:
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
        with self._reading() as connection:
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
        with self._reading() as connection:
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
        with self._writing(unhurried=unhurried) as connection:
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
        with self._writing() as connection:
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
        with self._writing() as connection:
            connection.execute(
                update(turns)
                .where(turns.c.turn_id == clean(turn_id), turns.c.conversation_id.in_(own))
                .values(stop_wanted=True)
            )

    def farewell(self) -> None:
        """Say that this process is going: whatever it still had under way is interrupted."""
        with self._writing() as connection:
            _forget_runners(connection, [self.runner])

    def forget_the_silent(self) -> None:
        """Forget processes that were killed, and have what their answers had said be found.

        Whoever looks at such an answer takes it for interrupted, before and after. A process that
        was only slow says again that it lives, and indexes its answer anew at the end.
        """
        with self._reading() as connection:
            silent = _silent(connection)
        if silent:
            with self._writing() as connection:
                _forget_runners(connection, _silent(connection))

    # -- the engine --

    def reading(self, *, unhurried: bool = False) -> AbstractContextManager[Connection]:
        """A transaction that only reads, for what else is kept in this database.

        Args:
            unhurried: it may take long; nobody waits for it.
        """
        return self._reading(unhurried=unhurried)

    def writing(self, *, unhurried: bool = False) -> AbstractContextManager[Connection]:
        """The same to write; it is kept when the block ends, and undone when it raises."""
        return self._writing(unhurried=unhurried)

    def close(self) -> None:
        """Let go of every connection; the next use opens new ones."""
        with self._lock:
            engine, self._engine_made = self._engine_made, None
        if engine is not None:
            engine.dispose()

    @contextmanager
    def _reading(self, *, unhurried: bool = False) -> Generator[Connection]:
        with (
            self._told(),
            self._engine().connect() as connection,
            _hurry(connection, unhurried=unhurried),
        ):
            yield connection

    @contextmanager
    def _writing(self, *, unhurried: bool = False) -> Generator[Connection]:
        with (
            self._told(),
            self._engine().connect().execution_options(writes=True) as connection,
            connection.begin(),
            _hurry(connection, unhurried=unhurried),
        ):
            yield connection

    @contextmanager
    def _told(self) -> Generator[None]:
        try:
            yield
        except (SQLAlchemyError, OSError) as fault:
            error = told(fault, self.place)
            if isinstance(error, StoreGoneError | StoreBrokenError):
                self.close()  # what comes back may be another file or server, without tables
            raise error from fault

    def _engine(self) -> Engine:
        """The engine, made and brought up to date at its first use."""
        # Bringing it up to date may take its time; nobody waits for that but who does it.
        if not self._lock.acquire(timeout=BUSY_S):
            raise StoreLockedError(place=self.place)
        try:
            if self._engine_made is not None and self._file.is_another():
                self._engine_made.dispose()
                self._engine_made = None
            if self._engine_made is None:
                # Who waited for the lock while another found it gone isn't to wait once more.
                if self._failed is not None and self._clock() < self._failed[1]:
                    error = self._failed[0]
                    raise type(error)(**error.values)
                try:
                    self._engine_made = self._made()
                except (SQLAlchemyError, OSError, StoreError) as fault:
                    error = fault if isinstance(fault, StoreError) else told(fault, self.place)
                    self._failed = (error, self._clock() + _LEFT_ALONE_S)
                    raise error from fault
                self._failed = None
            return self._engine_made
        finally:
            self._lock.release()

    def _made(self) -> Engine:
        self._file.make_folder()
        engine = _make_engine(self._url)
        try:
            _bring_up_to_date(engine, self.place)
        except BaseException:
            engine.dispose()
            raise
        self._file.opened()
        return engine


class _DatabaseFile:
    """The file of a SQLite database, as it was when it was opened; nothing for PostgreSQL.

    SQLite goes on writing into a file that was deleted, where nobody will ever read it.

    Thread-safety: none; its database's lock is held.
    """

    def __init__(self, url: str) -> None:
        parsed = make_url(url)
        kept = parsed.database or ""
        usual = parsed.drivername.startswith("sqlite") and not kept.startswith((":", "file:"))
        self._path = Path(kept) if kept and usual else None
        self._seen: tuple[int, int] | None = None

    def make_folder(self) -> None:
        """Make the folder for a new database.

        Raises:
            OSError: it can't be made; or there was a database, and it is gone now. An empty one in
                its place would look as if all were lost, and stand in the way of its return.
        """
        if self._path is None:
            return
        if self._seen is not None:
            self._path.stat()
        else:
            self._path.parent.mkdir(parents=True, exist_ok=True)

    def opened(self) -> None:
        """Remember which file it is."""
        self._seen = self._now()

    def is_another(self) -> bool:
        """Whether it was deleted or replaced since."""
        return self._now() != self._seen

    def _now(self) -> tuple[int, int] | None:
        if self._path is None:
            return None
        try:
            found = self._path.stat()
        except OSError:
            return None
        return found.st_dev, found.st_ino


def place_of(url: str) -> str:
    """Where a database is, to be shown: its file, or its address without the password."""
    parsed = make_url(url)
    if parsed.drivername.startswith("sqlite"):
        return parsed.database or ":memory:"
    host = parsed.host or "localhost"
    port = f":{parsed.port}" if parsed.port else ""
    return f"{parsed.get_backend_name()}://{host}{port}/{parsed.database or ''}"


def _into_wal(cursor: sqlite3.Cursor) -> None:
    """Of two processes that make a file a WAL one at once, one is refused without any waiting."""
    until_s = time.monotonic() + BUSY_S
    while True:
        try:
            cursor.execute("PRAGMA journal_mode=WAL")
        except sqlite3.OperationalError as fault:
            if fault.sqlite_errorcode != sqlite3.SQLITE_BUSY or time.monotonic() > until_s:
                raise
            time.sleep(0.01)
        else:
            return


def _make_engine(url: str) -> Engine:
    parsed = make_url(url)
    if not parsed.drivername.startswith("sqlite"):
        engine = sa.create_engine(
            url,
            pool_size=5,
            max_overflow=20,
            pool_timeout=_POOL_WAIT_S,
            pool_pre_ping=True,
            connect_args={
                "connect_timeout": _CONNECT_S,
                "options": f"-c lock_timeout={round(BUSY_S * 1000)}"
                f" -c statement_timeout={_STATEMENT_MS}",
            },
        )

        @sa.event.listens_for(engine, "do_connect")
        def connect(dialect: Any, record: Any, args: Any, values: Any) -> Any:
            from llm.postgres_connection import PatientConnection  # where there is no PostgreSQL
            # its driver needn't be loaded

            return PatientConnection.connect(*args, **values)

        return engine
    engine = sa.create_engine(
        url,
        pool_size=5,
        max_overflow=20,
        pool_timeout=_POOL_WAIT_S,
        connect_args={"timeout": BUSY_S},
    )

    @sa.event.listens_for(engine, "connect")
    def connected(connection: Any, record: Any) -> None:
        connection.isolation_level = None  # transactions begin where `begun` says, not by guess
        cursor = connection.cursor()
        # WAL: readers and the one writer don't wait for each other. NORMAL: a killed process loses
        # nothing; a machine without power may lose the last moments, never the whole.
        _into_wal(cursor)
        cursor.execute("PRAGMA synchronous=NORMAL")
        cursor.execute("PRAGMA foreign_keys=ON")
        cursor.close()

    @sa.event.listens_for(engine, "begin")
    def begun(connection: Connection) -> None:
        # A transaction that begins as a reader and then writes can be refused at once, whatever
        # the busy timeout says: https://www.sqlite.org/lang_transaction.html
        writes = connection.get_execution_options().get("writes")
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")

    return engine


@contextmanager
def _hurry(connection: Connection, *, unhurried: bool) -> Generator[None]:
    """Within a transaction: the usual limits on time, or long ones."""
    if not unhurried or connection.dialect.name != "postgresql":
        yield
        return
    driver: Any = connection.connection.driver_connection
    usual_s, driver.patience_s = driver.patience_s, _UNHURRIED_S + 5
    try:
        connection.exec_driver_sql(f"SET LOCAL statement_timeout = {1000 * _UNHURRIED_S}")
        yield
    finally:
        driver.patience_s = usual_s


def _bring_up_to_date(engine: Engine, place: str) -> None:
    """Make the tables, or change them as newer versions of this app want them."""
    with engine.connect() as connection:
        revision = _revision(connection)
    if revision == NEWEST:
        return
    if revision is not None and revision > NEWEST:
        raise StoreNewerError(place=place)
    from alembic import command  # seldom needed, and slow to load
    from alembic.config import Config

    config = Config()
    folder = str(Path(__file__).parent / "migrations")
    config.set_main_option("script_location", folder.replace("%", "%%"))
    # Alembic's context is the whole process's.
    with (
        _MIGRATING,
        engine.connect().execution_options(writes=True) as connection,
        connection.begin(),
    ):
        # Another process may be at it. Whoever waits for it longer than for a write is told that
        # the database is locked, goes on in memory, and comes again.
        if connection.dialect.name == "postgresql":
            connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({_MIGRATION_LOCK})")
            connection.exec_driver_sql("SET LOCAL statement_timeout = 0")
            connection.connection.driver_connection.patience_s = None  # type: ignore[union-attr]
        if _revision(connection) != NEWEST:
            config.attributes["connection"] = connection
            command.upgrade(config, "head")
    engine.dispose()  # the connection that waits


def _revision(connection: Connection) -> str | None:
    """The migration that the database is at; None before the first."""
    if not sa.inspect(connection).has_table("alembic_version"):
        return None
    return connection.exec_driver_sql("SELECT version_num FROM alembic_version").scalar()


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
