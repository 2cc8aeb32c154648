"""A PostgreSQL server of the tests' own, thrown away with all that is in it.

It can be stopped, killed and started again at the same address.
"""

from __future__ import annotations

import itertools
import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import psycopg
import pytest

READY_LIMIT_S = 60.0
"""Many times what it takes, also after a crash."""
_STOP_LIMIT_S = 15.0
_USER = "tests"
_SETTINGS = {
    "listen_addresses": "127.0.0.1",
    "unix_socket_directories": "",
    # What is committed survives the server, not the machine.
    "fsync": "off",
    "autovacuum": "off",
}
# The server goes when its standard input ends: also where the tests were killed.
_UNTIL_INPUT_ENDS = 'exec 3<&0; (cat <&3 >/dev/null; kill -INT $$) & exec "$@" 3<&- </dev/null'


class PostgresServer:
    """One cluster in a temporary folder, on 127.0.0.1; anyone there may come in.

    PostgreSQL refuses to run as root; then it runs as its package's user, or as nobody.

    Thread-safety: for one thread.
    """

    def __init__(self) -> None:
        self._bin = postgres_bin()
        self._account = _unprivileged() if os.getuid() == 0 else {}
        # Not below pytest's own folder, which only its user may enter.
        self._folder = Path(tempfile.mkdtemp(prefix="steady-chat-postgres-"))
        self._log = self._folder / "log"
        self._process: subprocess.Popen[bytes] | None = None
        self._names = (f"test{number}" for number in itertools.count())
        self.port = _free_port()
        try:
            if self._account:
                os.chown(self._folder, self._account["user"], self._account["group"])
            options = ["--username", _USER, "--auth", "trust", "--encoding", "UTF8"]
            self._run("initdb", *options, "--locale", "C", "--no-sync", "--pgdata", str(self._data))
        except BaseException:
            self.remove()
            raise

    @property
    def _data(self) -> Path:
        return self._folder / "data"

    def url(self, database: str) -> str:
        """The address as SQLAlchemy takes it."""
        return f"postgresql+psycopg://{_USER}@127.0.0.1:{self.port}/{database}"

    def start(self) -> None:
        """Start it; returns when it answers.

        Raises:
            RuntimeError: it ended, or took too long; the message has its last words.
        """
        assert self._process is None
        deadline_s = time.monotonic() + READY_LIMIT_S
        while True:
            self._process = self._spawn()
            while time.monotonic() < deadline_s:
                if self._answers():
                    return
                if self._process.poll() is not None:
                    break
                time.sleep(0.05)
            said = self._log.read_text("utf-8", "replace")[-3000:]
            self.kill()
            # What a killed server leaves behind takes a moment to notice.
            if "still in use" not in said or time.monotonic() > deadline_s:
                raise RuntimeError(f"PostgreSQL didn't start; it said:\n{said}")

    def stop(self) -> None:
        """End it as an administrator does; open connections are told."""
        if self._process is not None:
            self._process.send_signal(signal.SIGINT)
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(_STOP_LIMIT_S)
            self.kill()

    def kill(self) -> None:
        """As the kernel does where memory runs out: nothing gets to say goodbye."""
        if self._process is not None:
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait(10)
            assert self._process.stdin is not None
            self._process.stdin.close()
            self._process = None

    def new_database(self) -> str:
        """The URL of an empty database. It goes with the server, or by `drop_database`."""
        name = next(self._names)
        with self._admin() as connection:
            connection.execute(f'CREATE DATABASE "{name}" TEMPLATE template0')
        return self.url(name)

    def drop_database(self, url: str) -> None:
        """Remove a database, whoever still has it open."""
        name = url.rpartition("/")[2]
        with self._admin() as connection:
            connection.execute(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)')

    def remove(self) -> None:
        """Stop it and remove its folder."""
        self.stop()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _admin(self) -> psycopg.Connection:
        address = {"host": "127.0.0.1", "port": self.port, "user": _USER, "dbname": "postgres"}
        return psycopg.connect(**address, autocommit=True, connect_timeout=2)

    def _spawn(self) -> subprocess.Popen[bytes]:
        settings = [f"-c{name}={value}" for name, value in _SETTINGS.items()]
        server = [str(self._bin / "postgres"), "-D", str(self._data), "-p", str(self.port)]
        with self._log.open("wb") as output:
            return subprocess.Popen(
                ["sh", "-c", _UNTIL_INPUT_ENDS, "sh", *server, *settings],
                cwd=self._folder,
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                **self._account,
            )

    def _answers(self) -> bool:
        try:
            self._admin().close()
        except psycopg.OperationalError:
            return False
        return True

    def _run(self, program: str, *arguments: str) -> None:
        done = subprocess.run(
            [str(self._bin / program), *arguments],
            cwd=self._folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            **self._account,
        )
        if done.returncode:
            raise RuntimeError(f"{program} failed:\n{done.stdout[-3000:]}")


def postgres_bin() -> Path:
    """Where the server's programs are. Without one the test is skipped, or fails in CI.

    Debian keeps them apart by version, out of the way of the search path.
    """
    versions = Path("/usr/lib/postgresql").glob("*/bin/postgres")
    newest = sorted(versions, key=lambda path: float(path.parent.parent.name))
    if found := newest[-1] if newest else shutil.which("postgres"):
        return Path(found).resolve().parent
    reason = "PostgreSQL isn't here: apt-get install postgresql"
    if os.environ.get("CI"):
        pytest.fail(reason)
    pytest.skip(reason)


def _unprivileged() -> dict[str, Any]:
    for name in ("postgres", "nobody"):
        with suppress(KeyError):
            account = pwd.getpwnam(name)
            return {"user": account.pw_uid, "group": account.pw_gid, "extra_groups": []}
    raise RuntimeError("PostgreSQL doesn't run as root, and there is no user `nobody`")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
