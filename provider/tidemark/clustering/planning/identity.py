"""The identity of a clustered table: a recreated table is another one."""

from __future__ import annotations

from tidemark.errors import ClusteredTableRecreated
from tidemark.model.streams import TableRef
from tidemark.model.table_log import TableState

__all__ = ["require_same"]


def require_same(table: TableRef, state: TableState) -> None:
    """Raises ClusteredTableRecreated if another table than the registered one is at its path."""
    if state.table_id != table.table_id:
        raise ClusteredTableRecreated(table=table.name, path=table.path, found=state.table_id, expected=table.table_id)
