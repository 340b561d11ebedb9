"""Few rows of a query, kept in the driver: computed once, and planned as a local relation."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql.types import ArrayType, DataType, MapType, NullType, StringType, StructType, VariantType

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

__all__ = ["MOST_ROWS_IN_THE_DRIVER", "in_driver"]

MOST_ROWS_IN_THE_DRIVER = 50_000


def in_driver(frame: DataFrame) -> pa.Table | None:
    """The rows of `frame`; None if they are many, or if their types cannot be collected."""
    if not _travels(frame.schema):
        return None
    found = frame.limit(MOST_ROWS_IN_THE_DRIVER + 1).toArrow()
    return None if found.num_rows > MOST_ROWS_IN_THE_DRIVER else found


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
