"""The clustered tables that tasks have looked at or reclustered."""

from __future__ import annotations

from collections.abc import Mapping

import sqlalchemy as sa

from tidemark.clustering.store.schema import reclusterings
from tidemark.control.run_keys import RunPart, Touch
from tidemark.control.schema import objects

__all__ = ["tables_of_runs"]

_of = reclusterings.c


def tables_of_runs(connection: sa.Connection, part: RunPart) -> Mapping[str, Touch]:
    """The tables that these tasks reclustered, by uid, with the newest of each and its reason. One query, which reads
    the reclusterings of the tables that the DAG owns.
    """
    owned = sa.select(objects.c.uid).where(objects.c.kind == "clustered_table", objects.c.owner_dag == part.dag_id)
    columns = (_of.table_uid, _of.state, _of.how, _of.why, _of.error)
    query = sa.select(*columns).where(_of.table_uid.in_(owned), part.has(_of.run)).order_by(_of.id)
    return {
        row.table_uid: Touch(f"reclustering {row.state}, {row.how}", row.error or row.why)
        for row in connection.execute(query)
    }
