"""The tables of one connection's lake that have channels, and the channels."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tidemark.channels.model.channels import ChannelRecord
    from tidemark.hooks.tidemark import TidemarkHook

__all__ = ["channel_tables_of", "channels_in_lake"]


def channel_tables_of(hook: TidemarkHook) -> list[str]:
    """The names of the lake's tables that have channels, from their logs alone."""
    return list(channels_in_lake(hook))


def channels_in_lake(hook: TidemarkHook) -> dict[str, dict[str, ChannelRecord]]:
    """Table → key → record of the lake's channels, from the logs alone. An unreadable table is skipped."""
    from tidemark.channels.worker.tables import channels_by_table
    from tidemark.lake.listing import table_names

    settings = hook.settings
    return channels_by_table(table_names(settings.lake_root, settings.storage_options), hook.open_table)
