"""The files that can hold the first rows of an order."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from tidemark.model.table_log import AddFile
from tidemark.search.model.paths import SearchColumn
from tidemark.search.planning.bounds import Bounds, bounds_of
from tidemark.search.planning.choosing import Choice, Step

__all__ = ["FirstRows", "choose_first"]


@dataclass(frozen=True)
class FirstRows:
    """ORDER BY a column LIMIT `count` rows, OFFSET included. `nulls_first`: NULL comes before all values."""

    column: SearchColumn
    count: int
    descending: bool
    nulls_first: bool


def choose_first(
    first: FirstRows, files: Mapping[str, AddFile], statistics: Callable[[AddFile], Mapping[str, Any]]
) -> Choice:
    """The files that may have one of the first rows.

    1. Files are taken by their last value, until they are sure to have enough rows that are not NULL.
    2. A file whose first value is behind the last one of these cannot have any of the rows.
    3. A file without bounds is kept. So is a file that may have NULL, unless NULL comes last and enough rows are known.
    """
    known: list[tuple[Any, int]] = []
    bounds: dict[str, Bounds | None] = {}
    for path, file in files.items():
        stats = statistics(file)
        bounds[path] = found = bounds_of(file, stats, first.column)
        rows = _sure_rows(file, stats, first.column)
        if found is not None and rows:
            known.append((found[0] if first.descending else found[1], rows))
    last = _reached(sorted(known, key=lambda one: one[0], reverse=first.descending), first.count)
    if last is None:
        return Choice(tuple(files.values()), len(files), ())
    kept = tuple(
        file for path, file in files.items() if _may_have(first, file, statistics(file), bounds[path], last[0])
    )
    order = f"ORDER BY {first.column.name} {'DESC' if first.descending else 'ASC'} LIMIT {first.count}"
    why = f"least and greatest {first.column.name} in the log"
    return Choice(kept, len(files), (Step(order, why, len(kept), len(files)),))


def _reached(known: list[tuple[Any, int]], count: int) -> tuple[Any] | None:
    """The value up to which there are this many rows, in a tuple; None if there are not."""
    rows = 0
    for value, more in known:
        rows += more
        if rows >= count:
            return (value,)
    return None


def _may_have(first: FirstRows, file: AddFile, stats: Mapping[str, Any], bounds: Bounds | None, last: Any) -> bool:
    if bounds is None:
        return not (_only_null(stats, first.column) and not first.nulls_first)
    if first.nulls_first and _nulls(stats, first.column) != 0:
        return True
    return bool(bounds[1] >= last) if first.descending else bool(bounds[0] <= last)


def _sure_rows(file: AddFile, stats: Mapping[str, Any], column: SearchColumn) -> int:
    """The least number of live rows that are not NULL."""
    rows, nulls = _count(stats.get("numRecords")), _nulls(stats, column)
    if rows is None or nulls is None:
        return 0
    return max(0, rows - nulls - (file.deletion_vector.cardinality if file.deletion_vector else 0))


def _only_null(stats: Mapping[str, Any], column: SearchColumn) -> bool:
    rows = _count(stats.get("numRecords"))
    return rows is not None and _nulls(stats, column) == rows


def _nulls(stats: Mapping[str, Any], column: SearchColumn) -> int | None:
    """The number of NULLs in the file, at most; None if it is unknown."""
    values: Any = stats.get("nullCount")
    for name in column.physical:
        values = values.get(name) if isinstance(values, dict) else None
    return _count(values)


def _count(said: Any) -> int | None:
    if not isinstance(said, Decimal) or not said.is_finite() or said != int(said):
        return None
    return int(said) if said >= 0 else None
