"""Rows that one session reads, in files of the lake on their way into Spark."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from tidemark.replication.model.replication import Column, TypeKind
from tidemark.replication.sources.mysql.reading import is_native

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from tidemark.jobs.workspace import Workspace

__all__ = ["spooled"]

_FLOATING = frozenset({TypeKind.FLOAT, TypeKind.DOUBLE})
_SPARK_TYPES = {pa.string(): "string", pa.int64(): "bigint", pa.float64(): "double", pa.binary(): "binary"}


def spooled(
    session: SparkSession,
    workspace: Workspace,
    columns: Sequence[Column],
    chunks: Iterable[Sequence[tuple[Any, ...]]],
    stop_if_due: Callable[[], None],
) -> DataFrame:
    """The columns `c0` and on, as `as_read` has them, out of a file for each chunk. Raises StorageRefused,
    StorageUnreachable, and what `chunks` and `stop_if_due` do.
    """
    schema = pa.schema([(f"c{number}", _type_of(column)) for number, column in enumerate(columns)])
    directory, files = workspace.new_directory(), list[str]()
    for rows in chunks:
        stop_if_due()
        values = [pa.array(each, kind) for each, kind in zip(zip(*rows, strict=True), schema.types, strict=True)]
        sink = pa.BufferOutputStream()
        pq.write_table(pa.table(values, schema=schema), sink, compression="lz4", write_statistics=False)
        files.append(f"{directory}/{len(files):06d}.parquet")
        workspace.write(files[-1], sink.getvalue().to_pybytes())
    ddl = ", ".join(f"`{one.name}` {_SPARK_TYPES[one.type]}" for one in schema)
    return session.read.schema(ddl).parquet(*files) if files else session.createDataFrame([], ddl)


def _type_of(column: Column) -> pa.DataType:
    if not is_native(column):
        return pa.string()
    if column.type.kind is TypeKind.BYTES:
        return pa.binary()
    return pa.float64() if column.type.kind in _FLOATING else pa.int64()
