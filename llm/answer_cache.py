"""Answers that are given again: looked up before a model is asked, kept once it has answered.

Errs on the side of asking the model. Whatever goes wrong here is a miss: a chat never waits for
its cache, and never fails by it.
"""

from __future__ import annotations

import logging
import threading
import time
import uuid
from collections.abc import Callable, Generator
from contextlib import closing
from functools import partial

from llm.answers_under_way import AnswersUnderWay
from llm.cache_contents import CacheContents
from llm.cache_doubts import CacheDoubts
from llm.cache_guard import LIMIT_S, CacheGuard
from llm.cache_log import CacheLog
from llm.cache_rules import CacheRules
from llm.cache_types import AnswerStore, CachedAnswer, CacheStoreError
from llm.cache_writer import CacheWriter
from llm.cached_backend import CachedBackend
from llm.cached_question import CachedQuestion, key_of, question_of
from llm.errors import LLMError
from llm.fault_log import log_fault
from llm.job import GenerationJob
from llm.joined_answer import AskAlone, JoinedAnswer
from llm.recorded_answer import RecordedAnswer
from llm.replayed_answer import ReplayedAnswer, replay
from llm.seeking import Found, Seeking
from llm.similar_answers import SimilarAnswers, SimilarState
from llm.similar_search import SimilarSearch
from llm.types import (
    Backend,
    CancelToken,
    Delta,
    Finish,
    FromCache,
    GenerationRequest,
    Notice,
)

logger = logging.getLogger(__name__)


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
        self._under_way = AnswersUnderWay()
        self._log = CacheLog(self._writer, clock)
        self._similar = similar(self._guard) if similar is not None else None
        self._search = SimilarSearch(self._similar, self._writer, self._log, clock)
        self._doubts = CacheDoubts(self._guard, self._writer, self.contents, self._search, clock)
        self._guard.open()

    def flush(self, timeout_s: float) -> bool:
        """Wait until what was to be written so far is, or is given up; says whether in time."""
        return self._writer.flush(timeout_s)

    @property
    def similar_state(self) -> SimilarState:
        """Whether similar questions can be looked for; asking has what they need get ready."""
        return self._similar.state if self._similar is not None else "none"

    @property
    def similar_trouble(self) -> LLMError | None:
        """Why similar questions can't be looked for; None where nothing went wrong."""
        return self._similar.trouble if self._similar is not None else None

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
            asked = question_of(self._rules, backend, request)
            if isinstance(asked, CachedQuestion):
                if (found := self._found(asked)) is not None:
                    return ReplayedAnswer(backend.name, found.answer, partial(self._given, found))
                if (under_way := self._under_way.join(asked)) is not None:
                    return JoinedAnswer(
                        backend,
                        under_way,
                        ask_alone,
                        partial(self._joined, asked),
                        partial(self._under_way.next, asked),
                    )
                self._search.begin(asked)
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
        self._under_way.submitted(request.request_id, job)
        if job is None:
            self.ended(request)
        elif (seeking := self._search.of(request.request_id)) is not None:
            seeking.when_found(partial(self._leave_the_line, seeking, job, answer_instead))

    def ended(self, request: GenerationRequest) -> None:
        """Say that a request is over, however it ended: nothing is looked for any more."""
        self._search.ended(request.request_id)

    def stream(
        self, backend: Backend, request: GenerationRequest, cancel: CancelToken
    ) -> Generator[Delta | Notice | Finish]:
        """The backend's stream, or a stored answer's; what the backend says is kept.

        Looks once more: what is asked now may be less than what was to be asked, where not all of
        it fits the window, and while it stood in line somebody may have been answered.
        """
        found, asked = None, None
        seeking = self._search.of(request.request_id) or Seeking()
        try:
            asked = question_of(self._rules, backend, request)
            found = self._found(asked) if isinstance(asked, CachedQuestion) else None
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
        asked: CachedQuestion | str | None,
        seeking: Seeking,
    ) -> Generator[Delta | Notice | Finish]:
        """The backend's stream, unless a similar question's answer is found before its first text.

        Then it ends without a `Finish`.
        """
        record = (
            RecordedAnswer(self._rules.max_chars) if isinstance(asked, CachedQuestion) else None
        )
        begun_s = self._clock()
        model_cancel, spoke = CancelToken(), False
        forget = cancel.on_cancel(model_cancel.cancel)
        seeking.when_found(model_cancel.cancel)
        try:
            with (
                self._search.model_at_work(),
                closing(backend.stream(request, model_cancel)) as stream,
            ):
                for item in stream:
                    if not spoke and not isinstance(item, Notice):
                        if not seeking.model_speaks():
                            return
                        spoke = True
                        self._note_unfound(request, asked, seeking)
                    if record is not None and isinstance(asked, CachedQuestion):
                        record.take(item)
                        # Before it is passed on: nobody asks for more after the end.
                        if isinstance(item, Finish):
                            self._keep(backend, asked, record, begun_s)
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

    def _joined(self, asked: CachedQuestion, finish: Finish) -> None:
        self._log.joined(asked.use, asked.text, finish.usage)

    def through(self, backend: Backend) -> CachedBackend:
        """The backend, with its answers looked up and kept; always the same for the same one."""
        with self._lock:
            if id(backend) not in self._wrapped:
                self._wrapped[id(backend)] = CachedBackend(backend, self.stream)
            return self._wrapped[id(backend)]

    def _found(self, asked: CachedQuestion) -> Found | None:
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
        return Found(answer, told, asked.use, asked.text)

    def _note_unfound(
        self, request: GenerationRequest, asked: CachedQuestion | str | None, seeking: Seeking
    ) -> None:
        if request.cache is None or asked is None:
            return
        if isinstance(asked, str):
            self._log.refused(request.cache, asked)
        elif asked.use.fresh:
            self._log.missed(asked.use, asked.text, "fresh")
        else:
            unknown = "unknown-model" if asked.key is None else ""
            self._log.missed(asked.use, asked.text, unknown or seeking.why_not)

    def _keep(
        self, backend: Backend, asked: CachedQuestion, record: RecordedAnswer, begun_s: float
    ) -> None:
        """Keep a whole answer; nothing where it isn't one, or isn't certain whose it is.

        Under what did answer: that may be another than what was to, or wasn't known before.
        """
        try:
            key = key_of(self._rules, record.fingerprint, asked.request)
            if not record.whole or key is None:
                return
            now_s = self._clock()
            model = record.model or backend.status().model
            answer = CachedAnswer(
                key,
                asked.text,
                record.pieces,
                record.usage,
                model,
                record.server,
                created_s=now_s,
                expires_s=now_s + self._rules.ttl.seconds(model, asked.text),
                took_s=record.took_s,
            )
        except Exception as error:  # noqa: BLE001 - a cache's defect is no answer's
            log_fault(logger, "An answer couldn't be kept for the next time", error)
            return
        self._writer.later(lambda store: store.put(answer, begun_s=begun_s))
        self._search.kept(asked, key)

    def doubt(self, owner: str, cached: FromCache, question: str, *, wrong: bool) -> None:
        """Learn from who doubts a similar match, as in `CacheDoubts`."""
        self._doubts.doubt(owner, cached, question, wrong=wrong)

    def close(self) -> None:
        """Write what is to be written, for a moment at most, and free the store."""
        self._writer.close()
        self._search.close()
        self._guard.close()
