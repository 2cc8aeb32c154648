"""Conversations and turns as rows of their tables, and back."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from llm.conversation_json import (
    error_from_json,
    error_to_json,
    params_from_json,
    params_to_json,
    receipt_from_json,
    receipt_to_json,
)
from llm.conversation_tree import Conversation, ConversationKey, Turn
from llm.served_values import whole_text

OWNER_CHARS = 255
"""Of an owner's id, and of who asks."""

Row = Mapping[Any, Any]
"""By column; SQLAlchemy's RowMapping is one."""


def clean(text: str) -> str:
    """Without what no database takes: NUL, halves of characters."""
    return whole_text(text.replace("\0", ""))


def head_row(head: Conversation) -> dict[str, Any]:
    """A conversation's row, but for its version."""
    return {
        "conversation_id": head.key.conversation_id,
        "owner": head.key.owner,
        "title": clean(head.title),
        "title_by": head.title_by,
        "pinned": head.pinned,
        "leaf": head.leaf,
        "created_s": head.created_s,
        "updated_s": head.updated_s,
        "deleted_s": head.deleted_s,
        "import_mark": head.import_mark or None,
    }


def head_of(row: Row) -> Conversation:
    """The conversation of a row."""
    return Conversation(
        ConversationKey(row["owner"], row["conversation_id"]),
        title=row["title"],
        title_by=row["title_by"],
        pinned=row["pinned"],
        created_s=row["created_s"],
        updated_s=row["updated_s"],
        leaf=row["leaf"],
        deleted_s=row["deleted_s"],
        import_mark=row["import_mark"] or "",
    )


def turn_row(key: ConversationKey, turn: Turn) -> dict[str, Any]:
    """A turn's row, but for whether somebody wants it stopped."""
    return {
        "turn_id": turn.turn_id,
        "conversation_id": key.conversation_id,
        "parent": turn.parent,
        "continues": turn.continues,
        "question": clean(turn.question),
        "backend": clean(turn.backend),
        "model": clean(turn.model),
        "system_prompt": clean(turn.system_prompt),
        "person": clean(turn.person)[:OWNER_CHARS],
        "params": _json(params_to_json(turn.params)),
        "state": turn.state,
        "text": clean(turn.text),
        "reasoning": clean(turn.reasoning),
        "receipt": None if turn.receipt is None else _json(receipt_to_json(turn.receipt)),
        "error": None if turn.error is None else _json(error_to_json(turn.error)),
        "created_s": turn.created_s,
        "deleted_s": turn.deleted_s,
        "runner": turn.runner,
    }


def turn_of(row: Row) -> Turn:
    """The turn of a row; a damaged value is as if it weren't there."""
    return Turn(
        turn_id=row["turn_id"],
        question=row["question"],
        backend=row["backend"],
        params=params_from_json(from_json(row["params"])),
        system_prompt=row["system_prompt"],
        person=row["person"],
        model=row["model"],
        state=row["state"],
        text=row["text"],
        reasoning=row["reasoning"],
        receipt=receipt_from_json(from_json(row["receipt"])),
        error=error_from_json(from_json(row["error"])),
        parent=row["parent"],
        continues=row["continues"],
        created_s=row["created_s"],
        deleted_s=row["deleted_s"],
        runner=row["runner"],
    )


def _json(values: dict[str, Any]) -> str:
    # Escaped, so that no NUL and no half of a character can be in it.
    return json.dumps(values)


def from_json(text: str | None) -> object:
    """What the text says; None where it isn't JSON, after somebody's own hands or a bad disk."""
    try:
        return None if text is None else json.loads(text)
    except (ValueError, RecursionError):
        return None
