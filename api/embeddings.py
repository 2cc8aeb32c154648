"""`/v1/embeddings`: the vectors of the embedding model, where there is one.

One request is computed at a time: the language model has the processor besides. Many numbers take
long to be written out, too, so that isn't done on the event loop either.

Source: https://platform.openai.com/docs/api-reference/embeddings
"""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse

from api.bodies import read_embeddings
from api.client import while_client_stays
from api.errors import missing, refused
from api.models import OfferedModel
from llm.embedding import EmbeddingModel
from llm.errors import ShuttingDownError

if TYPE_CHECKING:
    from api.service import Service
    from llm.embedding import Embedder

MOST_WAITING = 32
OWNER = "embeddings"


class Embeddings:
    """The embedding model as the API offers it.

    Args:
        name: what requests call it.

    Thread-safety: used on the event loop; computes on a thread of the pool.
    """

    def __init__(self, name: str, model: EmbeddingModel) -> None:
        self.name = name
        self._model = model
        self._turn = asyncio.Lock()
        self._waiting = 0

    @property
    def offered(self) -> OfferedModel:
        return OfferedModel(OWNER, name=self.name)

    async def reply(
        self, texts: tuple[str, ...], *, as_base64: bool, stopping: Callable[[], bool]
    ) -> JSONResponse:
        """The reply with their vectors, when it is this request's turn.

        Args:
            stopping: whether the server is being stopped; it waits for its open connections.

        Raises:
            ApiError: the model isn't ready yet, or too many wait.
            LLMError: it failed, or the server is being stopped.
        """
        embedder = self._model.ready()
        if embedder is None:
            raise self._model.trouble or refused(503, "embeddings_not_ready")
        if self._waiting >= MOST_WAITING:
            raise refused(429, "embeddings_busy")
        self._waiting += 1
        try:
            async with self._turn:
                if stopping():
                    raise ShuttingDownError
                work = asyncio.ensure_future(
                    run_in_threadpool(_reply, self.name, embedder, texts, as_base64)
                )
                try:
                    return await asyncio.shield(work)
                finally:  # a thread can't be stopped: its turn is over when it is
                    await asyncio.wait({work})
        finally:
            self._waiting -= 1


async def embed(service: Service, request: Request, language: str) -> JSONResponse:
    """Embed texts.

    Raises:
        ApiError, LLMError: they can't be.
        ClientDisconnect: the client is gone.
    """
    service.access.caller(request)
    body = await read_embeddings(request, service.limits.body_bytes, service.stopping)
    if body.model is None:
        raise missing("model")
    offered = service.embeddings
    if offered is None or body.model != offered.name:
        raise refused(404, "model_not_found", "model", model=body.model[:200])
    as_base64 = body.encoding_format == "base64"
    waiting = offered.reply(body.texts(), as_base64=as_base64, stopping=service.stopping)
    try:
        async with asyncio.timeout(service.limits.time_s):
            return await while_client_stays(request, waiting)
    except TimeoutError:
        raise refused(504, "time_limit") from None


def _reply(name: str, embedder: Embedder, texts: tuple[str, ...], as_base64: bool) -> JSONResponse:
    data = [
        {
            "object": "embedding",
            "index": at,
            # As OpenAI's: the little-endian float32s, one after the other.
            "embedding": _base64(vector) if as_base64 else vector.tolist(),
        }
        for at, vector in enumerate(embedder.embed(texts))
    ]
    # The model doesn't tell its tokens; clients want the numbers to be there.
    usage = {"prompt_tokens": 0, "total_tokens": 0}
    told = {"object": "list", "data": data, "model": name, "usage": usage}
    return JSONResponse(told, headers={"Cache-Control": "no-store"})


def _base64(vector: Any) -> str:
    return base64.b64encode(vector.astype("<f4").tobytes()).decode()
