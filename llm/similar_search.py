"""Looks for similar questions beside the model, on a thread of its own.

When that thread has nothing to search for and no model is at work, it makes the vectors that are
missing where somebody searched, so that the next search finds more.
"""

from __future__ import annotations

import logging
import threading
import uuid
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from functools import partial

from llm.cache_log import CacheLog
from llm.cache_types import AnswerStore, CacheKey, CacheStoreError, Candidate
from llm.cache_writer import CacheWriter
from llm.cached_question import CachedQuestion
from llm.fault_log import log_fault
from llm.seeking import Found, Seeking
from llm.similar_answers import NearMiss, SimilarAnswers
from llm.types import FromCache

logger = logging.getLogger(__name__)

MOST_ASIDE = 50
"""Searches that wait for their turn; what comes on top isn't looked for."""
MISSING_AT_ONCE = 100
"""Vectors that one search has made, the newest questions' first; the next goes on from there."""
MOST_MISSING = 1_000
"""Questions whose vectors are still to be made."""

Place = tuple[str, str]
"""A partition and a scope."""


class SimilarSearch:
    """The searches of one cache.

    Args:
        similar: searches; None finds nothing.
        clock: seconds since 1970.

    Thread-safety: every method may be called from any thread; none waits for the search.
    """

    def __init__(
        self,
        similar: SimilarAnswers | None,
        writer: CacheWriter,
        log: CacheLog,
        clock: Callable[[], float],
    ) -> None:
        self._similar = similar
        self._writer = writer
        self._log = log
        self._clock = clock
        self._lock = threading.Lock()
        self._seeking: dict[str, Seeking] = {}  # by request, until its end
        self._missing: dict[tuple[Place, str], Candidate] = {}  # by place and digest
        self._makes_missing = False
        self._models_at_work = 0
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="answer-cache-search")
        self._room = threading.BoundedSemaphore(MOST_ASIDE)

    # -- searching --

    def begin(self, asked: CachedQuestion) -> None:
        """Look for a similar question, where one is wanted."""
        wanted = asked.use.similar and not asked.use.fresh
        if self._similar is None or asked.key is None or not wanted:
            return
        seeking = Seeking()
        seeking.why_not = "late"
        with self._lock:
            self._seeking[asked.request.request_id] = seeking
        self._aside(partial(self._search, self._similar, asked, asked.key, seeking))

    def of(self, request_id: str) -> Seeking | None:
        """The search for a request that isn't over."""
        with self._lock:
            return self._seeking.get(request_id)

    def ended(self, request_id: str) -> None:
        """Say that a request is over: nothing is looked for any more."""
        with self._lock:
            seeking = self._seeking.pop(request_id, None)
        if seeking is not None:
            seeking.model_speaks()

    def _search(
        self, similar: SimilarAnswers, asked: CachedQuestion, key: CacheKey, seeking: Seeking
    ) -> None:
        if seeking.over:
            return
        if why_not := similar.why_not(asked.text):
            seeking.why_not = why_not
            return
        match, missing = similar.search(key, asked.text, self._clock())
        seeking.why_not = ""
        if isinstance(match, NearMiss):
            self._log.near(asked.use, asked.text, match)
        elif match is not None:
            answer = match.answer
            told = FromCache(
                "similar",
                answer.key.digest,
                answer.created_s,
                question=answer.question,
                similarity=match.similarity,
                decision=uuid.uuid4().hex,
            )
            seeking.find(Found(answer, told, asked.use, asked.text))
        self._want((key.partition, key.scope), missing[:MISSING_AT_ONCE])

    # -- vectors --

    def kept(self, asked: CachedQuestion, key: CacheKey) -> None:
        """Make findable what is to be kept, where whoever asked wants similar answers.

        What is kept otherwise, or before the embedding is ready, is made findable once a search
        comes by.
        """
        if self._similar is not None and asked.use.similar:
            candidate = Candidate(key.digest, asked.text, b"", "")
            place = key.partition, key.scope
            self._aside(partial(self._make_vector, self._similar, place, candidate))

    def with_vector(self, question: str, what: Callable[[bytes, str], None]) -> None:
        """Call it with the question's vector and the model that made it, if any can be made."""

        def call(similar: SimilarAnswers) -> None:
            told = similar.vector(question)
            if told is not None and told[0]:
                what(*told)

        if self._similar is not None:
            self._aside(partial(call, self._similar))

    @contextmanager
    def model_at_work(self) -> Generator[None]:
        """Meanwhile no vectors are made that nobody waits for."""
        with self._lock:
            self._models_at_work += 1
        try:
            yield
        finally:
            with self._lock:
                self._models_at_work -= 1
            self._go_on()

    def _want(self, place: Place, missing: Sequence[Candidate]) -> None:
        with self._lock:
            for each in missing:
                if len(self._missing) < MOST_MISSING:
                    self._missing[place, each.digest] = each
        self._go_on()

    def _go_on(self) -> None:
        """Have the missing vectors made, where there is time."""
        with self._lock:
            if self._makes_missing or self._models_at_work or not self._missing:
                return
            self._makes_missing = True
        self._make_next()

    def _make_next(self) -> None:
        """One vector at a time, behind the searches that wait."""
        if not self._aside(self._make_missing):
            with self._lock:
                self._makes_missing = False

    def _make_missing(self) -> None:
        with self._lock:
            if self._models_at_work or not self._missing or self._similar is None:
                self._makes_missing = False
                return
            (place, digest) = next(iter(self._missing))
            candidate = self._missing.pop((place, digest))
        try:
            self._make_vector(self._similar, place, candidate)
        except BaseException:
            with self._lock:
                self._makes_missing = False
                self._missing.clear()  # the next search begins again
            raise
        self._make_next()

    def _make_vector(self, similar: SimilarAnswers, place: Place, candidate: Candidate) -> None:
        told = similar.vector(candidate.question)
        if told is not None:
            vector, embedding = told
            made = replace(candidate, vector=vector, embedding=embedding)
            self._writer.later(partial(_embed, place, made))

    # -- the thread --

    def _aside(self, what: Callable[[], None]) -> bool:
        """Have it done on the thread that searches; says whether that hasn't too much to do."""

        def done() -> None:
            try:
                what()
            except CacheStoreError:
                pass  # the guard has said it
            except Exception as error:  # noqa: BLE001 - a cache's defect is no answer's
                log_fault(logger, "Looking for similar questions failed", error)
            finally:
                self._room.release()

        if not self._room.acquire(blocking=False):
            return False
        try:
            self._thread.submit(done)
        except RuntimeError:  # closed
            self._room.release()
            return False
        return True

    def close(self) -> None:
        """Search no more. Nothing is waited for."""
        self._thread.shutdown(wait=False, cancel_futures=True)


def _embed(place: Place, candidate: Candidate, store: AnswerStore) -> None:
    store.embed(*place, candidate)
