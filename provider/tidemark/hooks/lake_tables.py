"""The tables of the lake of one connection, as change streams ask for them."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tidemark.change_streams.worker.watching import LakeTables
    from tidemark.hooks.tidemark import TidemarkHook

__all__ = ["lake_tables_of"]


def lake_tables_of(hook: TidemarkHook) -> LakeTables:
    """FOR ALL are those below the lake's root; row tracking is turned on nowhere, as that takes Spark."""
    from tidemark.change_streams.worker.watching import LakeTables
    from tidemark.lake.listing import table_names

    settings = hook.settings
    return LakeTables(hook.table, hook.open_table, lambda: table_names(settings.lake_root, settings.storage_options))
