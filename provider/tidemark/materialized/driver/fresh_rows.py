"""The rows of kept queries: as of the last refresh, and as of the newest versions of their bases."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from tidemark.changes.driver.past_versions import read_version
from tidemark.changes.driver.views.plain import over_frames
from tidemark.materialized.model.shapes import KEPT, KEPT_ROW_ID, KeptShape, Shape
from tidemark.model.statements import RefreshHow, RefreshWrite
from tidemark.model.streams import ACTION, StreamWindow, WindowKind
from tidemark.sql.identifiers import quoted
from tidemark.streams.driver.partials import needs_net_rows, signed_sums
from tidemark.streams.driver.refresh import image_rows, partials_after, signed, whole_rows
from tidemark.streams.driver.windows import read_query_window, read_window, require_same_view

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from tidemark.jobs.workspace import Workspace

__all__ = ["fresh_from", "fresh_rows", "kept_rows"]


def kept_rows(spark: SparkSession, shape: KeptShape, kept_path: str, kept_version: int) -> DataFrame:
    """The query's rows as of a refresh: those of the kept table at the version of its commit."""
    return _read(spark, shape, read_version(spark, kept_path, kept_version))


def fresh_rows(
    spark: SparkSession,
    shape: KeptShape,
    kept_path: str,
    kept_version: int,
    window: StreamWindow,
    workspace: Workspace,
    options: Mapping[str, str] | None = None,
) -> DataFrame:
    """The query's rows at the end of `window`, which starts at the last refresh: kept rows and changes since.

    Before the first refresh (a window of initial rows) it is the query itself. The rows stay the same until
    `workspace` is closed. Raises what reading the window raises.
    """
    if window.empty:
        return kept_rows(spark, shape, kept_path, kept_version)
    return fresh_from(spark, shape, read_version(spark, kept_path, kept_version), window, workspace, options)


def fresh_from(
    spark: SparkSession,
    shape: KeptShape,
    kept: DataFrame,
    window: StreamWindow,
    workspace: Workspace,
    options: Mapping[str, str] | None = None,
) -> DataFrame:
    """The same from the rows of a kept table, for a window that is not empty."""
    asked = RefreshWrite(RefreshHow.WHOLE, rows_by_id=shape.shape is Shape.ROWS, sums=shape.sums)
    if shape.shape is Shape.PLAIN or window.kind is WindowKind.INITIAL_ROWS:
        require_same_view(spark, shape.followed, window.stream_name)
        return _read(spark, shape, whole_rows(spark, window, asked, options))
    if shape.sums is not None:
        if needs_net_rows(shape.sums):
            rows = signed(read_window(spark, window, workspace, options), shape.followed)
        else:
            rows = read_query_window(spark, window, workspace, options, signed=True).rows
        found = signed_sums(spark, rows, shape.sums)
        sums = partials_after(spark, window, found, kept, shape.sums, options)
        return _read(spark, shape, kept.unionByName(sums))
    images = image_rows(read_window(spark, window, workspace, options), shape.followed)
    changed = images.select(KEPT_ROW_ID).distinct()
    came = images.where(F.col(quoted(ACTION)) != "DELETE").drop(ACTION)
    return _read(spark, shape, kept.join(changed, KEPT_ROW_ID, "left_anti").unionByName(came))


def _read(spark: SparkSession, shape: KeptShape, kept: DataFrame) -> DataFrame:
    return over_frames(spark, shape.read, {KEPT: kept}, shape.whole.settings)
