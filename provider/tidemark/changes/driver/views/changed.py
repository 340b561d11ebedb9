"""The changed rows of a base table. Few rows are collected in the driver: read once, broadcast and known."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql.types import ArrayType, DataType, MapType, NullType, StringType, StructType, VariantType

from tidemark.changes.driver.views.values import Values, can_cut, index_of
from tidemark.changes.planning.sets.plan import Netting

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

    from tidemark.changes.driver.views.bases import Base
    from tidemark.jobs.workspace import Workspace

__all__ = ["MOST_ROWS_IN_THE_DRIVER", "Changed", "read_changed"]

MOST_ROWS_IN_THE_DRIVER = 50_000


@dataclass(frozen=True)
class Changed:
    """Changed rows: the table's columns, ROW, SIGNED. `known` has them, too, if they are few."""

    frame: DataFrame
    known: pa.Table | None
    rows: int

    def values(self, name: str) -> Values | None:
        """The values of a column in changed rows; None if they are unknown, or if their type cannot skip files."""
        schema = self.frame.schema
        if self.known is None or not can_cut(schema, name):
            return None
        index = index_of(schema, name)
        found = set(self.known.column(index).to_pylist())
        return Values(schema.fields[index].dataType, frozenset(found - {None}), None in found)


def read_changed(spark: SparkSession, base: Base, workspace: Workspace) -> Changed:
    """The changes of a base table.

    Few rows are read now and kept in the driver. For many rows, or for types that cannot be collected, the query is
    kept.
    """
    frame = base.changes(spark, workspace)
    upper = base.plan.rows()
    if not _travels(frame.schema):
        return Changed(frame, None, upper)
    may_cancel = base.plan.netting is not Netting.ONE_SIDE
    if upper > MOST_ROWS_IN_THE_DRIVER and not may_cancel:
        return Changed(frame, None, upper)
    known = frame.limit(MOST_ROWS_IN_THE_DRIVER + 1).toArrow()
    if known.num_rows > MOST_ROWS_IN_THE_DRIVER:
        return Changed(frame, None, upper)
    return Changed(spark.createDataFrame(known, schema=frame.schema), known, known.num_rows)


def _travels(kind: DataType) -> bool:
    """Whether values of a type are unchanged after a way to the driver and back."""
    if isinstance(kind, StructType):
        return all(_travels(field.dataType) for field in kind.fields)
    if isinstance(kind, ArrayType):
        return _travels(kind.elementType)
    if isinstance(kind, MapType):
        return _travels(kind.keyType) and _travels(kind.valueType)
    if isinstance(kind, StringType):
        return bool(kind.collation == "UTF8_BINARY")
    return not isinstance(kind, VariantType | NullType) and "interval" not in kind.simpleString()
