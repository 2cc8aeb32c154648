"""`python -m llm` as a process: with pipes, or on a terminal whose screen is known.

The terminal is a real one for the process (a pty that controls it, so that Ctrl-C is a signal),
and pyte, a terminal emulator, for the test: what somebody would see, scrollback and all.
"""

from __future__ import annotations

import os
import pty
import subprocess
import sys
import termios
import threading
from pathlib import Path
from typing import Self

import pyte

ROOT = Path(__file__).parents[1]
PATIENCE_S = 120.0
"""Long, for a machine that is busy with other things; nothing here waits for time to pass."""

# A process that was started in the background ignores Ctrl-C, and so would this one.
_BEGIN = """
import fcntl, os, runpy, signal, sys, termios
signal.signal(signal.SIGINT, signal.default_int_handler)
if os.isatty(0):
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)
runpy.run_module("llm", run_name="__main__", alter_sys=True)
"""


def command(*arguments: str) -> list[str]:
    """The command line of a process."""
    return [sys.executable, "-c", _BEGIN, *arguments]


def environment(folder: Path, **variables: str) -> dict[str, str]:
    """An environment that knows no settings but these, with its data in `folder`."""
    kept = {name: value for name, value in os.environ.items() if name in ("PATH", "HOME")}
    return {
        **kept,
        "LANG": "C.UTF-8",
        "PYTHONPATH": str(ROOT),
        "STEADY_CHAT_DATA_DIR": str(folder / "data"),
        "TERM": "xterm-256color",
        **variables,
    }


class TerminalProcess:
    """The program on a terminal; a context manager, at whose end it is killed.

    Args:
        controlling: whether it is the terminal that the program was started from.
    """

    def __init__(
        self,
        *arguments: str,
        env: dict[str, str],
        cwd: Path,
        columns: int = 80,
        rows: int = 24,
        controlling: bool = True,
    ) -> None:
        self._columns = columns
        self._screen = pyte.HistoryScreen(columns, rows, history=10_000)
        self._stream = pyte.ByteStream(self._screen)
        self._news = threading.Condition()
        self._over = False
        self.sent = b""
        self._master, slave = pty.openpty()
        termios.tcsetwinsize(slave, (rows, columns))
        self.process = subprocess.Popen(
            command(*arguments) if controlling else [sys.executable, "-m", "llm", *arguments],
            stdin=slave,
            stdout=slave,
            stderr=slave,
            cwd=cwd,
            env=env,
            start_new_session=True,
        )
        os.close(slave)
        self._reader = threading.Thread(target=self._read, name="terminal", daemon=True)
        self._reader.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(PATIENCE_S)
        self._reader.join(PATIENCE_S)
        os.close(self._master)

    def type(self, keys: str) -> None:
        """Press keys; `\\r` is Enter, `\\x03` Ctrl-C, `\\x04` Ctrl-D."""
        os.write(self._master, keys.encode())

    def lines(self) -> list[str]:
        """All lines from the first one on, scrolled away or not, without blanks at their ends."""
        with self._news:
            return self._lines()

    def wait_for(self, text: str, times: int = 1) -> None:
        """Wait until this is to be seen, so often."""
        with self._news:
            seen = self._news.wait_for(
                lambda: "\n".join(self._lines()).count(text) >= times or self._over, PATIENCE_S
            )
            shown = "\n".join(self._lines())
        assert seen, shown
        assert shown.count(text) >= times, shown

    def end(self) -> int:
        """The exit code, once it has ended and all is read."""
        code = self.process.wait(PATIENCE_S)
        self._reader.join(PATIENCE_S)
        return code

    def _lines(self) -> list[str]:
        gone = [
            "".join(line[at].data for at in range(self._columns))
            for line in self._screen.history.top
        ]
        return [line.rstrip() for line in (*gone, *self._screen.display)]

    def _read(self) -> None:
        while True:
            try:
                data = os.read(self._master, 65536)
            except OSError:  # the last of those who had it open is gone
                data = b""
            with self._news:
                self._stream.feed(data)
                self.sent += data
                self._over = not data
                self._news.notify_all()
            if not data:
                return
