"""Finding conversations by their words, through the database's own full-text index.

What is indexed of a text are the entries of `segmented`, and before them one that stands for the
owner: the index itself keeps people apart, and one person's many texts are no other's wait. That
entries follow one another, as a phrase wants, SQLite knows by its index. PostgreSQL's knows only
which texts have them all, and gives up positions in long texts: there the phrase is looked up in
the indexed text itself. Both find the same.

Made for SQLite from 3.40 and PostgreSQL from 15.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from llm.search_words import SearchQuery, segmented

if TYPE_CHECKING:
    from sqlalchemy import Connection

Hit = tuple[str, int]
"""A conversation's id, and the row of it that was found."""

POSTGRESQL_NEWEST_ROWS = 4000
"""How many of a person's newest rows are read one by one before PostgreSQL's index is asked: it
gives its rows in no order, all 200,000 of a common word before the newest 500 are known."""

_SQLITE = (
    # The words come last: what stands behind a long value takes long to read. Prefixes of up to
    # three characters are indexed; those with a longer one are few enough to be put together.
    """
    CREATE VIRTUAL TABLE conversation_search USING fts5(
        owner UNINDEXED, conversation_id UNINDEXED, words,
        tokenize = "ascii tokenchars '_'", prefix = '1 2 3'
    )
    """,
)
_WORDS = "array_to_tsvector(string_to_array(rtrim(words), ' '))"
_POSTGRESQL = (
    """
    CREATE TABLE conversation_search (
        row_id bigint PRIMARY KEY,
        owner text COLLATE "C" NOT NULL,
        conversation_id text COLLATE "C" NOT NULL,
        words text COLLATE "C" NOT NULL
    )
    """,
    "CREATE INDEX conversation_search_newest ON conversation_search (owner, row_id)",
    # A list of what is yet to be indexed would be read through by each search.
    f"CREATE INDEX conversation_search_words ON conversation_search USING gin ({_WORDS}) "
    "WITH (fastupdate = off)",
    # Told how common a word is, PostgreSQL would read the whole table rather than the index,
    # and make a tsvector of every text in it.
    "ALTER INDEX conversation_search_words ALTER COLUMN 1 SET STATISTICS 0",
)


def create(connection: Connection) -> None:
    """Make the index, empty."""
    for statement in _SQLITE if _is_sqlite(connection) else _POSTGRESQL:
        connection.exec_driver_sql(statement)


def drop(connection: Connection) -> None:
    """Remove the index and all that is in it."""
    connection.exec_driver_sql("DROP TABLE conversation_search")


def index(connection: Connection, row_id: int, owner: str, conversation_id: str, text: str) -> None:
    """Make a text findable for its owner, in the place of what the row had before.

    Args:
        row_id: the text's own; a newer text has a higher one.
    """
    words = segmented(text)
    if not words:
        forget(connection, [row_id])
        return
    if _is_sqlite(connection):
        statement = """
            INSERT OR REPLACE INTO conversation_search (rowid, owner, conversation_id, words)
            VALUES (:row_id, :owner, :conversation_id, :words)
        """
    else:
        statement = """
            INSERT INTO conversation_search (row_id, owner, conversation_id, words)
            VALUES (:row_id, :owner, :conversation_id, :words)
            ON CONFLICT (row_id) DO UPDATE SET owner = excluded.owner,
                conversation_id = excluded.conversation_id, words = excluded.words
        """
    values = {"row_id": row_id, "owner": owner, "conversation_id": conversation_id}
    _execute(connection, statement, values | {"words": f"{_owner_entry(owner)} {words}"})


def forget(connection: Connection, row_ids: Iterable[int]) -> None:
    """Make rows unfindable; those that aren't known are no error."""
    from sqlalchemy import text

    key = "rowid" if _is_sqlite(connection) else "row_id"
    if values := [{"row_id": row_id} for row_id in row_ids]:
        connection.execute(text(f"DELETE FROM conversation_search WHERE {key} = :row_id"), values)


def find(connection: Connection, owner: str, typed: str, limit: int) -> list[Hit]:
    """The owner's newest rows that have all that is asked for, newest first.

    Args:
        typed: as a person typed it; `SearchQuery.read` says what it means.

    Returns:
        At most `limit`; none where no word was typed.
    """
    query = SearchQuery.read(typed)
    if not query.phrases:
        return []
    search = _find_in_sqlite if _is_sqlite(connection) else _find_in_postgresql
    return search(connection, owner, query, limit)


# What is asked for is of letters, digits and marks: nothing in it can end a quotation.
def _find_in_sqlite(
    connection: Connection, owner: str, query: SearchQuery, limit: int
) -> list[Hit]:
    """FTS5 runs through its lists from the newest row, and stops at the limit."""
    phrases = [f'"{" ".join(p.entries)}"{"*" if p.open else ""}' for p in query.phrases]
    statement = """
        SELECT conversation_id, rowid FROM conversation_search
        WHERE conversation_search MATCH :phrases AND owner = :owner
        ORDER BY rowid DESC LIMIT :limit
    """
    terms = " AND ".join([_owner_entry(owner), *phrases])
    values = {"phrases": terms, "owner": owner, "limit": limit}
    return _execute(connection, statement, values)


def _find_in_postgresql(
    connection: Connection, owner: str, query: SearchQuery, limit: int
) -> list[Hit]:
    """What is common is among the newest rows; what isn't, the index finds quickly."""
    phrases: dict[str, Any] = {f"phrase{n}": p.needle for n, p in enumerate(query.phrases)}
    condition = " AND ".join(f"strpos(words, :{name}) > 0" for name in phrases)
    statement = """
        SELECT conversation_id, row_id FROM conversation_search WHERE owner = :owner
        ORDER BY row_id DESC OFFSET :newest LIMIT 1
    """
    older = _execute(connection, statement, {"owner": owner, "newest": POSTGRESQL_NEWEST_ROWS})
    edge = older[0][1] if older else -(2**63)
    statement = f"""
        SELECT conversation_id, row_id FROM conversation_search
        WHERE owner = :owner AND row_id > :edge AND {condition}
        ORDER BY row_id DESC LIMIT :limit
    """
    values = phrases | {"owner": owner, "edge": edge}
    found = _execute(connection, statement, values | {"limit": limit})
    if not older or len(found) == limit:
        return found
    terms = [_owner_entry(owner)]
    for phrase in query.phrases:
        terms += [f"'{entry}'" for entry in phrase.entries]
        terms[-1] += ":*" if phrase.open else ""
    # OFFSET 0 keeps the other conditions out, and with them every other way than the index.
    statement = f"""
        SELECT conversation_id, row_id FROM (
            SELECT * FROM conversation_search WHERE {_WORDS} @@ CAST(:terms AS tsquery) OFFSET 0
        ) AS candidates
        WHERE owner = :owner AND row_id <= :edge AND {condition}
        ORDER BY row_id DESC LIMIT :limit
    """
    values |= {"terms": " & ".join(terms), "limit": limit - len(found)}
    return found + _execute(connection, statement, values)


def _owner_entry(owner: str) -> str:
    """What stands for an owner among the words. No word has an underscore."""
    return f"_{hashlib.sha256(owner.encode()).hexdigest()[:32]}"


def _is_sqlite(connection: Connection) -> bool:
    return connection.dialect.name == "sqlite"


def _execute(connection: Connection, statement: str, values: dict[str, Any]) -> list[Hit]:
    from sqlalchemy import text

    result = connection.execute(text(statement), values)
    return [(row[0], row[1]) for row in result] if result.returns_rows else []
