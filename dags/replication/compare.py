"""Compares the rows of a target with those that its table had. Equal values of a source and of Delta have one text."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

__all__ = ["COLUMNS", "KEYS", "TABLES", "Comparison", "Row", "differing", "row_of", "rows_of_target"]

Row = tuple[tuple[str, str | None], ...]

KEYS: Mapping[str, tuple[str, ...]] = {
    "customers": ("id",),
    "orders": ("id",),
    "order_items": ("order_id", "line"),
    "visits": (),  # no key: the log has whole old rows
}
"""The tables of every shop, and their keys."""

TABLES = tuple(KEYS)
COLUMNS: Mapping[str, tuple[str, ...]] = {
    "customers": ("id", "name", "city", "member_since", "credit", "newsletter", "interests"),
    "orders": ("id", "customer_id", "status", "placed_at", "promised_for", "weight"),
    "order_items": ("order_id", "line", "product", "quantity", "price", "note"),
    "visits": ("at", "customer_id", "page", "took_ms", "is_deleted"),
}
"""The columns of each table in its target, besides metadata."""


@dataclass(frozen=True)
class Comparison:
    """Numbers of rows. `source`: those of the table at the position. `target`: those of its target. `differs`: rows
    that only one of both has. `now`: rows that the table has by now. `later`: further rows that only one of both has,
    since they were written during their copy.
    """

    table: str
    source: int
    target: int
    differs: int
    now: int
    later: int = 0

    @property
    def agrees(self) -> bool:
        return self.differs == 0


def differing(one: Counter[Row], other: Counter[Row]) -> Counter[Row]:
    """Rows that only one of both has."""
    return (one - other) + (other - one)


def rows_of_target(table: str, rows: Iterable[Mapping[str, Any]]) -> Iterable[Mapping[str, Any]]:
    """The rows of the table by its target. For a table without a key the target is a log. The log has each inserted
    row, and each deleted row once more, marked as deleted.
    """
    if KEYS[table]:
        return list(rows)
    came: Counter[str] = Counter()
    by_text: dict[str, Mapping[str, Any]] = {}
    for row in rows:
        plain = {name: value for name, value in row.items() if name != "is_deleted"}
        text = str(row_of(plain))
        by_text[text] = plain
        came[text] += -1 if row["is_deleted"] else 1
    return [by_text[text] for text, times in came.items() for _ in range(abs(times))]


def row_of(values: Mapping[str, Any]) -> Row:
    """A row that is equal to that of the other side if all values are."""
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
    if len(text) < 19 or text[4:5] != "-" or text[10:11] not in ("T", " "):
        return text
    try:
        return str(_text(datetime.fromisoformat(text)))
    except ValueError:
        return text
