"""The tables of one connection's store that have search paths."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tidemark.hooks.tidemark import TidemarkHook

__all__ = ["searched_tables_of"]


def searched_tables_of(hook: TidemarkHook) -> list[str]:
    """The names of the tables that have search paths."""
    from tidemark.search.worker.definitions import list_searches

    return [search.table.name for search in list_searches(hook.open_store())]
