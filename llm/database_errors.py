"""What a database's driver raises, as the errors that a person is told.

Codes from https://www.postgresql.org/docs/15/errcodes-appendix.html; SQLite's are the names of its
result codes, https://www.sqlite.org/rescode.html.
"""

from __future__ import annotations

import errno
import os
import sqlite3
from pathlib import Path

from llm.errors import (
    StoreBrokenError,
    StoreError,
    StoreFaultError,
    StoreFullError,
    StoreGoneError,
    StoreLockedError,
    StoreReadOnlyError,
)

_SQLITE: dict[str, type[StoreError]] = {
    "SQLITE_BUSY": StoreLockedError,
    "SQLITE_LOCKED": StoreLockedError,
    "SQLITE_FULL": StoreFullError,
    "SQLITE_READONLY": StoreReadOnlyError,
    "SQLITE_PERM": StoreReadOnlyError,
    "SQLITE_CANTOPEN": StoreGoneError,
    "SQLITE_IOERR": StoreGoneError,
    "SQLITE_CORRUPT": StoreBrokenError,
    "SQLITE_NOTADB": StoreBrokenError,
}

_POSTGRESQL: dict[str, type[StoreError]] = {
    "55P03": StoreLockedError,  # lock_timeout
    "40001": StoreLockedError,
    "40P01": StoreLockedError,  # deadlock
    "53100": StoreFullError,
    "25006": StoreReadOnlyError,
    "42501": StoreReadOnlyError,
    "XX001": StoreBrokenError,
    "XX002": StoreBrokenError,
}

_TOO_SLOW = "57014"

_SYSTEM: dict[int, type[StoreError]] = {
    errno.EACCES: StoreReadOnlyError,
    errno.EPERM: StoreReadOnlyError,
    errno.EROFS: StoreReadOnlyError,
    errno.ENOSPC: StoreFullError,
    errno.EDQUOT: StoreFullError,
}

_NOTHING_THERE = ("no such table", "no such column")


def told(fault: BaseException, place: str) -> StoreError:
    """The error to tell.

    Args:
        fault: what SQLAlchemy raised, or the system.
        place: where the database is, without a password.
    """
    if isinstance(fault, OSError):
        return _SYSTEM.get(fault.errno or 0, StoreGoneError)(place=place)
    origin = getattr(fault, "orig", None)
    if isinstance(origin, sqlite3.Error):
        # An extended code's name begins with the plain one's: SQLITE_IOERR_WRITE.
        name = getattr(origin, "sqlite_errorname", "")
        for known, kind in _SQLITE.items():
            if name == known or name.startswith(f"{known}_"):
                barred = kind is StoreGoneError and _may_only_be_read(place)
                return StoreReadOnlyError(place=place) if barred else kind(place=place)
        if any(words in str(origin) for words in _NOTHING_THERE):  # the file was replaced
            return StoreGoneError(place=place)
    state = getattr(origin, "sqlstate", None)
    if state == _TOO_SLOW:  # of this one statement; others may be quick
        return StoreFaultError(place=place, kind=type(origin).__name__)
    if state is not None and state in _POSTGRESQL:
        return _POSTGRESQL[state](place=place)
    kinds = {each.__name__ for each in type(origin).__mro__}
    # SQLite's class of this name has syntax errors in it too.
    if kinds & {"OperationalError", "InterfaceError"} and not isinstance(origin, sqlite3.Error):
        return StoreGoneError(place=place)
    if type(fault).__name__ == "TimeoutError":  # SQLAlchemy's: all connections are in use
        return StoreLockedError(place=place)
    return StoreFaultError(place=place, kind=type(origin or fault).__name__)


def _may_only_be_read(file: str) -> bool:
    """Whether a SQLite database can't be opened because of files that it has to write beside it."""
    path = Path(file)
    return any(each.exists() and not os.access(each, os.W_OK) for each in (path, path.parent))
