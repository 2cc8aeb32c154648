"""Answers for the tests of what keeps them, and a store of either kind."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from llm.cache_redis import RedisAnswerStore
from llm.cache_sqlite import SqliteAnswerStore
from llm.cache_types import SHARED, AnswerStore, CachedAnswer, CacheKey, Decision
from llm.types import Delta, Usage

NOW_S = 1_790_000_000.0
DAY_S = 86_400.0
PATIENT_S = 30.0
"""For a machine that is busy with something else: slowness is tested elsewhere."""

LARGE = 1 << 40


def digest_of(name: object) -> str:
    return hashlib.sha256(str(name).encode()).hexdigest()


PARTITION = digest_of("partition")


def answer_of(
    name: object,
    text: str = "An answer.",
    *,
    scope: str = SHARED,
    partition: str = PARTITION,
    model: str = "a model",
    created_s: float = NOW_S,
    lives_s: float = DAY_S,
    question: str = "",
) -> CachedAnswer:
    """An answer in pieces of four characters."""
    return CachedAnswer(
        key=CacheKey(digest_of(name), partition, scope),
        question=question or f"What is {name}?",
        pieces=tuple(Delta(text[at : at + 4]) for at in range(0, len(text), 4)),
        usage=Usage(12, len(text)),
        model=model,
        server="a server",
        created_s=created_s,
        expires_s=created_s + lives_s,
        took_s=2.5,
    )


def vector_of(name: object, dimensions: int = 384) -> bytes:
    return random.Random(str(name)).randbytes(4 * dimensions)


def decision_of(
    name: object, *, scope: str = SHARED, at_s: float = NOW_S, question: str = ""
) -> Decision:
    return Decision(
        decision_id=f"decision {name}",
        scope=scope,
        at_s=at_s,
        kind="near",
        reason="number",
        question=question or f"What is {name}?",
        other="What was it?",
        similarity=0.93,
        digest=digest_of(name),
        model="a model",
        saved_tokens=7,
        saved_s=1.5,
    )


@dataclass(frozen=True)
class Place:
    """Where stores of one kind keep what they are given.

    Args:
        url: of Redis; empty where it is SQLite.
        file: of SQLite.
    """

    url: str
    file: Path

    def opened(self, max_bytes: int = LARGE, patience_s: float = PATIENT_S) -> AnswerStore:
        """One more store on what is kept there."""
        if self.url:
            return RedisAnswerStore(self.url, max_bytes, patience_s)
        return SqliteAnswerStore(self.file, max_bytes, patience_s)


Opens = Callable[..., AnswerStore]
