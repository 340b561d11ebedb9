"""The tables of a lake or of Spark's catalog, as change streams ask for them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidemark.change_streams.worker.watching import LakeTables
from tidemark.lake.listing import table_names

if TYPE_CHECKING:
    from tidemark.client.context import ClientContext

__all__ = ["lake_tables"]


def lake_tables(context: ClientContext, *, enable_row_tracking: bool = False) -> LakeTables:
    """All tables: those below the lake's root, or, where none was given, the Delta tables of Spark's catalog."""

    def names() -> tuple[str, ...]:
        return context.tables.names() if context.lake_root is None else table_names(context.lake_root, context.options)

    turn_on = context.turn_on_row_tracking if enable_row_tracking else None
    return LakeTables(context.tables.reference, context.tables, names, turn_on)
