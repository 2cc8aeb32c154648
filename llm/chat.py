"""What a person can do with a conversation: ask, stop, ask again, change, clear, bring back.

Joins the store, the registry and the backends; holds no text. One thread looks after what no page
looks at: unsaved changes, this process's heartbeat, questions behind another process's answer.
"""

from __future__ import annotations

import logging
import threading
import time
import uuid
import weakref
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from llm.answer_cache import AnswerCache
from llm.conversation_access import BEAT_S
from llm.conversation_tree import (
    ConversationKey,
    ConversationState,
    Receipt,
    Turn,
    add_turn,
    bring_back,
    change_head,
    change_turn,
    clear,
    could_be_id,
    delete_turns,
    ended,
    history_messages,
    new_id,
    show,
    title_of,
)
from llm.conversations import ConversationStore
from llm.engine import Engine
from llm.errors import (
    ConversationGoneError,
    InternalError,
    LLMError,
    TooManyQueuedError,
)
from llm.fault_log import log_fault
from llm.flight_recorder import FlightRecorder
from llm.job import GenerationJob, Snapshot
from llm.question import typed, usable_question
from llm.registry import JobRegistry, Place
from llm.screen import Screen
from llm.stored_answer import StoredAnswer
from llm.types import Backend, CacheUse, Finish, GenerationRequest, Message, SamplingParams

if TYPE_CHECKING:
    from llm.metrics_log import MetricsLog

logger = logging.getLogger(__name__)

_MOST_CACHE_USES = 10_000

MAX_QUEUED = 5
"""Questions that may wait behind a running answer in one conversation."""


