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
from contextlib import closing
from dataclasses import dataclass
from functools import partial

from llm.cache_contents import LOOK_LIMIT_S, CacheContents
from llm.cache_guard import LIMIT_S, CacheGuard
from llm.cache_key import cache_key
from llm.cache_log import CacheLog
from llm.cache_rules import CacheRules, is_random
from llm.cache_types import (
    SHARED,
    AnswerStore,
    CachedAnswer,
    CacheKey,
    CacheStoreError,
    Rejection,
)
from llm.cache_writer import CacheWriter
from llm.cacheable import why_not
from llm.cached_backend import CachedBackend
from llm.errors import LLMError
from llm.fault_log import log_fault
from llm.job import GenerationJob
from llm.joined_answer import MOST_FOLLOWERS, AskAlone, JoinedAnswer, UnderWay
from llm.recorded_answer import RecordedAnswer
from llm.replayed_answer import ReplayedAnswer, replay
from llm.seeking import Found, Seeking
from llm.similar_answers import NearMiss, SimilarAnswers, SimilarState
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


_MOST_WITHOUT_VECTOR = 1000
"""The latest answers kept before the embedding was ready; they are made findable once it is."""
_MOST_ASIDE = 50
"""Searches that wait for their turn; what comes on top isn't looked for."""


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


