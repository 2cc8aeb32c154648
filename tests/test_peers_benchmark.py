"""What the comparison with other chat pages needs no peer for; it is run by `make bench-peers`."""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks import answers
from benchmarks.peers import environment
from benchmarks.peers.__main__ import INSTALLED, PEERS
from benchmarks.peers.environment import pins
from benchmarks.peers.measure import PeerFigures
from benchmarks.peers.sent_bytes import SentBytes, connections
from benchmarks.peers.table import peers_table
from benchmarks.protocol_server import MODEL, protocol_server

ROOT = Path(__file__).parents[1]

QUICK = PeerFigures(
    peer="app",
    tokens=12_000,
    rate=400,
    complete=True,
    blocks=190,
    all_blocks=190,
    chars=28_000,
    followed=True,
    first_text_s=0.2,
    behind_s=0.05,
    frames=1_800,
    long_frames=3,
    longest_frame_ms=66.7,
    keys=60,
    typed=61,
    key_p75_ms=24,
    sent_mb=0.5,
    server_cpu_s=2.25,
)
SLOW = replace(
    QUICK,
    peer="gradio",
    complete=False,
    blocks=90,
    chars=13_000,
    followed=False,
    behind_s=None,
    first_text_s=None,
    typed=1,
    sent_mb=None,
)


def test_the_table_tells_what_each_page_did_and_what_it_did_not() -> None:
    table = peers_table([QUICK, SLOW], {"app": "this app (1)", "gradio": "Gradio (2)"})
    lines = [[c.strip() for c in line.strip("|").split("|")] for line in table.splitlines()]
    assert lines[0] == ["", "this app (1)", "Gradio (2)"]
    assert {line[0]: line[1:] for line in lines[2:]} == {
        "whole text in the page": ["yes", "no: 90 of 190 blocks"],
        "characters in the page": ["28,000", "13,000"],
        "reader kept at the end": ["yes", "no"],
        "behind the stream at its end": ["0.05 s", "over 30 s"],
        "first text": ["0.20 s", "–"],
        "frames over 50 ms": ["3 of 1800", "3 of 1800"],
        "longest frame": ["67 ms", "67 ms"],
        "key delay, p75": ["24 ms", "input is closed"],
        "to the browser": ["0.50 MB", "–"],
        "server CPU": ["2.2 s", "2.2 s"],
    }


@pytest.mark.parametrize("name", INSTALLED)
def test_a_peer_is_pinned_with_all_that_it_needs(name: str) -> None:
    told = pins(name)
    assert name in told
    assert len(told) > 40
    assert any(peer.version == told[name] for peer in PEERS.values())
    assert told.get("torch", "2.13.0") == "2.13.0", "an open one brings gigabytes for GPUs"


@pytest.mark.parametrize("line", ["gradio>=6", "gradio", "gradio==6.*", "torch==2.13.0+cpu"])
def test_a_pin_that_is_not_exact_is_refused(
    line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(environment, "PINS", tmp_path)
    (tmp_path / "gradio.txt").write_text(f"{line}\n", encoding="utf-8")
    with pytest.raises(ValueError, match="pins no exact version"):
        pins("gradio")


def test_the_environments_lie_outside_the_repository(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("STEADY_CHAT_BENCH_PEERS", raising=False)
    assert not environment.peers_dir().is_relative_to(ROOT)


def test_the_scripted_server_gives_each_question_its_own_answer() -> None:
    with protocol_server(600, 100_000, (700, 100_000)) as (base_url, _):
        for question, end in (
            (answers.question(600), answers.end_mark(600)),
            (answers.question(700), answers.end_mark(700)),
            (answers.WARM_UP_QUESTION, answers.WARM_UP_MARK),
            ("something else", answers.end_mark(600)),
        ):
            body = {"model": MODEL, "messages": [{"role": "user", "content": question}]}
            request = urllib.request.Request(
                f"{base_url}/chat/completions", data=json.dumps(body).encode()
            )
            with urllib.request.urlopen(request, timeout=60) as reply:
                told = [line.removeprefix(b"data: ") for line in reply if line.startswith(b"data:")]
            assert told.pop() == b"[DONE]\n"
            choices = [choice for each in told for choice in json.loads(each)["choices"]]
            text = "".join(choice["delta"].get("content", "") for choice in choices)
            assert text.endswith(f"{end} {question}")
        with urllib.request.urlopen(base_url.removesuffix("v1") + "first", timeout=60) as reply:
            assert len(json.load(reply)) == 4


def test_what_the_kernel_tells_of_connections_is_read() -> None:
    told = (
        "0 0 127.0.0.1:9000 127.0.0.1:5001 bbr wscale:10,10 bytes_sent:900 bytes_acked:700 x:1\n"
        "0 12 127.0.0.1:9000 127.0.0.1:5002 bbr wscale:10,10 segs_in:2\n"
        "0      0      [::1]:9000 [::1]:5003 cubic bytes_acked:12\n"
    )
    assert connections(told) == {"127.0.0.1:5001": 700, "[::1]:5003": 12}


@pytest.mark.skipif(shutil.which("ss") is None, reason="needs ss (Debian: iproute2)")
def test_bytes_are_counted_from_when_counting_began() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        with socket.create_connection(("127.0.0.1", port)) as browser:
            line, _ = server.accept()
            with line:
                _send(line, browser, 5_000)
                _wait_until(lambda: sum(SentBytes(port)._ask().values()) >= 5_000)
                with SentBytes(port) as sent:
                    _send(line, browser, 70_000)
                    _wait_until(lambda: sent.so_far() == 70_000)


def _wait_until(true: Callable[[], bool]) -> None:
    """What was read may be acknowledged a moment later."""
    end_s = time.monotonic() + 60
    while not true():
        assert time.monotonic() < end_s


def _send(line: socket.socket, browser: socket.socket, count: int) -> None:
    """Send so many bytes, and have them read."""
    sending = threading.Thread(target=line.sendall, args=(bytes(count),))
    sending.start()
    while count:
        count -= len(browser.recv(count))
    sending.join()


def test_the_command_refuses_a_peer_that_it_does_not_know() -> None:
    command = [sys.executable, "-m", "benchmarks.peers", "--only", "app,somebody"]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=240, cwd=ROOT, check=False
    )
    assert done.returncode == 2
    assert "unknown: somebody" in done.stderr
