"""Stores of the answer cache that fail, really: each failure is told soon, and ends by itself."""

from __future__ import annotations

import logging
import os
import sqlite3
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
import trustme

from llm.cache_redis import PATIENCE_S, PREFIX, RedisAnswerStore
from llm.cache_sqlite import SqliteAnswerStore
from llm.cache_stores import open_store
from llm.cache_tables import VERSION
from llm.cache_types import (
    SHARED,
    AnswerStore,
    CacheBusyError,
    CacheFullError,
    CacheStoreError,
    CacheTotals,
    Candidate,
    Rejection,
)
from llm.settings import Settings
from tests.cached_answers import (
    LARGE,
    NOW_S,
    PARTITION,
    answer_of,
    decision_of,
    digest_of,
    vector_of,
)
from tests.servers.redis_server import RedisServer, free_port
from tests.stalling_proxy import StallingProxy

ROOT = Path(__file__).parent.parent
QUESTION = "Where is the hidden treasure?"
PASSWORD = "open-sesame-4711"
SOON_S = 0.2
"""The quickest of a few calls: 50 ms, on a machine that is busy with something else."""
BUSY_S = 10.0
"""The patience of a store that is to be answered however busy the machine is."""
MEND_LIMIT_S = 30.0

READS = ("get", "candidates", "entries", "totals", "rejections", "decisions", "counts", "near")
WRITES = ("put", "embed", "used", "delete", "clear", "reject", "note", "judge", "together")


class Clock:
    """Moved by hand."""

    def __init__(self) -> None:
        self.now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


def calls(store: AnswerStore) -> dict[str, Callable[[], Any]]:
    """Every method, on what is kept there."""
    digest = digest_of("a")
    answer = answer_of("a", question=QUESTION)
    return {
        "get": lambda: store.get(digest, SHARED, NOW_S),
        "candidates": lambda: store.candidates(PARTITION, SHARED, NOW_S),
        "entries": lambda: store.entries(SHARED, NOW_S, 10),
        "totals": lambda: store.totals(SHARED, NOW_S),
        "rejections": lambda: store.rejections(PARTITION, SHARED),
        "decisions": lambda: store.decisions(SHARED),
        "counts": lambda: store.counts(SHARED),
        "near": lambda: store.near(SHARED, 10),
        "embed": lambda: store.embed(
            PARTITION, SHARED, Candidate(digest, QUESTION, vector_of("a"), "minilm")
        ),
        "together": lambda: store.together([lambda each: each.used(digest, SHARED, NOW_S)]),
        "put": lambda: store.put(answer, vector_of("a"), "minilm"),
        "used": lambda: store.used(digest, SHARED, NOW_S),
        "reject": lambda: store.reject(PARTITION, SHARED, Rejection(vector_of(1), "m", 0.5, NOW_S)),
        "note": lambda: store.note(decision_of("a", question=QUESTION)),
        "judge": lambda: store.judge("decision a", SHARED, True),
        "delete": lambda: store.delete(digest, SHARED),
        "clear": lambda: store.clear(SHARED, NOW_S),
    }


