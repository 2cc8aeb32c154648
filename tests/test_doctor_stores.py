"""The doctor's look at what is kept, with the real things."""

from __future__ import annotations

import secrets
import sqlite3
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from pydantic import SecretStr

from llm.cache_redis import PATIENCE_S, PREFIX, RedisAnswerStore
from llm.cache_sqlite import SqliteAnswerStore
from llm.cache_stores import open_store
from llm.cache_types import AnswerStore, CachedAnswer, CacheKey
from llm.conversation_database import ConversationDatabase
from llm.doctor import Finding
from llm.doctor_stores import (
    OWNER,
    REDIS_SLOW_S,
    AnswersCheck,
    DatabaseCheck,
    DiskCheck,
    FolderCheck,
)
from llm.preset_store import PresetStore
from llm.settings import Settings
from llm.types import CancelToken, Delta, Usage
from tests.servers.redis_server import RedisServer
from tests.stalling_proxy import StallingProxy

GB = 1_000_000_000
LONG_S = 60.0


def found_by(check: DatabaseCheck | AnswersCheck | FolderCheck | DiskCheck) -> Finding:
    return check.run(CancelToken())


def told(finding: Finding) -> tuple[str, str]:
    return finding.level, finding.reason.message_id


@pytest.fixture
def database(tmp_path: Path) -> Iterator[ConversationDatabase]:
    made = ConversationDatabase(f"sqlite:///{tmp_path / 'kept.sqlite3'}", runner="r")
    yield made
    made.close()


@pytest.fixture(scope="module")
def redis_server() -> Iterator[RedisServer]:
    server = RedisServer("pa55word")
    server.start()
    yield server
    server.remove()


def with_redis(tmp_path: Path, url: str) -> AnswersCheck:
    return AnswersCheck(Settings(data_dir=tmp_path, redis_url=SecretStr(url)))


def test_a_row_is_written_read_and_gone_again(database: ConversationDatabase) -> None:
    assert told(found_by(DatabaseCheck(database, on_server=False))) == (
        "ok",
        "doctor-database-file",
    )
    assert PresetStore(database).listed(OWNER) == []


