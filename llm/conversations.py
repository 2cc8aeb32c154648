"""Where conversations are kept: in the database, and in memory for as long as it can't be had.

A change is a function from one state of a conversation to the next. It is written at once, in one
transaction that says from which version it was made; where another process wrote in between, it
is made again from what that one wrote. Where the database refuses, the change counts all the same,
in memory, and is written as soon as that can be done.
"""

from __future__ import annotations

import logging
import threading
import time
import weakref
from collections import OrderedDict
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar

from llm.conversation_access import ChangedMeanwhileError, SearchHit, TakenError
from llm.conversation_tree import (
    Change,
    Conversation,
    ConversationKey,
    ConversationState,
    Turn,
)
from llm.errors import ConversationGoneError, StoreError, StoreFaultError
from llm.fault_log import log_fault

if TYPE_CHECKING:
    from llm.conversation_database import ConversationDatabase

logger = logging.getLogger(__name__)

KNOWN = 64
"""Conversations that are held in memory, so that looking at one again costs a version's look-up."""

RETRY_S = 1.0
"""How long a database that failed is left alone."""

_MOST_TRIES = 20

T = TypeVar("T")


@dataclass(slots=True)
class _Known:
    """A conversation as it is known here.

    Args:
        version: the database's; None where it isn't there yet.
        elsewhere: its turns that another process is answering.
        unsaved: the turns that the database doesn't have, or not as they are here.
        head_unsaved: the same of the head.
        unindexed: the unsaved turns whose words are to be found.
    """

    state: ConversationState
    version: int | None = None
    elsewhere: frozenset[str] = frozenset()
    unsaved: set[str] = field(default_factory=set)
    head_unsaved: bool = False
    unindexed: set[str] = field(default_factory=set)

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
        self._read_again_s = 0.0

    @property
    def runner(self) -> str:
        """This process, as others on the same database see it."""
        return self._database.runner

    @property
    def trouble(self) -> StoreError | None:
        """Why nothing can be saved or read right now; None while all is well."""
        return self._write_trouble or self._read_trouble

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
        with self._lock:
            here = {
                key: known.state.head
                for key, known in self._known.items()
                if key.owner == owner and (known.behind or self._read_trouble)
            }
        try:
            heads = self._reading(lambda: self._database.listed(owner, limit + len(here), offset))
        except StoreError:
            heads = []
        if not here:
            return heads
        merged = {head.key: head for head in heads if head.key not in here}
        if not offset:
            merged |= here
        kept = [head for head in merged.values() if head.deleted_s is None]
        return sorted(kept, key=lambda head: (not head.pinned, -head.updated_s))[:limit]

    def deleted(self, owner: str, limit: int) -> list[Conversation]:
        """A person's conversations that can be brought back, the one deleted last first."""
        try:
            return self._reading(lambda: self._database.listed(owner, limit, deleted=True))
        except StoreError:
            return []

    def search(self, owner: str, query: str, limit: int) -> list[SearchHit]:
        """A person's conversations that hold all the words; nothing while they can't be read."""
        try:
            return self._reading(lambda: self._database.search(owner, query, limit))
        except StoreError:
            return []

    def want_stop(self, key: ConversationKey, turn_id: str) -> None:
        """Have another process stop answering, within a second or so."""
        try:
            self._database.want_stop(key, turn_id)
        except StoreError as error:
            self._write_trouble = error

    def keep(self, *, answering: bool) -> frozenset[str]:
        """Save what isn't saved yet, and say that this process lives. Called about once a second.

        Args:
            answering: whether this process has answers under way or waiting.

        Returns:
            Those of its turns that are to be stopped.
        """
        for key in self._unsaved():
            try:
                self._save(key)
            except ChangedMeanwhileError:
                continue  # the next time
            except StoreError as error:
                self._write_trouble = error
                if not isinstance(error, StoreFaultError):
                    return frozenset()  # the others won't fare better
        if self._write_trouble is not None and not self._unsaved():
            self._write_trouble = None
        if self._read_trouble is not None:
            with suppress(StoreError):
                self._reading(lambda: self._database.listed("", 1))
        if not answering:
            return frozenset()
        try:
            return self._database.beat()
        except StoreError as error:
            self._write_trouble = error
            return frozenset()

    def close(self) -> None:
        """Save what can be saved, tell other processes, and let go of the database."""
        self.keep(answering=False)
        if left := self._unsaved():
            logger.warning("%d conversations could not be saved: %s", len(left), self.trouble)
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
            # What another process is answering may end by that one's death, which is no change.
            if known is not None and not known.elsewhere:
                version = self._reading(lambda: self._database.version(key))
                if version == known.version:
                    return known
            loaded = self._reading(lambda: self._database.load(key))
        except StoreError:
            return known
        if loaded is None:
            with self._lock:
                self._known.pop(key, None)
            return None
        return self._remember(key, _Known(loaded.state, loaded.version, loaded.elsewhere))

    def _change(self, key: ConversationKey, change: Change, *, begins: bool) -> ConversationState:
        with self._locked(key):
            for _ in range(_MOST_TRIES):
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
                if not known.behind and self._write_trouble is None:
                    try:
                        version = self._database.write(
                            key, known.version, after.head, changed, indexed=indexed
                        )
                    except ChangedMeanwhileError:
                        with self._lock:
                            self._known.pop(key, None)
                        continue
                    except TakenError:
                        raise ConversationGoneError from None
                    except StoreError as error:
                        self._write_trouble = error
                        log_fault(logger, "Saving a conversation failed", error)
                    else:
                        self._remember(key, _Known(after, version, known.elsewhere))
                        return after
                known.state = after
                known.head_unsaved = known.head_unsaved or after.head != before.head
                known.unsaved.update(turn.turn_id for turn in changed)
                known.unindexed.update(indexed)
                self._remember(key, known)
                return after
        raise ConversationGoneError  # others change it all the time; hardly possible

    def _save(self, key: ConversationKey) -> None:
        """Write what the database doesn't have of a conversation."""
        with self._locked(key):
            known = self._known[key]
            state, unsaved, unindexed = known.state, set(known.unsaved), set(known.unindexed)
            head_unsaved = known.head_unsaved
        # Without the lock: it may take its time, and nobody should have to wait for that.
        loaded = self._database.load(key)
        base = loaded.state.head if loaded is not None else state.head
        version = self._database.write(
            key,
            loaded.version if loaded is not None else None,
            state.head if head_unsaved else base,
            [turn for turn_id, turn in state.turns.items() if turn_id in unsaved],
            indexed=unindexed,
        )
        with self._locked(key):
            later = {
                turn_id
                for turn_id in known.unsaved
                if known.state.turns[turn_id] is not state.turns.get(turn_id)
            }
            known.version = version
            known.unsaved = later
            known.unindexed &= later
            known.head_unsaved = known.state.head is not state.head
            if not known.behind:
                with self._lock:
                    self._known.pop(key, None)  # others' turns may have come: read anew

    def _unsaved(self) -> list[ConversationKey]:
        with self._lock:
            return [key for key, known in self._known.items() if known.behind]

    def _remember(self, key: ConversationKey, known: _Known) -> _Known:
        with self._lock:
            self._known[key] = known
            self._known.move_to_end(key)
            for other in list(self._known):
                if len(self._known) <= KNOWN:
                    break
                if not self._known[other].behind and other != key:
                    del self._known[other]
        return known

    def _reading(self, read: Callable[[], T]) -> T:
        """Read, where that didn't fail a moment ago."""
        if self._read_trouble is not None and time.monotonic() < self._read_again_s:
            raise self._read_trouble
        try:
            result = read()
        except StoreError as error:
            self._read_trouble = error
            self._read_again_s = time.monotonic() + RETRY_S
            raise
        self._read_trouble = None
        return result


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