class Tried:
    """A store, its clock, and where it is: neither that nor what was asked may be told."""

    def __init__(self, store: AnswerStore, clock: Clock, caplog: Any, *secrets: str) -> None:
        self.store = store
        self.clock = clock
        self._caplog = caplog
        self._secrets = [QUESTION, "hidden", PASSWORD, "sesame", digest_of("a"), *secrets]

    def fails(self, names: tuple[str, ...] = READS + WRITES) -> None:
        """Each of these methods says so, soon, and without a secret."""
        for name in names:
            quickest_s = float("inf")
            for _ in range(5):
                self.clock.now_s += 10
                began_s = time.monotonic()
                with pytest.raises(CacheStoreError) as told:
                    calls(self.store)[name]()
                quickest_s = min(quickest_s, time.monotonic() - began_s)
                self.tells_nothing("".join(traceback.format_exception(told.value)))
                if quickest_s < SOON_S:
                    break
            assert quickest_s < SOON_S, name
        self.tells_nothing(self._caplog.text)

    def tells_nothing(self, text: str) -> None:
        # Where in the source it went wrong may be told.
        said = "\n".join(line for line in text.splitlines() if not line.startswith("    "))
        for secret in self._secrets:
            assert secret not in said

    def keeps(self) -> None:
        """It works, at the latest after a few calls."""
        deadline_s = time.monotonic() + MEND_LIMIT_S
        while True:
            self.clock.now_s += 10
            try:
                calls(self.store)["put"]()
                assert calls(self.store)["get"]() == answer_of("a", question=QUESTION)
                assert len(calls(self.store)["candidates"]()) == 1
                assert calls(self.store)["entries"]()
                calls(self.store)["note"]()
                calls(self.store)["judge"]()
                assert calls(self.store)["decisions"]()[0].judged is True
            except CacheStoreError:
                assert time.monotonic() < deadline_s
            else:
                return


# -- SQLite --


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "very-own-folder" / "answers.sqlite3"


@pytest.fixture
def tried(file: Path, caplog: pytest.LogCaptureFixture) -> Iterator[Tried]:
    clock = Clock()
    store = SqliteAnswerStore(file, LARGE, clock=clock)
    yield Tried(store, clock, caplog, "very-own")
    store.close()


def as_root(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"{command[0]} isn't allowed here: {done.stderr.strip()}")


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [each.getMessage() for each in caplog.records if each.levelno >= logging.WARNING]


def test_somebody_else_writes_for_long(tried: Tried, file: Path) -> None:
    tried.keeps()
    holder = sqlite3.connect(file, isolation_level=None)
    holder.execute("BEGIN EXCLUSIVE")
    tried.fails(WRITES)
    assert calls(tried.store)["get"]() is not None, "reading waits for nobody"
    holder.close()
    tried.keeps()


def test_somebody_else_is_opening_it_for_long(tried: Tried, file: Path) -> None:
    file.parent.mkdir()
    holder = sqlite3.connect(file, isolation_level=None)
    holder.execute("BEGIN EXCLUSIVE")
    tried.fails()
    holder.close()
    tried.keeps()


@pytest.fixture
def small_disk(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Path]:
    disk = tmp_path / "very-own-folder"
    disk.mkdir()
    size = f"size={getattr(request, 'param', '1m')}"
    as_root("mount", "-t", "tmpfs", "-o", size, "tmpfs", str(disk))
    yield disk
    subprocess.run(["umount", "--lazy", str(disk)], check=True)


def test_the_disk_is_full(small_disk: Path, tried: Tried) -> None:
    tried.keeps()
    fill = small_disk / "fill"
    with fill.open("wb", buffering=0) as filling, suppress(OSError):
        while True:
            filling.write(b"x" * 512)
    for number in range(3):  # until what was free inside the file is full as well
        with suppress(CacheStoreError):
            tried.store.put(answer_of(number, os.urandom(100_000).hex()))
    with pytest.raises(CacheStoreError) as told:
        tried.store.put(answer_of("a", os.urandom(100_000).hex(), question=QUESTION))
    tried.tells_nothing("".join(traceback.format_exception(told.value)))
    fill.unlink()
    tried.keeps()


def filled(disk: Path) -> None:
    with (disk / "fill").open("wb", buffering=0) as filling, suppress(OSError):
        while True:
            filling.write(b"x" * 512)


def until_full(store: AnswerStore, scope: str) -> None:
    with suppress(CacheFullError):
        for number in range(1000):
            store.put(answer_of(f"{scope} {number}", os.urandom(10_000).hex(), scope=scope))
            store.note(decision_of(number, scope=scope))
    with pytest.raises(CacheFullError):
        store.put(answer_of("one more", os.urandom(10_000).hex(), scope=scope))


