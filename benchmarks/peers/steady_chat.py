"""This app, over its vLLM client."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import version

from benchmarks.chat_page import APP as APP_NAME
from benchmarks.chat_page import SCRIPTS
from benchmarks.peers.peer import Peer
from benchmarks.server import Server, serve


@contextmanager
def _serve(base_url: str) -> Iterator[Server]:
    environment = {
        "STEADY_CHAT_BACKENDS": "vllm",
        "STEADY_CHAT_VLLM_BASE_URL": base_url,
        "STEADY_CHAT_MAX_TOKENS": "100000",
        "STEADY_CHAT_LANGUAGE": "en",
        # An answer that is asked for again must come from the server again.
        "STEADY_CHAT_CACHE": "off",
    }
    with serve(SCRIPTS[APP_NAME], environment) as server:
        yield server


STEADY_CHAT = Peer(
    title="this app",
    version=f"Streamlit {version('streamlit')}",
    serve=_serve,
    field="[data-testid=stChatInputTextArea]",
    answer="[data-testid=stChatMessage]",
    settings="its vLLM client, the answer cache off; else as it comes",
)
