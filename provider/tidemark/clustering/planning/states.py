"""The state of a clustered table in one word."""

from __future__ import annotations

from enum import StrEnum

from tidemark.clustering.model.tables import ClusteredTable
from tidemark.clustering.planning.upkeep import within_goal

__all__ = ["TableHealth", "state_of"]


class TableHealth(StrEnum):
    """NEW: not looked at yet. DEEP: deeper than is kept for its goal, as the budget or a conflict has left it."""

    NEW = "new"
    CLUSTERED = "clustered"
    DEEP = "deep"
    SUSPENDED = "suspended"
    FAILING = "failing"


def state_of(table: ClusteredTable) -> TableHealth:
    """The state as the last look at the table has left it."""
    if table.suspended is not None:
        return TableHealth.SUSPENDED
    if table.problem is not None:
        return TableHealth.FAILING
    if table.seen is None:
        return TableHealth.NEW
    return TableHealth.DEEP if within_goal(table.seen, table.goal) is None else TableHealth.CLUSTERED
