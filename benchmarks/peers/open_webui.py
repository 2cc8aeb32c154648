"""Open WebUI: as its documentation has it where it should cost little.

It loads no model of its own and asks the scripted server for nothing but the answer.

Source: https://docs.openwebui.com/troubleshooting/performance
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from pathlib import Path

from benchmarks.peers.environment import peer_bin, pins
from benchmarks.peers.peer import Peer, serve_peer
from benchmarks.server import Server

BATCH_PIECES = 7
"""“Batch Streaming Tokens” of that page, for many people at once. It comes with 1."""

_FEWER_TASKS = ("TITLE", "TAGS", "FOLLOW_UP", "AUTOCOMPLETE")


def _environment(base_url: str, folder: Path, pieces: int) -> dict[str, str]:
    return {
        "DATA_DIR": str(folder),
        "WEBUI_SECRET_KEY": "of this benchmark",
        "WEBUI_AUTH": "False",
        "ENABLE_OLLAMA_API": "False",
        "OPENAI_API_BASE_URL": base_url,
        "OPENAI_API_KEY": "none",
        "CHAT_RESPONSE_STREAM_DELTA_CHUNK_SIZE": str(pieces),
        "ENABLE_BASE_MODELS_CACHE": "True",
        "MODELS_CACHE_TTL": "300",
        "AUDIO_STT_ENGINE": "webapi",
        "RAG_EMBEDDING_ENGINE": "openai",
        **{f"ENABLE_{task}_GENERATION": "False" for task in _FEWER_TASKS},
        # Nothing is fetched from anywhere, and nothing is told to anybody.
        "OFFLINE_MODE": "True",
        "HF_HUB_OFFLINE": "1",
        "ANONYMIZED_TELEMETRY": "False",
        "DO_NOT_TRACK": "True",
        "SCARF_NO_ANALYTICS": "True",
    }


def _open_webui(pieces: int, title: str, settings: str) -> Peer:
    def serve(base_url: str) -> AbstractContextManager[Server]:
        program = str(peer_bin("open-webui") / "open-webui")
        return serve_peer(
            lambda port: [program, "serve", "--host", "127.0.0.1", "--port", str(port)],
            lambda port, folder: _environment(base_url, folder, pieces),
            "health",
        )

    return Peer(
        title=title,
        version=pins("open-webui")["open-webui"],
        serve=serve,
        field="#chat-input",
        answer=".chat-assistant",
        settings=settings,
        greeting='button:has-text("Okay, Let\'s Go!")',
    )


OPEN_WEBUI = _open_webui(
    BATCH_PIECES,
    "Open WebUI",
    f"{BATCH_PIECES} pieces at a time and no background tasks, as its page on performance has it",
)
OPEN_WEBUI_UNBATCHED = _open_webui(
    1, "Open WebUI, unbatched", "each piece by itself, as it comes; else the same"
)
