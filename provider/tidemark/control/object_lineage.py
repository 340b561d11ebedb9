"""The graph of all live objects, read from the control store."""

from __future__ import annotations

import sqlalchemy as sa

from tidemark.control.lineage_graph import Graph, graph_of
from tidemark.control.object_kinds import KINDS, kind_named
from tidemark.control.object_list import ObjectsWish, live
from tidemark.control.schema import objects

__all__ = ["read_graph"]


def read_graph(connection: sa.Connection) -> Graph:
    """The graph of all live objects of the kinds that have ties. One query, and those of the kinds: their number does
    not depend on the number of objects.
    """
    columns = (objects.c.kind, objects.c.uid, objects.c.name)
    rows = connection.execute(sa.select(*columns).where(*live(ObjectsWish())))
    tied = [kind for kind in KINDS if kind_named(kind).ties is not None]
    return graph_of(
        {(row.kind, row.uid): row.name for row in rows},
        {kind: kind_named(kind).ties_of(connection) for kind in tied},
    )
