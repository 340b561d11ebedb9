"""CHAR(n) columns of a target. Spark shows their texts padded with spaces to n. Files have them padded or not,
depending on their writer. A MERGE must read them unpadded: with padding, Spark makes a plan that Delta cannot resolve.
"""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import CharType, DataType, StructField

from tidemark.jobs.schemas import CHAR_VARCHAR

__all__ = ["CHAR_AS_STORED", "char_length", "padded"]

CHAR_AS_STORED = {"spark.sql.readSideCharPadding": "false"}


def char_length(field: StructField) -> int | None:
    """The n of a CHAR(n) column; None for every other."""
    declared = field.metadata.get(CHAR_VARCHAR)
    if declared is None:
        return None
    kind = DataType.fromDDL(str(declared))
    return kind.length if isinstance(kind, CharType) else None


def padded(text: Column, length: int) -> Column:
    """The text padded to a CHAR of this length, after its own trailing spaces are removed. A longer text is kept, and
    Delta refuses it.
    """
    short = F.rtrim(text)
    return F.when(F.char_length(short) > length, short).otherwise(F.rpad(short, length, " "))
