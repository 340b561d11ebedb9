"""A table of a source that is ready to be copied, for any kind of database."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from tidemark.errors import BackfillInterrupted, NotYetSupported, TidemarkError
from tidemark.model.source_address import SourceAddress, SourceKind
from tidemark.replication.model.catalog import SeenTable
from tidemark.replication.model.jobs import BackfillObject
from tidemark.replication.model.replication import LogPosition, TableSchema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["RowsTooWide", "TableCopy", "table_copy"]


class RowsTooWide(BackfillInterrupted):
    """The backfill of {object} was interrupted: {problem}."""


@dataclass(frozen=True)
class TableCopy:
    """With every event at or behind `position` applied, the rows are what the source has.

    `seen`: what the catalog had. `mean`, `widest`: bytes of a row; `widest` by whether the copy is careful. `rows`: the
    target's columns, by session and whether few rows are read at once; nothing is read before the frame is. `failure`:
    the error of ours in what Spark says; None if it is not of the source.
    """

    position: LogPosition
    schema: TableSchema
    seen: SeenTable | None
    mean: int
    widest: Callable[[bool], int]
    rows: Callable[[SparkSession, bool], DataFrame]
    failure: Callable[[str], TidemarkError | None]


def table_copy(
    request: BackfillObject, address: SourceAddress, patience: timedelta
) -> AbstractContextManager[TableCopy]:
    """The object, held in its source while the context lasts, if its kind holds it. `patience`: how long transactions
    of the source may hold the beginning up.

    Raises NotYetSupported, BackfillGaveWay, ObjectNotReplicable, SourceUnreachable, SourceRefused.
    """
    if address.kind is SourceKind.POSTGRESQL:
        from tidemark.replication.driver.postgresql_copy import postgresql_copy

        return postgresql_copy(request, address, patience)
    raise NotYetSupported(feature=f"A backfill from a source of kind {address.kind}", instead="PostgreSQL has it.")
