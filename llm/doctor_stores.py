"""Whether what is kept can be kept: database, answer cache, data folder, room on the disk.

What is written goes again, and nobody's own is touched. Only a Redis that is at its own `maxmemory`
and drops keys may drop some for it, as for any write.
"""

from __future__ import annotations

import hashlib
import os
import re
import secrets
import shutil
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from llm.cache_types import AnswerStore, CachedAnswer, CacheKey, CacheStoreError
from llm.doctor import Finding
from llm.errors import (
    Reason,
    StoreBrokenError,
    StoreError,
    StoreFullError,
    StoreGoneError,
    StoreLockedError,
    StoreNewerError,
    StoreReadOnlyError,
)
from llm.settings import Settings
from llm.types import CancelToken, Delta, SamplingParams, Usage

if TYPE_CHECKING:
    from llm.database import Database

GROUP = Reason("doctor-group-stores")

OWNER = "doctor"
"""Nobody's: owners are `local` or a hash."""

SCARCE_BYTES, SCARCE_SHARE = 2_000_000_000, 0.05
"""A disk with less free than either is worth a word."""
FULL_BYTES = 200_000_000

REDIS_SLOW_S = 0.04
"""What the answer cache waits for Redis, `llm.cache_redis.PATIENCE_S`: a slower one is never used."""
_REDIS_PATIENCE_S = 3.0
_NO_CAP_BYTES = 2**53
_DATABASE: dict[type[StoreError], str] = {
    StoreLockedError: "locked",
    StoreFullError: "full",
    StoreReadOnlyError: "read-only",
    StoreGoneError: "gone",
    StoreBrokenError: "broken",
    StoreNewerError: "newer",
}
_WRONG_PASSWORD = re.compile("Authentication|NoPermission|WRONGPASS|NOAUTH|NOPERM")
_FULL = re.compile("OutOfMemory|OOM")
_READ_ONLY = re.compile("ReadOnly|READONLY|MISCONF")


@dataclass(frozen=True)
class DatabaseCheck:
    """Writes a row of its own into the database, reads it and deletes it."""

    database: Database
    on_server: bool

    group = GROUP
    name = "doctor-check-database"
    limit_s = 20.0

    def run(self, cancel: CancelToken) -> Finding:
        from llm.preset_store import PresetStore
        from llm.presets import Preset

        began_s = time.monotonic()
        kind = "server" if self.on_server else "file"
        try:
            store = PresetStore(self.database)
            name = f"doctor {secrets.token_hex(8)}"
            kept = store.save(OWNER, Preset(name, "", SamplingParams()))
            try:
                found = any(each.preset_id == kept.preset_id for each in store.listed(OWNER))
            finally:
                store.delete(OWNER, kept.preset_id)
        except StoreError as error:
            # Not its own sentence, which says where the database lies.
            why = _DATABASE.get(type(error), "fault")
            return Finding("bad", Reason(f"doctor-database-{why}"))
        if not found:
            return Finding("bad", Reason("doctor-database-lost"))
        ms = round(1000 * (time.monotonic() - began_s))
        return Finding("ok", Reason(f"doctor-database-{kind}", {"ms": ms}))


@dataclass(frozen=True)
class AnswersCheck:
    """The same with an answer, where answers are kept to be given again.

    Args:
        settings: say where that is: a Redis or a file.
    """

    settings: Settings

    group = GROUP
    limit_s = 20.0

    @property
    def name(self) -> str:
        return "doctor-check-redis" if self.settings.answers_url() else "doctor-check-answers"

    def run(self, cancel: CancelToken) -> Finding:
        kind = "redis" if self.settings.answers_url() else "answers"
        store = None
        try:
            store = self._store()
            took_s = _tried_out(store)
        except CacheStoreError as error:
            return Finding("bad", _store_failed(self.settings.answers_url(), str(error)))
        finally:
            if store is not None:
                store.close()
        if took_s is None:
            return Finding("bad", Reason(f"doctor-{kind}-lost"))
        told = {"ms": round(1000 * took_s), "limit": round(1000 * REDIS_SLOW_S)}
        if kind == "redis" and took_s > REDIS_SLOW_S:
            return Finding("warn", Reason("doctor-redis-slow", told))
        return Finding("ok", Reason(f"doctor-{kind}-ok", told))

    def _store(self) -> AnswerStore:
        if url := self.settings.answers_url():
            from llm.cache_redis import RedisAnswerStore

            # The cache gives up sooner; here it matters which it is: slow, or not there.
            return RedisAnswerStore(url, _NO_CAP_BYTES, _REDIS_PATIENCE_S)
        from llm.cache_sqlite import SqliteAnswerStore

        return SqliteAnswerStore(self.settings.answers_file(), _NO_CAP_BYTES)


