"""A TCP proxy that can stop passing things on."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress


class StallingProxy:
    """Passes bytes to a port of this machine and back, until it is told to stall.

    While it stalls it takes connections and bytes and passes nothing on; what comes meanwhile is
    passed on afterwards.

    Thread-safety: every method may be called from any thread.
    """

    def __init__(self, port: int) -> None:
        self._behind = port
        self._flows = threading.Event()
        self._flows.set()
        self._open: list[socket.socket] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self.connections = 0
        threading.Thread(target=self._accept, daemon=True).start()

    def stall(self) -> None:
        """From now on nothing is passed on."""
        self._flows.clear()

    def flow(self) -> None:
        """The end of that."""
        self._flows.set()

    def drop(self) -> None:
        """End every connection; new ones are taken."""
        dropped, self._open = self._open, []
        for each in dropped:
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()

    def close(self) -> None:
        """End every connection."""
        self._flows.set()
        for each in [self._listener, *self._open]:
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                here, _ = self._listener.accept()
                self.connections += 1
                there = socket.create_connection(("127.0.0.1", self._behind))
                self._open += [here, there]
                for source, target in ((here, there), (there, here)):
                    threading.Thread(target=self._pass, args=(source, target), daemon=True).start()

    def _pass(self, source: socket.socket, target: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(65_536):
                self._flows.wait()
                target.sendall(data)
        with suppress(OSError):
            target.shutdown(socket.SHUT_RDWR)
