"""What a way to read a window answers, in a form that two ways, and two Sparks, can compare."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from tests.benchmarks.shapes import COLUMNS

__all__ = ["Answer", "answer", "pairs"]

Answer = tuple[tuple[object, ...], ...]


def answer(rows: DataFrame) -> Answer:
    """Counts and a hash of all columns, so that no way profits from columns nobody asks for."""
    found = rows.groupBy("action", "is_update").agg(F.count("*"), F.bit_xor(F.xxhash64(*COLUMNS)))
    return tuple(sorted(tuple(row) for row in found.collect()))


def pairs(ends: DataFrame) -> DataFrame:
    """From `old` and `new` (a struct of the columns, or null) to the rows of a change set."""

    def change(action: str, is_update: bool, image: str) -> Column:
        return F.struct(F.lit(action).alias("action"), F.lit(is_update).alias("is_update"), F.col(image).alias("image"))

    changes = (
        F.when(F.col("old").isNull() & F.col("new").isNull(), F.array().cast(_kind(ends)))
        .when(F.col("old").isNull(), F.array(change("INSERT", False, "new")))
        .when(F.col("new").isNull(), F.array(change("DELETE", False, "old")))
        .when(
            ~F.col("old").eqNullSafe(F.col("new")),
            F.array(change("DELETE", True, "old"), change("INSERT", True, "new")),
        )
    )
    return ends.select(F.explode(changes).alias("c")).select("c.action", "c.is_update", "c.image.*")


def _kind(ends: DataFrame) -> str:
    return f"array<struct<action: string, is_update: boolean, image: {ends.schema['old'].dataType.simpleString()}>>"
