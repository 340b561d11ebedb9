"""Append: every row of the stream, DELETE images included, becomes a row of the target, as INSERT … SELECT would do."""

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
    """Check that `rows` fits the target's schema and make ready to append it.

    Written are the stream's own columns; its METADATA$ columns too where the target has columns of their names. With
    schema_evolution "add" new columns come with the rows in one commit. Raises TargetDoesNotFit.
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
