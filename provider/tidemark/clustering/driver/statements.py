"""The table of a statement, which must be the one that was planned for."""

from __future__ import annotations

from collections.abc import Mapping

from tidemark.errors import SourceRecreated
from tidemark.lake.delta_log import DeltaLog
from tidemark.model.streams import TableRef

__all__ = ["open_same"]


def open_same(table: TableRef, options: Mapping[str, str] | None) -> DeltaLog:
    """The log of the table. Raises SourceRecreated if another table is at its path, TableNotFound, NotADeltaTable."""
    log = DeltaLog.open(table.path, options)
    found = log.state().table_id
    if found != table.table_id:
        raise SourceRecreated(
            table=table.name, stream="(clustering)", path=log.uri, found=found, expected=table.table_id
        )
    return log
