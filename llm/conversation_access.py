"""What the store and the database say to each other about a conversation."""

from __future__ import annotations

from dataclasses import dataclass

from llm.conversation_tree import Conversation, ConversationState

BEAT_S = 1.0
"""How often a process that is answering says that it lives."""

STALE_S = 6.0
"""An answer whose process has been silent for this long counts as interrupted."""


class ChangedMeanwhileError(Exception):
    """Somebody else wrote in between; read again and make the change anew."""


class TakenError(Exception):
    """The id is another person's conversation."""


@dataclass(frozen=True, slots=True)
class Loaded:
    """A conversation as the database has it.

    Args:
        state: answers whose process is gone are ended in it, as interrupted.
        version: what the next write says it was made from.
        elsewhere: the turns that another process is answering at this moment.
    """

    state: ConversationState
    version: int
    elsewhere: frozenset[str]


@dataclass(frozen=True, slots=True)
class SearchHit:
    """A conversation that was found.

    Args:
        snippet: a part of the text around what was looked for; empty where the title has it.
    """

    head: Conversation
    snippet: str = ""
