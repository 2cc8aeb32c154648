"""A server of its own for each measurement: started, weighed, stopped."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil

from benchmarks.launch import LOG_VARIABLE

ROOT = Path(__file__).parent.parent
READY_TIMEOUT_S = 240


@dataclass(frozen=True, slots=True)
class StreamTimes:
    """When the scripted backend gave an answer's first and last piece, in wall-clock seconds.

    `last` is None while the answer is being given; `pieces` is then 1.
    """

    first: float
    last: float | None
    pieces: int


class Server:
    """A running web server."""

    def __init__(self, process: psutil.Process, url: str, stream_log: Path, output: Path) -> None:
        self._process = process
        self._stream_log = stream_log
        self._output = output
        self.url = url

    def _tree(self) -> list[psutil.Process]:
        return [self._process, *self._process.children(recursive=True)]

    def cpu_s(self) -> float:
        """Processor seconds used by the process and its children since they started."""
        times = [process.cpu_times() for process in self._tree()]
        return sum(t.user + t.system for t in times)

    def rss_mb(self) -> float:
        """Resident memory of the process and its children."""
        return sum(process.memory_info().rss for process in self._tree()) / 1e6

    def said(self) -> str:
        """The end of what the server wrote to its console."""
        return self._output.read_text("utf-8", "replace")[-3000:]

    def stream_times(self, question: str) -> StreamTimes | None:
        """When the first answer to `question` was given; None before its first piece."""
        return stream_times(self._stream_log, question)


def stream_times(log: Path, question: str) -> StreamTimes | None:
    """What the notes in `log` (launch.py) say of the first answer to `question`, so far."""
    notes = [json.loads(line) for line in log.read_text("utf-8").splitlines()]
    notes = [note for note in notes if question in note["asked"]]
    if not notes or notes[0]["event"] != "first":
        return None
    last = next((note for note in notes if note["event"] == "last"), None)
    return StreamTimes(
        first=notes[0]["at"],
        last=last["at"] if last else None,
        pieces=last["pieces"] if last else 1,
    )


@contextmanager
def serve(script: Path, environment: dict[str, str]) -> Iterator[Server]:
    """Run `script` under Streamlit on a free port until the block ends.

    Raises:
        RuntimeError: it did not start; the message has the server's own words.
    """
    port = free_port()
    options = {
        "server.port": str(port),
        "server.address": "127.0.0.1",
        "server.headless": "true",
        "server.fileWatcherType": "none",
        "browser.gatherUsageStats": "false",
    }
    command = [sys.executable, "-m", "benchmarks.launch", "run", str(script)]
    command += [f"--{name}={value}" for name, value in options.items()]
    with tempfile.TemporaryDirectory(prefix="steady-chat-bench-") as folder:
        own = {"STEADY_CHAT_DATA_DIR": folder, **environment}
        with run_server(command, own, port, "_stcore/health", Path(folder)) as server:
            yield server


@contextmanager
def run_server(
    command: Sequence[str], environment: dict[str, str], port: int, health: str, folder: Path
) -> Iterator[Server]:
    """Run a web server until the block ends; it begins when the path `health` is answered.

    Args:
        folder: for its console's text and for its notes.

    Raises:
        RuntimeError: it did not start; the message has the server's own words.
    """
    stream_log = folder / "streams.jsonl"
    stream_log.touch()
    output = folder / "output.txt"
    with output.open("w") as sink:
        process = psutil.Popen(
            command,
            cwd=ROOT,
            env={**os.environ, LOG_VARIABLE: str(stream_log), **environment},
            stdout=sink,
            stderr=subprocess.STDOUT,
        )
    try:
        url = f"http://127.0.0.1:{port}"
        if not _healthy(f"{url}/{health}", process):
            said = output.read_text("utf-8", "replace")[-2000:]
            raise RuntimeError(f"{' '.join(command)} did not start:\n{said}")
        yield Server(process, url, stream_log, output)
    finally:
        process.terminate()
        try:
            process.wait(10)
        except psutil.TimeoutExpired:
            process.kill()
            process.wait(10)


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def _healthy(url: str, process: psutil.Popen) -> bool:
    deadline = time.monotonic() + READY_TIMEOUT_S
    while time.monotonic() < deadline and process.poll() is None:
        try:
            with urllib.request.urlopen(url, timeout=2) as reply:
                if reply.status == 200:
                    return True
        except OSError:
            time.sleep(0.1)
    return False
