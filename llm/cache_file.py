"""The SQLite file of the answer cache: opened at its first use, made anew where it is unfit.

It holds nothing that can't be asked again. So it has no migrations: a damaged file, and one of
another version of the cache, is removed, not set aside: a copy would keep what people have cleared.
"""

from __future__ import annotations

import logging
import sqlite3
import threading
import time
from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from filelock import FileLock
from sqlalchemy.engine import URL, Connection, Engine
from sqlalchemy.exc import SQLAlchemyError

from llm.cache_types import CacheBusyError, CacheFullError, CacheStoreError

BUSY_S = 0.04
"""How long a write waits for another's."""

_LEFT_ALONE_S = 1.0
_LOG_BYTES = 16 * 1024 * 1024
_PAGES_AT_ONCE = 1_000
_UNFIT = ("SQLITE_CORRUPT", "SQLITE_NOTADB", "SQLITE_FORMAT")
_GONE = ("SQLITE_CANTOPEN", "SQLITE_IOERR", "SQLITE_READONLY_DBMOVED")
_BUSY = ("SQLITE_BUSY", "SQLITE_LOCKED", "TimeoutError")
_FULL = ("SQLITE_FULL", "SQLITE_IOERR_SHMSIZE")
_OTHER_TABLES = ("no such table", "no such column", "has no column")

logger = logging.getLogger(__name__)


class _UnfitError(Exception):
    """The file is no cache of this version."""


