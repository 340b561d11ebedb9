"""A sample of a table: how many values its files have, read by PyArrow."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

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
    first = column.physical[0]
    with snapshot.log.storage.open(file_uri(snapshot.log.uri, file.path)) as opened:
        try:
            parquet = open_parquet(opened)
        except UnlikeSpark:
            return pa.chunked_array([[]])
        if first not in parquet.schema_arrow.names:
            return pa.chunked_array([[file.partition_values.get(first)] * parquet.metadata.num_rows], pa.string())
        values = parquet.read(columns=[first])[first]
    for part in column.physical[1:]:
        values = pc.struct_field(values, part)
    return pc.list_flatten(values) if column.is_array else values
