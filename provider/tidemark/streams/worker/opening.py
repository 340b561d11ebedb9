"""How the logs of tables are opened."""

from __future__ import annotations

from collections.abc import Callable

from tidemark.errors import SourceMoved
from tidemark.lake.delta_log import DeltaLog
from tidemark.model.streams import TableRef

__all__ = ["Tables", "open_table", "wherever"]

Tables = Callable[[TableRef | str], DeltaLog]
"""Opens the log of a registered table, or of a table by the name that the user gave. Raises TableNotFound,
NotADeltaTable; SourceMoved, a TableNotFound, for a registered table that exists at another path."""


def open_table(table: TableRef | str) -> DeltaLog:
    """`Tables` for paths without storage options."""
    return DeltaLog.open(table.path if isinstance(table, TableRef) else table)


def wherever(tables: Tables) -> Tables:
    """`tables` for observers, who move nothing: a registered table that was moved is opened at its new place."""

    def opened(table: TableRef | str) -> DeltaLog:
        try:
            return tables(table)
        except SourceMoved as moved:
            return tables(moved.to.path)

    return opened
