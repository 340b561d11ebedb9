"""Files that Spark may read as Parquet, and those that only Delta reads."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.unit.search.tables import METADATA, file_of
from tidemark.model.table_log import DeletionVector
from tidemark.search.planning.plain_files import plain_paths

PLAIN = replace(METADATA, partition_columns=(), schema_json='{"type": "struct", "fields": []}')
FILE = file_of("ab/part-1.parquet", {}, {})
VECTOR = DeletionVector("i", "x", 1, 1)


def test_plain_files_are_read_by_their_paths() -> None:
    assert plain_paths(PLAIN, "file:///lake/a b", [FILE]) == ["file:///lake/a b/ab/part-1.parquet"]
    spaced = replace(FILE, path="with%20blank.parquet")
    assert plain_paths(PLAIN, "s3://lake/t", [spaced]) == ["s3://lake/t/with blank.parquet"]


@pytest.mark.parametrize(
    "path", ["file:///other/x.parquet", "/x.parquet", "p=1/x.parquet", "x[1].parquet", "_x.parquet", "a%2520b.parquet"]
)
def test_other_paths_are_left_to_delta(path: str) -> None:
    assert plain_paths(PLAIN, "file:///lake/t", [FILE, replace(FILE, path=path)]) is None


def test_tables_that_only_delta_reads_are_left_to_it() -> None:
    assert plain_paths(PLAIN, "file:///lake/t", [replace(FILE, deletion_vector=VECTOR)]) is None
    assert plain_paths(METADATA, "file:///lake/t", [FILE]) is None
    assert plain_paths(replace(METADATA, partition_columns=()), "file:///lake/t", [FILE]) is None  # it has CHAR columns
    assert plain_paths(replace(PLAIN, configuration={"delta.columnMapping.mode": "name"}), "file:///l", [FILE]) is None
    assert plain_paths(PLAIN, "file:///lake/t", []) is None
    assert plain_paths(PLAIN, "file:///lake/t", [FILE] * 33) is None
