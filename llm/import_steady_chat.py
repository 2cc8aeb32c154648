"""Conversations of this app's own export, whatever version or hand wrote it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, get_args
from uuid import uuid4

from llm.conversation_json import error_from_json, params_from_json, receipt_from_json
from llm.conversation_tree import (
    MAX_TITLE_CHARS,
    Conversation,
    ConversationKey,
    ConversationState,
    TitleBy,
    Turn,
    interrupted,
    new_id,
    title_of,
)
from llm.import_notes import Notes, name, sequence

_DEEPEST = 20


def is_steady_chat(entry: object) -> bool:
    """Whether this is a conversation of this app."""
    return isinstance(entry, dict) and isinstance(entry.get("turns"), list)


def read_steady_chat(entry: Mapping[str, Any], notes: Notes) -> ConversationState:
    """The conversation, with new ids; its import mark is the one told, or else its id."""
    told = [each for each in sequence(entry.get("turns")) if isinstance(each, dict)]
    ids: dict[str, str] = {}
    for each in told:
        ids.setdefault(name(each.get("id")), uuid4().hex)
    ids.pop("", None)
    turns: dict[str, Turn] = {}
    for each in told:
        turn = _turn(each, ids, notes)
        # An id that is there twice: the first keeps it.
        turn = replace(turn, turn_id=uuid4().hex) if turn.turn_id in turns else turn
        turns[turn.turn_id] = turn
    turns = _without_rings(turns)
    head = Conversation(
        key=ConversationKey("", new_id()),
        title=_title(entry.get("title"), turns),
        title_by=_title_by(entry.get("title_by")),
        pinned=entry.get("pinned") is True,
        created_s=_seconds(entry.get("created_s")),
        updated_s=_seconds(entry.get("updated_s")),
        leaf=ids.get(name(entry.get("leaf")), ""),
        import_mark=name(entry.get("import_mark")) or name(entry.get("id")),
    )
    state = ConversationState(head, turns)
    if head.leaf or not turns:
        return state
    return replace(state, head=replace(head, leaf=state.newest_below(next(reversed(turns)))))


def _title(told: object, turns: Mapping[str, Turn]) -> str:
    title = name(told) or next((turn.question for turn in turns.values() if turn.question), "")
    return title if len(title) <= MAX_TITLE_CHARS else title_of(title)


def _title_by(told: object) -> TitleBy:
    return next((each for each in get_args(TitleBy) if each == told), "question")


def _turn(told: Mapping[str, Any], ids: Mapping[str, str], notes: Notes) -> Turn:
    state = told.get("state")
    turn = Turn(
        turn_id=ids.get(name(told.get("id"))) or uuid4().hex,
        question=notes.text(told.get("question")),
        backend="",
        params=params_from_json(_kept(told.get("params"))),
        system_prompt=notes.text(told.get("system_prompt")),
        model=name(told.get("model")),
        state="ended",
        text=notes.text(told.get("text")),
        reasoning=notes.text(told.get("reasoning")),
        receipt=receipt_from_json(_kept(told.get("receipt"))),
        error=error_from_json(_kept(told.get("error"))),
        parent=ids.get(name(told.get("parent")), ""),
        continues=ids.get(name(told.get("continues")), ""),
        created_s=_seconds(told.get("created_s")),
    )
    return interrupted(turn) if state in ("queued", "running") else turn


def _without_rings(turns: dict[str, Turn]) -> dict[str, Turn]:
    """The same, with no turn before itself: the one a ring is found at becomes a first one."""
    safe: set[str] = {""}
    for start in list(turns):
        way: dict[str, None] = {}
        at = start
        while at not in safe and at not in way:
            way[at] = None
            at = turns[at].parent
        if at not in safe:
            turns[at] = replace(turns[at], parent="")
        safe.update(way)
    return turns


def _kept(value: object, depth: int = 0) -> object:
    """The same with texts that can be kept; None where it goes on too deep."""
    if depth > _DEEPEST:
        return None
    if isinstance(value, dict):
        return {name(key): _kept(each, depth + 1) for key, each in value.items()}
    if isinstance(value, list):
        return [_kept(each, depth + 1) for each in value]
    return Notes().text(value) if isinstance(value, str) else value


def _seconds(value: object) -> float:
    usable = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if usable and 0 < value < 2.5e11 else 0.0  # type: ignore[arg-type, operator]
