"""Compares a target with its table at a position of the log, by the journal that the source's triggers keep."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

from replication.shop import KEYS

__all__ = ["Comparison", "compare", "rows_of_target"]

Row = tuple[tuple[str, str | None], ...]


@dataclass(frozen=True)
class Comparison:
    """`source`: rows that the table had at the position, `target`: rows that its target has; `differs`: rows that only
    one of them has. `now`: rows that the table has by now.
    """

    table: str
    source: int
    target: int
    differs: int
    now: int

    @property
    def agrees(self) -> bool:
        return self.differs == 0


def compare(connection: Any, table: str, position: str, target: Iterable[Mapping[str, Any]]) -> Comparison:
    """`position`: as `16/B374D848`; `target`: its rows, with the columns of the table, as Python values."""
    found = Counter(_row(row) for row in target)
    states = [_state(connection, table, until) for until in _transactions(connection, position)]
    state = min(states, key=lambda one: sum(((one - found) + (found - one)).values()))
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT count(*) FROM shop.{table}")
        (now,) = cursor.fetchone()
    differs = sum(((state - found) + (found - state)).values())
    return Comparison(table, sum(state.values()), sum(found.values()), differs, now)


def rows_of_target(table: str, rows: Iterable[Mapping[str, Any]]) -> Iterable[Mapping[str, Any]]:
    """The rows of the table by its target. For a table without a key the target is a log: it has each inserted row,
    and once more, marked as deleted, each deleted one.
    """
    if KEYS[table]:
        return list(rows)
    came: Counter[str] = Counter()
    by_text: dict[str, Mapping[str, Any]] = {}
    for row in rows:
        plain = {name: value for name, value in row.items() if name != "is_deleted"}
        text = str(_row(plain))
        by_text[text] = plain
        came[text] += -1 if row["is_deleted"] else 1
    return [by_text[text] for text, times in came.items() for _ in range(abs(times))]


def _transactions(connection: Any, position: str) -> list[int]:
    """The last transaction before the position. If the position is between a transaction's last change and
    the end of its commit, the journal alone cannot decide, and there are two answers.
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
        return Counter({_row(json.loads(text, parse_float=Decimal)): int(times) for text, times in cursor.fetchall()})


def _row(values: Mapping[str, Any]) -> Row:
    return tuple(sorted((name, _text(value)) for name, value in values.items()))


def _text(value: Any) -> str | None:
    """One text for equal values, from JSON of the source as from Delta."""
    if value is None or isinstance(value, bool):
        return None if value is None else str(value).lower()
    if isinstance(value, int | float | Decimal):
        return format(float(value), ".9g")
    if isinstance(value, datetime):
        return (value.astimezone(UTC).replace(tzinfo=None) if value.tzinfo else value).isoformat()
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, list | tuple):
        return json.dumps([_text(item) for item in value])
    return _as_time(str(value))


def _as_time(text: str) -> str:
    if len(text) < 19 or text[4:5] != "-" or text[10:11] != "T":
        return text
    try:
        return str(_text(datetime.fromisoformat(text)))
    except ValueError:
        return text
