"""Alembic's environment, which uses the control store's connection and transaction."""

from __future__ import annotations

from alembic import context

from tidemark.control.migrate import VERSION_TABLE
from tidemark.control.schema import all_tables

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=all_tables(),
    version_table=VERSION_TABLE,
    transactional_ddl=True,
)
with context.begin_transaction():
    context.run_migrations()
