"""Tables that only a catalog of Spark knows, as a job found them there."""

from __future__ import annotations

from datetime import datetime

import sqlalchemy as sa

from tidemark.model.streams import Addressing, TableRef
from tidemark.streams.store.schema import catalog_tables

__all__ = ["forget", "keep", "lookup"]

_of = catalog_tables.c
_NONE = ""


def lookup(connection: sa.Connection, conn_id: str, name: str) -> TableRef | None:
    """The table of that name as it was found last with the Airflow connection `conn_id`, or None: a question, not a
    failure.
    """
    known = sa.select(catalog_tables).where(_of.conn_id == conn_id, _of.name == name, _of.table_id != _NONE)
    row = connection.execute(known).mappings().first()
    return None if row is None else TableRef(row["name"], row["path"], row["table_id"], Addressing.CATALOG)


def keep(connection: sa.Connection, conn_id: str, table: TableRef, *, at: datetime) -> None:
    """The table was found at `at`, and an earlier find of its name counts no more. A second time changes nothing."""
    found = {"path": table.path, "table_id": table.table_id, "found_at": at}
    same = (_of.conn_id == conn_id, _of.name == table.name)
    if connection.execute(catalog_tables.update().where(*same).values(found)).rowcount == 0:
        connection.execute(catalog_tables.insert().values(conn_id=conn_id, name=table.name, **found))


def forget(connection: sa.Connection, name: str, *, path: str) -> None:
    """The name leads to `path` no more. A second time, and if it was found elsewhere since, it changes nothing.

    The row stays without a table: tasks need no right to delete.
    """
    connection.execute(catalog_tables.update().where(_of.name == name, _of.path == path).values(table_id=_NONE))
