"""Who reads an answer at the other end of a face: a pipe, a terminal, an HTTP client.

Each gives what has arrived so far, and when: pairs of wall-clock seconds and the answer's text. How
it is taken apart costs this process, not the one that is measured.
"""

from __future__ import annotations

import codecs
import fcntl
import json
import os
import pty
import re
import struct
import subprocess
import termios
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import httpx2
import psutil

from benchmarks.launch import LOG_VARIABLE
from benchmarks.server import ROOT

READ_BYTES = 65_536
TIMEOUT_S = 60.0
_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[a-zA-Z]|\r")


@dataclass(slots=True)
class Reading:
    """What one reader got.

    Args:
        arrivals: when something came, and how long the answer's text was with it.
        text: all of it.
        sent_bytes: of everything that came, head and framing with it.
        cpu_s: of the process that sent it, where it lives for one answer.
    """

    asked_at: float
    arrivals: list[tuple[float, int]] = field(default_factory=list)
    text: str = ""
    sent_bytes: int = 0
    cpu_s: float | None = None

    def got(self, more: str) -> None:
        self.text += more
        self.arrivals.append((time.time(), len(self.text)))


def read_pipe(command: list[str], environment: dict[str, str], log: Path) -> Reading:
    """What a program writes into a pipe, as somebody reads it who has nothing else to do."""
    return _read(command, environment, log, terminal=False)


def read_terminal(command: list[str], environment: dict[str, str], log: Path) -> Reading:
    """What it writes to a terminal of 100 by 40. Escape sequences are no text, but bytes."""
    return _read(command, environment, log, terminal=True)


def _read(command: list[str], environment: dict[str, str], log: Path, *, terminal: bool) -> Reading:
    ours, theirs = pty.openpty() if terminal else os.pipe()
    if terminal:
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 100, 0, 0))
    told = {**os.environ, LOG_VARIABLE: str(log), "TERM": "xterm-256color", **environment}
    reading = Reading(time.time())
    process = psutil.Popen(
        command,
        cwd=ROOT,
        env=told,
        stdin=theirs if terminal else None,
        stdout=theirs,
        stderr=theirs if terminal else subprocess.DEVNULL,
    )
    os.close(theirs)
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    spent = process.cpu_times()
    while piece := _piece(ours):
        spent = process.cpu_times() if process.is_running() else spent
        reading.sent_bytes += len(piece)
        reading.got(_ESCAPES.sub("", decoder.decode(piece)))
    os.close(ours)
    if process.wait(TIMEOUT_S) != 0:
        said = reading.text[-1000:]
        raise RuntimeError(f"{' '.join(command)} ended with {process.returncode}: {said}")
    reading.cpu_s = spent.user + spent.system
    return reading


def _piece(file: int) -> bytes:
    try:
        return os.read(file, READ_BYTES)
    except OSError:  # how a terminal tells that the other side is gone
        return b""


def read_openai(url: str, key: str, model: str, question: str) -> Reading:
    """`/v1/chat/completions`, streamed."""
    body = {"model": model, "messages": [{"role": "user", "content": question}], "stream": True}
    body["max_tokens"] = 1_000_000
    reading = Reading(time.time())
    for data in _events(f"{url}/v1/chat/completions", key, body, reading):
        for choice in data.get("choices", ()):
            if more := choice["delta"].get("content"):
                reading.got(more)
    return reading


def read_native(url: str, key: str, model: str, question: str) -> Reading:
    """`/stream`, with its named events."""
    body = {"model": model, "messages": [{"role": "user", "content": question}]}
    body["max_tokens"] = 1_000_000
    reading = Reading(time.time())
    for data in _events(f"{url}/stream", key, body, reading):
        if more := data.get("text"):
            reading.got(more)
    return reading


def _events(
    url: str, key: str, body: dict[str, object], reading: Reading
) -> Iterator[dict[str, object]]:
    headers = {"Authorization": f"Bearer {key}", "Accept": "text/event-stream"}
    with (
        httpx2.Client(timeout=TIMEOUT_S, trust_env=False) as client,
        client.stream("POST", url, headers=headers, json=body) as reply,
    ):
        reply.raise_for_status()
        rest = b""
        for piece in reply.iter_raw():
            reading.sent_bytes += len(piece)
            *lines, rest = (rest + piece).split(b"\n")
            for line in lines:
                if line.startswith(b"data: {"):
                    yield json.loads(line.removeprefix(b"data: "))