class Chat:
    """The conversations of all people, and their running answers.

    Args:
        backends: name to a function that gives the backend, made on first use.
        max_answer_tokens: no answer is asked to have more, whatever its parameters say.
        cache: gives answers again; None asks the backends alone.
        metrics: keeps the figures of every answer; closed with the chat.

    Thread-safety: every method may be called from any thread; two tabs that ask at the same
    moment get two turns, one after the other, in two processes too.
    """

    def __init__(
        self,
        store: ConversationStore,
        registry: JobRegistry,
        backends: Mapping[str, Callable[[], Backend]],
        max_question_chars: int = 400_000,
        max_answer_tokens: int = 1_000_000,
        clock: Callable[[], float] = time.time,
        cache: AnswerCache | None = None,
        metrics: MetricsLog | None = None,
    ) -> None:
        self._engine = Engine(registry, backends, cache=cache, metrics=metrics, clock=clock)
        self._cache = cache
        self._metrics = metrics
        self._cache_uses: dict[str, CacheUse] = {}
        self.flights = FlightRecorder()
        """The timings of the latest answers of this process."""
        self._store = store
        self._registry = registry
        self._max_question_chars = max_question_chars
        self._max_answer_tokens = max_answer_tokens
        self._clock = clock
        # Weak: a lock lives while somebody holds it, so there aren't more than there are callers.
        self._locks: weakref.WeakValueDictionary[ConversationKey, threading.RLock] = (
            weakref.WeakValueDictionary()
        )
        self._locks_lock = threading.Lock()
        self._in_line: set[ConversationKey] = set()  # where a question of ours may be queued
        self._closed = threading.Event()
        self._keeper = threading.Thread(target=self._keep, name="chat-keeper", daemon=True)
        self._keeper.start()

    @property
    def store(self) -> ConversationStore:
        return self._store

    # -- looking --

    def open(self, owner: str, wanted: str | None) -> ConversationKey:
        """This person's conversation of that id, if there is one, else a new one.

        While nothing can be read it may be there: then its address stays what it is.
        """
        if wanted:
            key = ConversationKey(owner, wanted)
            if self._store.state(key) is not None:
                return key
            if not self._store.readable and could_be_id(wanted):
                return key
        return ConversationKey(owner, new_id())

    def state(self, key: ConversationKey) -> ConversationState | None:
        """The conversation; None before its first question, and once it is deleted."""
        return self._store.state(key)

    def turns(self, key: ConversationKey) -> tuple[Turn, ...]:
        """The turns that are shown, oldest first; none for an unknown conversation."""
        state = self._store.state(key)
        return state.path() if state else ()

    def job(self, key: ConversationKey) -> GenerationJob | StoredAnswer | None:
        """The running or waiting answer, if there is one, whichever process gives it."""
        job = self._registry.get(key)
        if job is not None:
            return job
        state = self._store.state(key)
        elsewhere = self._store.elsewhere(key)
        if state is None or not elsewhere:
            return None
        running = [t for t in state.live() if t.turn_id in elsewhere and t.state == "running"]
        if not running:
            return None
        turn = running[0]

        def look() -> Turn | None:
            now = self._store.state(key)
            return now.turns.get(turn.turn_id) if now else None

        return StoredAnswer(
            turn,
            look,
            lambda: self._store.want_stop(key, turn.turn_id),
            cancelled=self._store.stop_wanted(turn.turn_id),
        )

    def answering(self, owner: str) -> frozenset[ConversationKey]:
        """This person's conversations that this process is answering in, or waits to."""
        keys = (job.conversation_id for job in self._registry.jobs())
        return frozenset(
            key for key in keys if isinstance(key, ConversationKey) and key.owner == owner
        )

    def place_of(self, job: GenerationJob | StoredAnswer) -> Place | None:
        """Where the question stands in line; None when it doesn't wait, or in another process."""
        return self._registry.place_of(job) if isinstance(job, GenerationJob) else None

    def standing_request(
        self,
        key: ConversationKey,
        *,
        backend: str,
        params: SamplingParams,
        system_prompt: str = "",
        model: str = "",
    ) -> GenerationRequest:
        """What would be sent now, but for the next question."""
        messages = history_messages(self.turns(key), system_prompt)
        params = params.at_most(self._max_answer_tokens)
        return GenerationRequest(messages, params, model, standing=True)

    # -- asking --

    def ask(
        self,
        key: ConversationKey,
        question: str,
        *,
        person: str,
        backend: str,
        params: SamplingParams,
        system_prompt: str = "",
        model: str = "",
        cache: CacheUse | None = None,
    ) -> None:
        """Add a question; it is answered at once, or as soon as the answer before it is over.

        Args:
            cache: how far the answer cache may go; None keeps it out.

        Raises:
            EmptyQuestionError: nothing but white space.
            QuestionTooLongError: more characters than allowed.
            TooManyQueuedError: enough questions wait already.
            ConversationGoneError: the id is another person's.
        In each case nothing was added.
        """
        turn = self._new_turn(question, backend, params, system_prompt, person, model)

        def change(state: ConversationState) -> ConversationState:
            path = state.path()
            parent = path[-1].turn_id if path else ""
            return _queue(replace(turn, parent=parent))(state)

        with self._locked(key):
            self._store.begin(key, change)
            self._let_cache(turn, cache)
            self._start_next(key, asked=turn.turn_id)

    def ask_again(
        self,
        key: ConversationKey,
        turn_id: str,
        *,
        person: str,
        backend: str,
        params: SamplingParams,
        system_prompt: str = "",
        model: str = "",
        question: str | None = None,
        cache: CacheUse | None = None,
    ) -> None:
        """Another answer to an ended turn's question, of whichever backend is chosen now.

        It stands beside the old one, which is deleted where it has no text worth keeping.

        Args:
            question: what is asked instead; None is the same again.

        Raises:
            LLMError: as `ask`; the old turn stays then.
        """
        old = self._ended_turn(key, turn_id)
        if old is None:
            return
        asked = old.question if question is None else question
        turn = replace(
            self._new_turn(asked, backend, params, system_prompt, person, model), parent=old.parent
        )

        worth_keeping = old.text.strip() or old.reasoning.strip()
        if question is None and cache is not None:  # who asks the same again wants another answer
            cache = replace(cache, fresh=True)
        self._ask_beside(key, old, turn, cache, instead=not worth_keeping)

    def go_on(
        self,
        key: ConversationKey,
        turn_id: str,
        *,
        person: str,
        backend: str,
        params: SamplingParams,
        system_prompt: str = "",
        model: str = "",
    ) -> None:
        """Go on with an ended turn's answer, in a turn beside it that begins with its text.

        Raises:
            LLMError: as `ask`.
        """
        old = self._ended_turn(key, turn_id)
        if old is None:
            return
        turn = replace(
            self._new_turn(old.question, backend, params, system_prompt, person, model),
            parent=old.parent,
            continues=turn_id,
            text=old.text,
            reasoning=old.reasoning,
        )

        self._ask_beside(key, old, turn)

    def withdraw(self, key: ConversationKey, turn_id: str) -> None:
        """Take back a question that is still queued."""

        def change(state: ConversationState) -> ConversationState:
            turn = state.turns.get(turn_id)
            if turn is None or turn.state != "queued":
                return state
            gone = change_turn(turn_id, lambda t: replace(t, state="ended"))(state)
            return delete_turns([turn_id], self._clock())(gone)

        with self._locked(key):
            self._change(key, change)

    def stop(self, key: ConversationKey, turn_id: str | None = None) -> None:
        """Stop the running answer, keeping what has been said.

        Args:
            turn_id: the turn that is meant: when its answer has just ended and the next has begun,
                the next goes on. None means whichever runs.
        """
        job = self.job(key)
        if job is not None and turn_id in (None, job.request.request_id):
            job.cancel()

    # -- arranging --

    def clear(self, key: ConversationKey) -> float | None:
        """Stop and clear away everything in this conversation.

        Returns:
            What `bring_back` takes; None where there was nothing.
        """
        now_s = self._clock()
        with self._locked(key):
            job = self.job(key)  # what is running now, here or elsewhere, and nothing asked later
            state = self._change(key, clear(now_s))
        if job is not None:
            job.cancel()
        return now_s if state is not None and state.last_deleted_s() == now_s else None

    def delete_turn(self, key: ConversationKey, turn_id: str) -> float:
        """Take one turn out of the conversation, stopping it where it runs.

        Returns:
            What `bring_back` takes.
        """
        now_s = self._clock()
        self.stop(key, turn_id)
        with self._locked(key):
            self._change(key, delete_turns([turn_id], now_s))
        return now_s

    def bring_back(self, key: ConversationKey, deleted_s: float) -> None:
        """Undo a `clear` or `delete_turn`; a question that was still queued is answered after all."""
        with self._locked(key):
            self._change(key, bring_back(deleted_s))
            self._start_next(key)

    def show(self, key: ConversationKey, turn_id: str) -> None:
        """Show the branch that goes through this turn."""
        self._change(key, show(turn_id))

    def seen(self, key: ConversationKey, screen: Screen) -> None:
        """Keep how the answer went that a screen has shown; of several, `ScreenFigures.worst`.

        Nothing where the browser has said nothing since the last time.
        """
        turn_id, figures = screen.turn_id, screen.news()
        if figures is None or figures.longest_freeze_ms is None:
            return
        self.flights.seen(turn_id, screen.log(turn_id))

        def add(turn: Turn) -> Turn:
            receipt = turn.receipt
            if receipt is None:
                return turn
            worst = receipt.screen.worst(figures) if receipt.screen else figures
            return replace(turn, receipt=replace(receipt, screen=worst))

        self._change(key, change_turn(turn_id, add))
        self._engine.measure(lambda metrics: metrics.seen(turn_id, figures))

    def rename(self, key: ConversationKey, title: str) -> None:
        """Give it a title; nothing where that is blank."""
        told = title_of(typed(title))
        if told:
            self._change(key, change_head(title=told, title_by="person"))

    def pin(self, key: ConversationKey, pinned: bool) -> None:
        """Keep it at the top of the list, or no more."""
        self._change(key, change_head(pinned=pinned))

    def delete(self, key: ConversationKey) -> None:
        """Stop it and take it out of the list; `restore` undoes that."""
        with self._locked(key):
            job = self.job(key)
            self._change(key, change_head(deleted_s=self._clock()))
        if job is not None:
            job.cancel()

    def restore(self, key: ConversationKey) -> None:
        """Have a deleted conversation in the list again; what was queued in it is answered."""
        with self._locked(key):
            self._change(key, change_head(deleted_s=None))
            self._start_next(key)

    def close(self) -> None:
        """End every answer, keeping the partial texts, and save what isn't saved."""
        self._closed.set()
        self._registry.close()
        if self._keeper is not threading.current_thread():
            self._keeper.join(5)
        if self._metrics is not None:
            self._metrics.close()
        self._store.close()

    # -- within --

    def _change(
        self, key: ConversationKey, change: Callable[[ConversationState], ConversationState]
    ) -> ConversationState | None:
        """Change a conversation; None where it isn't there, which is no fault of anybody's."""
        try:
            return self._store.change(key, change)
        except ConversationGoneError:
            return None

    def _new_turn(
        self,
        question: str,
        backend: str,
        params: SamplingParams,
        system_prompt: str,
        person: str,
        model: str,
    ) -> Turn:
        question = usable_question(question, self._max_question_chars)
        return Turn(
            uuid.uuid4().hex,
            question,
            backend,
            params.at_most(self._max_answer_tokens),
            system_prompt,
            person,
            model,
            created_s=self._clock(),
            runner=self._store.runner,
        )

    def _ask_beside(
        self,
        key: ConversationKey,
        old: Turn,
        turn: Turn,
        cache: CacheUse | None = None,
        *,
        instead: bool = False,
    ) -> None:
        """Queue a turn in an old one's place; `instead` of it, where that is to be deleted."""

        def change(state: ConversationState) -> ConversationState:
            now = state.turns.get(old.turn_id)
            if now is None or now.deleted_s is not None or _asked_already(state, turn):
                return state
            after = _queue(turn)(state)
            return delete_turns([old.turn_id], self._clock())(after) if instead else after

        with self._locked(key):
            self._store.change(key, change)
            self._let_cache(turn, cache)
            self._start_next(key, asked=turn.turn_id)

    def _let_cache(self, turn: Turn, use: CacheUse | None) -> None:
        """Note how far the cache may go, until the turn is answered.

        Not kept with the turn: a question that is forgotten here is answered by the model.
        """
        if use is None or self._cache is None:
            return
        with self._locks_lock:
            if len(self._cache_uses) >= _MOST_CACHE_USES:  # of turns that were withdrawn, mostly
                self._cache_uses.clear()
            self._cache_uses[turn.turn_id] = use

    def _ended_turn(self, key: ConversationKey, turn_id: str) -> Turn | None:
        state = self._store.state(key)
        turn = state.turns.get(turn_id) if state else None
        usable = turn is not None and turn.state == "ended" and turn.deleted_s is None
        return turn if usable else None

    def _locked(self, key: ConversationKey) -> threading.RLock:
        with self._locks_lock:
            return self._locks.setdefault(key, threading.RLock())

    def _start_next(self, key: ConversationKey, asked: str = "") -> None:
        """Start the oldest queued turn unless an answer is running. Called with the lock held.

        After Clear the old job may still be letting go; its end starts what was asked since. Where
        another process answers, the keeper tries again.

        Args:
            asked: the turn that was asked just now: only that may be refused by a full line. What
                was queued behind an answer has been taken already.
        """
        while self._registry.get(key) is None:
            claimed: list[Turn] = []

            def claim(state: ConversationState, claimed: list[Turn] = claimed) -> ConversationState:
                claimed.clear()
                under_way = _under_way(state)
                if not under_way or any(turn.state == "running" for turn in under_way):
                    return state
                if under_way[0].runner != self._store.runner:
                    return state
                claimed.append(under_way[0])
                running = change_turn(under_way[0].turn_id, lambda t: replace(t, state="running"))
                return running(state)

            state = self._change(key, claim)
            if state is None or not claimed:
                mine = self._store.runner
                waits = state is not None and any(
                    turn.state == "queued" and turn.runner == mine for turn in _under_way(state)
                )
                if waits:
                    self._in_line.add(key)
                else:
                    self._in_line.discard(key)
                return
            turn = state.turns[claimed[0].turn_id]
            try:
                before = state.path_to(turn.parent)
                self._submit(key, turn, before, admitted=turn.turn_id != asked)
                return
            except LLMError as error:
                self._fail(key, turn, error)
            except BaseException as error:
                # Streamlit ends a script run with BaseExceptions; the turn must not hang then.
                log_fault(logger, "A question couldn't be handed to its backend", error)
                self._fail(key, turn, InternalError(kind=type(error).__name__))
                if not isinstance(error, Exception):
                    raise

    def _submit(
        self, key: ConversationKey, turn: Turn, before: tuple[Turn, ...], *, admitted: bool
    ) -> None:
        use = self._cache_uses.pop(turn.turn_id, None)
        messages = [*history_messages(before, turn.system_prompt), Message("user", turn.question)]
        if turn.continues and turn.text:
            messages.append(Message("assistant", turn.text))

        request = GenerationRequest(
            tuple(messages), turn.params, turn.model, request_id=turn.turn_id, cache=use
        )

        def save(snapshot: Snapshot) -> None:
            told = replace(snapshot, reasoning=turn.reasoning + snapshot.reasoning)
            self._change(key, change_turn(turn.turn_id, lambda t: _as_snapshot(t, told)))

        def on_end(job: GenerationJob) -> None:
            self.flights.answered(turn.turn_id, job)
            with self._locked(key):
                # Once more where the end couldn't be told: a turn that stays running would hold
                # up the conversation for ever.
                state = self._change(key, lambda state: state)  # a deleted one too
                still = state.turns.get(turn.turn_id) if state else None
                if still is not None and still.state == "running":
                    self._end_barely(key, turn, job.snapshot())
                self._start_next(key)

        self._engine.ask(
            key,
            turn.person,
            turn.backend,
            request,
            start_text=turn.text if turn.continues else "",
            save=save,
            on_end=on_end,
            admitted=admitted,
        )

    def _end_barely(self, key: ConversationKey, turn: Turn, snapshot: Snapshot) -> None:
        """End a turn whose answer couldn't be saved with all that is known of it."""
        receipt = Receipt(
            snapshot.model, Finish(snapshot.finish.reason if snapshot.finish else "error")
        )
        reasoning = turn.reasoning + snapshot.reasoning
        self._change(
            key,
            change_turn(
                turn.turn_id,
                lambda t: ended(t, snapshot.text, reasoning, receipt, snapshot.error),
            ),
        )

    def _fail(self, key: ConversationKey, turn: Turn, error: LLMError) -> None:
        receipt = Receipt(model="", finish=Finish("error"))
        self._change(
            key,
            change_turn(turn.turn_id, lambda t: ended(t, t.text, t.reasoning, receipt, error)),
        )
        self._engine.refused(turn.backend, turn.model, turn.turn_id, error)

    def _keep(self) -> None:
        while not self._closed.wait(BEAT_S):
            try:
                self._look_after_all()
            except Exception as error:  # noqa: BLE001 - the keeper must go on
                log_fault(logger, "Looking after the conversations failed", error)

    def _look_after_all(self) -> None:
        in_line = list(self._in_line)
        answering = bool(self._registry.running() or in_line)
        wanted = self._store.keep(answering=answering)
        for job in self._registry.jobs():
            if job.request.request_id in wanted:
                job.cancel()
        for key in in_line:
            with self._locked(key):
                self._start_next(key)


