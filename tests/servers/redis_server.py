"""A Redis server of the tests' own, thrown away with all that is in it.

It can be stopped, frozen, killed and started again at the same address.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from contextlib import suppress
from pathlib import Path

import pytest
import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

READY_LIMIT_S = 60.0
# The server goes when its standard input ends: also where the tests were killed.
_UNTIL_INPUT_ENDS = 'exec 3<&0; (cat <&3 >/dev/null; kill -INT $$) & exec "$@" 3<&- </dev/null'


class RedisServer:
    """One server in a temporary folder, on 127.0.0.1.

    Args:
        password: what it wants; empty lets anyone in.

    Thread-safety: for one thread.
    """

    def __init__(self, password: str = "") -> None:
        self._program = redis_program()
        self._password = password
        self._folder = Path(tempfile.mkdtemp(prefix="steady-chat-redis-"))
        self._log = self._folder / "log"
        self._process: subprocess.Popen[bytes] | None = None
        self.port = free_port()

    @property
    def url(self) -> str:
        """Its address, with the password."""
        return self.url_with(self._password)

    def url_with(self, password: str, port: int | None = None) -> str:
        """The address with another password or behind another port."""
        user = f":{password}@" if password else ""
        return f"redis://{user}127.0.0.1:{port or self.port}/0"

    def admin(self) -> redis.Redis:
        """A connection that waits as long as it takes."""
        return redis.Redis(
            host="127.0.0.1",
            port=self.port,
            password=self._password or None,
            socket_timeout=READY_LIMIT_S,
            protocol=2,
            retry=Retry(NoBackoff(), 0),
        )

    def start(self, *options: str, wait: bool = True) -> None:
        """Start it; returns when it answers.

        Args:
            options: more of redis-server's own.
            wait: otherwise it returns when it takes connections.

        Raises:
            RuntimeError: it ended, or took too long; the message has its last words.
        """
        assert self._process is None
        server = [self._program, "--port", str(self.port), "--bind", "127.0.0.1"]
        server += ["--dir", str(self._folder), "--save", ""]
        if self._password:
            server += ["--requirepass", self._password]
        with self._log.open("wb") as output:
            self._process = subprocess.Popen(
                ["sh", "-c", _UNTIL_INPUT_ENDS, "sh", *server, *options],
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        deadline_s = time.monotonic() + READY_LIMIT_S
        while not self._answers(loading=not wait):
            if self._process.poll() is not None or time.monotonic() > deadline_s:
                said = self._log.read_text("utf-8", "replace")[-3000:]
                self.kill()
                raise RuntimeError(f"Redis didn't start; it said:\n{said}")
            time.sleep(0.02)

    def freeze(self) -> None:
        """It goes on taking connections and says nothing."""
        self._signal(signal.SIGSTOP)

    def thaw(self) -> None:
        """The end of that."""
        self._signal(signal.SIGCONT)

    def kill(self) -> None:
        """As the kernel does where memory runs out."""
        if self._process is not None:
            self._signal(signal.SIGKILL)
            self._process.wait(10)
            assert self._process.stdin is not None
            self._process.stdin.close()
            self._process = None

    def remove(self) -> None:
        """Stop it and remove its folder."""
        self.kill()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _signal(self, number: int) -> None:
        assert self._process is not None
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, number)

    def _answers(self, *, loading: bool) -> bool:
        with self.admin() as admin:
            try:
                admin.execute_command("PING")
            except redis.BusyLoadingError:
                return loading
            except redis.RedisError:
                return False
            return True


def redis_program() -> str:
    """The server's program. Without one the test is skipped, or fails in CI."""
    for name in ("redis-server", "valkey-server"):
        if found := shutil.which(name):
            return found
    reason = "Redis isn't here: apt-get install redis-server"
    if os.environ.get("CI"):
        pytest.fail(reason)
    pytest.skip(reason)


def free_port() -> int:
    """One that nobody listens at just now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
