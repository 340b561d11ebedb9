"""The newest rows of each of many objects, in one statement for fifty of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa

__all__ = ["newest_of_each"]

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
