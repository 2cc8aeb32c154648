"""Two changes of one conversation made into one: ours, made in memory, and what others wrote."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import TypeVar

from llm.conversation_tree import Conversation, ConversationState, Turn

_TITLES = ("question", "model", "person")

Value = TypeVar("Value", Conversation, Turn)


def merged(
    base: ConversationState, ours: ConversationState, theirs: ConversationState
) -> ConversationState:
    """What both changed, field by field; where they changed the same, ours.

    Args:
        base: what both began with; without turns where we didn't know it.
    """
    turns = dict(theirs.turns)
    for turn_id, turn in ours.turns.items():
        before = base.turns.get(turn_id)
        if turn is before:
            continue
        there = theirs.turns.get(turn_id)
        turns[turn_id] = (
            turn if before is None or there is None else _fields_merged(before, turn, there)
        )
    return ConversationState(_heads_merged(base.head, ours.head, theirs.head), turns)


def _heads_merged(base: Conversation, ours: Conversation, theirs: Conversation) -> Conversation:
    both = _fields_merged(base, ours, theirs)
    if ours.title != base.title and theirs.title != base.title:
        rank, their_rank = _TITLES.index(ours.title_by), _TITLES.index(theirs.title_by)
        # One made of a question counts as long as nobody gave a better one; so the first of two.
        if their_rank > rank or (their_rank == rank == 0):
            both = replace(both, title=theirs.title, title_by=theirs.title_by)
    return replace(
        both,
        created_s=theirs.created_s or both.created_s,
        updated_s=max(ours.updated_s, theirs.updated_s),
        import_mark=theirs.import_mark or both.import_mark,
    )


def _fields_merged(base: Value, ours: Value, theirs: Value) -> Value:
    names = [each.name for each in fields(ours)]
    changed = {
        name: getattr(ours, name) for name in names if getattr(ours, name) != getattr(base, name)
    }
    return replace(theirs, **changed) if changed else theirs
