"""The tables that streams read, found by name with one connection."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tidemark.hooks.tidemark import TidemarkHook
    from tidemark.streams.worker.defining import SourceTables

__all__ = ["source_tables_of"]


def source_tables_of(hook: TidemarkHook) -> SourceTables:
    """The tables by the names that the hook knows."""
    from tidemark.streams.worker.defining import SourceTables

    return SourceTables(hook.table, hook.external_table, hook.open_table)
