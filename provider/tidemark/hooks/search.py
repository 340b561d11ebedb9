"""The tables of one connection's store that have search paths."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from datetime import datetime

    from tidemark.hooks.tidemark import TidemarkHook
    from tidemark.search.model.paths import Search

__all__ = ["searched_tables_of"]


def searched_tables_of(hook: TidemarkHook) -> list[str]:
    """The names of the tables that have search paths, the one first whose last upkeep is longest ago. They are no more
    than Airflow maps over, and the next run takes the others.
    """
    from airflow.sdk.configuration import conf

    from tidemark.search.worker.definitions import list_searches

    found = sorted(list_searches(hook.open_store()), key=_last_upkeep)
    return [search.table.name for search in found[: conf.getint("core", "max_map_length", fallback=1024)]]


def _last_upkeep(search: Search) -> datetime:
    """The time of the last upkeep, also of one that failed: a table that always fails keeps no other back."""
    return max(time for time in (search.created_at, search.kept_at, search.problem_at) if time is not None)
