"""Random queries of views, as SQL and as a plain evaluation of rows with their ids: an oracle that knows no Spark."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any

__all__ = ["Bag", "Node", "random_tree"]

Row = tuple[int | None, int | None, str | None]  # k, n, v: every table and every part of a query has these columns
Bag = list[tuple[tuple[Any, ...], Row]]  # the id of each row, made of parts, and its values
Tables = Sequence[Bag]


class Node:
    """A part of a query: its rows, and its SQL as an item of FROM needs it, under an alias."""

    def rows(self, tables: Tables) -> Bag:
        raise NotImplementedError

    def select(self) -> str:
        raise NotImplementedError

    def source(self, alias: str) -> str:
        return f"({self.select()}) AS {alias}"

    def scans(self) -> Iterator[Scan]:
        return iter(())


@dataclass
class Scan(Node):
    """A base table; `number` tells apart the scans of one."""

    table: int
    name: str
    number: int

    def rows(self, tables: Tables) -> Bag:
        return [((self.number, *row_id), row) for row_id, row in tables[self.table]]

    def select(self) -> str:
        return f"SELECT * FROM {self.name}"

    def source(self, alias: str) -> str:
        return f"{self.name} AS {alias}"

    def scans(self) -> Iterator[Scan]:
        yield self


Value = tuple[str, Callable[[Row], Any]]
NUMBERS: tuple[Value, ...] = (
    ("{0}.k", lambda row: row[0]),
    ("{0}.n", lambda row: row[1]),
    ("{0}.k + 1", lambda row: None if row[0] is None else row[0] + 1),
    ("coalesce({0}.k, 0)", lambda row: 0 if row[0] is None else row[0]),
    ("CASE WHEN {0}.v = 'a' THEN {0}.n ELSE {0}.k END", lambda row: row[1] if row[2] == "a" else row[0]),
    ("0", lambda row: 0),
)
TEXTS: tuple[Value, ...] = (
    ("{0}.v", lambda row: row[2]),
    ("upper({0}.v)", lambda row: None if row[2] is None else row[2].upper()),
    ("concat({0}.v, '!')", lambda row: None if row[2] is None else row[2] + "!"),
    ("substring({0}.v, 1, 1)", lambda row: None if row[2] is None else row[2][:1]),
)
FILTERS: tuple[tuple[str, Callable[[Row], Any]], ...] = (
    ("true", lambda row: True),
    ("{0}.k > 1", lambda row: row[0] is not None and row[0] > 1),
    ("{0}.k IS NULL OR {0}.n < 3", lambda row: row[0] is None or (row[1] is not None and row[1] < 3)),
    ("{0}.v IN ('a', 'b')", lambda row: row[2] in ("a", "b")),
    ("NOT ({0}.v <=> 'a')", lambda row: row[2] != "a"),
)


@dataclass
class Project(Node):
    """Projection and filter; as a common table expression, or with an alias for the columns, if so."""

    of: Node
    values: tuple[Value, Value, Value]
    where: tuple[str, Callable[[Row], Any]]
    form: str
    alias: str

    def rows(self, tables: Tables) -> Bag:
        k, n, v = (value[1] for value in self.values)
        return [(i, (k(row), n(row), v(row))) for i, row in self.of.rows(tables) if self.where[1](row)]

    def select(self) -> str:
        x = self.alias
        listed = ", ".join(f"{text.format(x)} AS {name}" for (text, _), name in zip(self.values, "knv", strict=True))
        rest = f"WHERE {self.where[0].format(x)}"
        if self.form == "with":
            return f"WITH {x} AS ({self.of.select()}) SELECT {listed} FROM {x} {rest}"
        if self.form == "columns":
            return f"SELECT {listed} FROM ({self.of.select()}) AS {x}(k, n, v) {rest}"
        return f"SELECT {listed} FROM {self.of.source(x)} {rest}"

    def scans(self) -> Iterator[Scan]:
        return self.of.scans()


CONDITIONS: tuple[tuple[str, Callable[[Row, Row], bool]], ...] = (
    ("{0}.k = {1}.k", lambda one, other: one[0] is not None and one[0] == other[0]),
    ("{0}.n = {1}.k", lambda one, other: one[1] is not None and one[1] == other[0]),
    (
        "{0}.v = {1}.v AND {0}.k = {1}.k",
        lambda one, other: None not in (one[0], one[2]) and (one[0], one[2]) == (other[0], other[2]),
    ),
    ("{0}.k <=> {1}.k", lambda one, other: one[0] == other[0]),
    ("{0}.n < {1}.n", lambda one, other: None not in (one[1], other[1]) and one[1] < other[1]),  # type: ignore[operator]
)
NO_ROW: Row = (None, None, None)


@dataclass
class Join(Node):
    """A join of two parts; `kind` as SQL has it. k comes from either side, n from the left, v from the right."""

    left: Node
    right: Node
    kind: str
    condition: tuple[str, Callable[[Row, Row], bool]]
    names: tuple[str, str]

    def rows(self, tables: Tables) -> Bag:
        left, right = self.left.rows(tables), self.right.rows(tables)
        pairs = [(one, other) for one in left for other in right if self.condition[1](one[1], other[1])]
        if self.kind in ("LEFT SEMI", "LEFT ANTI"):
            found = {one[0] for one, _ in pairs}
            return [one for one in left if (one[0] in found) == (self.kind == "LEFT SEMI")]
        joined = [(one[0] + other[0], self._row(one[1], other[1])) for one, other in pairs]
        if self.kind in ("LEFT OUTER", "FULL OUTER"):
            matched = {one[0] for one, _ in pairs}
            joined += [(i, self._row(row, NO_ROW)) for i, row in left if i not in matched]
        if self.kind in ("RIGHT OUTER", "FULL OUTER"):
            matched = {other[0] for _, other in pairs}
            joined += [(i, self._row(NO_ROW, row)) for i, row in right if i not in matched]
        return joined

    def _row(self, one: Row, other: Row) -> Row:
        return (one[0] if one[0] is not None else other[0], one[1], other[2])

    def select(self) -> str:
        x, y = self.names
        shown = f"coalesce({x}.k, {y}.k) AS k, {x}.n AS n, {y}.v AS v"
        if self.kind in ("LEFT SEMI", "LEFT ANTI"):
            shown = f"{x}.*"
        tables = f"{self.left.source(x)} {self.kind} JOIN {self.right.source(y)}"
        return f"SELECT {shown} FROM {tables} ON {self.condition[0].format(x, y)}"

    def scans(self) -> Iterator[Scan]:
        yield from self.left.scans()
        yield from self.right.scans()


@dataclass
class Union(Node):
    """UNION ALL."""

    left: Node
    right: Node

    def rows(self, tables: Tables) -> Bag:
        return [*self.left.rows(tables), *self.right.rows(tables)]

    def select(self) -> str:
        return f"({self.left.select()}) UNION ALL ({self.right.select()})"

    def scans(self) -> Iterator[Scan]:
        yield from self.left.scans()
        yield from self.right.scans()


@dataclass
class Group(Node):
    """GROUP BY k or v, or by both where `distinct`."""

    of: Node
    distinct: bool
    alias: str
    number: int

    def rows(self, tables: Tables) -> Bag:
        groups: dict[Any, list[Row]] = defaultdict(list)
        for _, row in self.of.rows(tables):
            groups[row if self.distinct else row[0]].append(row)
        return [
            (("group", self.number, key), key if self.distinct else _summed(key, rows)) for key, rows in groups.items()
        ]

    def select(self) -> str:
        if self.distinct:
            return f"SELECT DISTINCT * FROM {self.of.source(self.alias)}"
        shown = "k, CAST(sum(n) + count(*) * 100 + count(DISTINCT v) * 1000 AS INT) AS n, concat(min(v), max(v)) AS v"
        return f"SELECT {shown} FROM {self.of.source(self.alias)} GROUP BY k"

    def scans(self) -> Iterator[Scan]:
        return self.of.scans()


def _summed(key: int | None, rows: list[Row]) -> Row:
    numbers = [row[1] for row in rows if row[1] is not None]
    texts = [row[2] for row in rows if row[2] is not None]
    total = sum(numbers) + len(rows) * 100 + len(set(texts)) * 1000 if numbers else None
    return key, total, min(texts) + max(texts) if texts else None


def random_tree(chance: random.Random, names: Sequence[str], *, beyond: bool, depth: int = 3) -> Node:
    """A query over the tables of these names; with `beyond` it has groups or optional partners."""
    trees = _Trees(chance, names)
    if not beyond:
        return trees.inside(depth)
    tree = trees.beside(depth)
    return tree if chance.random() < 0.6 else trees.projected(tree, "")


@dataclass
class _Trees:
    chance: random.Random
    names: Sequence[str]
    numbers: Iterator[int] = field(default_factory=count)

    def inside(self, depth: int) -> Node:
        """A part of allowed operators."""
        kind = self.chance.choice(["scan", "project", "join", "join", "union", "project"]) if depth else "scan"
        if kind == "scan":
            table = self.chance.randrange(len(self.names))
            return Scan(table, self.names[table], next(self.numbers))
        if kind == "project":
            return self.projected(self.inside(depth - 1), self.chance.choice(["", "", "with", "columns"]))
        left, right = self.inside(depth - 1), self.inside(depth - 1)
        return Union(left, right) if kind == "union" else self.joined(left, right, ["INNER", "INNER", "CROSS"])

    def beside(self, depth: int) -> Node:
        """Groups, or optional partners."""
        if self.chance.random() < 0.5:
            alias = f"x{next(self.numbers)}"
            return Group(self.inside(depth - 1), self.chance.random() < 0.4, alias, next(self.numbers))
        left, right = self.inside(max(depth - 2, 0)), self.inside(max(depth - 2, 0))
        return self.joined(left, right, ["LEFT OUTER", "RIGHT OUTER", "FULL OUTER", "LEFT SEMI", "LEFT ANTI"])

    def joined(self, left: Node, right: Node, kinds: Sequence[str]) -> Node:
        """A join of one of these kinds."""
        names = (f"x{next(self.numbers)}", f"x{next(self.numbers)}")
        return Join(left, right, self.chance.choice(kinds), self.chance.choice(CONDITIONS), names)

    def projected(self, of: Node, form: str) -> Node:
        """A projection and a filter."""
        values = (self.chance.choice(NUMBERS), self.chance.choice(NUMBERS), self.chance.choice(TEXTS))
        return Project(of, values, self.chance.choice(FILTERS), form, f"x{next(self.numbers)}")
