"""Presets: system prompts and parameters with a name, each person's own.

One of them may be the default, with which new conversations begin.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from sqlalchemy import delete, insert, select, text, update
from sqlalchemy.engine import Connection, RowMapping

from llm.conversation_json import params_from_json, params_to_json
from llm.conversation_tables import presets
from llm.errors import PresetError, Reason
from llm.served_values import whole_text
from llm.types import SamplingParams

if TYPE_CHECKING:
    from llm.conversation_database import ConversationDatabase

MAX_NAME_CHARS = 60
MAX_PROMPT_CHARS = 100_000
MAX_PRESETS = 100
"""Of one person. All of them are in the list that the sidebar sends."""

_LOCK_SPACE = 7_265_102  # any number that nobody else locks in


@dataclass(frozen=True, slots=True)
class Preset:
    """A system prompt and parameters to ask with.

    Args:
        name: unique among a person's, whether case counts or not.
        usual: whether new conversations begin with it.
        preset_id: unique; empty for one that isn't kept yet.
    """

    name: str
    system_prompt: str
    params: SamplingParams
    usual: bool = False
    preset_id: str = ""


class PresetStore:
    """Keeps every person's presets; nobody gets another's.

    Thread-safety: every method may be called from any thread.

    Every method may raise:
        StoreError: the database can't be had, or refuses.
    """

    def __init__(self, database: ConversationDatabase) -> None:
        self._database = database

    def listed(self, owner: str) -> list[Preset]:
        """A person's presets, by name."""
        with self._database.reading() as connection:
            return _listed(connection, owner)

    def save(self, owner: str, preset: Preset) -> Preset:
        """Keep a preset: a new one, a changed one, or one that was deleted.

        Returns:
            It as it is kept, with its id and without what no database takes.

        Raises:
            PresetError: it has no name or another's, or something is too long or too many.
        """
        kept = _kept(preset)
        with self._database.writing() as connection:
            _lock(connection, owner)
            present = _listed(connection, owner)
            others = [each for each in present if each.preset_id != kept.preset_id]
            if any(_folded(each.name) == _folded(kept.name) for each in others):
                raise PresetError(reason=Reason("reason-preset-taken", {"name": kept.name}))
            values = {
                "name": kept.name,
                "system_prompt": kept.system_prompt,
                "params": json.dumps(params_to_json(kept.params)),
            }
            if len(others) < len(present):
                connection.execute(
                    update(presets)
                    .where(presets.c.owner == owner, presets.c.preset_id == kept.preset_id)
                    .values(values)
                )
            elif len(present) >= MAX_PRESETS:
                raise PresetError(reason=Reason("reason-preset-many", {"limit": MAX_PRESETS}))
            else:
                connection.execute(
                    insert(presets).values(
                        {**values, "preset_id": kept.preset_id, "owner": owner, "usual": False}
                    )
                )
            if kept.usual:
                _make_usual(connection, owner, kept.preset_id)
        return kept

    def delete(self, owner: str, preset_id: str) -> None:
        """Forget a preset; nothing where it isn't there. `save` undoes that."""
        with self._database.writing() as connection:
            connection.execute(
                delete(presets).where(presets.c.owner == owner, presets.c.preset_id == preset_id)
            )

    def make_usual(self, owner: str, preset_id: str | None) -> None:
        """Have new conversations begin with this preset; with none for None."""
        with self._database.writing() as connection:
            _lock(connection, owner)
            _make_usual(connection, owner, preset_id)


def _listed(connection: Connection, owner: str) -> list[Preset]:
    rows = connection.execute(select(presets).where(presets.c.owner == owner)).mappings()
    return sorted((_preset(row) for row in rows), key=lambda each: (_folded(each.name), each.name))


def _make_usual(connection: Connection, owner: str, preset_id: str | None) -> None:
    connection.execute(
        update(presets)
        .where(presets.c.owner == owner)
        .values(usual=presets.c.preset_id == (preset_id or ""))
    )


def _lock(connection: Connection, owner: str) -> None:
    """Let nobody else change this person's presets meanwhile: a name is looked up, then taken.

    SQLite has one writer at a time anyway.
    """
    if connection.dialect.name == "postgresql":
        connection.execute(
            text("SELECT pg_advisory_xact_lock(:space, hashtext(:owner))"),
            {"space": _LOCK_SPACE, "owner": owner},
        )


def _kept(preset: Preset) -> Preset:
    """The preset as it can be kept.

    Raises:
        PresetError: it can't.
    """
    name = " ".join(_clean(preset.name).split())
    prompt = _clean(preset.system_prompt)
    if not name:
        raise PresetError(reason=Reason("reason-preset-unnamed"))
    if len(name) > MAX_NAME_CHARS:
        raise PresetError(reason=Reason("reason-preset-name-long", {"limit": MAX_NAME_CHARS}))
    if len(prompt) > MAX_PROMPT_CHARS:
        raise PresetError(reason=Reason("reason-preset-prompt-long", {"limit": MAX_PROMPT_CHARS}))
    return replace(
        preset,
        name=name,
        system_prompt=prompt,
        params=replace(preset.params, stop=tuple(_clean(each) for each in preset.params.stop)),
        preset_id=preset.preset_id or uuid4().hex,
    )


def _preset(row: RowMapping) -> Preset:
    return Preset(
        name=row["name"],
        system_prompt=row["system_prompt"],
        params=params_from_json(_from_json(row["params"])),
        usual=row["usual"],
        preset_id=row["preset_id"],
    )


def _from_json(kept: str) -> Any:
    """What the text says; None where it is no JSON any more."""
    try:
        return json.loads(kept)
    except (ValueError, RecursionError):
        return None


def _folded(name: str) -> str:
    return name.casefold()


def _clean(told: str) -> str:
    """Without what no database takes: NUL, halves of characters."""
    return whole_text(told.replace("\0", ""))
