"""The newest rows of each of many objects, in one statement for fifty of them. One value of each takes one for 500."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa

from tidemark.control.objects import portions

__all__ = ["newest_of_each", "newest_value", "values_of_each"]

_AT_ONCE = 50  # objects in a statement


def newest_of_each(
    connection: sa.Connection,
    query: sa.Select[Any],
    uids: Sequence[str],
    *,
    of: sa.ColumnElement[str],
    order: Sequence[sa.ColumnElement[Any]],
    most: int,
) -> dict[str, list[sa.RowMapping]]:
    """The newest rows of each object by its uid, the oldest first. `of`: the column of uids, `uid` in the query.
    `order`: columns by which an index has the newest rows. The rows of an object are then sorted by `at` of the query.
    """
    found: dict[str, list[sa.RowMapping]] = {}
    newest = query.order_by(*(column.desc() for column in order)).limit(most)
    for start in range(0, len(uids), _AT_ONCE):
        some = (sa.select(newest.where(of == uid).subquery()) for uid in uids[start : start + _AT_ONCE])
        for row in connection.execute(sa.union_all(*some)).mappings():
            found.setdefault(row["uid"], []).append(row)
    return {uid: sorted(rows, key=lambda row: row["at"]) for uid, rows in found.items()}


def newest_value(
    value: sa.Column[Any], *wanted: sa.ColumnElement[bool], of: sa.Column[str], order: sa.Column[Any]
) -> sa.ScalarSelect[Any]:
    """The value in the newest of the wanted rows of an object; `of`: its uid, in the table around. `order`: the column
    by which an index has the newest row.
    """
    newest = sa.select(value).where(*wanted).order_by(order.desc()).limit(1)
    return newest.correlate(of.table).scalar_subquery()


def values_of_each(
    connection: sa.Connection, of: sa.Column[str], uids: Sequence[str], *values: sa.ColumnElement[Any]
) -> dict[str, Any]:
    """The first of the values that each object has, by its uid. One statement for 500 objects."""
    first = sa.func.coalesce(*values) if len(values) > 1 else values[0]  # later ones are not looked for in vain
    found: dict[str, Any] = {}
    for some in portions(uids):
        query = sa.select(of, first.label("value")).where(of.in_(some))
        found.update((uid, value) for uid, value in connection.execute(query) if value is not None)
    return found
