"""stand-in"""

from __future__ import annotations

from collections.abc import Iterable

import sqlalchemy as sa
from sqlalchemy.engine import Connection


def create(connection: Connection) -> None:
    connection.execute(
        sa.text(
            "CREATE TABLE words (row BIGINT PRIMARY KEY, owner TEXT, conversation_id TEXT, words TEXT)"
        )
    )


def index(connection: Connection, row_id: int, owner: str, conversation_id: str, text: str) -> None:
    connection.execute(
        sa.text("INSERT INTO words VALUES (:r,:o,:c,:w)"),
        {"r": row_id, "o": owner, "c": conversation_id, "w": text},
    )


def forget(connection: Connection, row_ids: Iterable[int]) -> None:
    for row in row_ids:
        connection.execute(sa.text("DELETE FROM words WHERE row=:r"), {"r": row})


def find(connection: Connection, owner: str, query: str, limit: int) -> list[tuple[str, int]]:
    rows = connection.execute(
        sa.text(
            "SELECT conversation_id, row FROM words WHERE owner=:o AND words LIKE :q ORDER BY row DESC LIMIT :l"
        ),
        {"o": owner, "q": f"%{query}%", "l": limit},
    )
    return [(c, r) for c, r in rows]
