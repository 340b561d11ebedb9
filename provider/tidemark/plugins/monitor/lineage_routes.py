"""The route of lineage: tables and objects of all DAGs, and the flow of rows between them."""

from __future__ import annotations

from collections.abc import Callable, Collection
from datetime import datetime
from typing import Annotated

from fastapi import FastAPI, HTTPException, Query

from tidemark.control.lineage_graph import Graph, Part
from tidemark.control.store import ControlStore
from tidemark.errors import InvalidArgument
from tidemark.plugins.monitor.access import ReadableDags
from tidemark.plugins.monitor.asking import API, Connection, gate_to, refusals
from tidemark.plugins.monitor.connections import MonitoredConnection, connection_ids
from tidemark.plugins.monitor.gate import Gate, Gates
from tidemark.plugins.monitor.kept_graphs import KeptGraphs
from tidemark.plugins.monitor.lineage_answers import LineageAnswer, edge_answer, node_answer, node_id
from tidemark.streams.worker.object_lineage import LineageWish, ShownLineage, part_of, shown_lineage
from tidemark.streams.worker.object_needs import Known

__all__ = ["add_lineage"]

Centre = Annotated[
    str | None,
    Query(
        max_length=3000,
        pattern=r"^[a-z_]{1,32}/[^\x00]+$",
        description="KIND/NAME of an object, or table/NAME; a uid or a path instead of the name. Without it: all.",
    ),
]
Depth = Annotated[int, Query(ge=1, le=10, description="How many edges up and down from the object.")]
Most = Annotated[int, Query(ge=1, le=2000, description="How many nodes at most.")]
_NOTHING = ShownLineage(Part((), (), 0), {})


def add_lineage(app: FastAPI, gates: Gates, graphs: KeptGraphs, clock: Callable[[], datetime]) -> None:
    """Adds the route."""

    @app.get(f"{API}/lineage", responses=refusals("object"))
    async def lineage(
        readable: ReadableDags,
        connection: Connection = None,
        object: Centre = None,
        depth: Depth = 3,
        limit: Most = 500,
    ) -> LineageAnswer:
        """Tables and objects with the flow of rows between them: all, or those around one, up and down.

        It reads the control store alone. Ties are at most a minute old. Logs are looked at in the background.
        """
        kind, _, name = (object or "").partition("/")
        wish = LineageWish(kind, name, depth, limit) if object else LineageWish(depth=depth, most=limit)
        gate = gate_to(gates, connection)
        return await gate.ask(lambda monitored: _answer(monitored, gate, graphs, wish, clock(), readable))


def _answer(
    monitored: MonitoredConnection,
    gate: Gate,
    graphs: KeptGraphs,
    wish: LineageWish,
    now: datetime,
    readable: Collection[str],
) -> LineageAnswer:
    found, replications = (_NOTHING, 0)
    known = gate.watch.known  # once: a look may end while the store is read
    if monitored.store is not None:
        found, replications = _read(monitored.store, graphs.of(monitored.conn_id, monitored.store), known, wish, now)
        gate.watch.wake(monitored.store, monitored.tables)
    return LineageAnswer(
        connection=monitored.conn_id,
        connections=connection_ids(),
        store="absent" if monitored.store is None else "ready",
        now=now,
        looked_at=known.looked_at,
        centre=None if found.part.centre is None else node_id(found.part.centre),
        total=found.part.total,
        truncated=found.part.truncated,
        nodes=tuple(node_answer(node, found, readable) for node in found.part.nodes),
        edges=tuple(edge_answer(edge, found, readable) for edge in found.part.edges),
        replications=replications,
    )


def _read(
    store: ControlStore, graph: Graph, known: Known, wish: LineageWish, now: datetime
) -> tuple[ShownLineage, int]:
    """The lineage, and how many replications there are. Raises HTTPException 404 if no node has the name."""
    try:
        part = part_of(graph, wish)
    except InvalidArgument as error:
        raise HTTPException(404, str(error)) from error
    found = store.read(lambda connection: shown_lineage(connection, part, known, now=now))
    return found, sum(kind == "replication" for kind, _ in graph.nodes)