def test_a_full_disk_can_be_cleared_of_the_only_one_there_is(
    small_disk: Path, tried: Tried, file: Path
) -> None:
    tried.keeps()
    other = SqliteAnswerStore(file, LARGE)
    assert other.entries(SHARED, NOW_S, 999)
    filled(small_disk)
    until_full(tried.store, SHARED)
    there = len(other.entries(SHARED, NOW_S, 999))
    assert there
    assert tried.store.clear(SHARED, NOW_S) == there
    for store in (tried.store, other):
        assert store.entries(SHARED, NOW_S, 999) == []
        assert store.decisions(SHARED) == []
        store.put(answer_of("before", created_s=NOW_S - 1))
        assert store.totals(SHARED, NOW_S) == CacheTotals(0, 0), "it is known that it was cleared"
    other.close()


@pytest.mark.parametrize("small_disk", ["16m"], indirect=True)
def test_a_full_disk_can_be_cleared_of_one_of_several(
    small_disk: Path, tried: Tried, file: Path
) -> None:
    tried.store.put(answer_of("hers", scope="her"))
    for number in range(40):
        tried.store.put(answer_of(number, os.urandom(1_000).hex()))
        tried.store.note(decision_of(number))
    for number in range(10):
        tried.store.delete(digest_of(number), SHARED)
    with closing(sqlite3.connect(file)) as admin:
        admin.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    for number in range(5):  # where there was something before
        tried.store.put(answer_of(number, os.urandom(1_000).hex()))
    filled(small_disk)
    assert tried.store.clear(SHARED, NOW_S) > 0
    assert tried.store.entries(SHARED, NOW_S, 999) == []
    assert tried.store.decisions(SHARED) == []
    assert len(tried.store.entries("her", NOW_S, 999)) == 1


def test_where_a_full_disk_cannot_be_cleared_of_one_of_several_that_is_said(
    small_disk: Path, tried: Tried
) -> None:
    tried.store.put(answer_of("hers", scope="her"))
    filled(small_disk)
    until_full(tried.store, SHARED)
    with pytest.raises(CacheFullError):
        tried.store.clear(SHARED, NOW_S)
    assert len(tried.store.entries("her", NOW_S, 999)) == 1


def test_the_file_is_deleted(tried: Tried, file: Path) -> None:
    tried.keeps()
    for each in file.parent.glob("answers.sqlite3*"):
        each.unlink()
    assert calls(tried.store)["get"]() is None
    tried.keeps()
    assert file.exists()


def test_the_folder_is_moved_away(tried: Tried, file: Path) -> None:
    tried.keeps()
    file.parent.rename(file.parent.with_name("away"))
    tried.keeps()
    assert file.exists()


def test_a_folder_that_cannot_be_made(tried: Tried, file: Path) -> None:
    file.parent.write_text("a file")
    tried.fails()
    file.parent.unlink()
    tried.keeps()


@pytest.mark.parametrize("there", [True, False])
def test_a_folder_that_may_only_be_read(tried: Tried, file: Path, there: bool) -> None:
    file.parent.mkdir()
    if there:
        tried.keeps()
        tried.store.close()
    folder = str(file.parent)
    as_root("mount", "--bind", folder, folder)
    try:
        as_root("mount", "-o", "remount,ro,bind", folder)
        tried.fails(WRITES)
        as_root("mount", "-o", "remount,rw,bind", folder)
        tried.keeps()
    finally:
        subprocess.run(["umount", "--lazy", folder], check=True)


JUNK = b"this is no database, but long enough to be read as one. " * 1000


@pytest.mark.parametrize("content", [JUNK, JUNK[:10], b"SQLite format 3\0" + JUNK])
def test_a_file_that_is_no_database_is_made_anew(
    tried: Tried, file: Path, caplog: pytest.LogCaptureFixture, content: bytes
) -> None:
    file.parent.mkdir()
    file.write_bytes(content)
    tried.keeps()
    assert len(warnings(caplog)) == 1
    tried.tells_nothing(caplog.text)


