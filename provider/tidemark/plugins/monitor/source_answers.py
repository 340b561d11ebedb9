"""The answer of the page's route about a source database: its tables, and whether they can be replicated."""

from __future__ import annotations

from dataclasses import dataclass

from tidemark.control.cursors import Part
from tidemark.replication.model.replication import Column
from tidemark.replication.model.source_discovery import DiscoveredTable, SourceDiscovery
from tidemark.replication.planning.types import delta_type, type_text
from tidemark.replication.worker.object_parts import part_of_tables

__all__ = ["SourceAnswer", "source_answer"]


@dataclass(frozen=True)
class ColumnAnswer:
    """`native`: the type in the source's words, `unified` that of events, `delta` that of a target."""

    name: str
    native: str
    unified: str
    delta: str
    key: bool
    nullable: bool


@dataclass(frozen=True)
class TableAnswer:
    """A table. `rows`: by the source's statistics. `problems`: why it cannot be replicated, each with its fix."""

    name: str
    fits: bool
    rows: int
    mode: str
    problems: tuple[str, ...]
    notices: tuple[str, ...]
    columns: tuple[ColumnAnswer, ...]


@dataclass(frozen=True)
class SourceAnswer:
    """One page of the tables whose names hold the search, those that cannot be replicated first, `total` of them.

    `found`: how many tables the source has; `fitting`: how many can be replicated. `problems`: of server and user.
    `cursor`: for the page that follows; None on the last one.
    """

    connection: str
    kind: str
    database: str
    databases: tuple[str, ...]
    schemas: tuple[str, ...]
    ready: bool
    problems: tuple[str, ...]
    found: int
    fitting: int
    total: int
    limit: int
    offset: int
    cursor: str | None
    tables: tuple[TableAnswer, ...]


def source_answer(conn_id: str, found: SourceDiscovery, *, search: str, part: Part) -> SourceAnswer:
    """The part of a look that is asked for. Raises CursorInvalid."""
    total, shown, cursor = part_of_tables(found.tables, search, part)
    return SourceAnswer(
        connection=conn_id,
        kind=found.kind.value,
        database=found.names.database,
        databases=found.names.databases,
        schemas=found.names.schemas,
        ready=found.ready,
        problems=found.problems,
        found=len(found.tables),
        fitting=sum(one.fits for one in found.tables),
        total=total,
        limit=part.limit,
        offset=part.offset,
        cursor=cursor,
        tables=tuple(_table(one) for one in shown),
    )


def _table(one: DiscoveredTable) -> TableAnswer:
    columns = tuple(_column(column) for column in one.schema.columns)
    return TableAnswer(one.name.text, one.fits, one.rows, one.mode.value, one.problems, one.notices, columns)


def _column(column: Column) -> ColumnAnswer:
    kind = column.type
    return ColumnAnswer(column.name, column.native, type_text(kind), delta_type(kind), column.key, column.nullable)
