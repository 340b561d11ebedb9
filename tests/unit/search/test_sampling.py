"""The sample of an estimate: files older than a column of the table, and files that PyArrow does not read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.unit.lake.delta_directories import PROTOCOL, add, commit
from tests.unit.test_garbage_files import GARBAGE
from tidemark.lake.delta_log import DeltaLog
from tidemark.search.driver.sampling import sampled
from tidemark.search.driver.snapshots import snapshot_at
from tidemark.search.model.paths import Method, SearchColumn, SearchPath, ValueKind
from tidemark.search.planning.costs import PathSample

NEW = pa.table(
    {
        "id": [1, 2, 3],
        "tags": [["a", "b"], None, ["b"]],
        "s": [{"k": 1, "f": "x"}, {"k": 2, "f": "y"}, None],
        "t": [{"u": {"v": 5}}] * 3,
    }
)
OLD = pa.table({"id": [4, 5], "s": [{"k": 1}, None], "t": [{"w": 1}, None]})


def sample(root: Path, path: SearchPath, *files: pa.Table | bytes) -> PathSample:
    """The sample of a path in these files."""
    form: dict[str, Any] = {"id": "id", "schemaString": json.dumps({"type": "struct", "fields": []})}
    form |= {"configuration": {}, "partitionColumns": [], "format": {"provider": "parquet"}}
    commit(root, 0, PROTOCOL, {"metaData": form}, *(add(str(place)) for place in range(len(files))))
    for place, content in enumerate(files):
        if isinstance(content, bytes):
            (root / str(place)).write_bytes(content)
        else:
            pq.write_table(content, root / str(place))
    snapshot = snapshot_at(DeltaLog.open(str(root)), 0)
    return sampled(snapshot, list(snapshot.files.values()), path)


def equality(*parts: str, is_array: bool = False) -> SearchPath:
    column = SearchColumn(parts, parts, ValueKind.TEXT, "string", is_array)
    return SearchPath(1, Method.EQUALITY, column)


@pytest.mark.parametrize(
    ("path", "entries"),
    [
        (equality("tags", is_array=True), 2),
        (equality("s", "f"), 2),
        (equality("t", "u", "v"), 1),
        (equality("later"), 0),
        (equality("later", "f", is_array=True), 0),
        (SearchPath(1, Method.SUBSTRING, equality("later").column), 0),
    ],
)
def test_a_file_older_than_a_column_has_nulls(tmp_path: Path, path: SearchPath, entries: int) -> None:
    found = sample(tmp_path, path, NEW, OLD)
    assert (found.files, found.entries, found.values) == (2, entries, entries)


@pytest.mark.parametrize("content", GARBAGE.values(), ids=GARBAGE)
def test_a_file_that_is_no_parquet_counts_as_empty(tmp_path: Path, content: bytes) -> None:
    found = sample(tmp_path, equality("id"), content, OLD)
    assert (found.files, found.rows, found.entries) == (2, 2, 2)
