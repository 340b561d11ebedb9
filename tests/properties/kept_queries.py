"""Random queries to be kept: trees of other tests, aggregated or not, and queries that have no changes."""

from __future__ import annotations

import random
from collections.abc import Sequence

from tests.properties.view_trees import random_tree

__all__ = ["random_query"]

GROUPS = ("q.k", "q.v", "q.n % 2", "upper(q.v)", "q.k > 1", "coalesce(q.k, 0)", "CAST(q.n AS DOUBLE) / 2")
SUMS = (
    "count(*)",
    "count(q.n)",
    "count(1) + count(q.v)",
    "sum(q.n)",
    "sum(CAST(q.n AS BIGINT)) * 2",
    "sum(CAST(q.n AS DECIMAL(12, 2)) * 1.5)",
    "avg(q.n)",
    "avg(CAST(q.n AS DECIMAL(10, 2)))",
    "100.0 * sum(CASE WHEN q.v = 'a' THEN q.n ELSE 0 END) / nullif(sum(abs(q.n) + 1), 0)",
    "sum(q.n) FILTER (WHERE q.v = 'a')",
    "count(*) FILTER (WHERE q.k > 1)",
    "coalesce(sum(q.n), -1) + count(q.k)",
)
DRIFTING = ("sum(CAST(q.n AS DOUBLE) / 3)", "avg(CAST(q.n AS FLOAT))", "sum(CASE WHEN q.k = 2 THEN double('NaN') END)")
EXTREMES = (
    *("min(q.n)", "max(q.v)", "max(q.n) - min(q.n) + count(*)", "max(CAST(q.n AS DOUBLE))", "min(q.n % 3)"),
    *("min(CASE WHEN q.v = 'a' THEN q.n END)", "max(q.n) FILTER (WHERE q.v = 'b')"),  # often of no values
)
RECOMPUTED = ("count(DISTINCT q.v)", "max(q.v)", "sum(DISTINCT q.n)")
KINDS = (
    *("sums", "sums", "sums", "extremes", "extremes", "drifting", "recomputed"),
    *("linear", "beyond", "distinct", "plain"),
)
HAVING = ("count(*) > 1", "sum(q.n) > 2 OR sum(q.n) IS NULL", "count(q.v) % 2 = 0")
PLAIN = (
    "SELECT k, n, v, row_number() OVER (PARTITION BY k ORDER BY n, v) AS place FROM ({tree}) AS q",
    "SELECT k, n, v FROM ({tree}) AS q WHERE k >= (SELECT min(k) FROM ({tree}) AS r)",
    "WITH r AS ({tree}) SELECT DISTINCT k FROM r WHERE k IS NOT NULL ORDER BY k LIMIT 2",
    "({tree}) EXCEPT SELECT k, n, v FROM {table} WHERE n > 1",
)


def random_query(chance: random.Random, names: Sequence[str]) -> str:
    """A query over the tables of these names, which have the columns k, n and v."""
    kind = chance.choice(KINDS)
    depth = chance.choice([0, 1, 1, 2])
    tree = random_tree(chance, names, beyond=kind == "beyond", depth=max(depth, kind == "beyond")).select()
    if kind in ("linear", "beyond"):
        return tree
    if kind == "plain":
        return chance.choice(PLAIN).format(tree=tree, table=chance.choice(list(names)))
    if kind == "distinct":
        return f"SELECT DISTINCT {chance.choice(['*', 'q.k, upper(q.v) AS u'])} FROM ({tree}) AS q"
    more = {"drifting": DRIFTING, "recomputed": RECOMPUTED, "extremes": EXTREMES}.get(kind, ())
    calls = chance.sample(SUMS, k=chance.randint(1, 3))
    return _grouped(chance, tree, [*calls, *chance.sample(more, k=min(len(more), chance.randint(1, 3)))])


def _grouped(chance: random.Random, tree: str, calls: Sequence[str]) -> str:
    groups = chance.sample(GROUPS, k=chance.choice([0, 1, 1, 2]))
    columns = [f"{group} AS g{n}" for n, group in enumerate(groups)]
    columns += [f"{call} AS c{n}" for n, call in enumerate(calls)]
    chance.shuffle(columns)
    text = f"SELECT {', '.join(columns)} FROM ({tree}) AS q"
    if chance.random() < 0.2:
        text += " WHERE q.k IS NOT NULL"
    if groups:
        by = chance.choice([", ".join(groups), ", ".join(f"g{n}" for n in range(len(groups))), "ALL"])
        text += f" GROUP BY {by}"
    if chance.random() < 0.3:
        text += f" HAVING {chance.choice(HAVING)}"
    if chance.random() < 0.2:
        return f"WITH w AS ({text}) SELECT c0, c0 IS NULL AS c1 FROM w WHERE c0 IS NOT NULL"
    return text
