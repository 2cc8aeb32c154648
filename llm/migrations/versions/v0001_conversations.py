"""Conversations, their turns, who is answering, presets, and the words to search by."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from llm.conversation_search import create

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    row = sa.BigInteger().with_variant(sa.Integer, "sqlite")
    op.create_table(
        "conversations",
        sa.Column("row", row, primary_key=True, autoincrement=True),
        sa.Column("conversation_id", sa.String(64), nullable=False, unique=True),
        sa.Column("owner", sa.String(255), nullable=False),
        sa.Column("title", sa.Text, nullable=False),
        sa.Column("title_by", sa.String(16), nullable=False),
        sa.Column("pinned", sa.Boolean, nullable=False),
        sa.Column("leaf", sa.String(64), nullable=False),
        sa.Column("created_s", sa.Double, nullable=False),
        sa.Column("updated_s", sa.Double, nullable=False),
        sa.Column("deleted_s", sa.Double),
        sa.Column("import_mark", sa.String(80)),
        sa.Column("version", sa.Integer, nullable=False),
        sa.UniqueConstraint("owner", "import_mark", name="conversations_import_mark"),
    )
    op.create_index("conversations_listed", "conversations", ["owner", "pinned", "updated_s"])
    op.create_table(
        "turns",
        sa.Column("row", row, primary_key=True, autoincrement=True),
        sa.Column("turn_id", sa.String(64), nullable=False, unique=True),
        sa.Column(
            "conversation_id",
            sa.String(64),
            sa.ForeignKey("conversations.conversation_id", ondelete="CASCADE"),
            nullable=False,
        ),
        sa.Column("parent", sa.String(64), nullable=False),
        sa.Column("continues", sa.String(64), nullable=False),
        sa.Column("question", sa.Text, nullable=False),
        sa.Column("backend", sa.Text, nullable=False),
        sa.Column("model", sa.Text, nullable=False),
        sa.Column("system_prompt", sa.Text, nullable=False),
        sa.Column("person", sa.String(255), nullable=False),
        sa.Column("params", sa.Text, nullable=False),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("text", sa.Text, nullable=False),
        sa.Column("reasoning", sa.Text, nullable=False),
        sa.Column("receipt", sa.Text),
        sa.Column("error", sa.Text),
        sa.Column("created_s", sa.Double, nullable=False),
        sa.Column("deleted_s", sa.Double),
        sa.Column("runner", sa.String(64), nullable=False),
        sa.Column("stop_wanted", sa.Boolean, nullable=False),
    )
    op.create_index("ix_turns_conversation_id", "turns", ["conversation_id"])
    op.create_index("turns_by_runner", "turns", ["runner", "state"])
    op.create_table(
        "runners",
        sa.Column("runner", sa.String(64), primary_key=True),
        sa.Column("beat_s", sa.Double, nullable=False),
    )
    op.create_table(
        "presets",
        sa.Column("row", row, primary_key=True, autoincrement=True),
        sa.Column("preset_id", sa.String(64), nullable=False, unique=True),
        sa.Column("owner", sa.String(255), nullable=False),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("system_prompt", sa.Text, nullable=False),
        sa.Column("params", sa.Text, nullable=False),
        sa.Column("usual", sa.Boolean, nullable=False),
    )
    op.create_index("presets_by_owner", "presets", ["owner"])
    create(op.get_bind())


def downgrade() -> None:
    raise NotImplementedError("a database is never made older: that would lose what it holds")
