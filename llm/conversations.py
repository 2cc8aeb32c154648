"""Where conversations are kept: in the database, and in memory for as long as it can't be had.

A change is a function from one state of a conversation to the next. It is written at once, in one
transaction that says from which version it was made; where another process wrote in between, it
is made again from what that one wrote. Where the database refuses, the change counts all the same,
in memory, and is written as soon as that can be done.
"""

from __future__ import annotations

import logging
import random
import threading
import time
import weakref
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, TypeVar

from llm.conversation_access import BEAT_S, ChangedMeanwhileError, SearchHit, TakenError
from llm.conversation_merge import merged
from llm.conversation_tree import (
    Change,
    Conversation,
    ConversationKey,
    ConversationState,
    Turn,
    new_id,
)
from llm.errors import ConversationGoneError, StoreError, StoreFaultError
from llm.fault_log import log_fault

if TYPE_CHECKING:
    from llm.conversation_database import ConversationDatabase

logger = logging.getLogger(__name__)

KNOWN = 64
"""Conversations that are held in memory, so that looking at one again costs a version's look-up."""

_MOST_TRIES = 30
_PAUSE_S = 0.005  # times the tries so far, at most: two that meet again and again part that way

_OLD = -1
"""A version that is none: what is known has to be read again."""

_SILENT_S = 10.0
"""How often it is looked for processes that were killed."""

_STOPS = 1000
"""Wanted stops that are remembered; each is of use for a second or so."""

T = TypeVar("T")


@dataclass(slots=True)
class _Known:
    """A conversation as it is known here.

    Args:
        version: the database's; None where it isn't there yet.
        elsewhere: its turns that another process is answering.
        base: what the unsaved changes began with, as the database had it.
        unsaved: the turns that the database doesn't have, or not as they are here.
        head_unsaved: the same of the head.
        unindexed: the unsaved turns whose words are to be found.
        fault: why the database refuses just this one.
    """

    state: ConversationState
    version: int | None = None
    elsewhere: frozenset[str] = frozenset()
    base: ConversationState | None = None
    unsaved: set[str] = field(default_factory=set)
    head_unsaved: bool = False
    unindexed: set[str] = field(default_factory=set)
    fault: StoreFaultError | None = None

    @property
    def behind(self) -> bool:
        """Whether the database is behind what is known here."""
        return self.head_unsaved or bool(self.unsaved)


