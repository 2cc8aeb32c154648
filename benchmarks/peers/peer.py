"""What the measurement has to know of a chat page, and how a peer's server is started."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path

from benchmarks.server import Server, free_port, run_server


@dataclass(frozen=True, slots=True)
class Peer:
    """A chat page that asks a server with vLLM's protocol.

    Args:
        title: its column's head.
        version: of what is measured.
        serve: runs it, given the base URL of the server that it asks, until the block ends.
        field: CSS selector of the input; a person types there and presses Enter.
        answer: CSS selector of an answer in the page; the last one counts.
        settings: how it differs from the way it comes, in a few words.
        greeting: CSS selector of a button that has to be pressed at the first visit, if there is one.
    """

    title: str
    version: str
    serve: Callable[[str], AbstractContextManager[Server]]
    field: str
    answer: str
    settings: str
    greeting: str = ""


@contextmanager
def serve_peer(
    command: Callable[[int], Sequence[str]],
    environment: Callable[[int, Path], dict[str, str]],
    health: str = "",
) -> Iterator[Server]:
    """Run a peer's server on a free port, with an empty folder for its own use.

    Args:
        command: by the port.
        environment: by the port and that folder.
        health: the path that is answered once it runs.
    """
    port = free_port()
    with tempfile.TemporaryDirectory(prefix="steady-chat-bench-") as notes:
        folder = Path(notes) / "own"
        folder.mkdir()
        told = environment(port, folder)
        with run_server(command(port), told, port, health, Path(notes)) as server:
            yield server
