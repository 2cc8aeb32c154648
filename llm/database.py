"""The database that everything is kept in: SQLite by default, PostgreSQL for several machines.

Its connections and limits on time, its tables at their newest, and what happens to it meanwhile:
deleted, replaced, away. Whatever goes wrong is a `StoreError`; what to do then isn't decided here.
"""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Engine, make_url
from sqlalchemy.exc import SQLAlchemyError

from llm.conversation_tables import NEWEST
from llm.database_errors import told
from llm.errors import (
    StoreBrokenError,
    StoreError,
    StoreGoneError,
    StoreLockedError,
    StoreNewerError,
)

BUSY_S = 1.0
"""How long a write waits for another's. Longer, and a page would wait visibly."""

_LOOK_S = 0.05
_CONNECT_S = 2
_STATEMENT_MS = 2_000
_UNHURRIED_S = 60
_POOL_WAIT_S = 2.0
_LEFT_ALONE_S = 0.5
_MIGRATION_LOCK = 7_265_104_001  # any number that nobody else locks
_MIGRATING = threading.Lock()


class Database:
    """A database, opened and brought up to date at its first use.

    Args:
        url: SQLAlchemy's, `sqlite:///…` or `postgresql+psycopg://…`.
        clock: seconds that never go back.

    Thread-safety: every method may be called from any thread.

    Every method may raise:
        StoreError: the database can't be had, or refuses.
    """

    def __init__(self, url: str, clock: Callable[[], float] = time.monotonic) -> None:
        self.place = place_of(url)
        self._url = url
        self._file = _DatabaseFile(url)
        self._clock = clock
        self._lock = threading.Lock()
        self._engine_made: Engine | None = None
        self._failed: tuple[StoreError, float] | None = None

    @contextmanager
    def reading(self, *, unhurried: bool = False) -> Generator[Connection]:
        """A transaction that only reads.

        Args:
            unhurried: it may take long; nobody waits for it.
        """
        with (
            self._told(),
            self._engine().connect() as connection,
            _hurry(connection, unhurried=unhurried),
        ):
            yield connection

    @contextmanager
    def writing(self, *, unhurried: bool = False) -> Generator[Connection]:
        """The same to write; it is kept when the block ends, and undone when it raises."""
        with (
            self._told(),
            self._engine().connect().execution_options(writes=True) as connection,
            connection.begin(),
            _hurry(connection, unhurried=unhurried),
        ):
            yield connection

    def close(self) -> None:
        """Let go of every connection; the next use opens new ones."""
        with self._lock:
            engine, self._engine_made = self._engine_made, None
        if engine is not None:
            engine.dispose()

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
        engine = self._engine_made
        if engine is not None and not self._file.is_another():
            return engine
        # Bringing it up to date may take its time; nobody waits for that but who does it.
        if not _acquired(self._lock):
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


def _acquired(lock: threading.Lock) -> bool:
    """Wait for it as long as a write does; whether it was had.

    Counted in looks, as SQLite does it: while something stops this whole process, as a garbage
    collection can, whoever holds the lock is stopped, too.
    """
    return any(lock.acquire(timeout=_LOOK_S) for _ in range(round(BUSY_S / _LOOK_S)))


class _DatabaseFile:
    """The file of a SQLite database, as it was when it was opened; nothing for PostgreSQL.

    SQLite goes on writing into a file that was deleted, where nobody will ever read it.

    Thread-safety: its database's lock is held, but for `is_another`.
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
