"""The table of objects compared with the rows of the subjects: no move may leave the one behind the other."""

from __future__ import annotations

from collections.abc import Iterator

import sqlalchemy as sa

from tidemark.change_streams.store.schema import change_streams, consumer_groups
from tidemark.channels.store.schema import landing_tables
from tidemark.clustering.store.schema import clustered_tables
from tidemark.control.object_kinds import KINDS, kind_named
from tidemark.control.schema import objects
from tidemark.control.store import ControlStore
from tidemark.materialized.store.schema import kept_views
from tidemark.pipes.store.schema import pipes
from tidemark.replication.store.schema import replicated_objects, replications
from tidemark.search.store.schema import searches
from tidemark.streams.store.schema import streams

__all__ = ["drifted", "rows_of"]

TABLES = {
    "stream": streams,
    "change_stream": change_streams,
    "consumer_group": consumer_groups,
    "replication": replications,
    "replicated_table": replicated_objects,
    "landing_table": landing_tables,
    "pipe": pipes,
    "materialized_view": kept_views,
    "dynamic_table": kept_views,
    "clustered_table": clustered_tables,
    "search_optimization": searches,
}
SAID = ("name", "within", "state", "severity", "problem")


def drifted(store: ControlStore) -> list[tuple[str, str, object, object]]:
    """Kind, uid, what the table of objects says and what the subject's rows say, where these differ."""
    assert TABLES.keys() == KINDS.keys()
    return store.read(lambda connection: list(_differences(connection)))


def rows_of(store: ControlStore) -> dict[str, dict[str, object]]:
    """Every live row of the table of objects, by kind and name."""
    query = sa.select(objects).where(objects.c.ended_at.is_(None))
    found = store.read(lambda connection: connection.execute(query).mappings().all())
    return {f"{row['kind']} {row['name']}": dict(row) for row in found}


def _differences(connection: sa.Connection) -> Iterator[tuple[str, str, object, object]]:
    for kind, table in TABLES.items():
        uids = list(connection.execute(sa.select(table.c.uid)).scalars())
        live = connection.execute(sa.select(objects).where(objects.c.kind == kind, objects.c.ended_at.is_(None)))
        kept = {row["uid"]: tuple(row[name] for name in SAID) for row in live.mappings()}
        said = {
            one.uid: (one.full_name, one.within, one.state, one.severity.value, one.problem)
            for one in kind_named(kind).entries(connection, uids)
        }
        for uid in kept.keys() | said.keys():
            if kept.get(uid) != said.get(uid):
                yield kind, uid, kept.get(uid), said.get(uid)