class CacheFile:
    """Connections to the file, within limits on time.

    Args:
        path: the file; its folder is made.
        tables: what has to be in it.
        version: of these tables.
        busy_s: how long a write waits for another's.
        clock: seconds that never go back.

    Thread-safety: every method may be called from any thread; several processes may use one file.
    """

    def __init__(
        self,
        path: Path,
        tables: sa.MetaData,
        version: int,
        busy_s: float = BUSY_S,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._path = path
        self._tables = tables
        self._version = version
        self._busy_s = busy_s
        self._clock = clock
        self._lock = threading.Lock()
        self._own = threading.local()
        self._engine_made: Engine | None = None
        self._opened: tuple[int, int] | None = None
        self._damaged: tuple[int, int] | None = None
        self._failed: tuple[str, float] | None = None

    @contextmanager
    def reading(self) -> Generator[Connection]:
        """A transaction that only reads.

        Raises:
            CacheStoreError: from here, or out of the block.
        """
        with self._told(), self._engine().connect() as connection:
            yield connection

    @contextmanager
    def writing(self) -> Generator[Connection]:
        """The same to write; it is kept when the block ends, and undone when it raises.

        Within one of the same thread it is a part of that.
        """
        outer: Connection | None = getattr(self._own, "writing", None)
        if outer is not None:
            yield outer
            return
        with (
            self._told(),
            self._engine().connect().execution_options(writes=True) as connection,
            connection.begin(),
        ):
            self._own.writing = connection
            try:
                yield connection
            finally:
                self._own.writing = None

    def give_back(self) -> None:
        """Return free pages to the disk, as far as others let it, who come in between."""
        with (
            suppress(CacheStoreError),
            self._told(),
            self._engine().connect() as connection,
        ):
            driver: Any = connection.connection.driver_connection
            free, before = driver.execute("PRAGMA freelist_count").fetchone()[0], None
            while free and free != before:
                # One step a page: https://www.sqlite.org/pragma.html#pragma_incremental_vacuum
                driver.execute(f"PRAGMA incremental_vacuum({_PAGES_AT_ONCE})").fetchall()
                free, before = driver.execute("PRAGMA freelist_count").fetchone()[0], free

    def reuse_log(self) -> None:
        """Have the next write overwrite the write-ahead log: on a full disk it can't grow.

        Source: https://www.sqlite.org/pragma.html#pragma_wal_checkpoint
        """
        with self._told(), self._engine().connect() as connection:
            driver: Any = connection.connection.driver_connection
            driver.execute("PRAGMA wal_checkpoint(RESTART)").fetchall()

    def begin_anew(self) -> None:
        """Remove the file with all that is in it, as where not even deleting has room.

        Others who have it open go over to the new one at their next use. What they are just
        writing is lost, and what they are just reading fails.

        Raises:
            CacheStoreError: it is being opened, or can't be removed.
        """
        with self._told():
            if not self._lock.acquire(timeout=self._busy_s):
                raise CacheBusyError("the file of the answer cache: being opened")
            try:
                with FileLock(self._beside(".lock"), timeout=self._busy_s):
                    self._dispose()
                    with ExitStack() as opened:
                        held = [
                            opened.enter_context(each.open("r+b"))
                            for each in (self._path, self._beside("-wal"))
                            if each.exists()
                        ]
                        self._unlink()
                        for each in held:  # or it takes its room until others let go of it
                            each.truncate()
            finally:
                self._lock.release()
        logger.warning("The disk is full; all of %s was to go, so it begins anew", self._path.name)

    def close(self) -> None:
        """Let go of every connection; the next use opens new ones."""
        with self._lock:
            self._dispose()

    @contextmanager
    def _told(self) -> Generator[None]:
        try:
            yield
        except (SQLAlchemyError, sqlite3.Error, OSError, ValueError, ArithmeticError) as fault:
            name = _name(fault)
            if name.startswith(_UNFIT) or name == "other tables":
                with self._lock:
                    self._damaged = self._opened
                    self._dispose()
            elif name.startswith(_GONE):
                self.close()
            # Not `from fault`: a driver's message may quote what people wrote.
            raise _kind(name)(f"the file of the answer cache: {name}") from None

    def _engine(self) -> Engine:
        """The engine, made at its first use."""
        if not self._lock.acquire(timeout=self._busy_s):
            raise CacheBusyError("the file of the answer cache: being opened")
        try:
            if self._engine_made is not None and _identity(self._path) != self._opened:
                self._dispose()  # it was deleted or replaced
            if self._engine_made is None:
                if self._failed is not None and self._clock() < self._failed[1]:
                    raise CacheStoreError(f"the file of the answer cache: {self._failed[0]}")
                try:
                    self._engine_made = self._made()
                except (SQLAlchemyError, OSError, _UnfitError) as fault:
                    self._failed = (_name(fault), self._clock() + _LEFT_ALONE_S)
                    raise
                self._failed = self._damaged = None
                self._opened = _identity(self._path)
            return self._engine_made
        except _UnfitError:
            raise CacheStoreError("the file of the answer cache: it can't be made anew") from None
        finally:
            self._lock.release()

    def _dispose(self) -> None:
        engine, self._engine_made = self._engine_made, None
        if engine is not None:
            engine.dispose()

    def _made(self) -> Engine:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        # Of two processes that find it unfit, the second must not remove what the first made.
        with FileLock(self._beside(".lock"), timeout=self._busy_s):
            if self._damaged is None or self._damaged != _identity(self._path):
                with suppress(_UnfitError):
                    return self._usable()
            self._remove()
            return self._usable()

    def _usable(self) -> Engine:
        """An engine on a file with the right tables.

        Raises:
            _UnfitError: what is there is something else.
        """
        engine = _make_engine(self._path, self._busy_s)
        try:
            with (
                engine.connect().execution_options(writes=True) as connection,
                connection.begin(),
            ):
                found = connection.exec_driver_sql("PRAGMA user_version").scalar()
                if found != self._version:
                    if connection.exec_driver_sql("SELECT 1 FROM sqlite_master LIMIT 1").first():
                        raise _UnfitError
                    self._tables.create_all(connection)
                    connection.exec_driver_sql(f"PRAGMA user_version = {self._version:d}")
                elif not set(self._tables.tables) <= set(sa.inspect(connection).get_table_names()):
                    raise _UnfitError
        except BaseException as fault:
            engine.dispose()
            if _name(fault).startswith(_UNFIT):
                raise _UnfitError from None
            raise
        return engine

    def _remove(self) -> None:
        logger.warning(
            "%s was damaged or of another version; the answer cache begins anew", self._path.name
        )
        self._unlink()

    def _unlink(self) -> None:
        for each in (self._beside("-wal"), self._beside("-shm"), self._path):
            each.unlink(missing_ok=True)

    def _beside(self, ending: str) -> Path:
        return self._path.with_name(self._path.name + ending)


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _name(fault: BaseException) -> str:
    """What went wrong, without anything of what was asked or of where it is."""
    origin = getattr(fault, "orig", None) or fault
    if any(words in str(origin) for words in _OTHER_TABLES):
        return "other tables"
    return str(getattr(origin, "sqlite_errorname", "") or type(origin).__name__)


def _kind(name: str) -> type[CacheStoreError]:
    if name.startswith(_FULL):
        return CacheFullError
    return CacheBusyError if name.startswith(_BUSY) else CacheStoreError


def _make_engine(path: Path, busy_s: float) -> Engine:
    engine = sa.create_engine(
        URL.create("sqlite", database=str(path)),
        pool_size=5,
        max_overflow=20,
        pool_timeout=busy_s,
        connect_args={"timeout": busy_s},
        hide_parameters=True,
    )

    @sa.event.listens_for(engine, "connect")
    def connected(connection: sqlite3.Connection, record: Any) -> None:
        connection.isolation_level = None  # transactions begin where `begun` says, not by guess
        connection.execute("PRAGMA auto_vacuum=INCREMENTAL")  # before the first table
        connection.execute("PRAGMA journal_mode=WAL")
        # No waiting for the disk: after a power cut the file may be damaged, and is made anew. A
        # killed process damages nothing. https://www.sqlite.org/pragma.html#pragma_synchronous
        connection.execute("PRAGMA synchronous=OFF")
        connection.execute("PRAGMA foreign_keys=ON")
        connection.execute(f"PRAGMA journal_size_limit={_LOG_BYTES}")

    @sa.event.listens_for(engine, "begin")
    def begun(connection: Connection) -> None:
        writes = connection.get_execution_options().get("writes")
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")

    return engine
