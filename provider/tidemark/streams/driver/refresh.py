"""Refreshes of kept queries: the changes of a window, or all rows at its end, as one write of the kept table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from tidemark.changes.driver.views.plain import over_frames, read_plain_rows
from tidemark.changes.driver.views.read import read_view_rows
from tidemark.delivery.driver.exactly_once import open_target, target_schema
from tidemark.delivery.driver.merge import prepare_merge
from tidemark.delivery.driver.prepared import PreparedWrite
from tidemark.errors import StatementRefused
from tidemark.jobs.schemas import struct_type
from tidemark.jobs.settings import under
from tidemark.model.statements import RefreshHow, RefreshWrite, Statement
from tidemark.model.streams import ACTION, ROW_ID, BaseWindow, StreamWindow, WindowKind
from tidemark.model.views import KEPT, KEPT_ROW_ID, ViewQuery
from tidemark.sql.identifiers import quoted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from tidemark.streams.driver.pinned_streams import PinnedStreams

__all__ = ["image_rows", "net_sums", "prepare_refresh", "signed", "signed_sums", "whole_rows"]

_SIGN = "tidemark_sign"
_ANSI = {"spark.sql.ansi.enabled": "true"}  # a sum that overflows is an error, never NULL


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
    changes = streams.frame(source)
    if asked.rows_by_id:
        return _prepare_rows(image_rows(changes, window.view), statement, target)
    if asked.sums is None:
        raise StatementRefused(problem="the query's changes cannot be computed", sql=statement.write.target)
    sums = signed_sums(session, signed(changes, window.view), asked.sums)
    if asked.how is RefreshHow.CHANGES:
        return PreparedWrite(run=lambda: _append(_fitted(sums, target), statement.target.path))
    return PreparedWrite(run=lambda: _compact(session, sums, statement.target.path, target))


def whole_rows(
    session: SparkSession, window: StreamWindow, asked: RefreshWrite, options: Mapping[str, str] | None
) -> DataFrame:
    """All rows of the kept table at the window's end. Raises what reading the query raises."""
    query, name = window.view, window.stream_name
    assert query is not None
    if not asked.rows_by_id and asked.sums is None:
        return read_plain_rows(session, query, window.bases, options, reader=name)
    assert window.read_at is not None
    ends = [BaseWindow(base.table, base.end, base.end) for base in window.bases]
    rows = read_view_rows(session, query, ends, window.read_at, options, reader=name)
    if asked.sums is None:
        return image_rows(rows, query).drop(ACTION)
    return signed_sums(session, signed(rows, query), asked.sums)


def signed(changes: DataFrame, query: ViewQuery) -> DataFrame:
    """The images of changed rows, with +1 for each that came and −1 for each that went."""
    sign = F.when(F.col(quoted(ACTION)) == "DELETE", F.lit(-1)).otherwise(F.lit(1))
    return changes.select(*_columns(query), sign.alias(_SIGN))


def image_rows(changes: DataFrame, query: ViewQuery) -> DataFrame:
    """The images of changed rows with their ids as KEPT_ROW_ID, and METADATA$ACTION."""
    return changes.select(*_columns(query), F.col(quoted(ROW_ID)).alias(KEPT_ROW_ID), quoted(ACTION))


def signed_sums(session: SparkSession, rows: DataFrame, sums: str) -> DataFrame:
    """Partial aggregates of signed rows. An overflow fails the query."""
    return over_frames(session, sums, {KEPT: rows}, _ANSI)


def net_sums(rows: DataFrame) -> DataFrame:
    """Partial aggregates with one row for each group that has rows. Groups and numbers have the names that
    `materialized.planning.partials` gives them.
    """
    groups = [name for name in rows.columns if name.startswith("tidemark_g")]
    numbers = [name for name in rows.columns if name not in groups]
    sums = [F.sum(name).cast(rows.schema[name].dataType).alias(name) for name in numbers]
    net = rows.groupBy(*groups).agg(*sums)
    return net.where(F.col("tidemark_n") > 0) if groups else net


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
            return PreparedWrite(
                run=lambda: _append(new, statement.target.path), close=lambda: _forget(changes), changes=int(read)
            )
        merge = prepare_merge(changes, statement, target, (KEPT_ROW_ID,))
    except BaseException:
        changes.unpersist()
        raise
    return PreparedWrite(run=merge.run, close=lambda: _close_both(merge, changes), changes=merge.changes)


def _forget(rows: DataFrame) -> None:
    rows.unpersist()


def _close_both(merge: PreparedWrite, changes: DataFrame) -> None:
    merge.close()
    changes.unpersist()


def _append(rows: DataFrame, path: str) -> None:
    rows.write.format("delta").mode("append").save(path)


def _overwrite(rows: DataFrame, path: str) -> None:
    """All rows of the table replaced in one commit; its id and its schema stay."""
    rows.write.format("delta").mode("overwrite").option("partitionOverwriteMode", "static").save(path)


def _compact(session: SparkSession, sums: DataFrame, path: str, target: StructType) -> None:
    with under(session, _ANSI):
        kept = session.read.format("delta").load(path)
        _overwrite(_fitted(net_sums(kept.unionByName(_fitted(sums, target))), target), path)
