"""The sources of streams and CHANGES in a notebook: a Delta table, a view with base tables, or an external table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tidemark.changes.driver.views.catalog import resolve_view
from tidemark.client.view_bases import source_of_view
from tidemark.errors import ExternalTableNotFound, InvalidArgument, NotADeltaTable, SourceError, TableNotFound
from tidemark.lake.external_tables import external_table_ref, find_external_table
from tidemark.materialized.worker.views import find_view
from tidemark.model.streams import StreamMode
from tidemark.streams.model.sources import Source, table_source, view_source
from tidemark.streams.worker.defining import Sources, StreamRequest, no_stream_of_a_stream, prepared

if TYPE_CHECKING:
    from tidemark.client.context import ClientContext

__all__ = ["find_files", "find_source", "is_external_table", "sources_of"]

ONLY_OF_FILES = "streams of this mode can only be created on external tables; a Delta table has append_only (R5)"
ONLY_INSERT_ONLY = "streams on external tables must set mode='insert_only' (R6); CHANGES does not read them (R113)"


def sources_of(context: ClientContext, *, enable_row_tracking: bool) -> Sources:
    """The sources that this Spark and the lake know. `enable_row_tracking` turns it on if it is off (R3, R79)."""

    def find(request: StreamRequest) -> Source:
        if request.mode is StreamMode.INSERT_ONLY:
            return find_files(context, request.on)
        return _table_or_view(context, request.on, beyond_snowflake=request.beyond_snowflake)

    return Sources(find, context.tables, context.turn_on_row_tracking if enable_row_tracking else None)


def find_source(
    context: ClientContext,
    name: str,
    *,
    enable_row_tracking: bool = False,
    beyond_snowflake: bool = False,
    keys: Sequence[str] = (),
) -> Source:
    """The table or view of that name, as `prepared`.

    Raises TableNotFound, NotADeltaTable, StreamOnStream, ViewRefused (R70), ViewTextMissing, ViewNotUnderstood, and
    what `prepared` raises.
    """
    with no_stream_of_a_stream(context.store, name):
        source = _table_or_view(context, name, beyond_snowflake=beyond_snowflake)
    turn_on = context.turn_on_row_tracking if enable_row_tracking else None
    return prepared(source, context.tables, keys=keys, turn_on=turn_on)


def find_files(context: ClientContext, name: str) -> Source:
    """The external table of that name (R5). Raises ExternalTableNotFound, InvalidArgument if it is a Delta table."""
    try:
        return table_source(external_table_ref(context.paths.workspace, name, context.options))
    except ExternalTableNotFound:
        if _is_table(context, name):
            raise InvalidArgument(argument="mode", value="insert_only", problem=ONLY_OF_FILES) from None
        raise


def is_external_table(context: ClientContext, name: str) -> bool:
    """Whether files were made known under that name."""
    return find_external_table(context.paths.workspace, name, context.options) is not None


def _table_or_view(context: ClientContext, name: str, *, beyond_snowflake: bool) -> Source:
    kept = find_view(context.store, name)
    if kept is not None:
        return source_of_view(context, kept)
    if context.tables.is_view(name):
        view = resolve_view(context.spark, name, beyond_snowflake=beyond_snowflake)
        return view_source(name, view, tuple(context.tables.reference(base) for base in view.bases))
    try:
        return table_source(context.tables.reference(name))
    except (TableNotFound, NotADeltaTable) as error:
        if is_external_table(context, name):
            raise InvalidArgument(argument="on", value=name, problem=ONLY_INSERT_ONLY) from error
        raise


def _is_table(context: ClientContext, name: str) -> bool:
    try:
        context.tables.reference(name)
    except SourceError:
        return False
    return True
