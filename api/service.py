"""What the routes need of the app, and how a request becomes a running answer."""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from starlette.concurrency import run_in_threadpool

from api.access import Access
from api.bodies import ChatRequest
from api.embeddings import Embeddings
from api.errors import ApiError, refused
from api.models import OfferedModel, find
from api.open_streams import OpenStreams
from llm.errors import LLMError
from llm.job import GenerationJob, Snapshot
from llm.types import CacheUse, GenerationRequest, Usage

if TYPE_CHECKING:
    from llm.engine import Engine


@dataclass(frozen=True, slots=True)
class Limits:
    """How much a request may take.

    Args:
        body_bytes: a larger body is refused.
        time_s: of one answer, its time in line included.
        write_s: how long a client may not read.
        keep_alive_s: the longest silence on a stream.
        grace_s: how long an answer of `/stream` goes on, and is kept, without a client.
        usual_tokens, most_tokens: of an answer, where nothing is asked for and at most.
    """

    body_bytes: int = 1 << 20
    time_s: float = 600.0
    write_s: float = 30.0
    keep_alive_s: float = 10.0
    grace_s: float = 30.0
    usual_tokens: int = 512
    most_tokens: int = 1_000_000


@dataclass(frozen=True, slots=True)
class Service:
    """The API of one process.

    Args:
        offered: the models that can be asked, the usual one first. Called on a thread: the first
            call may import a backend, which takes long enough to hold up every page.
        cached, cache_random: whether kept answers may be given, and sampled ones as well.
        embeddings: the embedding model, where there is one.
        stopping: whether the server is being stopped.

    Thread-safety: used on the event loop.
    """

    access: Access
    engine: Engine
    offered: Callable[[], tuple[OfferedModel, ...]]
    limits: Limits = Limits()
    cached: bool = False
    cache_random: bool = False
    embeddings: Embeddings | None = None
    stopping: Callable[[], bool] = lambda: False
    streams: OpenStreams = field(default_factory=OpenStreams)
    started_s: int = field(default_factory=lambda: int(time.time()))

    async def ask(self, person: str, body: ChatRequest) -> Asked:
        """Have a request answered.

        Raises:
            ApiError: it can't be used, or nobody offers its model.
            LLMError: it was refused.
        """
        model_id, model = find(await run_in_threadpool(self.offered), body.model)
        messages = body.told_messages()
        params = body.params(self.limits.usual_tokens, self.limits.most_tokens)
        if params.temperature is None:
            params = replace(params, temperature=model.temperature)
        request = GenerationRequest(
            messages,
            params,
            model.model,
            request_id=uuid.uuid4().hex,
            # Only the very same question's: a program isn't told that it was another's.
            cache=CacheUse(person, random=self.cache_random) if self.cached else None,
        )
        until_s = asyncio.get_running_loop().time() + self.limits.time_s
        job = await run_in_threadpool(self._submit, person, model.backend, request)
        return Asked(job, model_id, until_s, int(time.time()))

    def _submit(self, person: str, backend: str, request: GenerationRequest) -> GenerationJob:
        key = ("api", request.request_id)
        try:
            return self.engine.ask(key, person, backend, request, save=lambda snapshot: None)
        except LLMError as error:
            self.engine.refused(backend, request.model, request.request_id, error)
            raise


@dataclass(frozen=True, slots=True)
class Asked:
    """A request that is being answered.

    Args:
        until_s: when its time is up, by the loop's clock.
        created_s: since 1970.
    """

    job: GenerationJob
    model: str
    until_s: float
    created_s: int

    @property
    def request_id(self) -> str:
        return self.job.request.request_id


def failure(snapshot: Snapshot) -> LLMError | ApiError | None:
    """Why a done answer isn't one; None where it is whole."""
    if snapshot.error is not None:
        return snapshot.error
    if snapshot.finish is None or snapshot.finish.reason not in ("stop", "length"):
        return refused(503, "stopped")
    return None


def usage_of(usage: Usage) -> dict[str, int] | None:
    """Token counts as OpenAI's clients read them; None where the backend doesn't tell them."""
    if usage.prompt_tokens is None or usage.completion_tokens is None:
        return None
    return {
        "prompt_tokens": usage.prompt_tokens,
        "completion_tokens": usage.completion_tokens,
        "total_tokens": usage.prompt_tokens + usage.completion_tokens,
    }
