"""Whether a write can be refused already, before it is stored and without its rows: columns, keys, SQL."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql.types import StringType, StructField, StructType

from tidemark.delivery.driver.exactly_once import target_schema
from tidemark.delivery.driver.fit import fit_columns
from tidemark.delivery.driver.merge import key_columns
from tidemark.errors import StatementRefused
from tidemark.lake.delta_log import DeltaLog
from tidemark.model.statements import PlannedWrite, WriteAs
from tidemark.model.streams import ACTION
from tidemark.streams.driver.sql import require_analysed

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tidemark.streams.driver.pinned_streams import PinnedStreams

__all__ = ["check_write"]


def check_write(session: SparkSession, write: PlannedWrite, streams: PinnedStreams, target: DeltaLog) -> None:
    """Refuse what the job would refuse for its columns, keys or SQL, if it ran now; nothing is read but schemas.

    Keys that are not unique, and rows that break a constraint, show only when the rows are read. Raises
    TargetDoesNotFit, MissingMergeKey, StatementRefused.
    """
    if write.write_as is WriteAs.SQL:
        require_analysed(session, write.sql or "", streams, write.tables, target.uri)
        return
    if write.source is None:
        raise StatementRefused(problem=f"{write.write_as.value} needs the stream that it reads", sql=write.target)
    if write.write_as is WriteAs.REFRESH:
        return  # its table was made for the query
    rows, schema = streams.frame(write.source).schema, target_schema(target)
    if write.write_as is WriteAs.MERGE and ACTION not in rows.names:
        rows = StructType([*rows.fields, StructField(ACTION, StringType())])
    fitted = fit_columns(
        rows,
        schema,
        target_name=write.target,
        evolution=write.schema_evolution,
        sorted_out=write.quarantine is not None,
    )
    if write.write_as is WriteAs.MERGE:
        key_columns(write.keys, fitted, schema, write.target)
