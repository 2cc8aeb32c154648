"""`/v1/embeddings`: the vectors of the embedding model, where there is one.

One request is computed at a time, on a thread of its own: the language model has the processor
besides.

Source: https://platform.openai.com/docs/api-reference/embeddings
"""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from starlette.requests import Request
from starlette.responses import JSONResponse

from api.bodies import missing, read_embeddings
from api.errors import RETRY_S, ApiError, refused
from api.models import OfferedModel
from llm.embedding import EmbeddingModel

if TYPE_CHECKING:
    from llm.embedding import Embedder

MOST_WAITING = 32
OWNER = "embeddings"


class Embeddings:
    """The embedding model as the API offers it.

    Args:
        name: what requests call it.

    Thread-safety: used on the event loop; computes on a thread of its own.
    """

    def __init__(self, name: str, model: EmbeddingModel) -> None:
        self.name = name
        self._model = model
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="api-embeddings")
        self._waiting = 0

    @property
    def offered(self) -> OfferedModel:
        return OfferedModel(OWNER, name=self.name)

    async def vectors(self, texts: tuple[str, ...]) -> list[Any]:
        """One float32 array a text.

        Raises:
            ApiError: it isn't ready yet, or too many wait.
            LLMError: it failed.
        """
        embedder = self._model.ready()
        if embedder is None:
            raise self._model.trouble or _later(503, "embeddings_not_ready")
        if self._waiting >= MOST_WAITING:
            raise _later(429, "embeddings_busy")
        self._waiting += 1
        try:
            work = self._thread.submit(_embedded, embedder, texts)
            return await asyncio.wrap_future(work)
        finally:
            self._waiting -= 1


async def embed(
    offered: Embeddings | None, request: Request, limit_bytes: int, stopping: Callable[[], bool]
) -> JSONResponse:
    """Embed texts.

    Raises:
        ApiError, LLMError: they can't be.
        ClientDisconnect: the client is gone.
    """
    body = await read_embeddings(request, limit_bytes, stopping)
    if body.model is None:
        raise missing("model")
    if offered is None or body.model != offered.name:
        raise refused(404, "model_not_found", "model", model=body.model[:200])
    vectors = await offered.vectors(body.texts())
    as_base64 = body.encoding_format == "base64"
    data = [
        {
            "object": "embedding",
            "index": at,
            # As OpenAI's: the little-endian float32s, one after the other.
            "embedding": _base64(vector) if as_base64 else [float(one) for one in vector],
        }
        for at, vector in enumerate(vectors)
    ]
    # The model doesn't tell its tokens; clients want the numbers to be there.
    usage = {"prompt_tokens": 0, "total_tokens": 0}
    told = {"object": "list", "data": data, "model": offered.name, "usage": usage}
    return JSONResponse(told, headers={"Cache-Control": "no-store"})


def _embedded(embedder: Embedder, texts: tuple[str, ...]) -> list[Any]:
    return list(embedder.embed(texts))


def _base64(vector: Any) -> str:
    return base64.b64encode(vector.astype("<f4").tobytes()).decode()


def _later(status: int, code: str) -> ApiError:
    error = refused(status, code)
    error.kind = "server_error" if status == 503 else "rate_limit_error"
    error.headers["Retry-After"] = str(RETRY_S)
    return error
