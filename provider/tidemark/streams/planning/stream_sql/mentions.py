"""The tables that any statement reads, also one that is neither a query nor a write."""

from __future__ import annotations

from sqlglot import exp

from tidemark.sql.foreign_sql import SPARK, SqlNotUnderstood, trees

__all__ = ["tables_read"]


def tables_read(sql: str) -> tuple[str, ...]:
    """Names, with dots between their parts, in the queries that the text holds; none where it cannot be parsed."""
    try:
        statements = trees(sql, SPARK)
    except SqlNotUnderstood:
        return ()
    found: dict[str, None] = {}
    for tree in statements:
        own = {cte.alias for cte in tree.find_all(exp.CTE)}
        for table in tree.find_all(exp.Table):
            name = ".".join(part.name for part in table.parts)
            if name not in own and table.find_ancestor(exp.Query) is not None:
                found[name] = None
    return tuple(found)
