"""The tests' own PostgreSQL: it goes and comes back as a test wants it, and is never left behind."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import psycopg
import pytest

from tests.servers.postgres import PostgresServer

ROOT = Path(__file__).parents[1]


@pytest.fixture
def server() -> Iterator[PostgresServer]:
    server = PostgresServer()
    try:
        server.start()
        yield server
    finally:
        server.remove()


def connect(url: str) -> psycopg.Connection:
    return psycopg.connect(url.replace("+psycopg", ""), autocommit=True, connect_timeout=5)


@pytest.mark.parametrize("end", [PostgresServer.kill, PostgresServer.stop])
def test_it_comes_back_at_its_address_with_what_was_committed(
    server: PostgresServer, end: Callable[[PostgresServer], None]
) -> None:
    url = server.new_database()
    with connect(url) as connection:
        connection.execute("CREATE TABLE kept (number integer)")
        end(server)
        with pytest.raises(psycopg.OperationalError):
            connection.execute("SELECT 1")
    with pytest.raises(psycopg.OperationalError):
        connect(url)
    server.start()
    with connect(url) as connection:
        assert connection.execute("SELECT count(*) FROM kept").fetchall() == [(0,)]


def test_each_database_is_empty_and_goes_though_it_is_open(postgres: PostgresServer) -> None:
    first, second = postgres.new_database(), postgres.new_database()
    with connect(first) as connection, connect(second) as other:
        connection.execute("CREATE TABLE mine (number integer)")
        assert other.execute("SELECT to_regclass('mine')").fetchall() == [(None,)]
        postgres.drop_database(first)
        with pytest.raises(psycopg.OperationalError):
            connection.execute("SELECT 1")
    postgres.drop_database(second)


def test_it_goes_with_whoever_started_it(tmp_path: Path) -> None:
    code = (
        "from tests.servers.postgres import PostgresServer\n"
        "server = PostgresServer()\n"
        "server.start()\n"
        "print(server._process.pid, server._folder, flush=True)\n"
        "input()\n"
    )
    starter = subprocess.Popen(
        [sys.executable, "-c", code],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert starter.stdout is not None
    pid, folder = starter.stdout.readline().split()
    running = psutil.Process(int(pid))
    starter.send_signal(signal.SIGKILL)
    starter.communicate()
    running.wait(30)
    assert not (Path(folder) / "data" / "postmaster.pid").exists()
    shutil.rmtree(folder)
