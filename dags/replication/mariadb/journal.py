"""A past state of a table in a MariaDB, by the journal of the shop's triggers and its writer.

A copy of a table with a key reads the rows at the position or later, and events complete it. So until events of that
time are applied, a row that was written during the copy may be a later one. It must then be a row that its key has had
since the position. A table without a key is copied exactly as of a position.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Any, NamedTuple

from replication.compare import KEYS, Comparison, Row, differing, row_of

__all__ = ["NEVER", "compare"]

NEVER = range(0)


class _Change(NamedTuple):
    """A row that a transaction has inserted or deleted."""

    transaction: int
    deleted: bool
    row: Row


def compare(
    connection: Any, table: str, place: tuple[int, int], target: Iterable[Mapping[str, Any]], copied: range = NEVER
) -> Comparison:
    """`place`: number of a binary log file, and the offset in it. `target`: its rows, with the columns of the table, as
    Python values. `copied`: transactions during whose time the target was copied.
    """
    until, changes, now = _journal(connection, table, place)
    found = Counter(row_of(row) for row in target)
    state = _state([one for one in changes if one.transaction <= until])
    differs = differing(state, found)
    meanwhile = [one for one in changes if one.transaction in copied and one.transaction > until]
    later = _later(KEYS[table], found, differs, meanwhile) if KEYS[table] else Counter[Row]()
    wrong = differs - later
    return Comparison(table, state.total(), found.total(), wrong.total(), now, later.total())


def _journal(connection: Any, table: str, place: tuple[int, int]) -> tuple[int, Sequence[_Change], int]:
    """The last transaction before the place, all changes in their order, and the number of rows by now."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT coalesce(max(transaction), 0) FROM journal.commits WHERE (file, place) <= (%s, %s)", place
        )
        (until,) = cursor.fetchone()
        cursor.execute(
            "SELECT transaction, deleted, content FROM journal.changes WHERE relation = %s ORDER BY number", (table,)
        )
        changes = [
            _Change(int(transaction), bool(deleted), row_of(json.loads(content, parse_float=Decimal)))
            for transaction, deleted, content in cursor.fetchall()
        ]
        cursor.execute(f"SELECT count(*) FROM shop.{table}")
        (now,) = cursor.fetchone()
    return int(until), changes, int(now)


def _state(changes: Sequence[_Change]) -> Counter[Row]:
    """Rows that were inserted and not deleted."""
    came = Counter(one.row for one in changes if not one.deleted)
    came.subtract(one.row for one in changes if one.deleted)
    return +came


def _later(key: Sequence[str], found: Counter[Row], differs: Counter[Row], changes: Sequence[_Change]) -> Counter[Row]:
    """Of the rows that differ, those of keys whose row in the target is one that a later transaction has left."""
    rows = {_key(row, key): row for row in found}
    times = Counter(_key(row, key) for row in found.elements())
    left = {(one.transaction, _key(one.row, key)): None if one.deleted else one.row for one in changes}
    versions = {(of, row) for (_, of), row in left.items() if times[of] < 2}
    return Counter({row: 1 for row in differs if (_key(row, key), rows.get(_key(row, key))) in versions})


def _key(row: Row, key: Sequence[str]) -> tuple[str | None, ...]:
    values = dict(row)
    return tuple(values[name] for name in key)
