"""What a person can do with a conversation: ask, stop, ask again, clear.

Joins the store, the registry and the backends; holds no text and runs nothing itself.
"""

from __future__ import annotations

import logging
import threading
import uuid
import weakref
from collections.abc import Callable, Mapping
from dataclasses import replace

from llm.conversations import ConversationStore, Receipt, Turn, ended, history_messages
from llm.errors import (
    EmptyQuestionError,
    InternalError,
    LLMError,
    QuestionTooLongError,
    TooManyQueuedError,
)
from llm.fault_log import log_fault
from llm.job import GenerationJob, Snapshot
from llm.registry import JobRegistry
from llm.types import Backend, Finish, GenerationRequest, Message, SamplingParams

logger = logging.getLogger(__name__)

MAX_QUEUED = 5
"""Questions that may wait behind a running answer in one conversation."""


class Chat:
    """The conversations of this process and their running answers.

    Args:
        backends: name to a function that gives the backend, made on first use.

    Thread-safety: every method may be called from any thread; two tabs that ask at the same
    moment get two turns, one after the other.
    """

    def __init__(
        self,
        store: ConversationStore,
        registry: JobRegistry,
        backends: Mapping[str, Callable[[], Backend]],
        max_question_chars: int = 400_000,
    ) -> None:
        self._store = store
        self._registry = registry
        self._backends = backends
        self._max_question_chars = max_question_chars
        # Weak: a lock lives while somebody holds it, so there aren't more than there are callers.
        self._locks: weakref.WeakValueDictionary[str, threading.RLock] = (
            weakref.WeakValueDictionary()
        )
        self._locks_lock = threading.Lock()

    def open(self, conversation_id: str | None) -> str:
        """The id of this conversation if it is known here, else of a new one."""
        if conversation_id and self._store.exists(conversation_id):
            return conversation_id
        return self._store.new_id()

    def turns(self, conversation_id: str) -> tuple[Turn, ...]:
        return self._store.turns(conversation_id)

    def job(self, conversation_id: str) -> GenerationJob | None:
        """The running or waiting answer, if there is one."""
        return self._registry.get(conversation_id)

    def ahead_of(self, job: GenerationJob) -> int:
        return self._registry.ahead_of(job)

    def standing_request(
        self,
        conversation_id: str,
        *,
        backend: str,
        params: SamplingParams,
        system_prompt: str = "",
        model: str = "",
    ) -> GenerationRequest:
        """What would be sent now, but for the next question."""
        turns = self._store.turns(conversation_id)
        return GenerationRequest(history_messages(turns, system_prompt), params, model)

    def ask(
        self,
        conversation_id: str,
        question: str,
        *,
        person: str,
        backend: str,
        params: SamplingParams,
        system_prompt: str = "",
        model: str = "",
    ) -> None:
        """Add a question; it is answered at once, or as soon as the answer before it is over.

        Raises:
            EmptyQuestionError: nothing but white space.
            QuestionTooLongError: more characters than allowed.
            TooManyQueuedError: enough questions wait already.
        In each case nothing was added.
        """
        if not question.strip():
            raise EmptyQuestionError
        chars = len(question)
        if chars > self._max_question_chars:
            limit = self._max_question_chars
            raise QuestionTooLongError(chars=chars, limit=limit, over=chars - limit)
        turn = Turn(uuid.uuid4().hex, question, backend, params, system_prompt, person, model)
        with self._locked(conversation_id):
            queued = [t for t in self._store.turns(conversation_id) if t.state == "queued"]
            if len(queued) >= MAX_QUEUED:
                raise TooManyQueuedError(limit=MAX_QUEUED)
            self._store.add(conversation_id, turn)
            self._start_next(conversation_id)

    def ask_again(
        self,
        conversation_id: str,
        turn_id: str,
        *,
        person: str,
        backend: str,
        params: SamplingParams,
        system_prompt: str = "",
        model: str = "",
    ) -> None:
        """Ask an ended turn's question once more, of whichever backend is chosen now.

        The new turn takes the old one's place where that has no text worth keeping.

        Raises:
            LLMError: as `ask`; the old turn stays then.
        """
        with self._locked(conversation_id):
            turn = next((t for t in self.turns(conversation_id) if t.turn_id == turn_id), None)
            if turn is None or turn.state != "ended":
                return
            self.ask(
                conversation_id,
                turn.question,
                person=person,
                backend=backend,
                params=params,
                system_prompt=system_prompt,
                model=model,
            )
            if not (turn.text.strip() or turn.reasoning.strip()):
                self._store.remove(conversation_id, turn_id)

    def withdraw(self, conversation_id: str, turn_id: str) -> None:
        """Take back a question that is still queued."""
        with self._locked(conversation_id):
            for turn in self._store.turns(conversation_id):
                if turn.turn_id == turn_id and turn.state == "queued":
                    self._store.remove(conversation_id, turn_id)

    def stop(self, conversation_id: str, turn_id: str | None = None) -> None:
        """Stop the running answer, keeping what has been said.

        Args:
            turn_id: the turn that is meant: when its answer has just ended and the next has begun,
                the next goes on. None means whichever runs.
        """
        job = self._registry.get(conversation_id)
        if job is not None and turn_id in (None, job.request.request_id):
            job.cancel()

    def clear(self, conversation_id: str) -> None:
        """Stop and forget everything in this conversation."""
        with self._locked(conversation_id):
            self._store.clear(conversation_id)
            job = self._registry.get(conversation_id)
        if job is not None:
            job.cancel()

    def _locked(self, conversation_id: str) -> threading.RLock:
        with self._locks_lock:
            return self._locks.setdefault(conversation_id, threading.RLock())

    def _start_next(self, conversation_id: str) -> None:
        """Start the oldest queued turn unless an answer is running. Called with the lock held.

        After Clear the old job may still be letting go; its end starts what was asked since.
        """
        while self._registry.get(conversation_id) is None:
            turns = self._store.turns(conversation_id)
            turn = next((t for t in turns if t.state == "queued"), None)
            if turn is None or any(t.state == "running" for t in turns):
                return
            self._store.change(conversation_id, turn.turn_id, lambda t: replace(t, state="running"))
            try:
                self._submit(conversation_id, turn, turns[: turns.index(turn)])
                return
            except LLMError as error:
                self._fail(conversation_id, turn, error)
            except BaseException as error:
                # Streamlit ends a script run with BaseExceptions; the turn must not hang then.
                log_fault(logger, "A question couldn't be handed to its backend", error)
                self._fail(conversation_id, turn, InternalError(kind=type(error).__name__))
                if not isinstance(error, Exception):
                    raise

    def _submit(self, conversation_id: str, turn: Turn, before: tuple[Turn, ...]) -> None:
        backend = self._backends[turn.backend]()
        history = history_messages(before, turn.system_prompt)
        messages = (*history, Message("user", turn.question))

        def save(snapshot: Snapshot) -> None:
            self._store.change(conversation_id, turn.turn_id, lambda t: _as_snapshot(t, snapshot))

        def on_end(job: GenerationJob) -> None:
            with self._locked(conversation_id):
                # Once more where the store refused it: a turn that stays running would hold up
                # the conversation for ever.
                still = next(
                    (t for t in self.turns(conversation_id) if t.turn_id == turn.turn_id), turn
                )
                if still.state == "running":
                    self._end_barely(conversation_id, turn.turn_id, job.snapshot())
                self._start_next(conversation_id)

        self._registry.submit(
            conversation_id,
            turn.person,
            backend,
            GenerationRequest(messages, turn.params, turn.model, request_id=turn.turn_id),
            save=save,
            on_end=on_end,
        )

    def _end_barely(self, conversation_id: str, turn_id: str, snapshot: Snapshot) -> None:
        """End a turn whose answer couldn't be saved with all that is known of it."""
        receipt = Receipt(
            snapshot.model, Finish(snapshot.finish.reason if snapshot.finish else "error")
        )
        self._store.change(
            conversation_id,
            turn_id,
            lambda t: ended(t, snapshot.text, snapshot.reasoning, receipt, snapshot.error),
        )

    def _fail(self, conversation_id: str, turn: Turn, error: LLMError) -> None:
        receipt = Receipt(model="", finish=Finish("error"))
        self._store.change(
            conversation_id, turn.turn_id, lambda t: ended(t, "", "", receipt, error)
        )


def _as_snapshot(turn: Turn, snapshot: Snapshot) -> Turn:
    if not snapshot.done or snapshot.finish is None:
        return replace(turn, text=snapshot.text, reasoning=snapshot.reasoning)
    receipt = Receipt(
        model=snapshot.model,
        server=snapshot.server,
        finish=snapshot.finish,
        ttft_s=snapshot.ttft_s,
        tokens_per_s=snapshot.tokens_per_s,
        left_out=snapshot.left_out,
        reasoning_s=snapshot.reasoning_s,
    )
    return ended(turn, snapshot.text, snapshot.reasoning, receipt, snapshot.error)
