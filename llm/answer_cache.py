"""Answers that are given again: looked up before a model is asked, kept once it has answered.

Errs on the side of asking the model. Whatever goes wrong here is a miss: a chat never waits for
its cache, and never fails by it.
"""

from __future__ import annotations

import logging
import threading
import time
import uuid
from collections import deque
from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

from llm.cache_contents import CacheContents
from llm.cache_guard import LIMIT_S, CacheGuard
from llm.cache_key import cache_key, person_scope
from llm.cache_rules import CacheRules, is_random
from llm.cache_types import (
    SHARED,
    AnswerStore,
    CachedAnswer,
    CacheKey,
    CacheStoreError,
    Decision,
    DecisionKind,
    Rejection,
)
from llm.cache_writer import CacheWriter
from llm.cacheable import why_not
from llm.cached_backend import CachedBackend
from llm.errors import LLMError
from llm.fault_log import log_fault
from llm.job import GenerationJob
from llm.joined_answer import AskAlone, JoinedAnswer, UnderWay
from llm.recorded_answer import RecordedAnswer
from llm.replayed_answer import ReplayedAnswer, replay
from llm.seeking import Seeking
from llm.similar_answers import NearMiss, SimilarAnswers
from llm.types import (
    Backend,
    CacheUse,
    CancelToken,
    Delta,
    Fingerprint,
    Finish,
    FromCache,
    GenerationRequest,
    Notice,
)

logger = logging.getLogger(__name__)


_MOST_WITHOUT_VECTOR = 100
"""Answers kept while the embedding gets ready that are made findable once it is."""


@dataclass(frozen=True, slots=True)
class _Asked:
    """A question that may be cached.

    Args:
        key: what it is looked up under; None while it isn't known for certain who would answer.
    """

    use: CacheUse
    request: GenerationRequest
    key: CacheKey | None

    @property
    def question(self) -> str:
        return self.request.messages[-1].content


