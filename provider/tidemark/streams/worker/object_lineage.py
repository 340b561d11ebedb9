"""A part of the lineage with the states and lags of its objects, from the store and from earlier looks at logs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property

import sqlalchemy as sa

from tidemark.control.lineage_graph import TABLE, Edge, Graph, Node, Part, around, named, whole
from tidemark.control.object_kinds import kind_named
from tidemark.control.object_lineage import read_graph
from tidemark.control.object_list import ShownObject, of_keys
from tidemark.control.object_needs import Key
from tidemark.control.store import ControlStore
from tidemark.errors import InvalidArgument
from tidemark.streams.worker.object_needs import NOTHING_KNOWN, Known, look_at, still_holds
from tidemark.streams.worker.object_states import judged, questions_behind
from tidemark.streams.worker.sources import Tables

__all__ = ["LineageWish", "ShownLineage", "known_objects", "part_of", "read_lineage", "shown_lineage"]

DEPTH, MOST = 3, 2000


@dataclass(frozen=True)
class LineageWish:
    """The part that is asked for: that around an object or a table, or all. `kind`: `table`, or that of an object.
    `name`: a name, a uid or a path. `depth`: how many edges up and down. `most`: how many nodes at most.
    """

    kind: str | None = None
    name: str | None = None
    depth: int = DEPTH
    most: int = MOST


@dataclass(frozen=True)
class ShownLineage:
    """`objects`: the nodes of the part that are objects, as they are shown. A lag that only a log tells is None until a
    look has found it; the keys of such objects are `unseen`.
    """

    part: Part
    objects: Mapping[Key, ShownObject]
    unseen: frozenset[Key] = frozenset()

    def behind(self, edge: Edge) -> Key | None:
        """The object whose lag is that of the edge: the one that reads. An object that reads nothing that is known has
        its lag on the edges of its writes. None: the edge has no lag.
        """
        if edge.target in self.objects:
            return edge.target
        return edge.source if edge.source in self.objects and edge.source not in self._readers else None

    @cached_property
    def _readers(self) -> frozenset[Key]:
        return frozenset(edge.target for edge in self.part.edges)


def part_of(graph: Graph, wish: LineageWish) -> Part:
    """The part of the graph that is asked for. Raises InvalidArgument if no node has the name, or several."""
    if wish.kind is None or wish.name is None:
        return whole(graph, most=wish.most)
    found = named(graph, wish.kind, wish.name)
    if len(found) != 1:
        raise InvalidArgument(argument="name", value=wish.name, problem=_problem(wish.kind, found))
    return around(graph, found[0].key, depth=wish.depth, most=wish.most)


def shown_lineage(connection: sa.Connection, part: Part, known: Known, *, now: datetime) -> ShownLineage:
    """The part with states and lags. Objects that have ended since are left out. The number of queries depends on the
    kinds of objects; 500 objects of a kind are read at a time.
    """
    keys = [node.key for node in part.nodes if node.kind != TABLE]
    objects, unseen = known_objects(connection, keys, known, now=now)
    return ShownLineage(_without_ended(part, objects), objects, unseen)


def known_objects(
    connection: sa.Connection, keys: Sequence[Key], known: Known, *, now: datetime
) -> tuple[dict[Key, ShownObject], frozenset[Key]]:
    """The live ones among these objects with the findings of earlier looks. The keys are those of objects whose lag
    only a log tells, and that no look has seen. Their lag is None.
    """
    found = of_keys(connection, keys, now=now)
    questions = questions_behind(connection, found)
    seen = {uid: still_holds(known.seen.get((kind, uid)), questions.get(uid)) for kind, uid in keys}
    told = {(one.kind, one.uid): one for one in judged(found, seen, known.usual, now)}
    asked = (key for key, one in told.items() if kind_named(one.kind).look is not None)
    unseen = frozenset(key for key in asked if seen[key[1]] is None)
    return told, unseen


def read_lineage(store: ControlStore, tables: Tables, wish: LineageWish) -> ShownLineage:
    """The same for a caller who waits. The logs of the objects that are shown are looked at first, for 30 seconds at
    most. Raises InvalidArgument as `part_of`.
    """
    part = part_of(store.read(read_graph), wish)
    known = look_at(store, tables, NOTHING_KNOWN, [node.key for node in part.nodes if node.kind != TABLE])
    return store.read(lambda connection: shown_lineage(connection, part, known, now=store.clock()))


def _without_ended(part: Part, told: Mapping[Key, ShownObject]) -> Part:
    left = {node.key for node in part.nodes if node.kind == TABLE or node.key in told}
    if len(left) == len(part.nodes):
        return part
    return replace(
        part,
        nodes=tuple(node for node in part.nodes if node.key in left),
        edges=tuple(edge for edge in part.edges if edge.source in left and edge.target in left),
        total=part.total - (len(part.nodes) - len(left)),
    )


def _problem(kind: str, found: tuple[Node, ...]) -> str:
    if found:
        return f"{len(found)} nodes have that name; give the uid, or the path of a table"
    return f"no {kind} in the lineage has that name, uid or path. `objects list` names all objects"
