"""Reads of streams on views: the changes of the view's rows in a window, or all its rows at the start."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import reduce
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from tidemark.changes.driver.views.bases import Base
from tidemark.changes.driver.views.changed import Changed, read_changed
from tidemark.changes.driver.views.net import images, inserted, net_changes
from tidemark.changes.driver.views.opening import open_bases
from tidemark.changes.driver.views.plan import choice_for, planned
from tidemark.changes.driver.views.scans import Reading
from tidemark.changes.planning.views.plan import Choice, Way
from tidemark.changes.planning.views.terms import ID, SIGN, Role, Term, terms, whole
from tidemark.jobs.schemas import struct_type
from tidemark.model.streams import ACTION, IS_UPDATE, ROW_ID, BaseWindow, StreamMode
from tidemark.model.views import ViewQuery

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tidemark.jobs.workspace import Workspace

__all__ = ["FoundRows", "read_signed_rows", "read_view_changes", "read_view_rows"]

_CHANGED_ROWS_PER_PARTITION = 1_000  # of base tables; one row may change many rows of the view
_MOST_PARTITIONS = 200


@dataclass(frozen=True)
class FoundRows:
    """The rows of a window. `few`: the driver has all changed rows of the base tables, as they are few, and reads only
    their partners and groups.
    """

    rows: DataFrame
    few: bool


def read_view_changes(
    spark: SparkSession,
    query: ViewQuery,
    windows: Sequence[BaseWindow],
    mode: StreamMode,
    now: datetime,
    workspace: Workspace,
    options: Mapping[str, str] | None = None,
    *,
    reader: str = "CHANGES",
    say: Callable[[str], None] | None = None,
) -> FoundRows:
    """The changes of a view in a window: the view's columns, then METADATA$ACTION, METADATA$ISUPDATE, METADATA$ROW_ID.
    METADATA$ROW_ID is a string: a digest of the ids of the base rows behind the row.

    `windows` has one window for each of `query.bases`, in that order. `now` is the time of the read, the same for both
    ends (R37). `reader` is the stream's name, for errors; `say` gets the plan in a line. Few changed rows of base
    tables are read at once. The rest is lazy, until `workspace` is closed, and always gives the same rows. Raises
    SourceRecreated (R83), StreamStale (R84), TrackingInterrupted, VersionVacuumed, IncompatibleSchemaChange.
    """
    bases, choice = _opened(query, windows, mode, options, reader, say)
    kind = struct_type(query.schema_json)
    if choice.way is Way.NOTHING:
        return FoundRows(_nothing(spark, kind), few=True)
    changed = {n: read_changed(spark, base, workspace) for n, base in enumerate(bases) if not base.plan.empty}
    reading = Reading(spark, query, bases, changed, mode)
    if choice.way is Way.TERMS:
        listed = terms(query, changed.keys(), now)
        rows = reduce(DataFrame.unionByName, [reading.term(term) for term in listed])
    else:
        listed = (whole(query, Role.OLD, now), whole(query, Role.NEW, now))
        signed = zip(listed, (-1, 1), strict=True)
        rows = reduce(
            DataFrame.unionByName, [reading.whole(t, choice.keys).withColumn(SIGN, F.lit(sign)) for t, sign in signed]
        )
    sources, few = _sources(listed[0], bases), _few(changed) and (choice.way is Way.TERMS or bool(choice.keys))
    if mode is StreamMode.APPEND_ONLY:
        return FoundRows(inserted(rows, listed[0].ids, kind, sources), few)
    count = sum(each.rows for each in changed.values())
    partitions = min(count // _CHANGED_ROWS_PER_PARTITION + 1, _MOST_PARTITIONS)
    return FoundRows(net_changes(rows, listed[0].ids, kind, sources, partitions), few)


def read_signed_rows(
    spark: SparkSession,
    query: ViewQuery,
    windows: Sequence[BaseWindow],
    now: datetime,
    workspace: Workspace,
    options: Mapping[str, str] | None = None,
    *,
    reader: str = "CHANGES",
    say: Callable[[str], None] | None = None,
) -> FoundRows:
    """The changes of a linear query for sums: the view's columns, then SIGN (+1, −1). A row can come and go several
    times in it; the signs of equal rows add up to the change. Arguments and errors as in `read_view_changes`.
    """
    bases, choice = _opened(query, windows, StreamMode.STANDARD, options, reader, say)
    kind = struct_type(query.schema_json)
    if choice.way is Way.NOTHING:
        return FoundRows(spark.createDataFrame([], kind.add(SIGN, "integer")), few=True)
    assert choice.way is Way.TERMS
    changed = {n: read_changed(spark, base, workspace) for n, base in enumerate(bases) if not base.plan.empty}
    reading = Reading(spark, query, bases, changed, StreamMode.STANDARD)
    rows = reduce(DataFrame.unionByName, [reading.term(term) for term in terms(query, changed.keys(), now)])
    return FoundRows(rows.select(*images(kind), SIGN), _few(changed))


def read_view_rows(
    spark: SparkSession,
    query: ViewQuery,
    windows: Sequence[BaseWindow],
    now: datetime,
    options: Mapping[str, str] | None = None,
    *,
    reader: str = "CHANGES",
) -> DataFrame:
    """All rows of the view at the start of `windows`, as inserts (R10); columns, arguments and errors as in
    `read_view_changes`.
    """
    starts = [BaseWindow(window.table, window.start, window.start) for window in windows]
    bases = open_bases(query, starts, StreamMode.STANDARD, options, reader)
    kind = struct_type(query.schema_json)
    term = whole(query, Role.OLD, now)
    rows = Reading(spark, query, bases, {}, StreamMode.STANDARD).whole(term, ())
    return inserted(rows, term.ids, kind, _sources(term, bases))


def _opened(
    query: ViewQuery,
    windows: Sequence[BaseWindow],
    mode: StreamMode,
    options: Mapping[str, str] | None,
    reader: str,
    say: Callable[[str], None] | None,
) -> tuple[tuple[Base, ...], Choice]:
    """The base tables and the way of the window; `say` gets the plan."""
    bases = open_bases(query, windows, mode, options, reader)
    choice = choice_for(query, bases, mode)
    if say is not None:
        say(f"stream {reader}, {planned(query, bases, mode, choice).in_words()}")
    return bases, choice


def _few(changed: Mapping[int, Changed]) -> bool:
    return all(each.known is not None for each in changed.values())


def _sources(term: Term, bases: Sequence[Base]) -> dict[str, str]:
    """The table id of each part of the row id that is a row id."""
    return {f"{ID}{scan.number}": bases[scan.base].window.table.table_id for scan in term.scans}


def _nothing(spark: SparkSession, kind: StructType) -> DataFrame:
    for name, text in ((ACTION, "string"), (IS_UPDATE, "boolean"), (ROW_ID, "string")):
        kind = kind.add(name, text)
    return spark.createDataFrame([], kind)
