"""Gradio's ChatInterface: apps/gradio_app.py, with everything else as it comes."""

from __future__ import annotations

from contextlib import AbstractContextManager
from pathlib import Path

from benchmarks.peers.environment import peer_bin, pins
from benchmarks.peers.peer import Peer, serve_peer
from benchmarks.protocol_server import MODEL
from benchmarks.server import Server

APP = Path(__file__).parent / "apps" / "gradio_app.py"


def _serve(base_url: str) -> AbstractContextManager[Server]:
    python = peer_bin("gradio") / "python"
    return serve_peer(
        lambda port: [str(python), str(APP)],
        lambda port, folder: {
            "GRADIO_SERVER_PORT": str(port),
            "BENCH_BASE_URL": base_url,
            "BENCH_MODEL": MODEL,
            "GRADIO_ANALYTICS_ENABLED": "False",
            "GRADIO_TEMP_DIR": str(folder),
            "HF_HUB_OFFLINE": "1",
        },
    )


GRADIO = Peer(
    title="Gradio",
    version=pins("gradio")["gradio"],
    serve=_serve,
    field="textarea[data-testid=textbox]",
    answer=".message.bot, .bot.message",
    settings="a generator that yields the growing text, as its guide has it; else as it comes",
)
