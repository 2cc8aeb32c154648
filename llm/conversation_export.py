"""Conversations as files: JSON that can be imported again, Markdown to read and pass on.

JSON holds a conversation's whole tree, Markdown the branch that is shown. Neither holds what was
deleted, whose it is, or who asked.
"""

from __future__ import annotations

import json
import re
import zipfile
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, tzinfo
from typing import IO, Any

from llm.catalogue import Catalogue, catalogue
from llm.conversation_json import error_to_json, params_to_json, receipt_to_json
from llm.conversation_tree import ConversationState, Turn
from llm.export_names import FileNames
from llm.nested_markdown import nested, quoted
from llm.served_values import keepable

FORMAT = "steady-chat"
VERSION = 1

_MARKUP = re.compile(r"([\\`*_\[\]<>#&~$|])")
_FINISHES = {"length": "finish-length", "abort": "finish-abort", "interrupted": "finish-abort"}


def to_json(states: Iterable[ConversationState]) -> Iterator[str]:
    """One JSON document in pieces, one conversation a piece, so that many take little memory.

    Deleted conversations are left out, and deleted turns: what follows them follows the turn
    before them. The pieces can be written as UTF-8.
    """
    head = json.dumps({"format": FORMAT, "version": VERSION})[:-1]
    yield f'{head}, "conversations": [\n'
    separator = ""
    for state in states:
        if state.head.deleted_s is None:
            text = json.dumps(_conversation(state), ensure_ascii=False, allow_nan=False)
            yield separator + keepable(text)
            separator = ",\n"
    yield "\n]}\n"


def to_markdown(state: ConversationState, language: str = "en", zone: tzinfo = UTC) -> str:
    """The shown branch to be read: the title, then questions and answers under headings.

    Headings within a text become smaller ones, below the conversation's own; code stays as it is,
    and a fence that an answer broke off in is closed. Reasoning is folded, in a quote.

    Args:
        language: of the headings, as the catalogue knows it.
        zone: of the dates.
    """
    say = catalogue(language)
    blocks = [f"# {_title(state, say)}"]
    for turn in state.path():
        if turn.question.strip():
            blocks += [f"## {say.say('export-question')}", _asked(turn, zone)]
            blocks.append(nested(turn.question))
        blocks += [f"## {say.say('export-answer')}", _receipt(turn, say)]
        if turn.reasoning.strip():
            summary = f"<details>\n<summary>{say.say('export-reasoning')}</summary>"
            blocks += [summary, quoted(nested(turn.reasoning)), "</details>"]
        blocks.append(nested(turn.text))
        if turn.error:
            told = say.say("export-error", reason=turn.error.sentence(say))
            blocks.append(quoted(_plain(told)))
    text = "\n\n".join(block for block in blocks if block) + "\n"
    return keepable(text)


def write_markdown_zip(
    states: Iterable[ConversationState],
    file: IO[bytes],
    language: str = "en",
    zone: tzinfo = UTC,
) -> None:
    """A ZIP of Markdown files named after the titles, written as the conversations come.

    Args:
        file: where to; needn't be seekable.
    """
    names = FileNames(catalogue(language).say("export-untitled"))
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for state in states:
            if state.head.deleted_s is not None:
                continue
            info = zipfile.ZipInfo(names.name(state.head.title, ".md"), _zip_date(state, zone))
            info.compress_type = zipfile.ZIP_DEFLATED
            info.external_attr = 0o644 << 16
            archive.writestr(info, to_markdown(state, language, zone))


def _conversation(state: ConversationState) -> dict[str, Any]:
    head = state.head
    live_parent = _live_parents(state)
    leaf = state.turns.get(head.leaf)
    return {
        "id": head.key.conversation_id,
        "title": head.title,
        "title_by": head.title_by,
        "pinned": head.pinned,
        "created_s": head.created_s,
        "updated_s": head.updated_s,
        "import_mark": head.import_mark,
        "leaf": head.leaf if leaf and leaf.deleted_s is None else live_parent.get(head.leaf, ""),
        "turns": [_turn(turn, state, live_parent[turn.turn_id]) for turn in state.live()],
    }


def _turn(turn: Turn, state: ConversationState, parent: str) -> dict[str, Any]:
    continued = state.turns.get(turn.continues)
    return {
        "id": turn.turn_id,
        "parent": parent,
        "question": turn.question,
        "text": turn.text,
        "reasoning": turn.reasoning,
        "system_prompt": turn.system_prompt,
        "backend": turn.backend,
        "model": turn.model,
        "params": params_to_json(turn.params),
        "state": turn.state,
        "receipt": receipt_to_json(turn.receipt) if turn.receipt else None,
        "error": error_to_json(turn.error) if turn.error else None,
        "continues": turn.continues if continued and continued.deleted_s is None else "",
        "created_s": turn.created_s,
    }


def _live_parents(state: ConversationState) -> dict[str, str]:
    """For each turn the nearest before it that isn't deleted; takes time as there are turns."""
    found: dict[str, str] = {}
    for start in state.turns:
        way: list[str] = []
        at = start
        while at not in found and at in state.turns:
            found[at] = ""  # a ring ends here
            way.append(at)
            at = state.turns[at].parent
        for key in reversed(way):
            above = state.turns.get(state.turns[key].parent)
            if above is not None:
                live = above.deleted_s is None
                found[key] = above.turn_id if live else found[above.turn_id]
    return found


def _title(state: ConversationState, say: Catalogue) -> str:
    return _plain(" ".join(state.head.title.split())) or say.say("export-untitled")


def _asked(turn: Turn, zone: tzinfo) -> str:
    told = _date(turn.created_s, zone)
    return f"*{told}*" if told else ""


def _receipt(turn: Turn, say: Catalogue) -> str:
    """The model, and how the answer ended where it didn't by itself; empty where neither is known."""
    told = [(turn.receipt.model if turn.receipt else "") or turn.model]
    finish = _FINISHES.get(turn.receipt.finish.reason) if turn.receipt else None
    if finish:
        told.append(say.say(finish))
    line = _plain(" · ".join(" ".join(each.split()) for each in told if each.strip()))
    return f"*{line}*" if line else ""


def _date(seconds: float, zone: tzinfo) -> str:
    if not seconds:
        return ""
    try:
        return datetime.fromtimestamp(seconds, zone).strftime("%Y-%m-%d %H:%M %Z")
    except (ValueError, OverflowError, OSError):
        return ""


def _zip_date(state: ConversationState, zone: tzinfo) -> tuple[int, int, int, int, int, int]:
    """When it was last asked something; a ZIP knows the years from 1980 to 2107 only."""
    try:
        at = datetime.fromtimestamp(state.head.updated_s, zone)
    except (ValueError, OverflowError, OSError):
        at = datetime.min
    if not 1980 <= at.year <= 2107:
        return (1980, 1, 1, 0, 0, 0)
    return (at.year, at.month, at.day, at.hour, at.minute, at.second)


def _plain(text: str) -> str:
    """A line of text so that Markdown shows it as it is."""
    return _MARKUP.sub(r"\\\1", text)
