"""The replicated tables that tasks have written."""

from __future__ import annotations

from collections.abc import Mapping

import sqlalchemy as sa

from tidemark.control.run_keys import RunPart
from tidemark.control.schema import objects
from tidemark.replication.store.schema import object_writes

__all__ = ["tables_of_runs"]

_of = object_writes.c


def tables_of_runs(connection: sa.Connection, part: RunPart) -> Mapping[str, str]:
    """The tables that these tasks wrote, by uid, with the newest write of each. One query, which reads the writes of
    the tables that the DAG owns.
    """
    owned = sa.select(objects.c.uid).where(objects.c.kind == "replicated_table", objects.c.owner_dag == part.dag_id)
    written = sa.select(_of.object_uid, _of.kind, _of.state).where(_of.object_uid.in_(owned), part.has(_of.run))
    rows = connection.execute(written.order_by(_of.number))
    return {row.object_uid: f"{row.kind} {row.state}" for row in rows}
