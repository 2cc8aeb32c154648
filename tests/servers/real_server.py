"""A server of someone else's making that runs for the tests, and can be killed and come back."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from llm.local_source import obtain
from llm.models import EMBEDDED, EMBEDDED_NAME, resolve
from llm.types import CancelToken
from tests.model_data import model_data_dir
from tests.servers.vllm_cpu import vllm_python

WINDOW_TOKENS = 4096
READY_LIMIT_S = 300.0
"""Four times what it takes on two idle cores."""
_STOP_LIMIT_S = 15.0
_LOG_TAIL_CHARS = 4000
_HELD = re.compile(r"^vllm:num_requests_(?:running|waiting)\{.*\} ([\d.e+]+)$", re.MULTILINE)
_OWN_VARIABLES = ("PYTHONPATH", "VIRTUAL_ENV", "OPENAI_", "STEADY_CHAT_")


@dataclass
class RealServer:
    """One server process and its children, always at the same address.

    Args:
        command: all but the port, which comes last.
        model: what it calls its model.
        log: where its output goes, each start after the last.
        environment: variables beside the inherited ones.
        key: what it wants to be asked with; empty for none.
        counts_requests: whether it tells how many it works on, as vLLM does on /metrics.
    """

    command: list[str]
    model: str
    log: Path
    environment: dict[str, str] = field(default_factory=dict)
    counts_requests: bool = False
    key: str = ""
    port: int = field(default_factory=lambda: _free_port())
    _process: subprocess.Popen[bytes] | None = None

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def url(self) -> str:
        return f"{self.address}/v1"

    def start(self) -> None:
        """Start it; returns at once."""
        assert self._process is None
        inherited = {k: v for k, v in os.environ.items() if not k.startswith(_OWN_VARIABLES)}
        with self.log.open("ab") as output:
            # A group of its own: what it starts goes when it goes.
            self._process = subprocess.Popen(
                [*self.command, str(self.port)],
                cwd=self.log.parent,
                env=inherited | {"HF_HUB_OFFLINE": "1"} | self.environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def wait_until_ready(self, limit_s: float = READY_LIMIT_S) -> None:
        """Raises:
        RuntimeError: it ended, or took too long; the message has its last words.
        """
        assert self._process is not None
        deadline_s = time.monotonic() + limit_s
        while time.monotonic() < deadline_s:
            if self._process.poll() is not None:
                raise RuntimeError(
                    f"it ended with {self._process.returncode}; the end of {self.log}:\n{self.said()}"
                )
            with suppress(urllib.error.URLError, OSError):
                self._get("/health")
                return
            time.sleep(0.2)
        raise RuntimeError(f"not ready after {limit_s} s; the end of {self.log}:\n{self.said()}")

    def requests_held(self) -> int:
        """How many requests it works on or has waiting. Only where it counts them."""
        counts = _HELD.findall(self._get("/metrics"))
        assert counts, "its /metrics names no requests"
        return round(sum(map(float, counts)))

    def kill(self) -> None:
        """As the kernel does where memory runs out: nothing gets to say goodbye."""
        if self._process is not None:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait(10)
            self._process = None

    def stop(self) -> None:
        """End it, for certain."""
        if self._process is not None:
            self._process.terminate()
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(_STOP_LIMIT_S)
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait(10)
            self._process = None

    def said(self) -> str:
        """The end of its output."""
        return self.log.read_text("utf-8", "replace")[-_LOG_TAIL_CHARS:]

    def _get(self, path: str) -> str:
        with urllib.request.urlopen(f"{self.address}{path}", timeout=5) as reply:
            text: str = reply.read().decode("utf-8")
            return text


def vllm_server(folder: Path) -> RealServer:
    """vLLM with the embedded model; `folder` is for its log. Not started yet."""
    command = [str(vllm_python()), "-m", "vllm.entrypoints.openai.api_server"]
    command += ["--model", str(embedded_weights()), "--served-model-name", EMBEDDED_NAME]
    command += ["--max-model-len", str(WINDOW_TOKENS), "--max-num-seqs", "16"]
    # In bfloat16 an answer may depend on what else is in the batch.
    command += ["--dtype", "float32", "--no-enable-prefix-caching"]
    # It lets go of a prompt between steps; on one busy core a step of 256 tokens takes a second.
    command += ["--max-num-batched-tokens", "128", "--enforce-eager"]
    command += ["--host", "127.0.0.1", "--port"]
    environment = {"VLLM_CPU_KVCACHE_SPACE": "1", "VLLM_NO_USAGE_STATS": "1"}
    key = "the-key-of-the-tests"
    environment["VLLM_API_KEY"] = key
    log = folder / "vllm.log"
    return RealServer(command, EMBEDDED_NAME, log, environment, counts_requests=True, key=key)


def transformers_server(folder: Path) -> RealServer:
    """`transformers serve` with the embedded model; `folder` is for its log. Not started yet."""
    weights = str(embedded_weights())
    command = [sys.executable, "-m", "transformers.cli.transformers", "serve", weights]
    command += ["--dtype", "float32", "--device", "cpu", "--host", "127.0.0.1", "--port"]
    return RealServer(command, weights, folder / "transformers-serve.log")


def embedded_weights() -> Path:
    """The embedded model as a folder of safetensors, fetched and converted once, as the app does."""
    return obtain(
        resolve(EMBEDDED), model_data_dir(), False, CancelToken(), lambda phase, progress: None
    )


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
