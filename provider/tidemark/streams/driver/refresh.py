"""Refreshes of kept queries: the changes of a window, or all rows at its end, as one write of the kept table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from tidemark.changes.driver.views.plain import read_plain_rows
from tidemark.changes.driver.views.read import read_view_rows
from tidemark.delivery.driver.char_columns import char_length
from tidemark.delivery.driver.exactly_once import open_target, target_schema
from tidemark.delivery.driver.key_ranges import Key, rows_in_range_of
from tidemark.delivery.driver.merge import prepare_merge
from tidemark.delivery.driver.prepared import PreparedWrite
from tidemark.errors import StatementRefused
from tidemark.jobs.schemas import struct_type
from tidemark.jobs.settings import planned_once, under
from tidemark.model.statements import RefreshHow, RefreshWrite, Statement
from tidemark.model.streams import ACTION, ROW_ID, BaseWindow, StreamWindow, WindowKind
from tidemark.model.views import KEPT_ROW_ID, ViewQuery
from tidemark.sql.identifiers import quoted
from tidemark.sql.statements import path_name
from tidemark.streams.driver.partials import (
    ANSI,
    has_extremes,
    kept_columns,
    needs_net_rows,
    net_partials,
    of_groups,
    signed_sums,
    with_extremes,
)
from tidemark.streams.model.partial_columns import COUNT, GROUP, SIGN

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from tidemark.streams.driver.pinned_streams import PinnedStreams

__all__ = ["image_rows", "partials_after", "prepare_refresh", "signed", "whole_rows"]

_ROWS_OF_A_FILE = 100_000  # new rows, at least
_MOST_WITH_STATISTICS = 32  # columns of a table, in its order, unless its properties say otherwise


def prepare_refresh(
    session: SparkSession, statement: Statement, streams: PinnedStreams, options: Mapping[str, str] | None
) -> PreparedWrite:
    """A write that makes the kept table that of the window's end.

    A window of initial rows is written as a whole. Raises what reading the window raises, and StatementRefused.
    """
    asked, source = statement.write.refresh, statement.write.source
    if asked is None or source is None:
        raise StatementRefused(problem="a refresh needs the stream that it reads", sql=statement.write.target)
    window = streams.window(source)
    if window.view is None:
        raise StatementRefused(problem="a refresh reads a stream on a query", sql=statement.write.target)
    target = target_schema(open_target(statement, options))
    if window.kind is WindowKind.INITIAL_ROWS or asked.how is RefreshHow.WHOLE:
        rows = _fitted(whole_rows(session, window, asked, options), target)
        return PreparedWrite(run=lambda: _overwrite(rows, statement.target.path))
    if not asked.rows_by_id and asked.sums is None:
        raise StatementRefused(problem="the query's changes cannot be computed", sql=statement.write.target)
    net = asked.sums is None or needs_net_rows(asked.sums)
    found = streams.query(source, signed=not net)
    settings = planned_once(session) if found.few and asked.how is RefreshHow.CHANGES else {}
    with under(session, settings):
        if asked.rows_by_id:
            prepared = _prepare_rows(image_rows(found.rows, window.view), statement, target)
        else:
            rows = signed(found.rows, window.view) if net else found.rows
            prepared = _prepare_sums(session, window, rows, statement, asked, options, few=bool(settings))
    return replace(prepared, run=lambda: _run_under(session, settings, prepared))


def _run_under(session: SparkSession, settings: Mapping[str, str | None], prepared: PreparedWrite) -> None:
    with under(session, settings):
        prepared.run()


def _prepare_sums(
    session: SparkSession,
    window: StreamWindow,
    rows: DataFrame,
    statement: Statement,
    asked: RefreshWrite,
    options: Mapping[str, str] | None,
    *,
    few: bool,
) -> PreparedWrite:
    """An append of partial aggregates, or one row for each group. They are kept in memory if they are read twice.
    `few`: they are one file.
    """
    assert asked.sums is not None
    path, target = statement.target.path, target_schema(open_target(statement, options))
    found = signed_sums(session, rows, asked.sums)
    if has_extremes(found):
        found.persist()
    try:
        kept = session.read.format("delta").load(path)
        sums = _fitted(partials_after(session, window, found, kept, asked.sums, options), target)
    except BaseException:
        found.unpersist()
        raise
    if asked.how is RefreshHow.CHANGES:
        sums = sums.coalesce(1) if few else sums
        return PreparedWrite(run=lambda: _append(sums, path), close=lambda: _forget(found))
    return PreparedWrite(run=lambda: _compact(session, sums, path, target), close=lambda: _forget(found))


def whole_rows(
    session: SparkSession, window: StreamWindow, asked: RefreshWrite, options: Mapping[str, str] | None
) -> DataFrame:
    """All rows of the kept table at the window's end. Raises what reading the query raises."""
    query, name = window.view, window.stream_name
    assert query is not None
    if not asked.rows_by_id and asked.sums is None:
        return read_plain_rows(session, query, window.bases, options, reader=name)
    rows = _rows_at_end(session, window, options)
    if asked.sums is None:
        return image_rows(rows, query).drop(ACTION)
    return kept_columns(signed_sums(session, signed(rows, query), asked.sums))


