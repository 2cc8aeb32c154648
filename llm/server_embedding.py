"""Embeddings of an OpenAI-compatible server, by its `/v1/embeddings`."""

from __future__ import annotations

import hashlib
import queue
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from llm.errors import LLMError, ServerGarbageError, ShuttingDownError
from llm.loop_thread import LoopThread
from llm.vllm_client import VllmClient

if TYPE_CHECKING:
    from llm.embedding import Vectors
    from llm.settings import Settings

LIMIT_S = 2.0
"""How long a question may be held up by it; longer is an error, and to the cache a miss."""


class ServerEmbedder:
    """A model that a server embeds with.

    The server doesn't say which revision it runs: whoever changes the model under its name should
    change the name. Nor what it reads: that is taken to be everything.

    Thread-safety: every method may be called from any thread.

    Args:
        base_url, api_key, connect_timeout_s: as for the chat.
        model: as the server calls it.
        prefix: what goes before every text.
        limit_s: how long one call may take.
    """

    def __init__(
        self,
        base_url: str,
        model: str,
        *,
        api_key: str = "",
        prefix: str = "",
        connect_timeout_s: float = 1.0,
        limit_s: float = LIMIT_S,
    ) -> None:
        self._client = VllmClient(base_url, api_key, connect_timeout_s)
        self._model = model
        self._prefix = prefix
        self._limit_s = limit_s
        self._thread = LoopThread("server-embedding", self._client.close)
        said = hashlib.sha256(f"{self._client.url}\n{prefix}".encode()).hexdigest()[:12]
        self._name = f"{model}@{said}"

    @classmethod
    def from_settings(cls, settings: Settings, model: str) -> ServerEmbedder:
        """The first server's."""
        told = settings.server()
        return cls(
            told.base_url,
            model,
            api_key=told.api_key.get_secret_value() if told.api_key else "",
            prefix=settings.embedding_prefix,
            connect_timeout_s=min(settings.connect_timeout_s, LIMIT_S),
        )

    @property
    def name(self) -> str:
        return self._name

    def reads(self, text: str) -> bool:
        return bool(text.strip())

    def embed(self, texts: Sequence[str]) -> Vectors:
        import numpy as np

        outcome: queue.SimpleQueue[tuple[list[list[float]] | None, BaseException | None]]
        outcome = queue.SimpleQueue()
        asked = self._client.embeddings(
            self._model, [self._prefix + text for text in texts], self._limit_s
        )
        try:
            self._thread.submit(asked, lambda told, error: outcome.put((told, error)))
        except RuntimeError:
            raise ShuttingDownError() from None
        told, error = outcome.get()
        if isinstance(error, LLMError):
            raise error
        if told is None:
            raise ShuttingDownError() from None
        try:
            vectors = np.asarray(told, dtype=np.float32)
        except (ValueError, TypeError):
            raise ServerGarbageError(url=self._client.url) from None
        if vectors.ndim != 2 or len(vectors) != len(texts) or not np.isfinite(vectors).all():
            raise ServerGarbageError(url=self._client.url)
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        if not lengths.all():
            raise ServerGarbageError(url=self._client.url)
        scaled: Any = vectors / lengths
        return scaled  # type: ignore[no-any-return]

    def close(self) -> None:
        self._thread.close()