def _tried_out(store: AnswerStore) -> float | None:
    """What reading one answer took; None where what was written wasn't there.

    The store is opened without a cap, so no answer leaves to make room for this one; only what can't
    be given any more goes, as with any that is kept.

    Raises:
        CacheStoreError: the store doesn't do it.
    """
    digest, now_s = hashlib.sha256(secrets.token_bytes(16)).hexdigest(), time.time()
    answer = CachedAnswer(
        key=CacheKey(digest, digest, OWNER),
        question="",
        pieces=(Delta("well"),),
        usage=Usage(),
        model="",
        server="",
        created_s=now_s,
        expires_s=now_s + 60,
        took_s=0.0,
    )
    store.put(answer)
    try:
        began_s = time.monotonic()
        found = store.get(digest, OWNER, now_s)
        took_s = time.monotonic() - began_s
    finally:
        store.delete(digest, OWNER)
    return took_s if found is not None else None


def _store_failed(redis_url: str, said: str) -> Reason:
    """Why the store of answers doesn't do it, by what its error tells: never an address."""
    kind = said.rpartition(": ")[2]
    if not redis_url:
        return Reason("doctor-answers-failed", {"kind": kind})
    for words, why in ((_WRONG_PASSWORD, "password"), (_FULL, "full"), (_READ_ONLY, "read-only")):
        if words.search(kind):
            return Reason(f"doctor-redis-{why}")
    if kind == "ResponseError" and "@" not in redis_url:  # NOAUTH, as redis-py tells it
        return Reason("doctor-redis-password")
    return Reason("doctor-redis-failed", {"kind": kind})


@dataclass(frozen=True)
class FolderCheck:
    """Writes a file into the data folder and deletes it."""

    folder: Path

    group = GROUP
    name = "doctor-check-folder"
    limit_s = 10.0

    def run(self, cancel: CancelToken) -> Finding:
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            with tempfile.NamedTemporaryFile(dir=self.folder, prefix=".doctor-") as file:
                file.write(b"well")
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            from llm.database_errors import told

            kind = type(told(error, ""))
            names = {StoreFullError: "full", StoreReadOnlyError: "read-only"}
            return Finding("bad", Reason(f"doctor-folder-{names.get(kind, 'gone')}"))
        return Finding("ok", Reason("doctor-folder-ok"))


@dataclass(frozen=True)
class DiskCheck:
    """How much room there is where things are kept.

    Args:
        folders: on the disks in question; they needn't exist yet. The fullest disk is told of.
    """

    folders: tuple[Path, ...]
    usage: Callable[[Path], tuple[int, int, int]] = shutil.disk_usage

    group = GROUP
    name = "doctor-check-disk"
    limit_s = 10.0

    def run(self, cancel: CancelToken) -> Finding:
        places = {_there(each) for each in self.folders}
        total, _, free = min((self.usage(each) for each in places), key=lambda usage: usage[2])
        told = {"free": round(free / 1e9, 1), "percent": round(100 * free / max(1, total))}
        if free < FULL_BYTES:
            return Finding("bad", Reason("doctor-disk-full", told))
        scarce = free < SCARCE_BYTES or free < SCARCE_SHARE * total
        return Finding(
            "warn" if scarce else "ok",
            Reason("doctor-disk-scarce" if scarce else "doctor-disk-ok", told),
        )


def _there(folder: Path) -> Path:
    """The folder, or the one in which it will be made."""
    return next(each for each in (folder, *folder.absolute().parents) if each.exists())
