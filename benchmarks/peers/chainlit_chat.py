"""Chainlit: apps/chainlit_app.py, with everything else as it comes."""

from __future__ import annotations

from contextlib import AbstractContextManager
from pathlib import Path

from benchmarks.peers.environment import peer_bin, pins
from benchmarks.peers.peer import Peer, serve_peer
from benchmarks.protocol_server import MODEL
from benchmarks.server import Server

APP = Path(__file__).parent / "apps" / "chainlit_app.py"


def _serve(base_url: str) -> AbstractContextManager[Server]:
    program = str(peer_bin("chainlit") / "chainlit")
    return serve_peer(
        lambda port: [
            *(program, "run", str(APP), "--headless"),
            *("--host", "127.0.0.1", "--port", str(port)),
        ],
        lambda port, folder: {
            "BENCH_BASE_URL": base_url,
            "BENCH_MODEL": MODEL,
            # Its settings file is written there, and else into the folder it is started from.
            "CHAINLIT_APP_ROOT": str(folder),
        },
    )


CHAINLIT = Peer(
    title="Chainlit",
    version=pins("chainlit")["chainlit"],
    serve=_serve,
    field="#chat-input",
    answer=".ai-message",
    settings="`msg.stream_token` for each piece, as its guide has it; else as it comes",
)
