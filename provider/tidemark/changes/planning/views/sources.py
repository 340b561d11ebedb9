"""The parts of a query that give rows: its blocks, and the sources of each block."""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

__all__ = ["block_of", "joins_of", "queries_in", "sources_in", "sources_of"]


def block_of(query: exp.Expr) -> exp.Expr:
    """The query inside parentheses."""
    while isinstance(query, exp.Subquery):
        query = query.this
    return query


def queries_in(query: exp.Expr) -> Iterator[exp.Query]:
    """Every set operation and SELECT whose rows `query` has, itself first, CTEs included."""
    found = block_of(query)
    assert isinstance(found, exp.Query)
    yield found
    clause = found.args.get("with_")
    for entry in clause.expressions if clause else ():
        yield from queries_in(entry.this)
    if isinstance(found, exp.SetOperation):
        yield from queries_in(found.this)
        yield from queries_in(found.expression)
    elif isinstance(found, exp.Select):
        for source in sources_of(found):
            if isinstance(source, exp.Subquery) and isinstance(block_of(source), exp.Query):
                yield from queries_in(source)


def sources_of(query: exp.Select) -> Iterator[exp.Expr]:
    """The sources of a SELECT in the order of its text: tables, subqueries and other items of FROM.

    Joins in parentheses are split into their sources.
    """
    clause = query.args.get("from_")
    if clause is not None:
        yield from sources_in(clause.this)
    for join in query.args.get("joins") or ():
        yield from sources_in(join.this)


def joins_of(query: exp.Select) -> Iterator[exp.Join]:
    """The joins of a SELECT, those inside parentheses included."""
    clause = query.args.get("from_")
    yield from _joins_in(clause.this) if clause is not None else ()
    for join in query.args.get("joins") or ():
        yield join
        yield from _joins_in(join.this)


def _joins_in(source: exp.Expr) -> Iterator[exp.Join]:
    if isinstance(source, exp.Subquery) and not isinstance(block_of(source), exp.Query):
        yield from _joins_in(source.this)
    for join in source.args.get("joins") or ():
        yield join
        yield from _joins_in(join.this)


def sources_in(source: exp.Expr) -> Iterator[exp.Expr]:
    """The tables and subqueries of one item of FROM: several if it is a join in parentheses."""
    if isinstance(source, exp.Subquery) and not isinstance(block_of(source), exp.Query):
        yield from sources_in(source.this)
    else:
        yield source
    for join in source.args.get("joins") or ():
        yield from sources_in(join.this)
