"""A sample of a table: how many values its files have, read by PyArrow."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from tidemark.changes.driver.few_states import UnlikeSpark, open_parquet
from tidemark.lake.paths import file_uri
from tidemark.model.table_log import AddFile
from tidemark.search.driver.snapshots import Snapshot
from tidemark.search.model.paths import GRAM, Method, SearchColumn, SearchPath
from tidemark.search.planning.costs import PathSample

__all__ = ["sampled"]

_MOST_TEXTS = 2_000  # of a file, that are cut into grams


def sampled(snapshot: Snapshot, files: Sequence[AddFile], path: SearchPath) -> PathSample:
    """The values of the path in these files. A file that PyArrow does not read as Spark does counts as empty."""
    seen: set[Any] = set()
    entries = rows = 0
    for file in files:
        values = _values(snapshot, file, path.column)
        rows += len(values)
        known = _unique(values, path)
        entries += known[0]
        seen.update(known[1])
    return PathSample(path, len(files), rows, entries, len(seen))


def _unique(values: pa.ChunkedArray, path: SearchPath) -> tuple[int, Iterable[Any]]:
    """The number of entries of a file, and their values."""
    if path.method is not Method.SUBSTRING:
        found = pc.unique(pc.drop_null(values)).to_pylist()
        return len(found), found
    texts = pc.drop_null(values)
    part = texts.slice(0, _MOST_TEXTS).to_pylist()
    grams = {text[at : at + GRAM] for text in part for at in range(len(text) - GRAM + 1)}
    return len(grams) * max(1, len(texts)) // max(1, len(part)), grams


def _values(snapshot: Snapshot, file: AddFile, column: SearchColumn) -> pa.ChunkedArray:
    try:
        with snapshot.log.storage.open(file_uri(snapshot.log.uri, file.path)) as opened:
            return _read(open_parquet(opened), file, column)
    except (UnlikeSpark, pa.ArrowException, OSError):  # OSError: gone, or a footer that is garbage
        return pa.chunked_array([[]])


def _read(parquet: pq.ParquetFile, file: AddFile, column: SearchColumn) -> pa.ChunkedArray:
    """The values of a file. A column, or a field, that the file is older than is NULL in each row."""
    first, rows = column.physical[0], parquet.metadata.num_rows
    if first in file.partition_values:
        return pa.chunked_array([[file.partition_values[first]] * rows], pa.string())
    values = parquet.read(columns=[first])[first] if first in parquet.schema_arrow.names else None
    for part in column.physical[1:]:
        has = values is not None and pa.types.is_struct(values.type) and values.type.get_field_index(part) >= 0
        values = pc.struct_field(values, part) if has else None
    if values is None:
        return pa.chunked_array([pa.nulls(rows)])
    return pc.list_flatten(values) if column.is_array else values
