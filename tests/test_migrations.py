"""Databases of every version there was are read whole by this one; tables are what they should be."""

from __future__ import annotations

import sqlite3
from dataclasses import replace
from pathlib import Path

import pytest
import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory

from llm.conversation_database import ConversationDatabase
from llm.conversation_tables import NEWEST, tables
from llm.conversation_tree import (
    Change,
    Conversation,
    ConversationKey,
    ConversationState,
    Receipt,
    Turn,
    add_turn,
    change_head,
    delete_turns,
)
from llm.conversations import ConversationStore
from llm.errors import Reason, ServerUnreachableError
from llm.types import Finish, SamplingParams, Usage

ROOT = Path(__file__).parents[1]
DUMPS = sorted((Path(__file__).parent / "data" / "schemas").glob("*.sqlite3.sql"))

# What every dump holds. A new version's dump is written with `python -m tests.test_migrations`;
# what is here stays, and a new version's values come as new turns.
FULL = Turn(
    "full",
    "  为什么? 👩‍👩‍👧 \n",
    "vllm/a server",
    SamplingParams(temperature=None, seed=3, stop=("\0", "终")),
    system_prompt="Be brief.",
    person="somebody",
    model="m",
    state="ended",
    text="Because of the elephants.",
    reasoning="Hm.",
    receipt=Receipt("m", Finish("length", Usage(3, 4)), "s", 0.1, 2.5, 6, 7.125),
    created_s=1_764_480_000.25,
)
FAILED = replace(
    FULL,
    turn_id="failed",
    text="",
    receipt=Receipt("", Finish("error")),
    error=ServerUnreachableError(url="u", why=Reason("reason-at-most", {"limit": 0.5})),
    parent="full",
)
AGAIN = replace(FULL, turn_id="again", parent="full", continues="failed", created_s=1_764_480_009.5)
HALF = replace(FULL, turn_id="half", state="running", text="ha", receipt=None, runner="gone")
HERE, PINNED, DELETED = (ConversationKey("somebody", name) for name in ("here", "pinned", "gone"))
OTHERS = ConversationKey("somebody else", "theirs")

CONTENT: dict[ConversationKey, list[Change]] = {
    HERE: [
        add_turn(FULL),
        add_turn(FAILED),
        add_turn(AGAIN),
        delete_turns(["failed"], 1_764_480_010.125),
    ],
    PINNED: [
        add_turn(HALF),
        change_head(pinned=True, title="A name", title_by="person", import_mark="mark"),
    ],
    DELETED: [
        add_turn(replace(FULL, turn_id="old")),
        change_head(deleted_s=1_764_480_011.0),
    ],
    OTHERS: [add_turn(replace(FULL, turn_id="theirs"))],
}


def expected(key: ConversationKey) -> ConversationState:
    state = ConversationState(Conversation(key))
    for change in CONTENT[key]:
        state = change(state)
    return state


def dump(file: Path) -> str:
    """A database that this version writes, as SQL."""
    store = ConversationStore(ConversationDatabase(f"sqlite:///{file}", "gone"))
    for key, changes in CONTENT.items():
        for change in changes:
            store.begin(key, change)
    assert store.trouble is None
    store.close()
    connection = sqlite3.connect(file)
    try:
        # The index's own tables hold it; said to the index itself, it would be there twice.
        said = 'INSERT INTO "conversation_search" '
        return "".join(f"{line}\n" for line in connection.iterdump() if not line.startswith(said))
    finally:
        connection.close()


def comparable(turn: Turn) -> tuple[object, ...]:
    told = (type(turn.error), turn.error.values) if turn.error else None
    return replace(turn, error=None), told


def test_the_newest_version_has_a_dump() -> None:
    assert [path.name.partition(".")[0] for path in DUMPS][-1] == NEWEST


@pytest.mark.parametrize("path", DUMPS, ids=lambda path: path.name)
def test_a_database_of_each_version_is_read_whole(path: Path, tmp_path: Path) -> None:
    file = tmp_path / "old.sqlite3"
    old = sqlite3.connect(file)
    # A dump writes virtual tables into the schema by hand.
    old.execute("PRAGMA writable_schema = ON")
    old.executescript(path.read_text("utf-8"))
    old.close()

    database = ConversationDatabase(f"sqlite:///{file}", "later")
    for key in CONTENT:
        loaded, whole = database.load(key), expected(key)
        assert loaded is not None
        assert loaded.state.head == whole.head
        turns = dict(loaded.state.turns)
        if key == PINNED:
            half = turns["half"]
            assert half.receipt is not None
            assert (half.text, half.receipt.finish.reason) == ("ha", "interrupted")
            turns["half"] = replace(half, state="running", receipt=None)
        assert list(map(comparable, turns.values())) == list(map(comparable, whole.turns.values()))
    assert [head.key for head in database.listed("somebody", 9)] == [PINNED, HERE]
    hits = database.search("somebody", "elephants", 9)
    assert [hit.head.key for hit in hits] == [HERE]
    with database._engine().connect() as connection:
        told = connection.exec_driver_sql("SELECT version_num FROM alembic_version").all()
        assert [row[0] for row in told] == [NEWEST]
        assert connection.exec_driver_sql("PRAGMA integrity_check").scalar() == "ok"
    database.close()
    store = ConversationStore(ConversationDatabase(f"sqlite:///{file}", "later"))
    store.change(HERE, add_turn(replace(FULL, turn_id="new", parent="again", text="giraffes")))
    assert [hit.head.key for hit in store.search("somebody", "giraffes", 9)] == [HERE]
    assert store.trouble is None
    store.close()


def test_the_migrations_make_just_the_tables_that_the_app_knows(database_url: str) -> None:
    database = ConversationDatabase(database_url, "me")
    database.beat()

    def ours(name: str | None, kind: str, parents: object) -> bool:
        # The words to search by are each database's own affair.
        return kind != "table" or not str(name).startswith("conversation_search")

    with database._engine().connect() as connection:
        context = MigrationContext.configure(
            connection, opts={"compare_type": True, "include_name": ours}
        )
        assert compare_metadata(context, tables) == []
    database.close()


def test_the_newest_version_is_the_last_of_one_line() -> None:
    config = Config()
    config.set_main_option("script_location", str(ROOT / "llm" / "migrations"))
    scripts = ScriptDirectory.from_config(config)
    assert scripts.get_heads() == [NEWEST]
    revisions = [script.revision for script in scripts.walk_revisions()]
    assert revisions == sorted(revisions, reverse=True), "they are compared as text"


def test_a_difference_would_be_noticed(tmp_path: Path) -> None:
    engine = sa.create_engine(f"sqlite:///{tmp_path / 'other.sqlite3'}")
    tables.create_all(engine)
    with engine.begin() as connection:
        connection.exec_driver_sql("ALTER TABLE runners ADD COLUMN more TEXT")
        context = MigrationContext.configure(connection)
        assert len(compare_metadata(context, tables)) == 1
    engine.dispose()


if __name__ == "__main__":
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        name = Path(__file__).parent / "data" / "schemas" / f"{NEWEST}.sqlite3.sql"
        name.write_text(dump(Path(folder) / "dumped.sqlite3"), "utf-8", newline="\n")
