"""The tables of one connection's lake, for change streams."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from tidemark.change_streams.worker.watching import LakeTables
    from tidemark.hooks.tidemark import TidemarkHook
    from tidemark.model.streams import TableRef

__all__ = ["lake_tables_of"]


def lake_tables_of(hook: TidemarkHook, find: Callable[[str], TableRef] | None = None) -> LakeTables:
    """The lake's tables. FOR ALL means those below its root. Row tracking is never enabled, since that needs Spark.

    `find`: finds a table by its name; None: without a catalog.
    """
    from tidemark.change_streams.worker.watching import LakeTables
    from tidemark.lake.listing import table_names

    settings = hook.settings
    return LakeTables(
        find or hook.table, hook.open_table, lambda: table_names(settings.lake_root, settings.storage_options)
    )