class AnswerCache:
    """Gives answers again, and keeps those that may be; `contents` is for looking at it.

    Args:
        make_store: makes the store, in the background.
        similar: gives what looks for similar questions; None leaves that out.
        clock: seconds since 1970.
        limit_s: how long a question may be held up by the store.

    Thread-safety: every method may be called from any thread.
    """

    def __init__(
        self,
        make_store: Callable[[], AnswerStore],
        rules: CacheRules | None = None,
        similar: Callable[[CacheGuard], SimilarAnswers] | None = None,
        clock: Callable[[], float] = time.time,
        limit_s: float = LIMIT_S,
    ) -> None:
        self._guard = CacheGuard(make_store, limit_s=limit_s)
        self._rules = rules = rules or CacheRules()
        self._clock = clock
        self._writer = CacheWriter(self._guard)
        self.contents = CacheContents(self._guard, self._writer, shared=rules.shared, clock=clock)
        self._lock = threading.Lock()
        self._wrapped: dict[int, CachedBackend] = {}
        self._under_way: dict[str, UnderWay] = {}  # by digest
        self._leading: dict[str, UnderWay] = {}  # by request, until its job is known
        self._seeking: dict[str, Seeking] = {}  # by request, until its stream begins
        self._similar = similar(self._guard) if similar is not None else None
        self._without_vector: deque[CachedAnswer] = deque(maxlen=_MOST_WITHOUT_VECTOR)
        self._searches = ThreadPoolExecutor(1, thread_name_prefix="answer-cache-search")
        self._guard.open()

    def flush(self, timeout_s: float) -> bool:
        """Wait until what was to be written so far is, or is given up; says whether in time."""
        return self._writer.flush(timeout_s)

    @property
    def in_trouble(self) -> bool:
        """Whether its store can't be used now, so that every question goes to the model."""
        return self._guard.in_trouble

    # -- asking --

    def route(self, backend: Backend, request: GenerationRequest, ask_alone: AskAlone) -> Backend:
        """Whom to ask: a stored answer, or one under way, which stand in no line; else the backend.

        Takes at most as long as the store may; never raises. `submitted` is to be called after it.
        """
        try:
            asked = self._asked(backend, request)
            if isinstance(asked, _Asked):
                if (found := self._found(asked)) is not None:
                    return self._replayed(backend, found)
                if (under_way := self._join(asked, request)) is not None:
                    return JoinedAnswer(backend, under_way, ask_alone)
                self._seek(asked, request)
        except Exception as error:  # noqa: BLE001 - a cache's defect is no answer's
            log_fault(logger, "The answer cache failed before an answer", error)
        return self.through(backend)

    def submitted(
        self,
        request: GenerationRequest,
        job: GenerationJob | None,
        answer_instead: Callable[[GenerationJob, Backend], bool],
    ) -> None:
        """Say which job answers a routed request; None where it was refused.

        Args:
            answer_instead: takes a job out of its line and has another backend answer it.
        """
        with self._lock:
            leading = self._leading.pop(request.request_id, None)
            seeking = self._seeking.get(request.request_id)
            if job is None:
                self._seeking.pop(request.request_id, None)
        if leading is not None:
            leading.is_answered_by(job)
        if seeking is None or job is None:
            return

        def leave_the_line() -> None:
            # Where it has its turn already, its stream is told as well.
            if seeking.found is not None:
                answer_instead(job, self._replayed(job.backend, seeking.found))

        seeking.when_found(leave_the_line)

    def stream(
        self, backend: Backend, request: GenerationRequest, cancel: CancelToken
    ) -> Generator[Delta | Notice | Finish]:
        """The backend's stream, or a stored answer's; what the backend says is kept.

        Looks once more: what is asked now may be less than what was to be asked, where not all of
        it fits the window, and while it stood in line somebody may have been answered.
        """
        found, asked = None, None
        with self._lock:
            seeking = self._seeking.pop(request.request_id, None) or Seeking()
        try:
            asked = self._asked(backend, request)
            found = self._found(asked) if isinstance(asked, _Asked) else None
        except Exception as error:  # noqa: BLE001 - a cache's defect is no answer's
            log_fault(logger, "The answer cache failed before an answer", error)
        if found is None:
            yield from self._raced(backend, request, cancel, asked, seeking)
            found = seeking.found
        if found is not None:
            answer, told = found
            yield from replay(answer, told, cancel, pieces_per_s=self._rules.pieces_per_s)

    def _raced(
        self,
        backend: Backend,
        request: GenerationRequest,
        cancel: CancelToken,
        asked: _Asked | str | None,
        seeking: Seeking,
    ) -> Generator[Delta | Notice | Finish]:
        """The backend's stream, unless a similar question's answer is found before its first text.

        Then it ends without a `Finish`.
        """
        record = RecordedAnswer(self._rules.max_chars) if isinstance(asked, _Asked) else None
        model_cancel, spoke = CancelToken(), False
        forget = cancel.on_cancel(model_cancel.cancel)
        seeking.when_found(model_cancel.cancel)
        try:
            with closing(backend.stream(request, model_cancel)) as stream:
                for item in stream:
                    if not spoke and not isinstance(item, Notice):
                        if not seeking.model_speaks():
                            return
                        spoke = True
                        self._note_unfound(request, asked)
                    if record is not None and isinstance(asked, _Asked):
                        record.take(item)
                        # Before it is passed on: nobody asks for more after the end.
                        if isinstance(item, Finish):
                            self._keep(backend, asked, record)
                    yield item
        except LLMError:
            if seeking.model_speaks():  # else it was told to stop
                raise
        finally:
            forget()

    def _replayed(self, backend: Backend, found: tuple[CachedAnswer, FromCache]) -> ReplayedAnswer:
        answer, told = found
        return ReplayedAnswer(backend.name, answer, told, pieces_per_s=self._rules.pieces_per_s)

    def _join(self, asked: _Asked, request: GenerationRequest) -> UnderWay | None:
        """The same question's answer under way; None where there is none, and now it is this."""
        if asked.key is None or asked.key.scope != SHARED or asked.use.fresh:
            return None
        with self._lock:
            under_way = self._under_way.get(asked.key.digest)
            if under_way is not None and not under_way.over:
                return under_way
            for digest in [each for each, way in self._under_way.items() if way.over]:
                del self._under_way[digest]
            leading = UnderWay()
            self._under_way[asked.key.digest] = self._leading[request.request_id] = leading
            return None

    def _seek(self, asked: _Asked, request: GenerationRequest) -> None:
        """Look for a similar question, beside the model."""
        if self._similar is None or not asked.use.similar or asked.use.fresh:
            return
        if asked.key is None:
            return
        seeking = Seeking()
        with self._lock:
            self._seeking[request.request_id] = seeking
        try:
            self._searches.submit(self._search, self._similar, asked, asked.key, seeking)
        except RuntimeError:  # closed
            return

    def _search(
        self, similar: SimilarAnswers, asked: _Asked, key: CacheKey, seeking: Seeking
    ) -> None:
        now_s = self._clock()
        try:
            self._add_vectors(similar)
            match = similar.search(key, asked.question, now_s)
        except CacheStoreError:
            return  # the guard has said it
        except Exception as error:  # noqa: BLE001 - a cache's defect is no answer's
            log_fault(logger, "Looking for a similar question failed", error)
            return
        if isinstance(match, NearMiss):
            self._note(
                asked.use,
                "near",
                question=asked.question,
                other=match.other.question,
                similarity=match.similarity,
                digest=match.other.digest,
                reason=match.reason,
            )
        elif match is not None:
            answer, decision_id = match.answer, uuid.uuid4().hex
            told = FromCache(
                "similar",
                answer.key.digest,
                answer.created_s,
                question=answer.question,
                similarity=match.similarity,
                decision=decision_id,
            )
            if seeking.find(answer, told):
                self._note_hit(asked, answer, told)

    def through(self, backend: Backend) -> CachedBackend:
        """The backend, with its answers looked up and kept; always the same for the same one."""
        with self._lock:
            if id(backend) not in self._wrapped:
                self._wrapped[id(backend)] = CachedBackend(backend, self.stream)
            return self._wrapped[id(backend)]

    def _asked(self, backend: Backend, request: GenerationRequest) -> _Asked | str | None:
        """What to look for; a reason why nothing is, or None where nobody wants to know."""
        use = request.cache
        if use is None or request.start_text is not None or not request.messages:
            return None
        if is_random(request.params) and not use.random:
            return "random"
        if reason := why_not(request.messages):
            return reason
        fingerprint = backend.fingerprint(request)
        return _Asked(use, request, self._key(fingerprint, request))

    def _key(self, fingerprint: Fingerprint | None, request: GenerationRequest) -> CacheKey | None:
        if fingerprint is None:
            return None
        return cache_key(fingerprint, request, shared=self._rules.shared)

    def _found(self, asked: _Asked) -> tuple[CachedAnswer, FromCache] | None:
        key, now_s = asked.key, self._clock()
        if key is None or asked.use.fresh:
            return None
        try:
            answer = self._guard.ask(lambda store: store.get(key.digest, key.scope, now_s))
        except CacheStoreError:
            return None
        if answer is None:
            return None
        told = FromCache("exact", key.digest, answer.created_s, decision=uuid.uuid4().hex)
        self._note_hit(asked, answer, told)
        return answer, told

    def _note_hit(self, asked: _Asked, answer: CachedAnswer, told: FromCache) -> None:
        key, now_s = answer.key, self._clock()
        self._writer.later(lambda store: store.used(key.digest, key.scope, now_s))
        self._note(
            asked.use,
            told.kind,
            decision_id=told.decision,
            question=asked.question,
            other=told.question,
            similarity=told.similarity,
            digest=told.digest,
            model=answer.model,
            saved_tokens=answer.usage.completion_tokens or len(answer.pieces),
            saved_s=answer.took_s,
        )

    def _note_unfound(self, request: GenerationRequest, asked: _Asked | str | None) -> None:
        """What isn't kept may be personal: the log has the reason alone."""
        if request.cache is None or asked is None:
            return
        if isinstance(asked, str):
            self._note(request.cache, "refused", reason=asked)
        else:
            unknown = "unknown-model" if asked.key is None else ""
            reason = "fresh" if asked.use.fresh else unknown
            self._note(asked.use, "miss", reason=reason, question=asked.question)

    def _note(
        self, use: CacheUse, kind: DecisionKind, *, decision_id: str = "", **told: Any
    ) -> None:
        scope = person_scope(use.owner)
        decision = Decision(decision_id or uuid.uuid4().hex, scope, self._clock(), kind, **told)
        self._writer.later(lambda store: store.note(decision))

    def _keep(self, backend: Backend, asked: _Asked, record: RecordedAnswer) -> None:
        """Keep a whole answer; nothing where it isn't one, or isn't certain whose it is.

        Under what did answer: that may be another than what was to, or wasn't known before.
        """
        try:
            key = self._key(record.fingerprint, asked.request)
            if not record.whole or key is None:
                return
            now_s = self._clock()
            model = record.model or backend.status().model
            answer = CachedAnswer(
                key,
                asked.question,
                record.pieces,
                record.usage,
                model,
                record.server,
                created_s=now_s,
                expires_s=now_s + self._rules.ttl.seconds(model, asked.question),
                took_s=record.took_s,
            )
        except Exception as error:  # noqa: BLE001 - a cache's defect is no answer's
            log_fault(logger, "An answer couldn't be kept for the next time", error)
            return
        self._writer.later(partial(self._put, answer, similar=asked.use.similar))

    def _put(self, answer: CachedAnswer, store: AnswerStore, *, similar: bool) -> None:
        told = self._similar.vector(answer.question) if self._similar and similar else None
        store.put(answer, *(told or ()))
        if self._similar and similar and not self._similar.ready:
            self._without_vector.append(answer)

    def _add_vectors(self, similar: SimilarAnswers) -> None:
        """Put once more what was kept before the embedding was ready."""
        while similar.ready and self._without_vector:
            with suppress(IndexError):  # another was quicker
                answer = self._without_vector.popleft()
                if (told := similar.vector(answer.question)) is not None:
                    self._guard.ask(partial(_put_again, answer, told))

    # -- doubts --

    def doubt(self, owner: str, cached: FromCache, question: str, *, wrong: bool) -> None:
        """Learn from “Ask the model anyway” after a similar match, and from “Wrong match”.

        Near this question more likeness is wanted from now on. Done in the background.

        Args:
            question: what was asked.
            wrong: the match was wrong: its entry goes.
        """
        if cached.kind != "similar" or cached.similarity is None:
            return
        similarity = cached.similarity

        def learn(store: AnswerStore) -> None:
            now_s = self._clock()
            told = self._similar.vector(question) if self._similar is not None else None
            for scope in self.contents.scopes(owner):
                answer = store.get(cached.digest, scope, now_s)
                if answer is None:
                    continue
                if told is not None:
                    rejection = Rejection(told[0], told[1], similarity, now_s)
                    store.reject(answer.key.partition, scope, rejection)
                if wrong:
                    store.delete(cached.digest, scope)
            if wrong and cached.decision:
                store.judge(cached.decision, person_scope(owner), False)

        self._writer.later(learn)

    def close(self) -> None:
        """Write what is to be written, for a moment at most, and free the store."""
        self._writer.close()
        self._searches.shutdown(wait=False, cancel_futures=True)
        self._guard.close()


def _put_again(answer: CachedAnswer, told: tuple[bytes, str], store: AnswerStore) -> None:
    kept = store.get(answer.key.digest, answer.key.scope, answer.created_s)
    if kept is not None and kept.created_s == answer.created_s:  # not forgotten, nor replaced
        store.put(answer, *told)
