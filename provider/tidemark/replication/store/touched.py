"""The replicated tables that tasks have written."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import sqlalchemy as sa

from tidemark.control.run_keys import RunPart, Touch
from tidemark.control.schema import objects
from tidemark.replication.planning.positions import position_text
from tidemark.replication.store.schema import object_writes

__all__ = ["tables_of_runs"]

_of = object_writes.c


def tables_of_runs(connection: sa.Connection, part: RunPart) -> Mapping[str, Touch]:
    """The tables that these tasks wrote, by uid, with the newest write of each. One query, which reads the writes of
    the tables that the DAG owns.
    """
    owned = sa.select(objects.c.uid).where(objects.c.kind == "replicated_table", objects.c.owner_dag == part.dag_id)
    columns = (_of.object_uid, _of.kind, _of.state, _of.start_position, _of.end_position)
    written = sa.select(*columns).where(_of.object_uid.in_(owned), part.has(_of.run))
    rows = connection.execute(written.order_by(_of.number))
    return {row.object_uid: Touch(f"{row.kind} {row.state}", _why(row)) for row in rows}


def _why(row: Any) -> str | None:
    """An apply has the events between two positions. A backfill has none: it was requested, or was due."""
    if row.kind == "backfill":
        return "its backfill was due: all rows of the source's table"
    if row.start_position is None or row.end_position is None:
        return None
    return f"captured events from {position_text(row.start_position)} up to {position_text(row.end_position)}"
