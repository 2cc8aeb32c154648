"""How many bytes a server has sent to its browser, as the kernel counted them.

Whatever a page's way is (web socket, event stream, polling; packed or not), what went over the line
is the same thing for all of them, and counting it costs the page nothing. `ss` (Debian: iproute2)
tells it for each connection; a closed one is forgotten, so all are asked now and then.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import threading
from types import TracebackType

EVERY_S = 1.0
_CONNECTION = re.compile(r"^\d+ +\d+ +\S+ +(\S+) .*?\bbytes_acked:(\d+)", re.MULTILINE)


class SentBytes:
    """Counts while its block runs what the server on `port` sends.

    Thread-safety: `so_far` may be called from any thread.
    """

    def __init__(self, port: int) -> None:
        self._port = port
        self._program = shutil.which("ss")
        self._lock = threading.Lock()
        self._before: dict[str, int] = {}
        self._sent: dict[str, int] = {}
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> SentBytes:
        self._before = self._ask()
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._over.set()
        self._thread.join()

    def so_far(self) -> int | None:
        """Bytes since the block began; None where there is no `ss`."""
        if self._program is None:
            return None
        with self._lock:
            self._sent |= self._ask()
            return sum(self._sent.values()) - sum(
                sent for peer, sent in self._before.items() if peer in self._sent
            )

    def _watch(self) -> None:
        while not self._over.wait(EVERY_S):
            self.so_far()

    def _ask(self) -> dict[str, int]:
        """Bytes by the browser's end of each connection."""
        if self._program is None:
            return {}
        command = [self._program, "-tinOH", "state", "established", f"sport = :{self._port}"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        return connections(done.stdout)


def connections(told: str) -> dict[str, int]:
    """Bytes sent and acknowledged by the other end of each connection that `ss` tells of."""
    return {end: int(sent) for end, sent in _CONNECTION.findall(told)}