def _queue(turn: Turn) -> Callable[[ConversationState], ConversationState]:
    """Add the turn, where not too many wait already."""

    def change(state: ConversationState) -> ConversationState:
        if sum(each.state == "queued" for each in state.live()) >= MAX_QUEUED:
            raise TooManyQueuedError(limit=MAX_QUEUED)
        return add_turn(turn)(state)

    return change


def _under_way(state: ConversationState) -> list[Turn]:
    """What is to be answered; nothing in a conversation that was deleted."""
    if state.head.deleted_s is not None:
        return []
    return [turn for turn in state.live() if turn.state != "ended"]


def _asked_already(state: ConversationState, turn: Turn) -> bool:
    """Whether the same is under way in the same place: two tabs, or an impatient finger."""
    return any(
        each.state != "ended"
        and (each.parent, each.question, each.continues)
        == (turn.parent, turn.question, turn.continues)
        for each in state.live()
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
        cached=snapshot.cached,
        waited_s=snapshot.waited_s,
        decode_s=snapshot.decode_s if snapshot.ttft_s is not None else None,
        itl_p50_ms=snapshot.itl_ms[0] if snapshot.itl_ms else None,
        itl_p95_ms=snapshot.itl_ms[1] if snapshot.itl_ms else None,
    )
    return ended(turn, snapshot.text, snapshot.reasoning, receipt, snapshot.error)
