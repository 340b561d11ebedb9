"""The signed change algebra: the changes of a view's rows as a sum of terms, each a query.

The query is made of projections, filters, inner joins and UNION ALL, with the scans s₁ … sₖ. Its changes are Σᵢ Q(new₁
… newᵢ₋₁, Δᵢ, oldᵢ₊₁ … oldₖ), where Δ has removed rows (−1) and added rows (+1). Arms of a UNION ALL without sᵢ give
nothing if another arm has it. For append-only streams Δ has inserted rows, old all rows at the offset, and new both
(R77).
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from sqlglot import exp

from tidemark.changes.planning.views.parts import Parts, numbered
from tidemark.changes.planning.views.text import sql_of
from tidemark.changes.planning.views.with_ids import ID, SCAN, SIGN, columns_of, with_ids
from tidemark.model.views import ViewQuery
from tidemark.sql.functions import at_one_time

__all__ = ["ID", "SCAN", "SIGN", "Role", "Scan", "Term", "column_name", "roles_of", "terms", "whole"]


class Role(StrEnum):
    """The rows of its base table that a scan gives in a term."""

    CHANGED = "changed"  # Δ, with its sign
    OLD = "old"  # all at the start
    NEW = "new"  # all at the end; for append-only those at the start and those inserted
    NOTHING = "nothing"


@dataclass(frozen=True)
class Scan:
    """A read of a base table in the query; the text names it SCAN and `number`."""

    number: int
    base: int
    role: Role


@dataclass(frozen=True)
class Term:
    """A query over scans. Its columns are SIGN (int; not in the whole), the parts of the row id (`ids`), and the view's
    columns by `column_name`. A part is NULL if a row does not have it.

    `delta`: the scan that gives changes; None for the whole at one end.
    """

    delta: int | None
    scans: tuple[Scan, ...]
    ids: tuple[str, ...]
    text: str = field(repr=False)


def column_name(number: int) -> str:
    """The name in terms of the view's column with this number."""
    return f"tidemark_c{number}"


def terms(query: ViewQuery, changed: Collection[int], now: datetime) -> tuple[Term, ...]:
    """One term for each scan of a base table in `changed`; for queries that are linear (`is_linear`)."""
    bases = numbered(query).bases
    return tuple(_term(query, number, now) for number, base in bases.items() if base in changed)


def whole(query: ViewQuery, role: Role, now: datetime) -> Term:
    """The query itself with all scans in one role."""
    parts = numbered(query)
    roles = {number: role for number in parts.bases}
    return _written(query, parts, roles, None, now)


def _term(query: ViewQuery, delta: int, now: datetime) -> Term:
    parts = numbered(query)
    silent = _silent(parts, delta)
    roles = roles_of(parts, delta)
    for node in parts.tree.find_all(exp.Select):
        if not node.args.get("from_") and parts.number(node) in silent:
            node.set("where", exp.Where(this=exp.false()))
    return _written(query, parts, roles, delta, now)


def roles_of(parts: Parts, delta: int) -> dict[int, Role]:
    """The role of each scan in the term of the scan `delta`."""
    silent = _silent(parts, delta)
    return {
        number: Role.NOTHING
        if number in silent
        else Role.CHANGED
        if number == delta
        else Role.NEW
        if number < delta
        else Role.OLD
        for number in parts.bases
    }


def _silent(parts: Parts, delta: int) -> set[int]:
    """The parts in other arms of a UNION ALL than the scan's."""
    found: set[int] = set()
    for union in parts.tree.find_all(exp.SetOperation):
        left, right = parts.inside(union.this), parts.inside(union.expression)
        found |= set(right if delta in left else left if delta in right else ())
    return found


def _written(query: ViewQuery, parts: Parts, roles: dict[int, Role], delta: int | None, now: datetime) -> Term:
    scans = tuple(Scan(number, parts.bases[number], role) for number, role in roles.items())
    count = len(parts.tree.expressions)
    inner, ids = with_ids(parts, delta)
    signs = [] if delta is None else [SIGN]
    named = [column_name(number) for number in range(count)]
    alias = exp.TableAlias(this=exp.to_identifier("q"), columns=columns_of([*named, *ids, *signs]))
    outer = exp.Select(
        expressions=[exp.column(name) for name in (*signs, *ids, *named)],
        from_=exp.From(this=exp.Subquery(this=inner, alias=alias)),
    )
    return Term(delta, scans, tuple(ids), sql_of(at_one_time(outer, now)))
