"""The answer of the route of lineage. Times are UTC."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from tidemark.control.lineage_graph import Edge, Node
from tidemark.control.object_list import ShownObject
from tidemark.control.object_needs import Key
from tidemark.streams.worker.object_lineage import ShownLineage

__all__ = ["LineageAnswer", "LineageEdge", "LineageNode", "edge_answer", "node_answer", "node_id"]


@dataclass(frozen=True)
class LineageNode:
    """A table or an object. `kind`: `table`, or that of the object. `path`: of a table, or of the table that the object
    is. The fields of state are None for a table. `owner`: the DAG that created or wrote the object last; left out for
    those who may not read that DAG. `looked`: its log has been looked at, or need not be; its lag is not known before.
    `view`: the address of its own view on the page.
    """

    id: str
    kind: str
    name: str
    path: str | None
    uid: str | None
    state: str | None
    severity: str | None
    since: datetime | None
    owner: str | None
    lag_seconds: float | None
    lag_amount: int | None
    lag_unit: str | None
    looked: bool
    view: Mapping[str, str] | None


@dataclass(frozen=True)
class LineageEdge:
    """The flow of rows from `source` to `target`, by the runs of the DAGs `owners`. `others`: the number of further
    DAGs, which the caller may not read. The lag is that of the object that reads.
    """

    source: str
    target: str
    owners: tuple[str, ...]
    others: int
    lag_seconds: float | None
    lag_amount: int | None
    lag_unit: str | None
    looked: bool


@dataclass(frozen=True)
class LineageAnswer:
    """Tables and objects, and the flow of rows between them. `centre`: the id of the node that was asked for. `total`:
    how many nodes fit. `truncated`: there are more than `limit`, and those that are far from the centre are left out.
    `looked_at`: when logs and lags were looked at last, in the background. `replications`: how many there are in all.
    """

    connection: str
    connections: tuple[str, ...]
    store: Literal["ready", "absent"]
    now: datetime
    looked_at: datetime | None
    centre: str | None
    total: int
    truncated: bool
    nodes: tuple[LineageNode, ...]
    edges: tuple[LineageEdge, ...]
    replications: int


def node_id(key: Key) -> str:
    """The id of a node in one answer and in all others, as long as it lives."""
    return f"{key[0]}/{key[1]}"


def node_answer(node: Node, lineage: ShownLineage, readable: Collection[str]) -> LineageNode:
    """The node as that reader may see it."""
    shown = lineage.objects.get(node.key)
    owner = None if shown is None else shown.owner_dag
    return LineageNode(
        id=node_id(node.key),
        kind=node.kind,
        name=node.name,
        path=node.path,
        uid=None if shown is None else shown.uid,
        state=None if shown is None else shown.state,
        severity=None if shown is None else shown.severity.value,
        since=None if shown is None else shown.since,
        owner=owner if owner in readable else None,
        lag_seconds=None if shown is None else shown.lag_seconds,
        lag_amount=None if shown is None else shown.lag_amount,
        lag_unit=None if shown is None else shown.lag_unit,
        looked=node.key not in lineage.unseen,
        view=None if shown is None else shown.view,
    )


def edge_answer(edge: Edge, lineage: ShownLineage, readable: Collection[str]) -> LineageEdge:
    """The edge as that reader may see it."""
    key = lineage.behind(edge)
    lag: ShownObject | None = None if key is None else lineage.objects[key]
    owners = tuple(sorted(edge.dags.intersection(readable)))
    return LineageEdge(
        source=node_id(edge.source),
        target=node_id(edge.target),
        owners=owners,
        others=len(edge.dags) - len(owners),
        lag_seconds=None if lag is None else lag.lag_seconds,
        lag_amount=None if lag is None else lag.lag_amount,
        lag_unit=None if lag is None else lag.lag_unit,
        looked=key not in lineage.unseen,
    )