@dataclass(frozen=True, slots=True)
class _Kept:
    """An answer that was kept without its question's vector."""

    key: CacheKey
    question: str
    created_s: float


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
        self.contents = CacheContents(
            self._guard,
            self._writer,
            shared=rules.shared,
            shared_clear=rules.shared_clear,
            clock=clock,
        )
        self._lock = threading.Lock()
        self._wrapped: dict[int, CachedBackend] = {}
        self._under_way: dict[tuple[str, bool], UnderWay] = {}  # by digest and `similar`
        self._leading: dict[str, UnderWay] = {}  # by request, until its job is known
        self._seeking: dict[str, Seeking] = {}  # by request, until its end
        self._similar = similar(self._guard) if similar is not None else None
        self._without_vector: deque[_Kept] = deque(maxlen=_MOST_WITHOUT_VECTOR)
        self._searches = ThreadPoolExecutor(1, thread_name_prefix="answer-cache-search")
        self._aside_room = threading.BoundedSemaphore(_MOST_ASIDE)
        self._log = CacheLog(self._writer, clock)
        self._guard.open()

    def flush(self, timeout_s: float) -> bool:
        """Wait until what was to be written so far is, or is given up; says whether in time."""
        return self._writer.flush(timeout_s)

    @property
    def similar_state(self) -> SimilarState:
        """Whether similar questions can be looked for; asking has what they need get ready."""
        return self._similar.state if self._similar is not None else "none"

    @property
    def in_trouble(self) -> bool:
        """Whether its store can't be used now, so that every question goes to the model."""
        return self._guard.in_trouble

    # -- asking --

    def route(self, backend: Backend, request: GenerationRequest, ask_alone: AskAlone) -> Backend:
        """Whom to ask: a stored answer, or one under way, which stand in no line; else the backend.

        Never raises. `submitted` is to be called after it, and `ended` at the answer's end.
        """
        try:
            asked = self._asked(backend, request)
            if isinstance(asked, _Asked):
                if (found := self._found(asked)) is not None:
                    return ReplayedAnswer(backend.name, found.answer, partial(self._given, found))
                if (under_way := self._join(asked)) is not None:
                    return JoinedAnswer(
                        backend,
                        under_way,
                        ask_alone,
                        partial(self._joined, asked),
                        partial(self._next, asked),
                    )
                self._seek(asked)
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
        if leading is not None:
            leading.is_answered_by(job)
        if job is None:
            self.ended(request)
        elif seeking is not None:
            seeking.when_found(partial(self._leave_the_line, seeking, job, answer_instead))

    def ended(self, request: GenerationRequest) -> None:
        """Say that a request is over, however it ended: nothing is looked for any more."""
        with self._lock:
            seeking = self._seeking.pop(request.request_id, None)
        if seeking is not None:
            seeking.model_speaks()

    def stream(
        self, backend: Backend, request: GenerationRequest, cancel: CancelToken
    ) -> Generator[Delta | Notice | Finish]:
        """The backend's stream, or a stored answer's; what the backend says is kept.

        Looks once more: what is asked now may be less than what was to be asked, where not all of
        it fits the window, and while it stood in line somebody may have been answered.
        """
        found, asked = None, None
        with self._lock:
            seeking = self._seeking.get(request.request_id) or Seeking()
        try:
            asked = self._asked(backend, request)
            found = self._found(asked) if isinstance(asked, _Asked) else None
        except Exception as error:  # noqa: BLE001 - a cache's defect is no answer's
            log_fault(logger, "The answer cache failed before an answer", error)
        found = found or seeking.found
        if found is None:
            yield from self._raced(backend, request, cancel, asked, seeking)
            found = seeking.found
        if found is not None:
            yield from self._given(found, cancel)

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
                        self._note_unfound(request, asked, seeking)
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

    def _given(self, found: Found, cancel: CancelToken) -> Generator[Delta | Notice | Finish]:
        """A stored answer, said again, from now on one that was given."""
        if found.use is not None:
            self._log.given(found.use, found.asked, found.answer, found.told)
        yield from replay(found.answer, found.told, cancel, pieces_per_s=self._rules.pieces_per_s)

    def _leave_the_line(
        self,
        seeking: Seeking,
        job: GenerationJob,
        answer_instead: Callable[[GenerationJob, Backend], bool],
    ) -> None:
        """Where it has its turn already, its stream is told as well."""
        if (found := seeking.found) is not None:
            name = job.backend.name
            answer_instead(job, ReplayedAnswer(name, found.answer, partial(self._given, found)))

    def _join(self, asked: _Asked) -> UnderWay | None:
        """The same question's answer under way; None where there is none, and now it is this.

        Who is content with the very same question isn't given what may become a similar one's.
        """
        if asked.key is None or asked.key.scope != SHARED or asked.use.fresh:
            return None
        name = _shared_name(asked)
        with self._lock:
            under_way = self._under_way.get(name)
            if under_way is not None and not under_way.over:
                under_way.followers += 1
                return under_way if under_way.followers <= MOST_FOLLOWERS else None
            for each in [each for each, way in self._under_way.items() if way.over]:
                del self._under_way[each]
            leading = UnderWay()
            self._under_way[name] = self._leading[asked.request.request_id] = leading
            return None

    def _next(self, asked: _Asked, ended: UnderWay) -> tuple[bool, UnderWay]:
        """What to follow after one that ended too early; true where it is the asker's to lead."""
        name = _shared_name(asked)
        with self._lock:
            under_way = self._under_way.get(name)
            if under_way is not None and under_way is not ended and not under_way.over:
                return False, under_way
            self._under_way[name] = leading = UnderWay()
            return True, leading

    def _joined(self, asked: _Asked, finish: Finish) -> None:
        self._log.joined(asked.use, asked.question, finish.usage)

    # -- similar questions --

    def _seek(self, asked: _Asked) -> None:
        """Look for a similar question, beside the model."""
        wanted = asked.use.similar and not asked.use.fresh
        if self._similar is None or asked.key is None or not wanted:
            return
        seeking = Seeking()
        seeking.why_not = "late"
        with self._lock:
            self._seeking[asked.request.request_id] = seeking
        self._aside(partial(self._search, self._similar, asked, asked.key, seeking))

    def _search(
        self, similar: SimilarAnswers, asked: _Asked, key: CacheKey, seeking: Seeking
    ) -> None:
        if seeking.over:
            return
        if why_not := similar.why_not(asked.question):
            seeking.why_not = why_not
            return
        self._add_vectors(similar)
        match = similar.search(key, asked.question, self._clock())
        seeking.why_not = ""
        if isinstance(match, NearMiss):
            self._log.near(asked.use, asked.question, match)
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
            seeking.find(Found(answer, told, asked.use, asked.question))

    def _add_vectors(self, similar: SimilarAnswers) -> None:
        """Make findable what was kept; what is kept before the embedding is ready waits for it."""
        while similar.ready and self._without_vector:
            kept = self._without_vector.popleft()
            if (told := similar.vector(kept.question)) is not None:
                self._writer.later(partial(_put_again, kept, told))

    def _aside(self, what: Callable[[], None]) -> None:
        """Have it done on the thread that searches, unless that has too much to do."""

        def done() -> None:
            try:
                what()
            except CacheStoreError:
                pass  # the guard has said it
            except Exception as error:  # noqa: BLE001 - a cache's defect is no answer's
                log_fault(logger, "Looking for similar questions failed", error)
            finally:
                self._aside_room.release()

        if self._aside_room.acquire(blocking=False):
            try:
                self._searches.submit(done)
            except RuntimeError:  # closed
                self._aside_room.release()

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
        return cache_key(fingerprint, request, shared=self._rules.shared_with_all(request))

    def _found(self, asked: _Asked) -> Found | None:
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
        return Found(answer, told, asked.use, asked.question)

    def _note_unfound(
        self, request: GenerationRequest, asked: _Asked | str | None, seeking: Seeking
    ) -> None:
        if request.cache is None or asked is None:
            return
        if isinstance(asked, str):
            self._log.refused(request.cache, asked)
        elif asked.use.fresh:
            self._log.missed(asked.use, asked.question, "fresh")
        else:
            unknown = "unknown-model" if asked.key is None else ""
            self._log.missed(asked.use, asked.question, unknown or seeking.why_not)

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
        self._writer.later(lambda store: store.put(answer))
        if self._similar is not None:  # whoever is content with the very same may want more one day
            self._without_vector.append(_Kept(key, asked.question, now_s))
            if asked.use.similar:
                self._aside(partial(self._add_vectors, self._similar))

    # -- doubts --

    def doubt(self, owner: str, cached: FromCache, question: str, *, wrong: bool) -> None:
        """Learn from “Ask the model anyway” after a similar match, and from “Wrong match”.

        Near this question more likeness is wanted from now on.

        Args:
            question: what was asked.
            wrong: the match was wrong: its entry goes, unless it isn't this person's to forget.

        Raises:
            CacheStoreError: it couldn't be noted.
        """
        if cached.kind != "similar" or cached.similarity is None:
            return
        similarity, now_s = cached.similarity, self._clock()
        places: list[tuple[str, str]] = []
        for scope in self.contents.scopes(owner):
            answer = self._guard.ask(
                partial(_entry, digest=cached.digest, scope=scope, now_s=now_s), LOOK_LIMIT_S
            )
            if answer is not None:
                places.append((answer.key.partition, scope))
        if wrong:
            self.contents.forget(owner, cached.digest)
            self.contents.judge(owner, cached.decision, same=False)

        def learn() -> None:
            told = self._similar.vector(question) if self._similar is not None else None
            if told is None:
                return
            rejection = Rejection(told[0], told[1], similarity, now_s)
            for partition, scope in places:
                self._writer.later(partial(_reject, partition, scope, rejection))

        self._aside(learn)

    def close(self) -> None:
        """Write what is to be written, for a moment at most, and free the store."""
        self._writer.close()
        self._searches.shutdown(wait=False, cancel_futures=True)
        self._guard.close()


def _shared_name(asked: _Asked) -> tuple[str, bool]:
    assert asked.key is not None
    return asked.key.digest, asked.use.similar


def _put_again(kept: _Kept, told: tuple[bytes, str], store: AnswerStore) -> None:
    answer = store.get(kept.key.digest, kept.key.scope, kept.created_s)
    if answer is not None and answer.created_s == kept.created_s:  # not forgotten, nor replaced
        store.put(answer, *told)


def _entry(store: AnswerStore, digest: str, scope: str, now_s: float) -> CachedAnswer | None:
    return store.get(digest, scope, now_s)


def _reject(partition: str, scope: str, rejection: Rejection, store: AnswerStore) -> None:
    store.reject(partition, scope, rejection)
