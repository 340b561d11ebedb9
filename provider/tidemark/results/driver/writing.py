"""The answer of a query as Parquet files, written by Spark, so that no process holds it whole."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tidemark.jobs.settings import under
from tidemark.lake.storage import Storage, StoredFile
from tidemark.results.model.answers import TIME_ZONE, WrittenAnswer
from tidemark.results.model.jobs import QueryReport, QueryRequest
from tidemark.results.planning.settings import affecting

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.types import DataType, StructType

__all__ = ["write_answer"]

_STORING = {
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.sql.parquet.datetimeRebaseModeInWrite": "CORRECTED",
    "spark.sql.parquet.writeLegacyFormat": "false",
}
"""Files have each value as it is, also times before 1900."""

_ONE_FILE = "answer.parquet"
_MOST_JOINED = 64 << 20  # bytes that become one file; more stay as Spark has written them
_STORED = frozenset(
    "boolean tinyint smallint int bigint float double string binary date timestamp timestamp_ntz".split()  # noqa: SIM905
)


def write_answer(
    session: SparkSession,
    request: QueryRequest,
    options: Mapping[str, str],
    *,
    known: Mapping[str, str] | None = None,
) -> QueryReport:
    """Run the query, and write its rows below the directory, in their order. `known`: the settings that affect it, if
    the caller has asked the session.

    Nothing refers to the files yet, so a killed run leaves an unused directory. Raises AnalysisException.
    """
    from pyspark.sql.types import StructType

    with under(session, request.settings):
        settings = affecting(session.conf.getAll) if known is None else dict(known)
        frame = session.sql(request.text)
        titles = frame.columns if request.titled is None else session.sql(request.titled).columns
        schema = frame.schema
        unstored = _unstored(schema)
        if unstored is not None:
            return QueryReport(None, settings, unstored)
        with under(session, _STORING):
            frame.toDF(*_numbered(len(titles))).write.parquet(request.directory)
    named = StructType()
    for title, field in zip(titles, schema.fields, strict=True):
        named.add(title, field.dataType, field.nullable, field.metadata)
    return QueryReport(_written(request.directory, named.json(), settings.get(TIME_ZONE, "UTC"), options), settings)


def _numbered(count: int) -> list[str]:
    return [f"c{number}" for number in range(count)]


def _written(directory: str, schema_json: str, time_zone: str, options: Mapping[str, str]) -> WrittenAnswer:
    import pyarrow.parquet as pq

    storage = Storage(directory, options)
    parts = sorted(file for file in storage.files_below() if file.name.startswith("part-"))
    size = sum(part.size for part in parts)
    if len(parts) > 1 and size <= _MOST_JOINED:
        parts = [_joined(storage, parts)]
    rows = 0
    for part in parts:
        with storage.open(part.name) as opened:
            rows += pq.read_metadata(opened).num_rows
    names = tuple(part.name for part in parts)
    return WrittenAnswer(directory, names, rows, sum(part.size for part in parts), schema_json, time_zone)


def _joined(storage: Storage, parts: Sequence[StoredFile]) -> StoredFile:
    """One file with the rows of all, in the order of their names, since a hit reads one file faster than many."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    tables = [pq.read_table(pa.BufferReader(storage.read_bytes(part.name))) for part in parts]
    content = io.BytesIO()
    pq.write_table(pa.concat_tables(tables), content)
    storage.write(_ONE_FILE, content.getvalue())
    return parts[0]._replace(name=_ONE_FILE, size=len(content.getvalue()))


def _unstored(schema: StructType) -> str | None:
    """A column with its type, if no file has it exactly: intervals, variants and others."""
    for field in schema.fields:
        if not _is_stored(field.dataType):
            return f"{field.name} {field.dataType.simpleString()}"
    return None


def _is_stored(kind: DataType | Any) -> bool:
    from pyspark.sql.types import ArrayType, CharType, DecimalType, MapType, StringType, StructType, VarcharType

    if isinstance(kind, ArrayType):
        return _is_stored(kind.elementType)
    if isinstance(kind, MapType):
        return _is_stored(kind.keyType) and _is_stored(kind.valueType)
    if isinstance(kind, StructType):
        return len(kind.fields) > 0 and all(_is_stored(field.dataType) for field in kind.fields)
    return isinstance(kind, DecimalType | StringType | CharType | VarcharType) or kind.simpleString() in _STORED