def test_a_database_that_another_holds_or_that_is_none_is_told(
    database: ConversationDatabase, tmp_path: Path
) -> None:
    check = DatabaseCheck(database, on_server=False)
    found_by(check)
    other = sqlite3.connect(tmp_path / "kept.sqlite3", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    finding = found_by(check)
    other.close()
    assert told(finding) == ("bad", "doctor-database-locked")
    assert not finding.reason.values, "where it lies is told to nobody"
    assert found_by(check).level == "ok"
    database.close()
    (tmp_path / "kept.sqlite3").write_bytes(b"no database at all" * 100)
    assert told(found_by(check)) == ("bad", "doctor-database-broken")


def test_a_database_in_no_folder_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    made = ConversationDatabase(f"sqlite:///{tmp_path / 'file' / 'kept.sqlite3'}", runner="r")
    assert told(found_by(DatabaseCheck(made, on_server=False)))[0] == "bad"


def test_a_database_server_that_is_not_there_is_told_without_its_address() -> None:
    url = "postgresql+psycopg://u:pw@127.0.0.1:9/chat"
    finding = found_by(DatabaseCheck(ConversationDatabase(url, runner="r"), on_server=True))
    assert told(finding) == ("bad", "doctor-database-gone")
    assert not finding.reason.values


def test_a_database_server_takes_and_gives_and_one_that_stands_still_is_told(
    postgres_url: str,
) -> None:
    made = ConversationDatabase(postgres_url, runner="r")
    assert told(found_by(DatabaseCheck(made, on_server=True))) == ("ok", "doctor-database-server")
    assert PresetStore(made).listed(OWNER) == []
    made.close()
    parts = urlsplit(postgres_url)
    proxy = StallingProxy(parts.port or 0)
    through = parts._replace(netloc=parts.netloc.replace(str(parts.port), str(proxy.port)))
    made = ConversationDatabase(through.geturl(), runner="r")
    check = DatabaseCheck(made, on_server=True)
    assert found_by(check).level == "ok"
    proxy.stall()
    still = found_by(check)
    proxy.close()
    made.close()
    assert still.level == "bad"
    assert not still.reason.values


def test_the_answers_file_takes_and_gives(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("REDIS_URL", raising=False)
    check = AnswersCheck(Settings(data_dir=tmp_path))
    assert check.name == "doctor-check-answers"
    assert told(found_by(check)) == ("ok", "doctor-answers-ok")
    store = open_store(Settings(data_dir=tmp_path))
    assert store.totals(OWNER, time.time()).entries == 0
    store.close()


def test_redis_takes_and_gives_and_nothing_is_left(
    redis_server: RedisServer, tmp_path: Path
) -> None:
    check = with_redis(tmp_path, redis_server.url)
    assert check.name == "doctor-check-redis"
    # On a machine that is busy it may be slow; it is there all the same.
    assert found_by(check).reason.message_id in ("doctor-redis-ok", "doctor-redis-slow")
    with redis_server.admin() as admin:
        assert not list(admin.scan_iter(f"{PREFIX}answer:*"))
    assert REDIS_SLOW_S == PATIENCE_S


def kept_answer(made_s: float, expires_s: float) -> CachedAnswer:
    digest = secrets.token_hex(32)
    return CachedAnswer(
        key=CacheKey(digest, digest, "ann"),
        question="who?",
        pieces=(Delta(secrets.token_hex(200_000)),),
        usage=Usage(),
        model="m",
        server="",
        created_s=made_s,
        expires_s=expires_s,
        took_s=1.0,
    )


@pytest.mark.parametrize("kind", ["answers", "redis"])
def test_a_look_at_a_cache_over_its_cap_costs_nobody_an_answer(
    kind: str, redis_server: RedisServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("REDIS_URL", raising=False)
    url = redis_server.url if kind == "redis" else ""
    settings = Settings(data_dir=tmp_path, redis_url=SecretStr(url), cache_max_mb=1)
    store: AnswerStore
    if url:
        store = RedisAnswerStore(url, 2**40, LONG_S)
    else:
        store = SqliteAnswerStore(settings.answers_file(), 2**40, LONG_S)
    now_s = time.time()
    answers = [kept_answer(now_s - 100, now_s + 3600) for _ in range(6)]
    for answer in answers:
        store.put(answer)
    assert store.totals("ann", now_s).size > 1_000_000
    finding = found_by(AnswersCheck(settings))
    kept = {each.key for each in store.entries("ann", now_s, 100)}
    assert store.totals(OWNER, now_s).entries == 0
    store.clear("ann", now_s)
    store.close()
    assert finding.reason.message_id in (f"doctor-{kind}-ok", "doctor-redis-slow")
    assert kept == {each.key for each in answers}


def test_a_wrong_password_is_told_apart_and_not_told(
    redis_server: RedisServer, tmp_path: Path
) -> None:
    for password in ("wr0ng-one", ""):
        finding = found_by(with_redis(tmp_path, redis_server.url_with(password)))
        assert told(finding) == ("bad", "doctor-redis-password")
        assert not finding.reason.values


def test_a_full_redis_and_a_replica_are_told(redis_server: RedisServer, tmp_path: Path) -> None:
    check = with_redis(tmp_path, redis_server.url)
    with redis_server.admin() as admin:
        admin.config_set("maxmemory", "1")
        assert told(found_by(check)) == ("bad", "doctor-redis-full")
        admin.config_set("maxmemory", "0")
        admin.execute_command("REPLICAOF", "127.0.0.1", "9")
        assert told(found_by(check)) == ("bad", "doctor-redis-read-only")
        admin.execute_command("REPLICAOF", "NO", "ONE")


def test_a_redis_that_is_gone_or_stands_still_is_told(
    redis_server: RedisServer, tmp_path: Path
) -> None:
    gone = found_by(with_redis(tmp_path, redis_server.url_with("pa55word", port=9)))
    assert told(gone) == ("bad", "doctor-redis-failed")
    assert gone.reason.values == {"kind": "ConnectionError"}
    proxy = StallingProxy(redis_server.port)
    proxy.stall()
    still = found_by(with_redis(tmp_path, redis_server.url_with("pa55word", port=proxy.port)))
    proxy.close()
    assert told(still) == ("bad", "doctor-redis-failed")


def test_the_data_folder_is_made_and_left_as_it_was(tmp_path: Path) -> None:
    assert told(found_by(FolderCheck(tmp_path / "new" / "one"))) == ("ok", "doctor-folder-ok")
    assert list((tmp_path / "new" / "one").iterdir()) == []


def test_a_data_folder_that_cannot_be_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    finding = found_by(FolderCheck(tmp_path / "file" / "folder"))
    assert told(finding) == ("bad", "doctor-folder-gone")
    assert told(found_by(FolderCheck(Path("/sys/kernel/steady")))) == (
        "bad",
        "doctor-folder-read-only",
    )


@pytest.mark.parametrize(
    ("free", "total", "expected"),
    [
        (100 * GB, 1000 * GB, ("ok", "doctor-disk-ok")),
        (20 * GB, 1000 * GB, ("warn", "doctor-disk-scarce")),
        (1 * GB, 10 * GB, ("warn", "doctor-disk-scarce")),
        (GB // 10, 1000 * GB, ("bad", "doctor-disk-full")),
    ],
)
def test_how_much_room_there_is(
    free: int, total: int, expected: tuple[str, str], tmp_path: Path
) -> None:
    check = DiskCheck((tmp_path / "not" / "yet",), lambda path: (total, total - free, free))
    assert told(found_by(check)) == expected


def test_the_disk_is_really_asked(tmp_path: Path) -> None:
    assert float(str(found_by(DiskCheck((tmp_path,))).reason.values["free"])) > 0


def test_the_fuller_of_two_disks_is_told_of(tmp_path: Path) -> None:
    (tmp_path / "full").mkdir()

    def usage(path: Path) -> tuple[int, int, int]:
        free = GB // 10 if path.name == "full" else 500 * GB
        return 1000 * GB, 1000 * GB - free, free

    check = DiskCheck((tmp_path, tmp_path / "full" / "new"), usage)
    assert told(found_by(check)) == ("bad", "doctor-disk-full")
