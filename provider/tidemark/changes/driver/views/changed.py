"""The changed rows of a base table. Few rows are kept in the driver: read once, broadcast and known."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tidemark.changes.driver.views.driver_rows import MOST_ROWS_IN_THE_DRIVER, in_driver
from tidemark.changes.driver.views.values import Values, can_cut, index_of
from tidemark.changes.planning.sets.plan import Netting

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

    from tidemark.changes.driver.views.bases import Base
    from tidemark.jobs.workspace import Workspace

__all__ = ["Changed", "read_changed"]


@dataclass(frozen=True)
class Changed:
    """Changed rows: the table's columns, ROW, SIGNED. `known` has them, too, if they are few."""

    frame: DataFrame
    known: pa.Table | None
    rows: int

    def values(self, name: str) -> Values | None:
        """The values of a column in changed rows; None if they are unknown, or if their type cannot skip files.

        They are unknown, too, if Python cannot hold one: a date after the year 9999, a text that is not UTF-8.
        """
        schema = self.frame.schema
        if self.known is None or not can_cut(schema, name):
            return None
        index = index_of(schema, name)
        try:
            found = set(self.known.column(index).to_pylist())
        except (OverflowError, ValueError):  # UnicodeDecodeError is a ValueError
            return None
        return Values(schema.fields[index].dataType, frozenset(found - {None}), None in found)


def read_changed(spark: SparkSession, base: Base, workspace: Workspace) -> Changed:
    """The changes of a base table.

    Few rows are read now and kept in the driver. For many rows, or for types that cannot be collected, the query is
    kept.
    """
    frame = base.changes(spark, workspace)
    upper = base.plan.rows()
    may_cancel = base.plan.netting is not Netting.ONE_SIDE
    if upper > MOST_ROWS_IN_THE_DRIVER and not may_cancel:
        return Changed(frame, None, upper)
    known = in_driver(frame)
    if known is None:
        return Changed(frame, None, upper)
    return Changed(spark.createDataFrame(known, schema=frame.schema), known, known.num_rows)
