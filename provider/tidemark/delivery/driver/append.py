"""Append: every row of the stream, DELETE images included, becomes a row of the target, as with INSERT … SELECT."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql.types import StructType

from tidemark.delivery.driver.fit import fit_columns
from tidemark.delivery.driver.prepared import PreparedWrite
from tidemark.model.statements import SchemaEvolution, Statement

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["prepare_append"]


def prepare_append(rows: DataFrame, statement: Statement, target: StructType) -> PreparedWrite:
    """A write that appends `rows`, which fit the target's schema.

    It has the stream's own columns, and those METADATA$ columns whose names the target has. With schema_evolution "add"
    the commit of the rows also adds new columns. Raises TargetDoesNotFit.
    """
    evolution = statement.write.schema_evolution
    fitted = fit_columns(
        rows.schema,
        target,
        target_name=statement.target.name,
        evolution=evolution,
        sorted_out=statement.write.quarantine is not None,
    )
    shaped = rows.select(*(column.expression for column in fitted))
    writer = shaped.write.format("delta").mode("append")
    if evolution is SchemaEvolution.ADD:
        writer = writer.option("mergeSchema", "true")
    return PreparedWrite(run=lambda: writer.save(statement.target.path))
