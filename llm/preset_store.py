"""Where presets are kept: in the database of conversations."""

from __future__ import annotations

import json

from sqlalchemy import delete, insert, select, text, update
from sqlalchemy.engine import Connection, RowMapping

from llm.conversation_json import params_from_json, params_to_json
from llm.conversation_rows import from_json
from llm.conversation_tables import presets
from llm.database import Database
from llm.errors import PresetError, Reason
from llm.presets import MAX_PRESETS, Preset, fit_to_keep

_LOCK_SPACE = 7_265_102  # any number that nobody else locks in


class PresetStore:
    """Keeps every person's presets; nobody gets another's.

    Thread-safety: every method may be called from any thread.

    Every method may raise:
        StoreError: the database can't be had, or refuses.
    """

    def __init__(self, database: Database) -> None:
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
        kept = fit_to_keep(preset)
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


def _preset(row: RowMapping) -> Preset:
    return Preset(
        name=row["name"],
        system_prompt=row["system_prompt"],
        params=params_from_json(from_json(row["params"])),
        usual=row["usual"],
        preset_id=row["preset_id"],
    )


def _folded(name: str) -> str:
    return name.casefold()
