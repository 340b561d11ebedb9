"""The graph of all objects and tables, by their ties, and the part of it around one of them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from tidemark.control.ties import Flow, TableAt, Tie

__all__ = [
    "MOST_DEPENDENTS",
    "TABLE",
    "Edge",
    "Graph",
    "Keeper",
    "Node",
    "Part",
    "around",
    "dependents",
    "graph_of",
    "named",
    "whole",
]

TABLE = "table"
"""The kind of a node that is a table and no object."""

MOST_DEPENDENTS = 1000
"""Further ones are not counted: many objects of a page may share very many."""

Key = tuple[str, str]
"""Kind and uid of an object; `table` and the path of a table, or its folded name if no path is known."""


@dataclass(frozen=True)
class Node:
    """A table or an object. `path`: of a table, or of the table that the object is; None: it is not known, or none."""

    key: Key
    name: str
    path: str | None = None

    @property
    def kind(self) -> str:
        """`table`, or the kind of the object."""
        return self.key[0]


@dataclass(frozen=True)
class Edge:
    """Rows flow from `source` to `target`. `dags`: those whose runs let them flow."""

    source: Key
    target: Key
    dags: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Keeper:
    """An object that keeps a table clustered, or fast to search. It is no node. `at`: the node of its table."""

    name: str
    at: Key


@dataclass(frozen=True)
class Graph:
    """All nodes by key, and all edges, each once. `after` and `before`: the neighbours of each node, in order. Every
    question about one of the `keepers`, by their keys, is one about the node of its table.
    """

    nodes: Mapping[Key, Node]
    edges: tuple[Edge, ...]
    after: Mapping[Key, Sequence[Key]] = field(default_factory=dict)
    before: Mapping[Key, Sequence[Key]] = field(default_factory=dict)
    keepers: Mapping[Key, Keeper] = field(default_factory=dict)

    @cached_property
    def together(self) -> Sequence[Key]:
        """All nodes, each near those that it is tied to."""
        seen: dict[Key, None] = {}
        for start in sorted(self.nodes, key=lambda key: _order(self, key)):
            waiting = [] if start in seen else [start]
            while waiting:
                key = waiting.pop()
                if key not in seen:
                    seen[key] = None
                    waiting.extend((*self.before.get(key, ()), *self.after.get(key, ())))
        return tuple(seen)


@dataclass(frozen=True)
class Part:
    """Nodes and the edges between them. `total`: how many nodes fit; `nodes` has fewer of them if they are too many.
    `centre`: the node that was asked for.
    """

    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...]
    total: int
    centre: Key | None = None

    @property
    def truncated(self) -> bool:
        """Whether nodes are left out."""
        return len(self.nodes) < self.total


def graph_of(names: Mapping[Key, str], ties: Mapping[str, Sequence[Tie]]) -> Graph:
    """The graph of the live objects with these names, and of the tables that their ties name.

    A table is known by its path. A tie with a name alone means the table of that name, if one path has it. A table
    that a keeper keeps is a node, with rows that flow or without.
    """
    living = [(kind, tie) for kind, found in ties.items() for tie in found if (kind, tie.uid) in names]
    tables = _Tables(tie.other for _, tie in living if isinstance(tie.other, TableAt))
    kept = {
        tables.path_of(tie.other): (kind, tie.uid)
        for kind, tie in living
        if tie.flow is Flow.IS and isinstance(tie.other, TableAt)
    }
    keepers = _keepers(names, living, tables, kept)
    nodes = {key: Node(key, name) for key, name in names.items() if key[0] in ties and key not in keepers}
    nodes |= {key: replace(nodes[key], path=path) for path, key in kept.items()}
    nodes |= {one.at: tables.node(one.at[1]) for one in keepers.values() if one.at[0] == TABLE}
    flows: dict[tuple[Key, Key], set[str]] = {}
    for kind, tie in living:
        other = _other(tie, tables, kept)
        if tie.flow not in (Flow.READS, Flow.WRITES) or (other[0] != TABLE and other not in nodes):
            continue
        if other not in nodes:
            nodes[other] = tables.node(other[1])
        ends = ((kind, tie.uid), other) if tie.flow is Flow.WRITES else (other, (kind, tie.uid))
        flows.setdefault(ends, set()).update(() if tie.dag is None else (tie.dag,))
    edges = [Edge(*ends, frozenset(dags)) for ends, dags in flows.items()]
    return replace(_linked(nodes, edges), keepers=keepers)


def named(graph: Graph, kind: str, name: str) -> tuple[Node, ...]:
    """The nodes of that kind with that name in any case, that uid or that path; exact ones alone if one is. Of keepers
    those of their tables.
    """
    wanted = name.casefold()
    known = (*graph.nodes.values(), *(Node(key, one.name, one.at[1]) for key, one in graph.keepers.items()))
    of_kind = (node for node in known if node.kind == kind)
    found = tuple(one for one in of_kind if name in (one.key[1], one.path) or one.name.casefold() == wanted)
    found = tuple(one for one in found if name in (one.name, one.key[1], one.path)) or found
    return tuple(dict.fromkeys(graph.nodes[_node_of(graph, one.key)] for one in found))


def around(graph: Graph, centre: Key, *, depth: int, most: int) -> Part:
    """The nodes from which `centre` gets rows, and those that get rows from it, over at most `depth` edges, the
    nearest first.
    """
    distances = {centre: 0}
    for neighbours in (graph.before, graph.after):
        for key, distance in _reached(centre, neighbours, depth):
            distances[key] = min(distance, distances.get(key, distance))
    return _part(graph, sorted(distances, key=lambda key: (distances[key], _order(graph, key))), most, centre)


def dependents(graph: Graph, key: Key) -> int | None:
    """How many tables and objects get rows from it, over any number of edges: 1,000 at most. Of a keeper the number of
    its table. None: the graph has neither.
    """
    key = _node_of(graph, key)
    if key not in graph.nodes:
        return None
    seen, waiting = {key}, [key]
    while waiting:
        for after in graph.after.get(waiting.pop(), ()):
            if after in seen:
                continue
            if len(seen) > MOST_DEPENDENTS:
                return MOST_DEPENDENTS
            seen.add(after)
            waiting.append(after)
    return len(seen) - 1


def whole(graph: Graph, *, most: int) -> Part:
    """All nodes; of too many, nodes that are tied to each other stay together."""
    return _part(graph, graph.together, most, None)


class _Tables:
    """The tables that ties name: a name for each path, and the path of a name."""

    def __init__(self, named: Iterable[TableAt]) -> None:
        names: dict[str, set[str]] = defaultdict(set)
        paths: dict[str, set[str]] = defaultdict(set)
        alone: dict[str, str] = {}
        for table in named:
            if table.path is None:
                alone.setdefault(table.name.casefold(), table.name)
            else:
                names[table.path].add(table.name)
                paths[table.name.casefold()].add(table.path)
        best = {path: min(found, key=lambda name: (name == path, len(name), name)) for path, found in names.items()}
        self._names = {**alone, **best}
        self._paths = {name: min(found) for name, found in paths.items() if len(found) == 1}

    def path_of(self, table: TableAt) -> str:
        """Its path, or its folded name."""
        folded = table.name.casefold()
        return self._paths.get(folded, folded) if table.path is None else table.path

    def node(self, path: str) -> Node:
        """The node of the table with that path or folded name."""
        return Node((TABLE, path), self._names.get(path, path), path if "/" in path else None)


def _keepers(
    names: Mapping[Key, str], ties: Iterable[tuple[str, Tie]], tables: _Tables, kept: Mapping[str, Key]
) -> Mapping[Key, Keeper]:
    found = ((kind, tie) for kind, tie in ties if tie.flow is Flow.KEEPS)
    return {(kind, tie.uid): Keeper(names[kind, tie.uid], _other(tie, tables, kept)) for kind, tie in found}


def _node_of(graph: Graph, key: Key) -> Key:
    keeper = graph.keepers.get(key)
    return key if keeper is None else keeper.at


def _other(tie: Tie, tables: _Tables, kept: Mapping[str, Key]) -> Key:
    if isinstance(tie.other, tuple):
        return tie.other
    path = tables.path_of(tie.other)
    return kept.get(path, (TABLE, path))


def _linked(nodes: Mapping[Key, Node], edges: Sequence[Edge]) -> Graph:
    after: dict[Key, list[Key]] = defaultdict(list)
    before: dict[Key, list[Key]] = defaultdict(list)
    ordered = sorted(edges, key=lambda edge: (edge.source, edge.target))
    for edge in ordered:
        after[edge.source].append(edge.target)
        before[edge.target].append(edge.source)
    return Graph(nodes, tuple(ordered), after, before)


def _reached(centre: Key, neighbours: Mapping[Key, Sequence[Key]], depth: int) -> Iterator[tuple[Key, int]]:
    seen, edge = {centre}, [centre]
    for distance in range(1, depth + 1):
        found = {key: None for one in edge for key in neighbours.get(one, ()) if key not in seen}
        seen.update(found)
        edge = list(found)
        yield from ((key, distance) for key in edge)


def _order(graph: Graph, key: Key) -> tuple[str, str, str]:
    return (graph.nodes[key].name.casefold(), *key)


def _part(graph: Graph, keys: Sequence[Key], most: int, centre: Key | None) -> Part:
    chosen = dict.fromkeys(keys[:most])
    between = tuple(edge for edge in graph.edges if edge.source in chosen and edge.target in chosen)
    return Part(tuple(graph.nodes[key] for key in chosen), between, len(keys), centre)
