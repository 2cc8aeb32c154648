"""Conversations: what was asked, what was answered, in which order.

Kept in the process's memory, found by an unguessable id.
"""

from __future__ import annotations

import secrets
import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Literal

from llm.errors import LLMError
from llm.types import Finish, Message, SamplingParams

TurnState = Literal["queued", "running", "ended"]


@dataclass(frozen=True, slots=True)
class Receipt:
    """What is known of a finished answer; None where the backend doesn't say.

    Args:
        left_out: how many of the oldest questions weren't told the model any more.
    """

    model: str
    finish: Finish
    server: str = ""
    ttft_s: float | None = None
    tokens_per_s: float | None = None
    left_out: int = 0
    reasoning_s: float | None = None


@dataclass(frozen=True, slots=True)
class Turn:
    """A question and its answer. One of each, so they can neither be doubled nor get out of order.

    Args:
        turn_id: unique in the process.
        question: as it was typed.
        backend: the backend's id: its kind, and for a server `vllm/` and the server's name.
        model: which of the backend's models is asked; empty leaves it to the backend.
        system_prompt: as it was when the question was asked.
        person: who asked.
        state: `queued` behind the turn before, `running` (in line or being answered), `ended`.
        text: the answer so far, or all of it.
        reasoning: what the model thought before it; shown, and never sent back.
        error: what went wrong, if something did; the text until then is kept.
    """

    turn_id: str
    question: str
    backend: str
    params: SamplingParams
    system_prompt: str = ""
    person: str = ""
    model: str = ""
    state: TurnState = "queued"
    text: str = ""
    reasoning: str = ""
    receipt: Receipt | None = None
    error: LLMError | None = None


@dataclass(slots=True)
class _Conversation:
    turns: dict[str, Turn] = field(default_factory=dict)

    @property
    def chars(self) -> int:
        return sum(len(t.question) + len(t.text) + len(t.reasoning) for t in self.turns.values())

    @property
    def at_rest(self) -> bool:
        return all(turn.state == "ended" for turn in self.turns.values())


class ConversationStore:
    """Holds the conversations of this process; past a limit the least recently used are given up.

    Args:
        max_conversations: how many are held.
        max_chars: how many characters they may have together.

    Thread-safety: every method may be called from any thread and is atomic.
    """

    def __init__(self, max_conversations: int = 1000, max_chars: int = 200_000_000) -> None:
        self._max_conversations = max_conversations
        self._max_chars = max_chars
        self._lock = threading.RLock()
        self._conversations: OrderedDict[str, _Conversation] = OrderedDict()

    @staticmethod
    def new_id() -> str:
        """An unguessable id; the conversation begins with its first turn."""
        return secrets.token_urlsafe(16)

    def exists(self, conversation_id: str) -> bool:
        with self._lock:
            return conversation_id in self._conversations

    def turns(self, conversation_id: str) -> tuple[Turn, ...]:
        """All turns, oldest first; none for an unknown conversation."""
        with self._lock:
            conversation = self._conversations.get(conversation_id)
            if conversation is None:
                return ()
            self._conversations.move_to_end(conversation_id)
            return tuple(conversation.turns.values())

    def add(self, conversation_id: str, turn: Turn) -> None:
        """Append a turn; an unknown conversation begins with it."""
        with self._lock:
            conversation = self._conversations.setdefault(conversation_id, _Conversation())
            conversation.turns[turn.turn_id] = turn
            self._conversations.move_to_end(conversation_id)
            self._make_room()

    def change(
        self, conversation_id: str, turn_id: str, change: Callable[[Turn], Turn]
    ) -> Turn | None:
        """Replace a turn by `change(turn)`; None where it's gone (history was cleared)."""
        with self._lock:
            conversation = self._conversations.get(conversation_id)
            if conversation is None or turn_id not in conversation.turns:
                return None
            conversation.turns[turn_id] = change(conversation.turns[turn_id])
            return conversation.turns[turn_id]

    def remove(self, conversation_id: str, turn_id: str) -> None:
        with self._lock:
            conversation = self._conversations.get(conversation_id)
            if conversation is not None:
                conversation.turns.pop(turn_id, None)

    def clear(self, conversation_id: str) -> None:
        """Forget all turns; the conversation's id stays good."""
        with self._lock:
            if conversation_id in self._conversations:
                self._conversations[conversation_id] = _Conversation()

    def _make_room(self) -> None:
        chars = sum(conversation.chars for conversation in self._conversations.values())
        newest = next(reversed(self._conversations), None)
        for key, conversation in list(self._conversations.items()):
            if len(self._conversations) <= self._max_conversations and chars <= self._max_chars:
                return
            if conversation.at_rest and key != newest:
                chars -= conversation.chars
                del self._conversations[key]


def history_messages(turns: tuple[Turn, ...], system: str) -> tuple[Message, ...]:
    """What the model is told before the next question: the system prompt, the answered turns.

    A turn without an answer is left out with its question, so roles always alternate. Reasoning
    is never sent back.
    """
    messages = [Message("system", system)] if system.strip() else []
    for turn in turns:
        if turn.state == "ended" and turn.text.strip():
            messages.append(Message("user", turn.question))
            messages.append(Message("assistant", turn.text))
    return tuple(messages)


def ended(turn: Turn, text: str, reasoning: str, receipt: Receipt, error: LLMError | None) -> Turn:
    """The turn as it stands when its answer is over."""
    return replace(
        turn, state="ended", text=text, reasoning=reasoning, receipt=receipt, error=error
    )
