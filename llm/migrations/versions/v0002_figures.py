"""Figures of answers, and samples of what the process takes."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    row = sa.BigInteger().with_variant(sa.Integer, "sqlite")
    op.create_table(
        "answer_figures",
        sa.Column("row", row, primary_key=True, autoincrement=True),
        sa.Column("turn_id", sa.String(64), nullable=False, unique=True),
        sa.Column("ended_s", sa.Double, nullable=False),
        sa.Column("backend", sa.String(16), nullable=False),
        sa.Column("model", sa.Text, nullable=False),
        sa.Column("server", sa.Text, nullable=False),
        sa.Column("finish", sa.String(16), nullable=False),
        sa.Column("error", sa.String(64), nullable=False),
        sa.Column("cached", sa.String(16), nullable=False),
        sa.Column("prompt_tokens", sa.Integer),
        sa.Column("completion_tokens", sa.Integer),
        sa.Column("chars", sa.Integer),
        sa.Column("waited_s", sa.Double),
        sa.Column("ttft_s", sa.Double),
        sa.Column("decode_s", sa.Double),
        sa.Column("tpot_ms", sa.Double),
        sa.Column("itl_p50_ms", sa.Double),
        sa.Column("itl_p95_ms", sa.Double),
        sa.Column("longest_freeze_ms", sa.Double),
        sa.Column("inp_ms", sa.Double),
        sa.Column("blocked_ms", sa.Double),
        sa.Column("lag_ms", sa.Double),
        sa.Column("frames", sa.Integer),
        sa.Column("bytes_sent", sa.BigInteger),
    )
    op.create_index("answer_figures_by_end", "answer_figures", ["ended_s"])
    op.create_index(
        "answer_figures_by_kind",
        "answer_figures",
        ["backend", "model", "finish", "error", "cached", "ended_s"],
    )
    op.create_table(
        "process_samples",
        sa.Column("row", row, primary_key=True, autoincrement=True),
        sa.Column("at_s", sa.Double, nullable=False),
        sa.Column("queue_depth", sa.Integer, nullable=False),
        sa.Column("memory_bytes", sa.BigInteger, nullable=False),
    )
    op.create_index("process_samples_by_time", "process_samples", ["at_s"])


def downgrade() -> None:
    raise NotImplementedError("a database is never made older: that would lose what it holds")
