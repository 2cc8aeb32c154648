"""The tables of the answer cache in SQLite, and what an entry takes of their file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import sqlalchemy as sa
from sqlalchemy import Column, Float, ForeignKey, Index, Integer, LargeBinary, Table, Text

VERSION = 2
"""Of the tables and of what is packed in them. Another one's file is made anew."""

EVERYBODY = ""  # the totals of all scopes together; no scope is empty
_PAGE = 4096  # SQLite's default
_ROW_BYTES, _BODY_BYTES, _CELL_BYTES, _INDEX_BYTES, _INDEX_FILL = 54, 4, 7, 13, 1.25
TABLES = sa.MetaData()

entries = Table(
    "entries",
    TABLES,
    Column("row", Integer, primary_key=True),
    Column("scope", Text, nullable=False),
    Column("digest", Text, nullable=False),
    Column("partition", Text, nullable=False),
    Column("size", Integer, nullable=False),
    Column("created_s", Float, nullable=False),
    Column("expires_s", Float, nullable=False),
    Column("used_s", Float, nullable=False),
    Column("hits", Integer, nullable=False),
    Column("chars", Integer, nullable=False),
    Column("model", Text, nullable=False),
    Column("server", Text, nullable=False),
    Column("opening", Text, nullable=False),
    Column("embedding", Text, nullable=False),
    Column("question", LargeBinary, nullable=False),
    Column("vector", LargeBinary, nullable=False),
    Index("entries_digest", "scope", "digest", unique=True),
    Index("entries_listed", "scope", "used_s"),
    Index("entries_used", "used_s", "size"),
    Index("entries_expiry", "expires_s"),
    Index("entries_partition", "scope", "partition"),
)
_c = entries.c

# Apart, so that the vectors of a partition lie close together.
bodies = Table(
    "bodies",
    TABLES,
    Column("row", ForeignKey(_c.row, ondelete="CASCADE"), primary_key=True),
    Column("body", LargeBinary, nullable=False),
)
totals = Table(
    "totals",
    TABLES,
    Column("scope", Text, primary_key=True),
    Column("entries", Integer, nullable=False),
    Column("size", Integer, nullable=False),
)
rejections = Table(
    "rejections",
    TABLES,
    Column("row", Integer, primary_key=True),
    Column("scope", Text, nullable=False),
    Column("partition", Text, nullable=False),
    Column("at_s", Float, nullable=False, index=True),
    Column("similarity", Float, nullable=False),
    Column("embedding", Text, nullable=False),
    Column("vector", LargeBinary, nullable=False),
    Index("rejections_partition", "scope", "partition", "at_s"),
)
decisions = Table(
    "decisions",
    TABLES,
    Column("row", Integer, primary_key=True),
    Column("scope", Text, nullable=False),
    Column("decision_id", LargeBinary, nullable=False),
    Column("at_s", Float, nullable=False, index=True),
    Column("judged", Integer),
    Column("kind", Text, nullable=False),
    Column("reason", Text, nullable=False),
    Column("model", Text, nullable=False),
    Column("saved_tokens", Integer, nullable=False),
    Column("saved_s", Float, nullable=False),
    Column("body", LargeBinary, nullable=False),
    Index("decisions_id", "scope", "decision_id", unique=True),
    Index("decisions_listed", "scope", "at_s"),
)
_d = decisions.c
is_near = sa.and_(_d.kind == sa.literal_column("'near'"), _d.judged.is_(None))
Index("decisions_near", _d.scope, _d.at_s, sqlite_where=is_near)
clearings = Table(
    "clearings",
    TABLES,
    Column("scope", Text, primary_key=True),
    Column("name", Text, primary_key=True),
    Column("at_s", Float, nullable=False, index=True),
)


def size_of(values: Mapping[str, Any], body_bytes: int) -> int:
    """Bytes of the file that an entry takes, its share of the indexes included.

    Pages of random fill can't be told from outside; over many entries it holds within a few percent.
    """
    texts = [value for value in values.values() if isinstance(value, str | bytes)]
    row = _ROW_BYTES + sum(len(_encoded(text)) for text in texts)
    scope, digest = len(_encoded(values["scope"])), len(values["digest"])
    indexes = _INDEX_BYTES * 5 + 3 * scope + digest + len(values["partition"])
    return _in_pages(row) + _in_pages(body_bytes + _BODY_BYTES) + round(indexes * _INDEX_FILL)


def _encoded(value: str | bytes) -> bytes:
    return value.encode() if isinstance(value, str) else value


def _in_pages(row: int) -> int:
    """Bytes that a row takes: whole overflow pages for a long one, and its share of a page for the
    rest. Source: https://www.sqlite.org/fileformat2.html#cell_payload_overflow_pages"""
    most, least = _PAGE - 35, (_PAGE - 12) * 32 // 255 - 23
    overflow = 0
    if row > most:
        local = least + (row - least) % (_PAGE - 4)
        local = local if local <= most else least
        overflow = -(-(row - local) // (_PAGE - 4)) * _PAGE
        row = local + 4
    return overflow + _PAGE // max((_PAGE - 8) // (row + _CELL_BYTES), 1)
