"""What an answer cache learns from who doubts a similar match."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from llm.cache_contents import LOOK_LIMIT_S, CacheContents
from llm.cache_guard import CacheGuard
from llm.cache_types import AnswerStore, CachedAnswer, Rejection
from llm.cache_writer import CacheWriter
from llm.similar_search import SimilarSearch
from llm.types import FromCache


class CacheDoubts:
    """Learns from “Ask the model anyway” after a similar match, and from “Wrong match”.

    Args:
        clock: seconds since 1970.

    Thread-safety: every method may be called from any thread.
    """

    def __init__(
        self,
        guard: CacheGuard,
        writer: CacheWriter,
        contents: CacheContents,
        search: SimilarSearch,
        clock: Callable[[], float],
    ) -> None:
        self._guard = guard
        self._writer = writer
        self._contents = contents
        self._search = search
        self._clock = clock

    def doubt(self, owner: str, cached: FromCache, question: str, *, wrong: bool) -> None:
        """Near this question more likeness is wanted from now on.

        Args:
            question: what was asked.
            wrong: the match was wrong: its entry goes.

        Raises:
            CacheStoreError: it couldn't be noted.
        """
        if cached.kind != "similar" or cached.similarity is None:
            return
        similarity, now_s = cached.similarity, self._clock()
        places: list[tuple[str, str]] = []
        for scope in self._contents.scopes(owner):
            answer = self._guard.ask(
                partial(_entry, digest=cached.digest, scope=scope, now_s=now_s), LOOK_LIMIT_S
            )
            if answer is not None:
                places.append((answer.key.partition, scope))
        if wrong:
            self._contents.forget(owner, cached.digest)
            self._contents.judge(owner, cached.decision, same=False)

        def learn(vector: bytes, embedding: str) -> None:
            rejection = Rejection(vector, embedding, similarity, now_s)
            for partition, scope in places:
                self._writer.later(partial(_reject, partition, scope, rejection))

        self._search.with_vector(question, learn)


def _entry(store: AnswerStore, digest: str, scope: str, now_s: float) -> CachedAnswer | None:
    return store.get(digest, scope, now_s)


def _reject(partition: str, scope: str, rejection: Rejection, store: AnswerStore) -> None:
    store.reject(partition, scope, rejection)
