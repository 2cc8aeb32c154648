"""What an answer cache holds and did, as one person may see it, and its emptying."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import TypeVar

from llm.cache_guard import CacheGuard
from llm.cache_key import person_scope
from llm.cache_types import (
    SHARED,
    AnswerStore,
    CachedAnswer,
    CacheEntry,
    CacheTotals,
    Decision,
    DecisionCount,
)
from llm.cache_writer import CacheWriter

T = TypeVar("T")

LOOK_LIMIT_S = 2.0
"""How long a page about the cache waits for it."""
EXPORT_LIMIT_S = 10.0
"""How long whoever wants the whole log waits for it: 10,000 lines, on a busy machine."""
CLEAR_LIMIT_S = 5.0
"""How long whoever forgets something waits until it is gone; what is written before is, too."""


class CacheContents:
    """The contents, by owner.

    Args:
        shared: whether the shared answers are everybody's to see.
        shared_clear: whether they are everybody's to forget, too: nobody knows who made them.
        clock: seconds since 1970.

    Thread-safety: every method may be called from any thread.
    """

    def __init__(
        self,
        guard: CacheGuard,
        writer: CacheWriter,
        *,
        shared: bool,
        shared_clear: bool = False,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._guard = guard
        self._writer = writer
        self.shared = shared
        self.shared_clear = shared and shared_clear
        self._clock = clock

    def entries(self, owner: str, limit: int, text: str = "") -> list[CacheEntry]:
        """What may be given to this person, last used first.

        Args:
            text: only those that have it in their question, in whatever case.

        Raises:
            CacheStoreError: as whatever else looks at the store.
        """
        now_s = self._clock()

        def of(store: AnswerStore, scope: str) -> Sequence[CacheEntry]:
            return store.entries(scope, now_s, limit, text=text)

        found = self._each(owner, of)
        listed = [entry for entries in found for entry in entries]
        return sorted(listed, key=lambda entry: -entry.used_s)[:limit]

    def answer(self, owner: str, digest: str) -> CachedAnswer | None:
        """A whole answer that may be given to this person; None where it isn't there any more."""
        now_s = self._clock()
        found = self._each(owner, lambda store, scope: store.get(digest, scope, now_s))
        return next((answer for answer in found if answer is not None), None)

    def totals(self, owner: str) -> CacheTotals:
        """How much that is."""
        now_s = self._clock()
        totals = self._each(owner, lambda store, scope: store.totals(scope, now_s))
        return CacheTotals(sum(each.entries for each in totals), sum(each.size for each in totals))

    def decisions(self, owner: str) -> Sequence[Decision]:
        """What was decided for this person, newest first."""
        self._writer.flush(LOOK_LIMIT_S)
        return self._guard.ask(lambda store: store.decisions(person_scope(owner)), EXPORT_LIMIT_S)

    def counts(self, owner: str) -> Sequence[DecisionCount]:
        """What these come to, without reading them."""
        self._writer.flush(LOOK_LIMIT_S)
        return self._look(lambda store: store.counts(person_scope(owner)))

    def near(self, owner: str, limit: int) -> Sequence[Decision]:
        """The near misses of which this person has said nothing, newest first."""
        return self._look(lambda store: store.near(person_scope(owner), limit))

    def forget(self, owner: str, digest: str) -> None:
        """Forget one answer, also one that is still to be written; none that isn't theirs to."""
        scopes = self._forgettable(owner)

        def forget(store: AnswerStore) -> None:
            for scope in scopes:
                store.delete(digest, scope)

        self._writer.in_order(forget, CLEAR_LIMIT_S)

    def clear(self, owner: str, *, model: str | None = None, before_s: float | None = None) -> int:
        """Forget this person's answers and, where everybody may, the shared ones; those that a
        model is busy with aren't kept.

        Args:
            model: only that model's.
            before_s: only those made before then, seconds since 1970.

        Raises:
            CacheStoreError: it isn't known to be done.

        Returns:
            How many there were.
        """
        scopes, now_s = self._forgettable(owner), self._clock()

        def clear(store: AnswerStore) -> int:
            return sum(
                store.clear(scope, now_s, model=model, before_s=before_s) for scope in scopes
            )

        # In order, or what is just being written would come after.
        return self._writer.in_order(clear, CLEAR_LIMIT_S)

    def judge(self, owner: str, decision_id: str, *, same: bool) -> None:
        """Note what this person says of two questions.

        Raises:
            CacheStoreError: it couldn't be noted.
        """
        self._look(lambda store: store.judge(decision_id, person_scope(owner), same))

    def scopes(self, owner: str) -> tuple[str, ...]:
        """Whose answers may be given to this person: their own, and the shared ones if any."""
        mine = person_scope(owner)
        return (mine, SHARED) if self.shared else (mine,)

    def may_forget(self, entry: CacheEntry) -> bool:
        """Whether whoever sees this entry may forget it."""
        return self.shared_clear or entry.key.scope != SHARED

    def _forgettable(self, owner: str) -> tuple[str, ...]:
        return self.scopes(owner) if self.shared_clear else (person_scope(owner),)

    def _each(self, owner: str, what: Callable[[AnswerStore, str], T]) -> list[T]:
        def of(scope: str) -> T:
            return self._look(lambda store: what(store, scope))

        return [of(scope) for scope in self.scopes(owner)]

    def _look(self, what: Callable[[AnswerStore], T]) -> T:
        return self._guard.ask(what, LOOK_LIMIT_S)
