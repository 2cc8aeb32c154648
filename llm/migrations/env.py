"""How Alembic reaches the database: on the connection that the app hands it."""

from __future__ import annotations

from alembic import context

from llm.conversation_tables import tables

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=tables,
    transaction_per_migration=False,
    render_as_batch=True,  # SQLite changes a table by copying it
)
context.run_migrations()
