"""The table of a quarantine: its creation before the plan, and whether it can take rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from pyspark.sql.types import DataType, StructType, TimestampNTZType, VariantType

from tidemark.delivery.model.quarantine import QUARANTINE_COLUMNS
from tidemark.errors import QuarantineDoesNotFit, TableNotFound
from tidemark.jobs.own_tables import make_table
from tidemark.jobs.spark_failures import SPARK_FAILURES
from tidemark.lake.delta_log import DeltaLog
from tidemark.sql.identifiers import quoted

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["create_in_catalog", "create_quarantine_table", "missing_features", "require_compatible"]

_COLUMNS = ", ".join(f"{quoted(name)} {kind.upper()}" for name, kind in QUARANTINE_COLUMNS.items())
_PROPERTIES = {"delta.columnMapping.mode": "name"}  # it accepts any column name of a source
FEATURES: Mapping[type[DataType], str] = {TimestampNTZType: "timestampNtz", VariantType: "variantType"}


def create_quarantine_table(session: SparkSession, path: str, options: Mapping[str, str] | None = None) -> DeltaLog:
    """The table at `path`, created with the columns of every quarantine. A stream's first bad rows add its own columns.

    Idempotent: an existing table is kept, also one that another process creates at the same time. Raises
    NotADeltaTable.
    """
    try:
        return DeltaLog.open(path, options)
    except TableNotFound:
        return make_table(session, path, _COLUMNS, properties=_PROPERTIES, options=options)


def create_in_catalog(session: SparkSession, name: str, is_there: Callable[[], bool]) -> None:
    """Creates the same table as `name`, ready for SQL text, in Spark's catalog."""
    if is_there():
        return
    listed = ", ".join(f"'{key}' = '{value}'" for key, value in _PROPERTIES.items())
    try:
        session.sql(f"CREATE TABLE IF NOT EXISTS {name} ({_COLUMNS}) USING delta TBLPROPERTIES ({listed})")
    except SPARK_FAILURES:
        if not is_there():
            raise


def require_compatible(rows: StructType, table: StructType, *, name: str, target: str) -> None:
    """Nothing, or QuarantineDoesNotFit if the table cannot take such rows, even with the columns that it lacks."""
    known = {field.name.lower(): field.dataType for field in table.fields}
    own = {column.lower() for column in QUARANTINE_COLUMNS}
    taken = [field.name for field in rows.fields if field.name.lower() in own]
    if taken:
        problem = f"the stream has columns of the reserved names {', '.join(taken)}"
        raise QuarantineDoesNotFit(quarantine=name, target=target, problem=problem)
    others = [
        f"column {field.name} is {field.dataType.simpleString()}, there {found.simpleString()}"
        for field in rows.fields
        if (found := known.get(field.name.lower())) is not None
        and found.simpleString().lower() != field.dataType.simpleString().lower()
    ]
    if others:
        raise QuarantineDoesNotFit(quarantine=name, target=target, problem="; ".join(others))


def missing_features(rows: StructType, log: DeltaLog) -> tuple[str, ...]:
    """Table features that the columns need, and that Delta does not enable by itself when it adds them."""
    protocol = log.state().protocol
    known = {*protocol.writer_features, *protocol.reader_features}
    text = rows.simpleString()
    needed = [name for kind, name in FEATURES.items() if kind().simpleString() in text]
    return tuple(name for name in needed if name not in known)
