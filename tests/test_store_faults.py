"""Databases that fail in mid-conversation, really: the chat goes on, and all is saved afterwards."""

from __future__ import annotations

import ctypes
import shutil
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import psutil
import psycopg
import pytest

from llm.chat import Chat
from llm.conversation_database import ConversationDatabase
from llm.conversation_tree import ConversationKey, Turn, add_turn, change_head
from llm.conversations import ConversationStore
from llm.database import BUSY_S, Database
from llm.errors import (
    StoreBrokenError,
    StoreError,
    StoreFullError,
    StoreGoneError,
    StoreLockedError,
    StoreNewerError,
    StoreReadOnlyError,
)
from llm.job import GenerationJob
from llm.registry import JobRegistry
from llm.types import SamplingParams
from tests.driven_backend import PATIENCE_S, DrivenBackend, let_go
from tests.servers.postgres import PostgresServer

SOON_S = 6.0
"""No call may take longer, on a machine that is busy with something else."""

Break = Callable[[], Callable[[], None]]
"""Breaks something, and returns what mends it."""


class Talk:
    """A person and a model that talk while the database fails."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.backend = DrivenBackend(slots=4)
        self.store = ConversationStore(ConversationDatabase(url, "talk"))
        self.chat = Chat(self.store, JobRegistry(), {"driven": lambda: self.backend})
        self.key = self.chat.open("somebody", None)
        self.slowest_s = 0.0

    def ask(self, question: str) -> None:
        began_s = time.monotonic()
        self.chat.ask(
            self.key, question, person="somebody", backend="driven", params=SamplingParams()
        )
        self.slowest_s = max(self.slowest_s, time.monotonic() - began_s)

    def answered(self, question: str) -> None:
        self.ask(question)
        job, stream = self.running(), self.backend.next_stream()
        stream.answer(f"{question}!")
        let_go(job)

    def running(self) -> GenerationJob:
        job = self.chat.job(self.key)
        assert isinstance(job, GenerationJob)
        return job

    def transcript(self) -> list[tuple[str, str, str]]:
        began_s = time.monotonic()
        turns = self.chat.turns(self.key)
        self.slowest_s = max(self.slowest_s, time.monotonic() - began_s)
        return [(turn.question, turn.state, turn.text) for turn in turns]

    def wait_until_well(self) -> None:
        deadline_s = time.monotonic() + 3 * PATIENCE_S
        while self.store.trouble is not None or self.store._unsaved():
            assert time.monotonic() < deadline_s, repr(self.store.trouble)
            self.store.keep(answering=False)

    def saved(self) -> list[tuple[str, str, str]]:
        """What another process reads."""
        database = ConversationDatabase(self.url, "reader")
        try:
            loaded = database.load(self.key)
            assert loaded is not None
            assert len(loaded.state.turns) == len(loaded.state.path()), "something is there twice"
            return [(turn.question, turn.state, turn.text) for turn in loaded.state.path()]
        finally:
            database.close()


@contextmanager
def talk_at(url: str) -> Iterator[Talk]:
    talk = Talk(url)
    try:
        yield talk
    finally:
        talk.backend.close()
        talk.chat.close()


def talks_on(url: str, breaks: Break, error: type[StoreError] | None) -> None:
    """The same talk for every fault: it breaks in mid-answer and is mended later."""
    with talk_at(url) as talk:
        talk.answered("before")
        assert talk.store.trouble is None
        other = talk.chat.open("somebody", None)
        talk.store.begin(other, add_turn(Turn("t", "Other?", "driven", SamplingParams())))
        talk.ask("during")
        job, stream = talk.running(), talk.backend.next_stream()
        stream.say("ha")
        mends = breaks()
        try:
            stream.say("lf")
            job.save_partial()
            talk.ask("queued")
            stream.say(" and all")
            stream.finish()
            let_go(job)
            job, stream = talk.running(), talk.backend.next_stream()
            stream.answer("queued!")
            let_go(job)
            talk.answered("asked of nothing but memory")
            talk.chat.rename(talk.key, "A better title")
            said = [
                ("before", "ended", "before!"),
                ("during", "ended", "half and all"),
                ("queued", "ended", "queued!"),
                ("asked of nothing but memory", "ended", "asked of nothing but memory!"),
            ]
            assert talk.transcript() == said
            listed = talk.store.listed("somebody", 9)
            assert "A better title" in [head.title for head in listed]
            assert len({head.key for head in listed}) == len(listed)
            assert (type(talk.store.trouble) if talk.store.trouble else None) is error
        finally:
            mends()
        talk.wait_until_well()
        assert talk.slowest_s < SOON_S
        assert talk.saved() == said == talk.transcript()
        assert {head.title for head in talk.store.listed("somebody", 9)} == {
            "A better title",
            "Other?",
        }
        talk.answered("after")
        assert talk.store.trouble is None
        assert talk.saved()[-1] == ("after", "ended", "after!")


# SQLite


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "folder" / "conversations.sqlite3"


def sqlite_url(file: Path) -> str:
    return f"sqlite:///{file}"


def test_somebody_else_holds_the_file(file: Path) -> None:
    def breaks() -> Callable[[], None]:
        holder = sqlite3.connect(file, isolation_level=None, check_same_thread=False)
        holder.execute("BEGIN EXCLUSIVE")
        return holder.close

    talks_on(sqlite_url(file), breaks, StoreLockedError)


def as_root(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"{command[0]} isn't allowed here: {done.stderr.strip()}")


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of a megabyte."""
    disk = tmp_path / "disk"
    disk.mkdir()
    as_root("mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(disk))
    yield disk
    subprocess.run(["umount", "--lazy", str(disk)], check=True)


def test_the_disk_is_full(small_disk: Path) -> None:
    def breaks() -> Callable[[], None]:
        fill = small_disk / "fill"
        with fill.open("wb", buffering=0) as file, suppress(OSError):
            while True:
                file.write(b"x" * 512)
        return fill.unlink

    talks_on(sqlite_url(small_disk / "c.sqlite3"), breaks, StoreFullError)


def moved_away(path: Path) -> Callable[[], None]:
    away = path.with_name(path.name + " away")
    path.rename(away)
    return lambda: away.rename(path) and None


def test_the_file_is_moved_away(file: Path) -> None:
    talks_on(sqlite_url(file), lambda: moved_away(file), StoreGoneError)


def test_the_folder_is_moved_away(file: Path) -> None:
    talks_on(sqlite_url(file), lambda: moved_away(file.parent), StoreGoneError)


def test_the_file_becomes_immutable(file: Path) -> None:
    def breaks() -> Callable[[], None]:
        # Not the file that is mapped into memory: that would end this very process.
        files = [str(path) for path in file.parent.iterdir() if not path.name.endswith("-shm")]
        as_root("chattr", "+i", *files)
        return lambda: as_root("chattr", "-i", *files)

    talks_on(sqlite_url(file), breaks, StoreReadOnlyError)


@pytest.mark.parametrize("content", [b"", b"this is no database" * 1000])
def test_the_file_is_replaced_by_one_with_nothing_of_it(file: Path, content: bytes) -> None:
    """What is talked about stays; where the new file can't be used, that is said."""
    url = sqlite_url(file)
    with talk_at(url) as talk:
        talk.answered("before")
        talk.ask("during")
        job, stream = talk.running(), talk.backend.next_stream()
        stream.say("half")
        new = file.with_name("new")
        new.write_bytes(content)
        old = file.with_name("old")
        shutil.copy(file, old)
        for beside in file.parent.glob("*-*"):
            beside.unlink()
        new.rename(file)
        job.save_partial()
        stream.finish()
        let_go(job)
        said = [("before", "ended", "before!"), ("during", "ended", "half")]
        assert talk.transcript() == said
        if content:
            assert type(talk.store.trouble) is StoreBrokenError
            file.unlink()
            old.rename(file)
        talk.wait_until_well()
        assert talk.saved() == said


@pytest.mark.parametrize("there", [True, False])
def test_a_folder_that_may_only_be_read(file: Path, there: bool) -> None:
    file.parent.mkdir()
    url = sqlite_url(file)
    if there:
        with talk_at(url) as talk:
            talk.answered("before")
    folder = str(file.parent)
    as_root("mount", "--bind", folder, folder)
    try:
        as_root("mount", "-o", "remount,ro,bind", folder)
        with talk_at(url) as talk:
            talk.answered("during")
            assert type(talk.store.trouble) is StoreReadOnlyError
            assert talk.transcript() == [("during", "ended", "during!")]
            as_root("mount", "-o", "remount,rw,bind", folder)
            talk.wait_until_well()
            assert talk.saved() == [("during", "ended", "during!")]
    finally:
        subprocess.run(["umount", "--lazy", folder], check=True)


def test_a_file_that_is_no_database(file: Path) -> None:
    file.parent.mkdir()
    file.write_bytes(b"this is no database, but long enough to be read as one. " * 100)
    with talk_at(sqlite_url(file)) as talk:
        talk.answered("during")
        assert type(talk.store.trouble) is StoreBrokenError
        assert file.read_bytes().startswith(b"this is no"), "it may be somebody's"
        file.rename(file.with_name("away"))
        talk.wait_until_well()
        assert talk.saved() == [("during", "ended", "during!")]


def test_a_folder_that_cannot_be_made(tmp_path: Path) -> None:
    in_the_way = tmp_path / "folder"
    in_the_way.write_text("a file")
    with talk_at(sqlite_url(in_the_way / "c.sqlite3")) as talk:
        talk.answered("during")
        assert type(talk.store.trouble) is StoreGoneError
        in_the_way.unlink()
        talk.wait_until_well()
        assert talk.saved() == [("during", "ended", "during!")]


def test_a_database_of_a_newer_version_is_left_as_it_is(database_url: str) -> None:
    with talk_at(database_url) as talk:
        talk.answered("before")
        key = talk.key
    database = ConversationDatabase(database_url, "newer")
    with database._engine().begin() as connection:
        connection.exec_driver_sql("UPDATE alembic_version SET version_num = '9999'")
    database.close()
    with talk_at(database_url) as talk:
        talk.answered("during")
        assert type(talk.store.trouble) is StoreNewerError
        assert talk.transcript() == [("during", "ended", "during!")]
        assert talk.chat.open("somebody", key.conversation_id) == key, "its address stays"


def test_two_processes_that_make_the_tables_at_once_both_get_them(database_url: str) -> None:
    program = (
        "import sys\n"
        "from llm.conversation_database import ConversationDatabase\n"
        "database = ConversationDatabase(sys.argv[1], sys.argv[2])\n"
        "print('ready', flush=True); sys.stdin.readline()\n"
        "while True:\n"
        "    try: print(database.beat(), flush=True); break\n"
        "    except Exception as error:\n"
        "        if type(error).__name__ != 'StoreLockedError': raise\n"
    )
    command = [sys.executable, "-c", program, database_url]
    children = [
        subprocess.Popen(
            [*command, f"r{number}"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for number in range(3)
    ]
    for child in children:
        assert child.stdout is not None
        assert child.stdout.readline() == "ready\n"
    for child in children:
        assert child.stdin is not None
        child.stdin.write("\n")
        child.stdin.flush()
    for child in children:
        _, said = child.communicate(timeout=120)
        assert child.returncode == 0, said
    database = ConversationDatabase(database_url, "later")
    with database._engine().connect() as connection:
        told = connection.exec_driver_sql("SELECT runner FROM runners ORDER BY runner").all()
    database.close()
    assert [row[0] for row in told] == ["r0", "r1", "r2"]


def test_an_unknown_id_keeps_its_address_while_nothing_can_be_read(file: Path) -> None:
    url = sqlite_url(file)
    with talk_at(url) as talk:
        talk.answered("before")
        key = talk.key
    with talk_at(url) as talk:
        talk.answered("something")
        mends = moved_away(file)
        talk.store.keep(answering=True)
        assert talk.chat.open("somebody", key.conversation_id) == key
        assert talk.chat.open("somebody", "any odd thing").conversation_id != "any odd thing"
        talk.key = key
        talk.answered("during")
        mends()
        talk.wait_until_well()
        state = talk.chat.state(key)
        assert state is not None
        assert state.head.title == "before"
        assert [turn.question for turn in state.live()] == ["before", "during"]


def test_what_was_begun_under_anothers_id_while_nobody_could_know_gets_its_own(
    file: Path,
) -> None:
    url = sqlite_url(file)
    with talk_at(url) as talk:
        talk.answered("mine")
        mine = talk.key
    with talk_at(url) as talk:
        talk.answered("something")
        mends = moved_away(file)
        talk.store.keep(answering=True)
        talk.key = ConversationKey("thief", mine.conversation_id)
        talk.answered("theirs")
        mends()
        talk.wait_until_well()
        assert [turn.question for turn in talk.chat.turns(mine)] == ["mine"]
        assert talk.chat.state(talk.key) is None
        (head,) = talk.store.listed("thief", 9)
        assert [turn.text for turn in talk.chat.turns(head.key)] == ["theirs!"]


def test_what_another_process_changed_during_the_fault_is_merged(file: Path) -> None:
    url = sqlite_url(file)
    with talk_at(url) as talk:
        talk.answered("before")
        holder = sqlite3.connect(file, isolation_level=None)
        holder.execute("BEGIN EXCLUSIVE")
        talk.answered("during")
        holder.close()
        other = ConversationStore(ConversationDatabase(url, "other"))
        other.change(talk.key, change_head(title="Named", title_by="person"))
        talk.wait_until_well()
        state = other.state(talk.key)
        assert state is not None
        assert state.head.title == "Named"
        assert [turn.text for turn in state.path()] == ["before!", "during!"]
        assert talk.store.state(talk.key) == state
        other.close()


def test_while_the_file_is_held_nobody_else_waits_for_it_either(file: Path) -> None:
    with talk_at(sqlite_url(file)) as talk:
        talk.answered("before")
        holder = sqlite3.connect(file, isolation_level=None)
        holder.execute("BEGIN EXCLUSIVE")
        took_s: list[float] = []

        def rename(number: int) -> None:
            began_s = time.monotonic()
            talk.chat.rename(talk.key, f"title {number}")
            took_s.append(time.monotonic() - began_s)

        threads = [threading.Thread(target=rename, args=(number,)) for number in range(10)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        assert max(took_s) < SOON_S, "one waited after the other"
        holder.close()
        talk.wait_until_well()


# PostgreSQL


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    """One that may be ill-treated."""
    server = PostgresServer()
    try:
        server.start()
        yield server
    finally:
        server.remove()


@contextmanager
def said_to(server: PostgresServer, url: str) -> Iterator[psycopg.Connection]:
    name = url.rpartition("/")[2]
    with psycopg.connect(
        host="127.0.0.1", port=server.port, user="tests", dbname=name, autocommit=True
    ) as connection:
        yield connection


ALL_BUT_ME = (
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
    "WHERE datname = current_database() AND pid <> pg_backend_pid()"
)


def test_the_server_is_stopped_and_started_again(server: PostgresServer) -> None:
    def breaks() -> Callable[[], None]:
        server.stop()
        return server.start

    talks_on(server.new_database(), breaks, StoreGoneError)


def test_the_server_crashes_and_comes_back(server: PostgresServer) -> None:
    def breaks() -> Callable[[], None]:
        server.kill()
        return server.start

    talks_on(server.new_database(), breaks, StoreGoneError)


def test_the_server_stands_still(server: PostgresServer) -> None:
    def breaks() -> Callable[[], None]:
        assert server._process is not None
        first = psutil.Process(server._process.pid)
        # Each connection's process has a group of its own.
        processes = [first, *first.children(recursive=True)]
        for process in processes:
            process.suspend()
        return lambda: [process.resume() for process in processes] and None

    talks_on(server.new_database(), breaks, StoreGoneError)


def test_connections_that_an_administrator_ends_are_no_trouble(server: PostgresServer) -> None:
    url = server.new_database()

    def breaks() -> Callable[[], None]:
        with said_to(server, url) as admin:
            admin.execute(ALL_BUT_ME)
        return lambda: None

    talks_on(url, breaks, None)


def test_the_database_may_only_be_read(server: PostgresServer) -> None:
    url = server.new_database()
    name = url.rpartition("/")[2]

    def breaks() -> Callable[[], None]:
        with said_to(server, url) as admin:
            admin.execute(f'ALTER DATABASE "{name}" SET default_transaction_read_only = on')
            admin.execute(ALL_BUT_ME)
        return mends

    def mends() -> None:
        with said_to(server, url) as admin:
            admin.execute("SET default_transaction_read_only = off")
            admin.execute(f'ALTER DATABASE "{name}" RESET default_transaction_read_only')
            admin.execute(ALL_BUT_ME)

    talks_on(url, breaks, StoreReadOnlyError)


def test_somebody_locks_the_tables(server: PostgresServer) -> None:
    url = server.new_database()

    def breaks() -> Callable[[], None]:
        with ExitStack() as stack:
            admin = stack.enter_context(said_to(server, url))
            admin.execute("BEGIN")
            admin.execute("LOCK TABLE conversations, turns IN ACCESS EXCLUSIVE MODE")
            return stack.pop_all().close

    talks_on(url, breaks, StoreLockedError)


def test_what_takes_too_long_to_write_is_written_later_and_troubles_nobody_else(
    server: PostgresServer,
) -> None:
    url = server.new_database()
    with talk_at(url) as talk:
        talk.answered("before")
        other = talk.chat.open("somebody else", None)
        talk.store.begin(other, add_turn(Turn("t", "Other?", "driven", SamplingParams())))
        with said_to(server, url) as admin:
            admin.execute(
                "CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS "
                "'BEGIN PERFORM pg_sleep(2.5); RETURN NEW; END'"
            )
            admin.execute(
                "CREATE TRIGGER slow BEFORE INSERT ON turns FOR EACH ROW "
                "WHEN (NEW.question = 'slow') EXECUTE FUNCTION slow()"
            )
        parent = talk.chat.turns(talk.key)[-1].turn_id
        slow = Turn("slow", "slow", "driven", SamplingParams(), state="ended", parent=parent)
        talk.store.begin(talk.key, add_turn(slow))
        assert talk.store.trouble is None
        talk.store.change(other, change_head(title="quick"))
        assert talk.store.trouble is None
        assert talk.store.trouble_with(other) is None
        talk.wait_until_well()
        assert talk.store.trouble_with(talk.key) is None
        assert [question for question, _, _ in talk.saved()] == ["before", "slow"]


def test_the_password_is_refused(server: PostgresServer) -> None:
    url = server.new_database()
    rules = server._data / "pg_hba.conf"
    trusting = rules.read_text("utf-8")

    with said_to(server, url) as admin:
        admin.execute("ALTER USER tests PASSWORD 'right'")
        rules.write_text("host all all 127.0.0.1/32 scram-sha-256\n", "utf-8")
        admin.execute("SELECT pg_reload_conf()")
        wrong = url.replace("tests@", "tests:wrong@")
        try:
            with talk_at(wrong) as talk:
                _wait_for_the_new_rules(server)
                talk.answered("during")
                trouble = talk.store.trouble
                assert type(trouble) is StoreGoneError
                assert "wrong" not in f"{trouble} {trouble.values}"
                rules.write_text(trusting, "utf-8")
                admin.execute("SELECT pg_reload_conf()")
                talk.wait_until_well()
                assert talk.saved() == [("during", "ended", "during!")]
        finally:
            rules.write_text(trusting, "utf-8")
            admin.execute("SELECT pg_reload_conf()")


def _wait_for_the_new_rules(server: PostgresServer) -> None:
    deadline_s = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline_s:
        try:
            psycopg.connect(
                host="127.0.0.1", port=server.port, user="tests", dbname="postgres"
            ).close()
        except psycopg.OperationalError:
            return
        time.sleep(0.02)
    pytest.fail("the server still lets everybody in")


def test_who_reads_waits_for_nobody_once_the_database_is_open(tmp_path: Path) -> None:
    database = Database(f"sqlite:///{tmp_path / 'a.sqlite3'}")
    with database.reading():
        pass
    with database._lock, ThreadPoolExecutor(1) as pool:

        def read() -> int:
            with database.reading() as connection:
                return int(connection.exec_driver_sql("SELECT 1").scalar_one())

        assert pool.submit(read).result(PATIENCE_S) == 1
    database.close()


@pytest.mark.skipif(sys.platform == "win32", reason="usleep is POSIX's")
def test_a_stop_of_the_whole_process_isnt_taken_for_somebodys_lock(tmp_path: Path) -> None:
    database = Database(f"sqlite:///{tmp_path / 'a.sqlite3'}")

    def open_it() -> None:
        with database.reading():
            pass

    with ThreadPoolExecutor(1) as pool:
        with database._lock:
            opened = pool.submit(open_it)
            # Called with the interpreter's lock held: no thread goes on, as in a collection.
            for _ in range(3):
                ctypes.PyDLL(None).usleep(round(BUSY_S * 500_000))
        opened.result(PATIENCE_S)
    database.close()
