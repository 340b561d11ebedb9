"""The migrations and schema.py are two tellings of one schema."""

from __future__ import annotations

import re

import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory

from tidemark.control import migrate
from tidemark.control.schema import metadata
from tidemark.control.store import ControlStore


def test_the_migrated_schema_is_schema_py(store: ControlStore) -> None:
    def differences(connection: sa.Connection) -> list[object]:
        options = {"version_table": migrate.VERSION_TABLE, "compare_type": True, "compare_server_default": True}
        return list(compare_metadata(MigrationContext.configure(connection, opts=options), metadata))

    assert store.read(differences) == []


def test_every_table_and_index_is_defined_alike(store: ControlStore) -> None:
    """Autogenerate does not compare partial conditions and constraint names; the DDL itself does."""
    direct = sa.create_engine("sqlite://")
    metadata.create_all(direct)
    with direct.connect() as connection:
        wanted = _definitions(connection)
    assert store.read(_definitions) == wanted


def test_there_is_one_line_of_revisions_and_head_is_named() -> None:
    script = ScriptDirectory.from_config(migrate.configuration())
    assert script.get_heads() == [migrate.HEAD]


def test_the_first_revision_can_be_undone_and_applied_again(store: ControlStore) -> None:
    from alembic import command

    store.write(lambda connection: command.downgrade(migrate.configuration(connection), "base"))
    assert store.revision() is None
    store.migrate()
    assert store.revision() == migrate.HEAD


def test_the_schema_is_understood_by_postgresql() -> None:
    from sqlalchemy.dialects import postgresql
    from sqlalchemy.schema import CreateIndex, CreateTable

    text = "\n".join(str(CreateTable(table).compile(dialect=postgresql.dialect())) for table in metadata.sorted_tables)
    index = next(i for i in metadata.tables["tidemark_transaction"].indexes if i.unique)
    assert "TIMESTAMP WITH TIME ZONE" in text
    assert "BIGSERIAL" in text
    assert "WHERE state != 'released'" in str(CreateIndex(index).compile(dialect=postgresql.dialect()))


def _definitions(connection: sa.Connection) -> dict[str, list[str]]:
    query = "SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite%' AND name != :own"
    rows = connection.execute(sa.text(query), {"own": migrate.VERSION_TABLE})
    return {name: sorted(part.strip(" ,\n\t") for part in re.split(r"\n", text)) for name, text in rows}