class ConversationStore:
    """Keeps every person's conversations; nobody gets another's.

    Thread-safety: every method may be called from any thread; changes of one conversation are made
    one after the other. None raises because of the database: `trouble` says what is the matter.
    """

    def __init__(self, database: ConversationDatabase) -> None:
        self._database = database
        self._lock = threading.Lock()
        self._known: OrderedDict[ConversationKey, _Known] = OrderedDict()
        # Weak: a lock lives while somebody holds it, so there aren't more than there are callers.
        self._locks: weakref.WeakValueDictionary[ConversationKey, threading.RLock] = (
            weakref.WeakValueDictionary()
        )
        self._write_trouble: StoreError | None = None
        self._read_trouble: StoreError | None = None
        self._stops: OrderedDict[str, ConversationKey] = OrderedDict()
        self._silent_looked_s = float("-inf")

    @property
    def runner(self) -> str:
        """This process, as others on the same database see it."""
        return self._database.runner

    @property
    def trouble(self) -> StoreError | None:
        """Why nothing can be saved or read right now; None while all is well."""
        return self._read_trouble or self._write_trouble

    def trouble_with(self, key: ConversationKey) -> StoreError | None:
        """Why this conversation can't be saved right now; None while all is well."""
        with self._lock:
            known = self._known.get(key)
        return self.trouble or (known.fault if known else None)

    @property
    def readable(self) -> bool:
        """Whether a conversation that isn't found is known not to be there."""
        return self._read_trouble is None

    def state(self, key: ConversationKey) -> ConversationState | None:
        """The conversation; None where this person has none of that id, or it was deleted."""
        state = self._look(key)
        return None if state is None or state.head.deleted_s is not None else state

    def elsewhere(self, key: ConversationKey) -> frozenset[str]:
        """The turns that another process is answering, as `state` last saw it."""
        with self._lock:
            known = self._known.get(key)
            return known.elsewhere if known else frozenset()

    def change(self, key: ConversationKey, change: Change) -> ConversationState:
        """Change a conversation that is there.

        Raises:
            ConversationGoneError: it isn't.
        """
        return self._change(key, change, begins=False)

    def begin(self, key: ConversationKey, change: Change) -> ConversationState:
        """Change a conversation, which begins with that where it isn't there.

        Raises:
            ConversationGoneError: the id is another person's.
        """
        return self._change(key, change, begins=True)

    def listed(self, owner: str, limit: int, offset: int = 0) -> list[Conversation]:
        """A person's conversations: the pinned ones first, then by the last question."""
        here = self._heads_here(owner)
        if not here:
            return self._heads(owner, limit, offset)
        found = self._heads(owner, offset + limit + len(here))
        heads = [*here.values(), *(head for head in found if head.key not in here)]
        kept = [head for head in heads if head.deleted_s is None]
        kept.sort(key=lambda head: (not head.pinned, -head.updated_s))
        return kept[offset : offset + limit]

    def deleted(self, owner: str, limit: int) -> list[Conversation]:
        """A person's conversations that can be brought back, the one deleted last first."""
        here = self._heads_here(owner)
        found = self._heads(owner, limit + len(here), deleted=True)
        heads = [*here.values(), *(head for head in found if head.key not in here)]
        gone = [(head.deleted_s, head) for head in heads if head.deleted_s is not None]
        return [head for _, head in sorted(gone, key=lambda pair: -pair[0])][:limit]

    def search(self, owner: str, query: str, limit: int) -> list[SearchHit]:
        """A person's conversations that hold all the words; nothing while they can't be read."""
        here = self._heads_here(owner)
        gone = {key for key, head in here.items() if head.deleted_s is not None}
        try:
            hits = self._reading(lambda: self._database.search(owner, query, limit + len(gone)))
        except StoreError:
            return []
        kept = [hit for hit in hits if hit.head.key not in gone][:limit]
        return [replace(hit, head=here.get(hit.head.key, hit.head)) for hit in kept]

    def want_stop(self, key: ConversationKey, turn_id: str) -> None:
        """Have another process stop answering, within a second or so.

        While there is trouble the wish is kept, and told when that is over.
        """
        with self._lock:
            self._stops[turn_id] = key
            while len(self._stops) > _STOPS:
                self._stops.popitem(last=False)
        if self.trouble is None:
            try:
                self._database.want_stop(key, turn_id)
            except StoreError as error:
                self._cannot_write(error)

    def stop_wanted(self, turn_id: str) -> bool:
        """Whether somebody here wanted another process to stop this answer."""
        with self._lock:
            return turn_id in self._stops

    def keep(self, *, answering: bool) -> frozenset[str]:
        """Save what isn't saved yet, and say that this process lives. Called about once a second.

        While there is trouble nothing else tries the database, so that nobody waits for it.

        Args:
            answering: whether this process has answers under way or waiting.

        Returns:
            Those of its turns that are to be stopped.
        """
        if self._read_trouble is not None:
            try:
                self._reading(lambda: self._database.listed("", 1), again=True)
            except StoreError:
                return frozenset()
        wanted: frozenset[str] = frozenset()
        try:
            if answering:
                wanted = self._database.beat()
            beaten_s = time.monotonic()
            for key in self._unsaved():
                self._try_to_save(key)
                if answering and time.monotonic() - beaten_s > BEAT_S:
                    wanted |= self._database.beat()  # others would think that we are gone
                    beaten_s = time.monotonic()
            if self._write_trouble is not None:
                self._tell_stops()
            self._look_for_the_silent()
        except StoreError as error:
            self._cannot_write(error)  # the others won't fare better
            return wanted
        self._write_trouble = None
        return wanted

    def _look_for_the_silent(self) -> None:
        if time.monotonic() - self._silent_looked_s > _SILENT_S:
            self._database.forget_the_silent()
            self._silent_looked_s = time.monotonic()

    def _tell_stops(self) -> None:
        """Tell the wishes for a stop that may not have been told while there was trouble."""
        with self._lock:
            stops = list(self._stops.items())
        for turn_id, key in stops:
            self._database.want_stop(key, turn_id)

    def close(self) -> None:
        """Save what can be saved, tell other processes, and let go of the database."""
        self.keep(answering=False)
        if left := self._unsaved():
            logger.warning("%d conversations could not be saved: %s", len(left), self.trouble)
        if self.trouble is None:
            try:
                self._database.farewell()
            except StoreError as error:
                log_fault(logger, "Taking leave of the database failed", error)
        self._database.close()

    # -- within --

    def _locked(self, key: ConversationKey) -> threading.RLock:
        with self._lock:
            return self._locks.setdefault(key, threading.RLock())

    def _look(self, key: ConversationKey) -> ConversationState | None:
        with self._lock:
            known = self._known.get(key)
        if known is not None and known.behind:
            return known.state  # without a lock: somebody may be trying to save it
        with self._locked(key):
            current = self._current(key)
            return current.state if current else None

    def _current(self, key: ConversationKey) -> _Known | None:
        """The conversation as it stands. Called with its lock held."""
        with self._lock:
            known = self._known.get(key)
            if known is not None:
                self._known.move_to_end(key)
        if known is not None and known.behind:
            return known
        try:
            if known is not None:
                version = self._reading(lambda: self._database.version(key))
                if version == known.version and self._still_elsewhere(known):
                    return known
            loaded = self._reading(lambda: self._database.load(key))
        except StoreError:
            return known
        found = None if loaded is None else _Known(loaded.state, loaded.version, loaded.elsewhere)
        if known is not None:
            found = self._with_what_is_under_way(known, found)
        if found is None:
            with self._lock:
                self._known.pop(key, None)
            return None
        return self._remember(key, found)

    def _still_elsewhere(self, known: _Known) -> bool:
        """Whether what other processes are answering is still being answered.

        It may end by their death, which is no change of the conversation.
        """
        others = {known.state.turns[turn_id].runner for turn_id in known.elsewhere}
        return not others or self._reading(lambda: self._database.beating(others)) == others

    def _with_what_is_under_way(self, known: _Known, found: _Known | None) -> _Known | None:
        """What was read, and the answers under way here that it knows nothing of.

        An older copy of the database may have been put in its place.
        """
        there: Mapping[str, Turn] = found.state.turns if found else {}
        under_way = self._under_way(known.state)
        if all(turn_id in there for turn_id in under_way):
            return found
        head = replace(found.state.head if found else known.state.head, leaf=known.state.head.leaf)
        before = {turn.turn_id for turn_id in under_way for turn in known.state.path_to(turn_id)}
        unsaved = {turn_id for turn_id in before if turn_id not in there}
        kept = {key: turn for key, turn in known.state.turns.items() if key in unsaved}
        return _Known(
            ConversationState(head, {**there, **kept}),
            found.version if found else None,
            base=found.state if found else ConversationState(Conversation(head.key)),
            unsaved=unsaved,
            head_unsaved=True,
            unindexed=set(unsaved),
        )

    def _under_way(self, state: ConversationState) -> list[str]:
        """The turns that this process is answering, or will: not what was cleared away before."""
        gone = state.head.deleted_s is not None
        return [
            turn.turn_id
            for turn in state.turns.values()
            if turn.runner == self.runner
            and (
                turn.state == "running"
                or (turn.state == "queued" and turn.deleted_s is None and not gone)
            )
        ]

    def _change(self, key: ConversationKey, change: Change, *, begins: bool) -> ConversationState:
        with self._locked(key):
            tries = 0
            while True:
                known = self._current(key)
                if known is None and not begins:
                    raise ConversationGoneError
                known = known or _Known(ConversationState(Conversation(key)))
                before = known.state
                after = change(before)
                if after is before:
                    return before
                changed = _changed(before, after)
                indexed = _to_index(before, changed)
                fault: StoreFaultError | None = None
                # Where others are always quicker, the keeper merges it in later.
                if not known.behind and self.trouble is None and tries < _MOST_TRIES:
                    try:
                        version = self._database.write(
                            key, known.version, after.head, changed, indexed=indexed
                        )
                    except ChangedMeanwhileError:
                        # Read anew; still known, for where that can't be done.
                        known.version = _OLD
                        tries += 1
                        time.sleep(random.uniform(0, _PAUSE_S * tries))
                        continue
                    except TakenError:
                        raise ConversationGoneError from None
                    except StoreFaultError as error:
                        log_fault(logger, "A conversation was refused", error)
                        fault = error
                    except StoreError as error:
                        self._cannot_write(error)
                    else:
                        self._remember(key, _Known(after, version, known.elsewhere))
                        return after
                if not known.behind:
                    known.base = before
                known.state = after
                known.fault = fault or known.fault
                known.head_unsaved = known.head_unsaved or after.head != before.head
                known.unsaved.update(turn.turn_id for turn in changed)
                known.unindexed.update(indexed)
                self._remember(key, known)
                return after

    def _try_to_save(self, key: ConversationKey) -> None:
        """Raises:
        StoreError: nothing can be saved.
        """
        try:
            self._save(key)
        except ChangedMeanwhileError:
            return  # the next time
        except TakenError:
            self._move(key)
        except StoreFaultError as error:
            with self._lock:
                known = self._known.get(key)
            if known is not None:
                if known.fault is None:
                    log_fault(logger, "A conversation was refused", error)
                known.fault = error

    def _save(self, key: ConversationKey) -> None:
        """Write what the database doesn't have of a conversation."""
        with self._locked(key):
            with self._lock:
                known = self._known.get(key)
            if known is None or not known.behind:
                return
            ours, base = known.state, known.base or ConversationState(Conversation(key))
            unsaved, unindexed = set(known.unsaved), set(known.unindexed)
        # Without the lock: it may take its time, and nobody should have to wait for that.
        loaded = self._database.load(key, unhurried=True)
        if loaded is None:
            saved, version = ours, None
            unsaved = unindexed = set(ours.turns)
        else:
            saved, version = merged(base, ours, loaded.state), loaded.version
        version = self._database.write(
            key,
            version,
            saved.head,
            [turn for turn_id, turn in saved.turns.items() if turn_id in unsaved],
            indexed=unindexed,
            unhurried=True,
        )
        with self._locked(key):
            later = {
                turn_id
                for turn_id, turn in known.state.turns.items()
                if turn is not ours.turns.get(turn_id)
            }
            known.head_unsaved = known.state.head != ours.head
            known.state = merged(ours, known.state, saved)
            known.base = saved
            known.version = version
            known.elsewhere = loaded.elsewhere if loaded else frozenset()
            known.unsaved = later
            known.unindexed &= later
            known.fault = None

    def _move(self, key: ConversationKey) -> None:
        """Give what was begun under another person's id, while nobody could know, one of its own."""
        with self._locked(key):
            with self._lock:
                known = self._known.get(key)
            if known is None or self._under_way(known.state):
                return  # when its answers are over
            logger.warning("A conversation got another id: that one is somebody else's")
            own = ConversationKey(key.owner, new_id())
            known.state = replace(known.state, head=replace(known.state.head, key=own))
            known.base, known.version = None, None
            with self._lock:
                self._known.pop(key, None)
            self._remember(own, known)

    def _unsaved(self) -> list[ConversationKey]:
        with self._lock:
            return [key for key, known in self._known.items() if known.behind]

    def _remember(self, key: ConversationKey, known: _Known) -> _Known:
        with self._lock:
            self._known[key] = known
            self._known.move_to_end(key)
            for other in list(self._known)[:-1]:
                if len(self._known) <= KNOWN:
                    break
                there = self._known[other]
                # What is under way has to be at hand if the database fails.
                if not there.behind and not self._under_way(there.state):
                    del self._known[other]
        return known

    def _heads_here(self, owner: str) -> dict[ConversationKey, Conversation]:
        """What the database doesn't say of a person's conversations, or can't say now."""
        with self._lock:
            return {
                key: known.state.head
                for key, known in self._known.items()
                if key.owner == owner and (known.behind or self._read_trouble is not None)
            }

    def _heads(
        self, owner: str, limit: int, offset: int = 0, *, deleted: bool = False
    ) -> list[Conversation]:
        try:
            return self._reading(
                lambda: self._database.listed(owner, limit, offset, deleted=deleted)
            )
        except StoreError:
            return []

    def _reading(self, read: Callable[[], T], *, again: bool = False) -> T:
        """Read, where that didn't fail before.

        Args:
            again: try although it did.
        """
        trouble = self._read_trouble  # once: the keeper may end it in between
        if trouble is not None and not again:
            raise _bare(trouble)
        try:
            result = read()
        except StoreFaultError as error:  # of this reading; others may fare better
            log_fault(logger, "Reading conversations failed", error)
            raise
        except StoreError as error:
            if type(error) is not type(self._read_trouble):
                log_fault(logger, "Conversations can't be read", error)
            self._read_trouble = _bare(error)
            raise
        if again:
            self._read_trouble = None
        return result

    def _cannot_write(self, error: StoreError) -> None:
        if type(error) is not type(self._write_trouble):
            log_fault(logger, "Conversations can't be saved", error)
        self._write_trouble = _bare(error)


def _bare(error: StoreError) -> StoreError:
    """The error without the frames that it came through, to be kept or raised again."""
    return type(error)(**error.values)


def _changed(before: ConversationState, after: ConversationState) -> Sequence[Turn]:
    return [turn for key, turn in after.turns.items() if before.turns.get(key) is not turn]


def _to_index(before: ConversationState, changed: Sequence[Turn]) -> set[str]:
    """The turns whose words have to be taken up, or given up: not those that are still growing."""
    found = set()
    for turn in changed:
        old = before.turns.get(turn.turn_id)
        grows = old is not None and turn.state != "ended"
        if not grows or (old is not None and old.deleted_s != turn.deleted_s):
            found.add(turn.turn_id)
    return found
