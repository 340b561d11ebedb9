"""A source database as a look at its catalog shows it: names, tables, columns, and whether they can be replicated."""

from __future__ import annotations

from dataclasses import dataclass

from tidemark.model.source_address import SourceKind
from tidemark.replication.model.replication import ObjectName, TableSchema, WriteMode

__all__ = ["DiscoveredTable", "SourceDiscovery", "SourceNames"]


@dataclass(frozen=True)
class SourceNames:
    """The `database` of the connection with its `schemas`, and the other `databases` of the server. All are those that
    the user sees.
    """

    database: str
    databases: tuple[str, ...]
    schemas: tuple[str, ...]


@dataclass(frozen=True)
class DiscoveredTable:
    """A table of the source. `schema`: the columns that its log has. `rows`: by the source's statistics.

    `mode`: of its target by default. `problems`: why it cannot be replicated, each with its fix. `notices`: changes
    and columns that its log lacks, and a missing key.
    """

    name: ObjectName
    schema: TableSchema
    rows: int
    mode: WriteMode
    problems: tuple[str, ...] = ()
    notices: tuple[str, ...] = ()

    @property
    def fits(self) -> bool:
        """Whether a replication can have it."""
        return not self.problems


@dataclass(frozen=True)
class SourceDiscovery:
    """The result of a look. `system_id`: of the source's cluster. `problems`: of the server and of the user's rights,
    each with its fix. No table is replicated until they are fixed. `notices`: patterns that fit no table.
    """

    kind: SourceKind
    system_id: str
    names: SourceNames
    tables: tuple[DiscoveredTable, ...]
    problems: tuple[str, ...] = ()
    notices: tuple[str, ...] = ()

    @property
    def ready(self) -> bool:
        """Whether a replication of the tables that fit would start."""
        return not self.problems and any(one.fits for one in self.tables)
