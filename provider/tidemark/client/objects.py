"""The kind of object that a name leads to, in the words of CREATE STREAM (R9)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.errors import AnalysisException

from tidemark.client.catalog import VIEWS
from tidemark.client.sources import is_external_table
from tidemark.errors import TidemarkError
from tidemark.materialized.model.definitions import KeptKind
from tidemark.materialized.worker.views import find_view
from tidemark.streams.planning.stream_sql.statements import ObjectKind
from tidemark.streams.worker.defining import find_stream

if TYPE_CHECKING:
    from tidemark.client.context import ClientContext

__all__ = ["kind_of"]


def kind_of(context: ClientContext, name: str, asked: ObjectKind) -> str | None:
    """TABLE, VIEW, STREAM, EXTERNAL TABLE or DYNAMIC TABLE; None where the name leads nowhere.

    A table that is not Delta's is a TABLE, too, and a dynamic table is one if a table was asked for.
    """
    kept = find_view(context.store, name)
    if kept is not None:
        if kept.kind is KeptKind.MATERIALIZED_VIEW:
            return "VIEW"
        return "TABLE" if asked is ObjectKind.TABLE else "DYNAMIC TABLE"
    in_catalog = _in_catalog(context, name)
    if in_catalog is not None:
        return "VIEW" if in_catalog in VIEWS else "TABLE"
    try:
        context.tables(name)
    except TidemarkError:
        if is_external_table(context, name):
            return "EXTERNAL TABLE"
        return None if find_stream(context.store, name) is None else "STREAM"
    return "TABLE"


def _in_catalog(context: ClientContext, name: str) -> str | None:
    if "/" in name:
        return None
    try:
        return str(context.spark.catalog.getTable(name).tableType).upper()
    except AnalysisException:
        return None
