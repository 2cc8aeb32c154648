"""Looks for an answer to a question that asks the same in other words.

An embedding proposes and a rule decides (`same_question`): likeness alone can't tell a question
from its opposite. What was called a wrong match makes its neighbourhood stricter.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from llm.cache_guard import CacheGuard
from llm.cache_types import CachedAnswer, CacheKey, Candidate
from llm.embedding import EmbeddingModel
from llm.errors import LLMError
from llm.same_question import same_question
from llm.similar import best

SEARCH_LIMIT_S = 2.0
"""What the store may take: nobody waits for a search, and many vectors take their time."""
THRESHOLD = 0.7
"""Less alike isn't looked at. Low: what decides is the rule, and the rule refuses on doubt."""


SimilarState = Literal["none", "loading", "ready", "failed"]


@dataclass(frozen=True, slots=True)
class Match:
    """A kept answer to a question that asks the same."""

    answer: CachedAnswer
    similarity: float


@dataclass(frozen=True, slots=True)
class NearMiss:
    """A question that is much alike, and for which the rule saw a difference."""

    other: Candidate
    similarity: float
    reason: str


class SimilarAnswers:
    """Searches a store by likeness.

    Args:
        guard: asks the store.
        model: makes vectors; it gets ready in the background, from the first question on that
            wants it, and until then nothing is found.
        threshold: less alike isn't looked at, -1 to 1.

    Thread-safety: every method may be called from any thread.
    """

    def __init__(
        self, guard: CacheGuard, model: EmbeddingModel, threshold: float = THRESHOLD
    ) -> None:
        self._guard = guard
        self._model = model
        self._threshold = threshold

    @property
    def state(self) -> SimilarState:
        """Whether vectors can be made; asking has the model get ready."""
        if self._model.ready() is not None:
            return "ready"
        return "failed" if self._model.trouble is not None else "loading"

    @property
    def trouble(self) -> LLMError | None:
        """Why the model can't be had, as of the last time it was tried."""
        return self._model.trouble

    def why_not(self, question: str) -> str:
        """Why nothing can be found for this question, by a fixed name; empty where it can."""
        embedder = self._model.ready()
        if embedder is None:
            return "not-ready"
        return "" if embedder.reads(question) else "unread"

    def vector(self, question: str) -> tuple[bytes, str] | None:
        """The question's vector, and which model made it; an empty one where that can't read it.

        None where no model is ready.

        Raises:
            LLMError: the model failed.
        """
        embedder = self._model.ready()
        if embedder is None:
            return None
        if not embedder.reads(question):
            return b"", embedder.name
        return embedder.embed([question])[0].tobytes(), embedder.name

    def search(
        self, key: CacheKey, question: str, now_s: float
    ) -> tuple[Match | NearMiss | None, Sequence[Candidate]]:
        """The answer to the likest question that asks the same, else the likest that doesn't; and
        the questions that couldn't be looked at, newest first, for the model hasn't seen them.

        Raises:
            CacheStoreError: the store failed.
            LLMError: the model failed.
        """
        embedder = self._model.ready()
        if embedder is None or not embedder.reads(question):
            return None, []
        candidates = self._guard.ask(
            lambda store: store.candidates(key.partition, key.scope, now_s),
            SEARCH_LIMIT_S,
        )
        seen = [each for each in candidates if each.embedding == embedder.name and each.vector]
        missing = [each for each in candidates if each.embedding != embedder.name]
        if not seen:
            return None, missing
        rejections = self._guard.ask(
            lambda store: store.rejections(key.partition, key.scope), SEARCH_LIMIT_S
        )
        vector = embedder.embed([question])[0]
        near = None
        for each in best(vector, embedder.name, seen, rejections, self._threshold):
            verdict = same_question(each.candidate.question, question)
            if not verdict.same:
                near = near or NearMiss(each.candidate, each.similarity, verdict.reason)
            elif (answer := self._answer(each.candidate.digest, key, now_s)) is not None:
                return Match(answer, each.similarity), missing
        return near, missing

    def _answer(self, digest: str, key: CacheKey, now_s: float) -> CachedAnswer | None:
        return self._guard.ask(lambda store: store.get(digest, key.scope, now_s), SEARCH_LIMIT_S)
