"""Writes down what an answer cache decided and why, without the text of what is never kept."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import Any

from llm.cache_key import person_scope
from llm.cache_types import CachedAnswer, Decision, DecisionKind
from llm.cache_writer import CacheWriter
from llm.similar_answers import NearMiss
from llm.types import CacheUse, FromCache, Usage


class CacheLog:
    """The log, each person's own.

    Args:
        clock: seconds since 1970.

    Thread-safety: every method may be called from any thread; none waits for the store.
    """

    def __init__(self, writer: CacheWriter, clock: Callable[[], float]) -> None:
        self._writer = writer
        self._clock = clock

    def given(self, use: CacheUse, question: str, answer: CachedAnswer, told: FromCache) -> None:
        """A kept answer is given to this question."""
        key, now_s = answer.key, self._clock()
        self._writer.later(lambda store: store.used(key.digest, key.scope, now_s))
        self._note(
            use,
            told.kind,
            decision_id=told.decision,
            question=question,
            other=told.question,
            similarity=told.similarity,
            digest=told.digest,
            model=answer.model,
            saved_tokens=answer.usage.completion_tokens or len(answer.pieces),
            saved_s=answer.took_s,
        )

    def joined(self, use: CacheUse, question: str, usage: Usage) -> None:
        """An answer that another was being given has become this question's, too."""
        saved = usage.completion_tokens or 0
        self._note(use, "exact", reason="joined", question=question, saved_tokens=saved)

    def near(self, use: CacheUse, question: str, miss: NearMiss) -> None:
        """Something much alike was there, and the rule saw a difference."""
        self._note(
            use,
            "near",
            question=question,
            other=miss.other.question,
            similarity=miss.similarity,
            digest=miss.other.digest,
            reason=miss.reason,
        )

    def missed(self, use: CacheUse, question: str, reason: str) -> None:
        """The model answers; `reason` is empty where nothing was there."""
        self._note(use, "miss", question=question, reason=reason)

    def refused(self, use: CacheUse, reason: str) -> None:
        """This question is never kept. Its text may be personal: the log has the reason alone."""
        self._note(use, "refused", reason=reason)

    def _note(
        self, use: CacheUse, kind: DecisionKind, *, decision_id: str = "", **told: Any
    ) -> None:
        scope = person_scope(use.owner)
        decision = Decision(decision_id or uuid.uuid4().hex, scope, self._clock(), kind, **told)
        self._writer.later(lambda store: store.note(decision))
