"""The clustered tables that tasks have reclustered, and the task that reclustered each last."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import sqlalchemy as sa

from tidemark.clustering.store.schema import clustered_tables, reclusterings
from tidemark.control.newest import newest_value, values_of_each
from tidemark.control.run_keys import RunPart, Touch

__all__ = ["table_runs", "tables_of_runs"]

_of = reclusterings.c


def table_runs(connection: sa.Connection, uids: Sequence[str]) -> Mapping[str, str]:
    """The task that planned the newest reclustering of each table. One query."""
    own = clustered_tables.c.uid
    return values_of_each(connection, own, uids, newest_value(_of.run, _of.table_uid == own, of=own, order=_of.id))


def tables_of_runs(connection: sa.Connection, part: RunPart) -> Mapping[str, Touch]:
    """The tables that these tasks reclustered, by uid, with the newest of each and its reason. One query, which reads
    the reclusterings of the tables that the DAG owns.
    """
    owned = part.owned("clustered_table")
    columns = (_of.table_uid, _of.state, _of.how, _of.why, _of.error)
    query = sa.select(*columns).where(_of.table_uid.in_(owned), part.has(_of.run)).order_by(_of.id)
    return {
        row.table_uid: Touch(f"reclustering {row.state}, {row.how}", row.error or row.why)
        for row in connection.execute(query)
    }
