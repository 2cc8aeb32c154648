"""The tables of the database that conversations are kept in, as the newest migration leaves them."""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Double,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    String,
    Table,
    Text,
    UniqueConstraint,
)

NEWEST = "0003"
"""The newest migration. A database that says so needs none."""

tables = MetaData()

# SQLite counts a row's number by itself for this type alone.
_ROW = BigInteger().with_variant(Integer, "sqlite")

conversations = Table(
    "conversations",
    tables,
    Column("row", _ROW, primary_key=True, autoincrement=True),
    Column("conversation_id", String(64), nullable=False, unique=True),
    Column("owner", String(255), nullable=False),
    Column("title", Text, nullable=False),
    Column("title_by", String(16), nullable=False),
    Column("pinned", Boolean, nullable=False),
    Column("leaf", String(64), nullable=False),
    Column("created_s", Double, nullable=False),
    Column("updated_s", Double, nullable=False),
    Column("deleted_s", Double),
    Column("import_mark", String(80)),
    # Grows with every change: whoever writes says which version the change was made from.
    Column("version", Integer, nullable=False),
    UniqueConstraint("owner", "import_mark", name="conversations_import_mark"),
    Index("conversations_listed", "owner", "pinned", "updated_s"),
)

turns = Table(
    "turns",
    tables,
    Column("row", _ROW, primary_key=True, autoincrement=True),
    Column("turn_id", String(64), nullable=False, unique=True),
    Column(
        "conversation_id",
        String(64),
        ForeignKey("conversations.conversation_id", ondelete="CASCADE"),
        nullable=False,
        index=True,
    ),
    Column("parent", String(64), nullable=False),
    Column("continues", String(64), nullable=False),
    Column("question", Text, nullable=False),
    Column("backend", Text, nullable=False),
    Column("model", Text, nullable=False),
    Column("system_prompt", Text, nullable=False),
    Column("person", String(255), nullable=False),
    Column("params", Text, nullable=False),
    Column("state", String(16), nullable=False),
    Column("text", Text, nullable=False),
    Column("reasoning", Text, nullable=False),
    Column("receipt", Text),
    Column("error", Text),
    Column("created_s", Double, nullable=False),
    Column("deleted_s", Double),
    Column("runner", String(64), nullable=False),
    Column("stop_wanted", Boolean, nullable=False),
    # The few that are under way are looked for every second.
    Index("turns_by_runner", "runner", "state"),
)

runners = Table(
    "runners",
    tables,
    Column("runner", String(64), primary_key=True),
    # By the database's clock: those of two machines may differ.
    Column("beat_s", Double, nullable=False),
)

presets = Table(
    "presets",
    tables,
    Column("row", _ROW, primary_key=True, autoincrement=True),
    Column("preset_id", String(64), nullable=False, unique=True),
    Column("owner", String(255), nullable=False),
    Column("name", Text, nullable=False),
    Column("system_prompt", Text, nullable=False),
    Column("params", Text, nullable=False),
    Column("usual", Boolean, nullable=False),
    Index("presets_by_owner", "owner"),
)

# Figures of answers, for the page about them: no text, and no person.
answer_figures = Table(
    "answer_figures",
    tables,
    Column("row", _ROW, primary_key=True, autoincrement=True),
    Column("turn_id", String(64), nullable=False, unique=True),
    Column("ended_s", Double, nullable=False),
    # No names and no finish where only the screen's word has come so far.
    Column("backend", String(16), nullable=False),
    Column("model", Text, nullable=False),
    Column("server", Text, nullable=False),
    Column("finish", String(16), nullable=False),
    Column("error", String(64), nullable=False),
    Column("cached", String(16), nullable=False),
    Column("prompt_tokens", Integer),
    Column("completion_tokens", Integer),
    Column("chars", Integer),
    Column("waited_s", Double),
    Column("ttft_s", Double),
    Column("decode_s", Double),
    Column("tpot_ms", Double),
    Column("itl_p50_ms", Double),
    Column("itl_p95_ms", Double),
    Column("longest_freeze_ms", Double),
    Column("inp_ms", Double),
    Column("blocked_ms", Double),
    Column("lag_ms", Double),
    Column("frames", Integer),
    Column("bytes_sent", BigInteger),
    Index("answer_figures_by_end", "ended_s"),
    # In its order answers are counted by kind without sorting: 30 ms for 200,000, not 340.
    Index(
        "answer_figures_by_kind",
        "backend",
        "model",
        "server",
        "finish",
        "error",
        "cached",
        "ended_s",
    ),
)

process_samples = Table(
    "process_samples",
    tables,
    Column("row", _ROW, primary_key=True, autoincrement=True),
    Column("at_s", Double, nullable=False),
    Column("queue_depth", Integer, nullable=False),
    Column("memory_bytes", BigInteger, nullable=False),
    Index("process_samples_by_time", "at_s"),
)