def test_a_file_of_another_version_is_made_anew(
    tried: Tried, file: Path, caplog: pytest.LogCaptureFixture
) -> None:
    tried.keeps()
    tried.store.close()
    with sqlite3.connect(file) as connection:
        connection.execute("PRAGMA user_version = 99")
    connection.close()
    assert calls(tried.store)["get"]() is None
    tried.keeps()
    assert len(warnings(caplog)) == 1


def test_another_programs_database_is_made_anew(
    tried: Tried, file: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file.parent.mkdir()
    with sqlite3.connect(file) as connection:
        connection.execute("CREATE TABLE entries (other)")
        connection.execute(f"PRAGMA user_version = {VERSION}")
    connection.close()
    tried.keeps()
    assert len(warnings(caplog)) == 1


@pytest.mark.parametrize("keeps_header", [True, False])
def test_a_file_that_is_damaged_in_use_is_made_anew(
    tried: Tried, file: Path, caplog: pytest.LogCaptureFixture, keeps_header: bool
) -> None:
    tried.keeps()
    for number in range(200):
        tried.store.put(answer_of(number, "x" * 500), vector_of(number), "minilm")
    tried.store.close()  # all of it into the file
    assert calls(tried.store)["get"]() is not None
    with file.open("r+b") as damaged:
        damaged.seek(4096 if keeps_header else 0)
        damaged.write(os.urandom(file.stat().st_size - damaged.tell()))
    with suppress(CacheStoreError):
        tried.store.candidates(PARTITION, SHARED, NOW_S)
    tried.keeps()
    assert tried.store.totals(SHARED, NOW_S).entries == 1
    assert len(warnings(caplog)) == 1


def test_a_table_that_is_gone_is_made_anew(tried: Tried, file: Path) -> None:
    tried.keeps()
    with sqlite3.connect(file) as connection:
        connection.execute("DROP TABLE decisions")
    connection.close()
    with pytest.raises(CacheStoreError):
        calls(tried.store)["note"]()
    tried.keeps()


@pytest.mark.parametrize("body", [b"", b"junk", b"x\x9c", "text", 7])
def test_a_damaged_value_is_not_there(tried: Tried, file: Path, body: object) -> None:
    tried.keeps()
    with sqlite3.connect(file) as connection:
        connection.execute("UPDATE bodies SET body = ?", [body])
        connection.execute("UPDATE decisions SET body = ?", [body])
        connection.execute("UPDATE entries SET vector = ?", [body])
        if not isinstance(body, bytes):
            connection.execute("UPDATE entries SET question = ?", [body])
    connection.close()
    assert bool(calls(tried.store)["entries"]()) is isinstance(body, bytes)
    assert calls(tried.store)["get"]() is None
    assert not calls(tried.store)["decisions"]()
    tried.keeps()


def test_an_answer_that_took_anothers_place_is_not_given(tried: Tried, file: Path) -> None:
    tried.keeps()
    tried.store.put(answer_of("b"))
    with sqlite3.connect(file) as connection:
        connection.execute("UPDATE bodies SET body = (SELECT max(body) FROM bodies)")
    connection.close()
    found = [tried.store.get(digest_of(name), SHARED, NOW_S) for name in "ab"]
    assert sorted(each is None for each in found) == [False, True]


OPENING = """
import logging, pathlib, sys
from tests.cached_answers import *
logging.basicConfig(format="%(message)s")
store = Place("", pathlib.Path(sys.argv[1])).opened()
print("ready", flush=True)
sys.stdin.readline()
store.put(answer_of(sys.argv[2]))
store.close()
"""


def test_processes_that_find_it_damaged_at_once_make_it_anew_once(file: Path) -> None:
    file.parent.mkdir()
    file.write_bytes(JUNK)
    running = [
        subprocess.Popen(
            [sys.executable, "-c", OPENING, str(file), name],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for name in "abcd"
    ]
    for process in running:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    for process in running:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    said = [process.communicate()[1] for process in running]
    assert [process.returncode for process in running] == [0, 0, 0, 0], said
    assert sorted(text.count("begins anew") for text in said) == [0, 0, 0, 1]
    store = SqliteAnswerStore(file, LARGE, 30)
    assert store.totals(SHARED, NOW_S).entries == 4
    store.close()


def test_a_killed_process_leaves_a_sound_file(file: Path) -> None:
    program = OPENING.replace(
        "store.put(answer_of(sys.argv[2]))",
        "n = 0\nwhile True:\n    store.put(answer_of(n, 'x' * 3000))\n    n += 1\n"
        "    print(n, flush=True)",
    )
    killed = subprocess.Popen(
        [sys.executable, "-c", program, str(file), "a"],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert killed.stdin is not None
    assert killed.stdout is not None
    killed.stdin.write("go\n")
    killed.stdin.flush()
    for line in killed.stdout:
        if line == "40\n":
            break
    killed.kill()
    killed.communicate()
    store = SqliteAnswerStore(file, LARGE, 30)
    entries = store.entries(SHARED, NOW_S, 10_000)
    assert len(entries) >= 40
    assert store.totals(SHARED, NOW_S) == CacheTotals(
        len(entries), sum(entry.size for entry in entries)
    )
    assert store.get(digest_of(39), SHARED, NOW_S) == answer_of(39, "x" * 3000)
    store.close()
    with sqlite3.connect(file) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    connection.close()


# -- Redis --


@pytest.fixture
def server() -> Iterator[RedisServer]:
    """One of the test's own."""
    made = RedisServer(PASSWORD)
    try:
        made.start()
        yield made
    finally:
        made.remove()


@contextmanager
def trying(
    url: str, caplog: pytest.LogCaptureFixture, patience_s: float = PATIENCE_S
) -> Iterator[Tried]:
    clock = Clock()
    store = RedisAnswerStore(url, LARGE, patience_s=patience_s, clock=clock)
    port = url.rpartition(":")[2].partition("/")[0]
    yield Tried(store, clock, caplog, port, "127.0.0.1", "nowhere")
    store.close()


def test_redis_dies_and_comes_back(server: RedisServer, caplog: pytest.LogCaptureFixture) -> None:
    with trying(server.url, caplog) as tried:
        tried.keeps()
        server.kill()
        tried.fails()
        server.start()
        tried.keeps()


def test_redis_is_restarted_between_two_calls(
    server: RedisServer, caplog: pytest.LogCaptureFixture
) -> None:
    with trying(server.url, caplog, BUSY_S) as tried:
        tried.keeps()
        server.kill()
        server.start()
        assert tried.store.totals(SHARED, NOW_S) == CacheTotals(0, 0), "the very next call"
        tried.keeps()


def test_redis_is_there_later(server: RedisServer, caplog: pytest.LogCaptureFixture) -> None:
    server.kill()
    with trying(server.url, caplog, BUSY_S) as tried:
        tried.fails()
        server.start()
        tried.keeps()


def test_redis_stands_still(server: RedisServer, caplog: pytest.LogCaptureFixture) -> None:
    with trying(server.url, caplog) as tried:
        tried.keeps()
        server.freeze()
        try:
            tried.fails()
        finally:
            server.thaw()
        tried.keeps()


def test_the_way_to_redis_stalls(server: RedisServer, caplog: pytest.LogCaptureFixture) -> None:
    proxy = StallingProxy(server.port)
    try:
        with trying(server.url_with(PASSWORD, proxy.port), caplog) as tried:
            tried.keeps()
            proxy.stall()
            tried.fails()
            proxy.flow()
            tried.keeps()
    finally:
        proxy.close()


def test_writes_that_nobody_waits_for_do_not_take_redis_from_others(server: RedisServer) -> None:
    proxy = StallingProxy(server.port)
    url = server.url_with(PASSWORD, proxy.port)
    # Its clock stands still: once left alone, it would be for good.
    store = RedisAnswerStore(url, LARGE, patience_s=3.0, clock=Clock())
    try:
        store.put(answer_of("a"))
        proxy.stall()
        with pytest.raises(CacheBusyError):
            store.together([lambda store: store.used(digest_of("a"), SHARED, NOW_S)])
        proxy.flow()
        assert store.get(digest_of("a"), SHARED, NOW_S) is not None
    finally:
        store.close()
        proxy.close()


def test_a_reply_that_came_too_late_is_nobody_elses(
    server: RedisServer, caplog: pytest.LogCaptureFixture
) -> None:
    proxy = StallingProxy(server.port)
    try:
        with trying(server.url_with(PASSWORD, proxy.port), caplog) as tried:
            tried.keeps()
            proxy.stall()
            tried.fails(("get",))
            proxy.flow()
            deadline_s = time.monotonic() + MEND_LIMIT_S
            while True:
                tried.clock.now_s += 10
                try:
                    assert tried.store.get(digest_of("b"), SHARED, NOW_S) is None
                except CacheStoreError:
                    assert time.monotonic() < deadline_s
                else:
                    break
    finally:
        proxy.close()


def test_a_dead_redis_is_left_alone_for_a_moment(
    server: RedisServer, caplog: pytest.LogCaptureFixture
) -> None:
    proxy = StallingProxy(server.port)
    proxy.stall()
    try:
        with trying(server.url_with(PASSWORD, proxy.port), caplog) as tried:
            for _ in range(20):
                with pytest.raises(CacheStoreError):
                    calls(tried.store)["get"]()
            assert proxy.connections == 1
            tried.clock.now_s += 10
            with pytest.raises(CacheStoreError):
                calls(tried.store)["get"]()
            assert proxy.connections == 2
    finally:
        proxy.close()


def test_a_name_that_nobody_finds_takes_no_longer(caplog: pytest.LogCaptureFixture) -> None:
    with trying("redis://nowhere.invalid:6379/0", caplog) as tried:
        tried.fails()


def test_an_address_that_swallows_everything(caplog: pytest.LogCaptureFixture) -> None:
    """Nobody answers there: https://www.rfc-editor.org/rfc/rfc5737"""
    with trying("redis://192.0.2.1:6379/0", caplog) as tried:
        tried.fails()


@pytest.mark.parametrize("wrong", ["", "not-open-sesame-4711"])
def test_a_wrong_password(
    server: RedisServer, caplog: pytest.LogCaptureFixture, wrong: str
) -> None:
    with trying(server.url_with(wrong), caplog) as tried:
        tried.fails()
        with server.admin() as admin:
            admin.config_set("requirepass", wrong)
        tried.keeps()


def test_redis_has_no_room_left(server: RedisServer, caplog: pytest.LogCaptureFixture) -> None:
    with trying(server.url, caplog) as tried, server.admin() as admin:
        tried.keeps()
        before = tried.store.entries(SHARED, NOW_S, 10)
        admin.config_set("maxmemory", 1)
        tried.fails(("put", "note", "reject", "used", "judge"))
        assert tried.store.entries(SHARED, NOW_S, 10) == before, "nothing is half done"
        assert calls(tried.store)["get"]() is not None
        assert calls(tried.store)["delete"]()
        admin.config_set("maxmemory", 0)
        tried.keeps()
        assert tried.store.totals(SHARED, NOW_S).entries == 1


def test_redis_throws_out_whatever_it_likes(server: RedisServer) -> None:
    """With `allkeys-random` the indexes leave as well: what remains is right, and room is made."""
    store = RedisAnswerStore(server.url, 200_000, 30)
    with server.admin() as admin:
        admin.config_set("maxmemory-policy", "allkeys-random")
        for number in range(900):
            if number % 100 == 50:
                admin.config_set("maxmemory", admin.info("memory")["used_memory"] - 20_000)
            if number % 100 == 60:
                admin.config_set("maxmemory", 0)
            with suppress(CacheStoreError):
                store.put(answer_of(number, str(number)), vector_of(number, 8), "minilm")
            for found in (number, number // 2):
                answer = store.get(digest_of(found), SHARED, NOW_S)
                assert answer in (None, answer_of(found, str(found)))
        store.entries(SHARED, NOW_S, 10)
        store.clear(SHARED, NOW_S)
        for number in range(300):
            kept = answer_of(number, "x" * 500, created_s=NOW_S + number)
            store.put(kept, vector_of(number, 8), "minilm")
        totals = store.totals(SHARED, NOW_S)
        assert totals.entries == len(store.entries(SHARED, NOW_S, 1000)) > 50
        assert totals.size <= 200_000
    store.close()


def test_redis_is_flushed(server: RedisServer, caplog: pytest.LogCaptureFixture) -> None:
    with trying(server.url, caplog) as tried, server.admin() as admin:
        tried.keeps()
        admin.flushall()
        admin.script_flush()
        assert tried.store.totals(SHARED, NOW_S) == CacheTotals(0, 0)
        assert calls(tried.store)["get"]() is None
        tried.keeps()
        assert tried.store.totals(SHARED, NOW_S).entries == 1


def test_redis_may_only_be_read(server: RedisServer, caplog: pytest.LogCaptureFixture) -> None:
    with trying(server.url, caplog) as tried, server.admin() as admin:
        tried.keeps()
        admin.execute_command("REPLICAOF", "127.0.0.1", "1")
        tried.fails(("put", "used", "delete", "reject", "note", "judge"))
        assert calls(tried.store)["get"]() is not None
        admin.execute_command("REPLICAOF", "NO", "ONE")
        tried.keeps()


def test_redis_is_loading(server: RedisServer, caplog: pytest.LogCaptureFixture) -> None:
    with trying(server.url, caplog) as tried, server.admin() as admin:
        for number in range(3000):
            admin.set(f"other:{number}", os.urandom(2000))
        admin.save()
        server.kill()
        # 10 ms a key, between which it answers that it is loading.
        server.start(
            *("--key-load-delay", "10000", "--loading-process-events-interval-bytes", "1024"),
            wait=False,
        )
        tried.fails(("get", "put"))
        admin.config_set("key-load-delay", 0)
        tried.keeps()


def test_damaged_values_in_redis_are_not_there(
    server: RedisServer, caplog: pytest.LogCaptureFixture
) -> None:
    with trying(server.url, caplog) as tried, server.admin() as admin:
        tried.keeps()
        calls(tried.store)["reject"]()
        answer = f"{PREFIX}answer:{SHARED}:{digest_of('a')}"
        for junk in (b"", b"junk", b"\xff" * 5000):
            admin.hset(answer, mapping={"body": junk, "meta": junk})
            admin.hset(f"{PREFIX}questions:{SHARED}:{PARTITION}", digest_of("a"), junk)
            admin.hset(f"{PREFIX}log:{SHARED}", "decision a", junk)
            admin.lset(f"{PREFIX}rejections:{SHARED}:{PARTITION}", 0, junk)
            for name in ("candidates", "entries", "decisions", "rejections"):
                assert not calls(tried.store)[name](), name
            assert calls(tried.store)["get"]() is None
        tried.keeps()
        # Something else altogether at its place.
        admin.delete(answer)
        admin.set(answer, "x")
        tried.fails(("get", "put"))
        assert calls(tried.store)["delete"]()
        tried.keeps()


@pytest.mark.parametrize("way", ["tls", "socket"])
def test_redis_is_reached_by_tls_and_by_a_socket(tmp_path: Path, way: str) -> None:
    authority = trustme.CA()
    issued, authority_file = authority.issue_cert("localhost"), tmp_path / "ca.pem"
    authority.cert_pem.write_to_path(authority_file)
    issued.private_key_pem.write_to_path(tmp_path / "key.pem")
    issued.cert_chain_pems[0].write_to_path(tmp_path / "cert.pem")
    server = RedisServer()
    try:
        if way == "tls":
            files = {"key": "key.pem", "cert": "cert.pem", "ca-cert": "ca.pem"}
            options = [(f"--tls-{name}-file", str(tmp_path / file)) for name, file in files.items()]
            port = free_port()
            options += [("--tls-port", str(port)), ("--tls-auth-clients", "no")]
            url = f"rediss://localhost:{port}/3?ssl_ca_certs={authority_file}"
        else:
            options = [("--unixsocket", str(tmp_path / "redis.sock"))]
            url = f"unix://{tmp_path}/redis.sock?db=3"
        server.start(*(part for option in options for part in option))
        store = RedisAnswerStore(url, LARGE, 30)
        store.put(answer_of("a"))
        assert store.get(digest_of("a"), SHARED, NOW_S) == answer_of("a")
        store.close()
        if way == "tls":
            store = RedisAnswerStore(f"rediss://localhost:{port}/3", LARGE, 30)
            with pytest.raises(CacheStoreError, match="Redis: "):
                store.get(digest_of("a"), SHARED, NOW_S)
            store.close()
    finally:
        server.remove()


def test_many_threads_find_it_dead_at_once(server: RedisServer) -> None:
    store = RedisAnswerStore(server.url, LARGE)
    server.kill()
    told: list[BaseException] = []

    def ask() -> None:
        for _ in range(5):
            try:
                store.get(digest_of("a"), SHARED, NOW_S)
            except BaseException as error:  # noqa: BLE001 - told below
                told.append(error)

    threads = [threading.Thread(target=ask) for _ in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(told) == 100
    assert {type(error) for error in told} == {CacheStoreError}
    store.close()


# -- which it is --


def test_the_settings_say_where(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, redis_url: str
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("REDIS_URL", "STEADY_CHAT_REDIS_URL", "STEADY_CHAT_DATABASE_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("STEADY_CHAT_DATA_DIR", str(tmp_path / "data"))

    def opened() -> str:
        store = open_store(Settings())
        with suppress(CacheStoreError):
            store.put(answer_of("a"))
        store.close()
        return type(store).__name__

    assert opened() == "SqliteAnswerStore"
    assert (tmp_path / "data" / "answers.sqlite3").exists()
    monkeypatch.setenv("STEADY_CHAT_DATABASE_URL", f"sqlite:///{tmp_path}/other/c.sqlite3")
    assert opened() == "SqliteAnswerStore"
    assert (tmp_path / "other" / "answers.sqlite3").exists()
    monkeypatch.setenv("STEADY_CHAT_DATABASE_URL", "postgresql://user@host/name")
    assert Settings().answers_file() == tmp_path / "data" / "answers.sqlite3"
    monkeypatch.setenv("REDIS_URL", redis_url)
    assert opened() == "RedisAnswerStore"
    monkeypatch.setenv("STEADY_CHAT_REDIS_URL", "redis://:secret@elsewhere/1")
    assert Settings().answers_url() == "redis://:secret@elsewhere/1"
    assert "secret" not in f"{Settings()!r}{Settings().shown()}"
    monkeypatch.delenv("STEADY_CHAT_REDIS_URL")
    monkeypatch.setenv("REDIS_URL", "http://no-redis")
    with pytest.raises(CacheStoreError) as told:
        open_store(Settings())
    assert "no-redis" not in str(told.value)
