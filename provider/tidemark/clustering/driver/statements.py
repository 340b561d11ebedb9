"""The table of a statement, which must be the one that was planned for."""

from __future__ import annotations

from collections.abc import Mapping

from tidemark.clustering.planning.identity import require_same
from tidemark.lake.delta_log import DeltaLog
from tidemark.model.streams import TableRef

__all__ = ["open_same"]


def open_same(table: TableRef, options: Mapping[str, str] | None) -> DeltaLog:
    """The log of the table. Raises ClusteredTableRecreated if another one is at its path, TableNotFound,
    NotADeltaTable.
    """
    log = DeltaLog.open(table.path, options)
    require_same(table, log.state())
    return log