def signed(changes: DataFrame, query: ViewQuery) -> DataFrame:
    """The images of changed rows, with +1 for each that came and −1 for each that went."""
    sign = F.when(F.col(quoted(ACTION)) == "DELETE", F.lit(-1)).otherwise(F.lit(1))
    return changes.select(*_columns(query), sign.alias(SIGN))


def image_rows(changes: DataFrame, query: ViewQuery) -> DataFrame:
    """The images of changed rows with their ids as KEPT_ROW_ID, and METADATA$ACTION."""
    return changes.select(*_columns(query), F.col(quoted(ROW_ID)).alias(KEPT_ROW_ID), quoted(ACTION))


def partials_after(
    session: SparkSession,
    window: StreamWindow,
    found: DataFrame,
    kept: DataFrame,
    sums: str,
    options: Mapping[str, str] | None,
) -> DataFrame:
    """The rows that a refresh adds to the partial aggregates `kept`, which are of the window's start. `found`: those of
    the changes.
    """
    if not has_extremes(found):
        return found
    query = window.view
    assert query is not None

    def at_end(groups: DataFrame | None) -> DataFrame:
        rows = signed(_rows_at_end(session, window, options), query)
        return signed_sums(session, rows if groups is None else of_groups(rows, groups), sums)

    return with_extremes(found, kept, at_end)


def _rows_at_end(session: SparkSession, window: StreamWindow, options: Mapping[str, str] | None) -> DataFrame:
    """All rows of the followed query at the window's end, as inserts."""
    assert window.view is not None
    assert window.read_at is not None
    ends = [BaseWindow(base.table, base.end, base.end) for base in window.bases]
    return read_view_rows(session, window.view, ends, window.read_at, options, reader=window.stream_name)


def _columns(query: ViewQuery) -> list[str]:
    return [quoted(name) for name in struct_type(query.schema_json).names]


def _fitted(rows: DataFrame, target: StructType) -> DataFrame:
    """The rows with the columns of the kept table, in its order and with its types."""
    return rows.select(*(F.col(quoted(field.name)).cast(field.dataType).alias(field.name) for field in target.fields))


def _prepare_rows(changes: DataFrame, statement: Statement, target: StructType) -> PreparedWrite:
    """A merge by row id. New rows alone are appended: no kept row can have their ids."""
    changes.persist()
    try:
        gone = F.count_if(F.col(quoted(ACTION)) == "DELETE")
        ((read, deleted),) = changes.agg(F.count(F.lit(1)), gone).collect()
        if not deleted:
            new = _fitted(changes, target)
            few = new.coalesce(int(read) // _ROWS_OF_A_FILE + 1)
            return PreparedWrite(
                run=lambda: _append(few, statement.target.path), close=lambda: _forget(changes), changes=int(read)
            )
        within = _rows_with_old_images(changes, statement, target)
        merge = prepare_merge(changes, statement, target, (KEPT_ROW_ID,), within=within)
    except BaseException:
        changes.unpersist()
        raise
    return PreparedWrite(run=merge.run, close=lambda: _close_both(merge, changes), changes=merge.changes)


def _rows_with_old_images(changes: DataFrame, statement: Statement, target: StructType) -> Column:
    """A condition of the kept rows that change: each has the old image of its row, so values between theirs. A sum
    of floats may differ when it is computed again, and the merge finds such rows.
    """
    kinds, kept = {field.name: field.dataType for field in changes.schema}, path_name(statement.target.path)
    keys = [
        Key(field.name, F.col(f"{kept}.{quoted(field.name)}"), field.dataType)
        for field in target.fields[:_MOST_WITH_STATISTICS]
        if kinds.get(field.name) == field.dataType and field.name != KEPT_ROW_ID and char_length(field) is None
    ]
    return rows_in_range_of(changes.where(F.col(quoted(ACTION)) == "DELETE"), keys)


def _forget(rows: DataFrame) -> None:
    rows.unpersist()


def _close_both(merge: PreparedWrite, changes: DataFrame) -> None:
    merge.close()
    changes.unpersist()


def _append(rows: DataFrame, path: str) -> None:
    rows.write.format("delta").mode("append").save(path)


def _overwrite(rows: DataFrame, path: str) -> None:
    """All rows of the table replaced in one commit. Its id, its schema and its clustering stay: an overwrite without a
    condition would end the clustering.
    """
    rows.write.format("delta").mode("overwrite").option("replaceWhere", "true").save(path)


def _compact(session: SparkSession, sums: DataFrame, path: str, target: StructType) -> None:
    """One row for each group that has rows."""
    with under(session, ANSI):
        net = net_partials(session.read.format("delta").load(path).unionByName(sums))
        has_groups = any(name.startswith(GROUP) for name in net.columns)
        _overwrite(_fitted(net.where(F.col(COUNT) > 0) if has_groups else net, target), path)
