"""Answers to statements about materialized views and dynamic tables, with the columns of the source system."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from tidemark.jobs.schemas import struct_type
from tidemark.materialized.model.definitions import KeptView, RefreshMode
from tidemark.materialized.model.shapes import Shape
from tidemark.materialized.planning.lags import lag_in_words
from tidemark.streams.planning.stream_sql.listing import name_parts

if TYPE_CHECKING:
    from datetime import datetime

    from pyspark.sql import DataFrame, SparkSession

__all__ = ["described_view", "shown_dynamic_tables", "shown_materialized_views"]

_VIEWS = (
    "created_on TIMESTAMP, name STRING, database_name STRING, schema_name STRING, cluster_by STRING,"
    " refreshed_on TIMESTAMP, owner STRING, invalid BOOLEAN, invalid_reason STRING, behind_by STRING, comment STRING,"
    " text STRING, is_secure BOOLEAN, refresh_mode STRING, refresh_mode_reason STRING"
)
_TABLES = (
    "created_on TIMESTAMP, name STRING, database_name STRING, schema_name STRING, cluster_by STRING, owner STRING,"
    " target_lag STRING, refresh_mode STRING, refresh_mode_reason STRING, warehouse STRING, comment STRING,"
    " text STRING, scheduling_state STRING, data_timestamp TIMESTAMP, invalid_reason STRING"
)
_COLUMNS = "name STRING, type STRING, kind STRING, `null?` STRING, comment STRING"


def shown_materialized_views(spark: SparkSession, views: Iterable[KeptView], now: datetime) -> DataFrame:
    """SHOW MATERIALIZED VIEWS. `behind_by`: the time since the last refresh, which a read adds."""

    def row(view: KeptView) -> tuple[Any, ...]:
        behind = None if view.fresh_at is None else f"{(now - view.fresh_at).total_seconds():.0f}s"
        invalid = view.suspended is not None
        shown = (view.fresh_at, None, invalid, view.suspended or view.problem, behind, view.comment, view.text, False)
        return (view.created_at, *_in_parts(view), _clustering(view), *shown, _mode(view), view.shape.why)

    return spark.createDataFrame([row(view) for view in views], _VIEWS)


def shown_dynamic_tables(spark: SparkSession, views: Iterable[KeptView]) -> DataFrame:
    """SHOW DYNAMIC TABLES. `data_timestamp`: the point in time that the table shows."""

    def row(view: KeptView) -> tuple[Any, ...]:
        state = "ACTIVE" if view.suspended is None else "SUSPENDED"
        lag = (lag_in_words(view.target_lag), _mode(view), view.shape.why)
        shown = (None, view.comment, view.text, state, view.fresh_at, view.suspended or view.problem)
        return (view.created_at, *_in_parts(view), _clustering(view), None, *lag, *shown)

    return spark.createDataFrame([row(view) for view in views], _TABLES)


def described_view(spark: SparkSession, view: KeptView) -> DataFrame:
    """DESCRIBE: a row for each column of the query."""
    fields = struct_type(view.shape.whole.schema_json).fields
    rows = [(one.name, one.dataType.simpleString(), "COLUMN", "Y" if one.nullable else "N", None) for one in fields]
    return spark.createDataFrame(rows, _COLUMNS)


def _mode(view: KeptView) -> str:
    """As the source system says it: a query whose changes cannot be computed is refreshed in full."""
    return (RefreshMode.FULL if view.shape.shape is Shape.PLAIN else view.mode).value.upper()


def _clustering(view: KeptView) -> str | None:
    return f"LINEAR({', '.join(view.cluster_by)})" if view.cluster_by else None


def _in_parts(view: KeptView) -> tuple[str, str | None, str | None]:
    database, schema, name = name_parts(view.name)
    return name, database, schema
