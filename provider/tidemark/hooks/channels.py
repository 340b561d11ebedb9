"""The tables of one connection's lake that have channels."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tidemark.hooks.tidemark import TidemarkHook

__all__ = ["channel_tables_of"]


def channel_tables_of(hook: TidemarkHook) -> list[str]:
    """The names of the lake's tables that have channels, from their logs alone."""
    from tidemark.channels.worker.tables import tables_with_channels
    from tidemark.lake.listing import table_names

    settings = hook.settings
    return tables_with_channels(table_names(settings.lake_root, settings.storage_options), hook.open_table)
