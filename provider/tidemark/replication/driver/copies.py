"""A table of a source that is ready to be copied, for any kind of database."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tidemark.errors import BackfillInterrupted, TidemarkError
from tidemark.replication.model.catalog import SeenTable
from tidemark.replication.model.replication import LogPosition, TableSchema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["BEHIND", "RowsTooWide", "TableCopy"]

BEHIND = r"(?:: |\) )"
"""A pattern of what follows the name of an exception. Spark Connect writes the name in parentheses."""


class RowsTooWide(BackfillInterrupted):
    """The backfill of {object} was interrupted: {problem}."""


@dataclass(frozen=True)
class TableCopy:
    """With every event at or behind `position` applied, the rows are what the source has. If events cannot repair a
    row, the rows are exactly those of the position.

    `seen`: what the catalog had. `mean`, `widest`: bytes of a row; `widest` by whether the copy is careful. `rows`: the
    target's columns, by session and whether few rows are read at once. Spark reads them with the frame, or one session
    has read them when they are returned. `failure`: the error of ours in what Spark says; None if it is not of the
    source.
    """

    position: LogPosition
    schema: TableSchema
    seen: SeenTable | None
    mean: int
    widest: Callable[[bool], int]
    rows: Callable[[SparkSession, bool], DataFrame]
    failure: Callable[[str], TidemarkError | None]
