"""Figures of answers are counted by server, too."""

from __future__ import annotations

from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.drop_index("answer_figures_by_kind", "answer_figures")
    op.create_index(
        "answer_figures_by_kind",
        "answer_figures",
        ["backend", "model", "server", "finish", "error", "cached", "ended_s"],
    )


def downgrade() -> None:
    raise NotImplementedError("a database is never made older: that would lose what it holds")
