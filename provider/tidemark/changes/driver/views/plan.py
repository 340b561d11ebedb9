"""The plan of a view's window, from the logs of its base tables alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from tidemark.changes.driver.views.bases import Base
from tidemark.changes.driver.views.opening import open_bases
from tidemark.changes.driver.views.values import can_cut
from tidemark.changes.planning.views.parts import numbered
from tidemark.changes.planning.views.plan import BaseReading, Choice, ViewPlan, Way, choose_way
from tidemark.lake.segments import checksum_name
from tidemark.model.foreign_json import foreign_object
from tidemark.model.streams import BaseWindow, StreamMode
from tidemark.model.views import ViewQuery

if TYPE_CHECKING:
    from tidemark.lake.delta_log import DeltaLog

__all__ = ["choice_for", "plan_view_changes", "planned"]


def plan_view_changes(
    query: ViewQuery,
    windows: Sequence[BaseWindow],
    mode: StreamMode,
    options: Mapping[str, str] | None = None,
    *,
    reader: str = "CHANGES",
) -> ViewPlan:
    """The plan of `read_view_changes`, without Spark, with the same errors."""
    bases = open_bases(query, windows, mode, options, reader)
    return planned(query, bases, mode, choice_for(query, bases, mode))


def choice_for(query: ViewQuery, bases: Sequence[Base], mode: StreamMode) -> Choice:
    """The way of a window whose base tables are open. Raises InvalidArgument."""
    changed = [number for number, base in enumerate(bases) if not base.plan.empty]
    schemas = [base.schema for base in bases]
    columns = [base.columns for base in bases]
    return choose_way(query, changed, mode, columns, lambda base, name: can_cut(schemas[base], name))


def planned(query: ViewQuery, bases: Sequence[Base], mode: StreamMode, choice: Choice) -> ViewPlan:
    """The plan of the chosen way, with its reads of each base table."""
    changed = [number for number, base in enumerate(bases) if not base.plan.empty]
    way = choice.way
    scans = list(numbered(query).bases.values())
    terms = sum(1 for base in scans if base in changed) if way is Way.TERMS else 0
    readings = [_reading(base, _versions(number, scans, changed, way, base, mode)) for number, base in enumerate(bases)]
    return ViewPlan(query.name, mode, way, choice.why, terms, tuple(readings))


def _versions(
    number: int, scans: Sequence[int], changed: Sequence[int], way: Way, base: Base, mode: StreamMode
) -> tuple[int, ...]:
    """The versions whose unchanged rows are read, too: the start for scans after a changed one, the end for those
    before it.
    """
    start, end = base.window.start, base.window.end
    if way is Way.NOTHING or (way is Way.TERMS and len(scans) == 1):
        return ()
    if mode is StreamMode.APPEND_ONLY:
        return (start,)
    if number not in changed:
        return (end,)
    if way is not Way.TERMS:
        return (start, end)
    mine = [index for index, scan in enumerate(scans) if scan == number]
    deltas = [index for index, scan in enumerate(scans) if scan in changed]
    old = any(index > delta for index in mine for delta in deltas)
    new = any(index < delta for index in mine for delta in deltas)
    return (*((start,) if old else ()), *((end,) if new else ()))


def _reading(base: Base, versions: tuple[int, ...]) -> BaseReading:
    mark = base.log.state(versions[-1]).row_id_high_water_mark if versions else None
    return BaseReading(
        table=base.window.table.name,
        start=base.window.start,
        end=base.window.end,
        changed_rows=base.plan.rows(),
        changed_bytes=sum(file.size for file in base.plan.files),
        versions=versions,
        rows=None if mark is None else mark + 1,  # ids are given once, so no table has more rows than ids
        bytes=_size(base.log, versions[-1]) if versions else None,
    )


def _size(log: DeltaLog, version: int) -> int | None:
    """The bytes of a version's files; None without a checksum."""
    try:
        size = foreign_object(log.storage.read_bytes(checksum_name(version))).get("tableSizeBytes")
    except (FileNotFoundError, IsADirectoryError):
        return None
    return size if type(size) is int else None
