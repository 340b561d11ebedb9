"""A past state of a table in a PostgreSQL, by the journal that the shop's triggers keep."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Any

from replication.compare import Comparison, Row, differing, row_of

__all__ = ["compare"]


def compare(connection: Any, table: str, position: str, target: Iterable[Mapping[str, Any]]) -> Comparison:
    """`position`: as `16/B374D848`; `target`: its rows, with the columns of the table, as Python values."""
    found = Counter(row_of(row) for row in target)
    states = [_state(connection, table, until) for until in _transactions(connection, position)]
    state = min(states, key=lambda one: differing(one, found).total())
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT count(*) FROM shop.{table}")
        (now,) = cursor.fetchone()
    return Comparison(table, state.total(), found.total(), differing(state, found).total(), now)


def _transactions(connection: Any, position: str) -> list[int]:
    """The last transaction before the position. The position may be between a transaction's last change and the end of
    its commit. Then the journal alone cannot decide, and there are two answers.
    """
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT coalesce(max(transaction), 0) FROM journal.commits WHERE done <= %s::pg_lsn", (position,)
        )
        (surely,) = cursor.fetchone()
        cursor.execute(
            "SELECT coalesce(max(transaction), 0) FROM journal.changes JOIN journal.commits USING (transaction)"
            " WHERE wal < %s::pg_lsn",
            (position,),
        )
        (at_most,) = cursor.fetchone()
    return sorted({surely, max(surely, at_most)})


def _state(connection: Any, table: str, until: int) -> Counter[Row]:
    """The table's rows when transaction `until` had ended: those inserted and not deleted."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT content::text, sum(CASE WHEN deleted THEN -1 ELSE 1 END) FROM journal.changes"
            " WHERE relation = %s AND transaction <= %s GROUP BY content HAVING"
            " sum(CASE WHEN deleted THEN -1 ELSE 1 END) <> 0",
            (table, until),
        )
        return Counter({row_of(json.loads(text, parse_float=Decimal)): int(times) for text, times in cursor.fetchall()})
