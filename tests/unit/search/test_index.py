"""A search table as readers take it: rows that two stores may have written."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from tests.unit.lake.delta_directories import PROTOCOL, add, commit
from tidemark.lake.delta_log import DeltaLog
from tidemark.search.driver.index import SearchIndex
from tidemark.search.driver.snapshots import snapshot_at
from tidemark.search.model.paths import COVERAGE, EVERYWHERE, Method, SearchColumn, SearchPath, ValueKind

APP = "tidemark.search.1"
BY_ID = SearchPath(1, Method.EQUALITY, SearchColumn(("id",), ("id",), ValueKind.TEXT, "string"))
BY_N = SearchPath(1, Method.EQUALITY, SearchColumn(("n",), ("n",), ValueKind.WHOLE, "long"))


def index(root: Path, path: SearchPath, coverage: list[tuple[int, str]], hashes: list[tuple[int, int]]) -> SearchIndex:
    """The index for a path. `coverage`: number and name, of the path 1. `hashes`: hash and number."""
    columns = {"path": "integer", "h": "long", "file": "integer", "name": "string"}
    fields = [{"name": name, "type": kind, "nullable": True, "metadata": {}} for name, kind in columns.items()]
    form: dict[str, Any] = {"id": "id", "schemaString": json.dumps({"type": "struct", "fields": fields})}
    form |= {"configuration": {}, "partitionColumns": ["path"], "format": {"provider": "parquet"}}
    rows: dict[int, list[tuple[int, int, str | None]]] = {
        COVERAGE: [(1, number, name) for number, name in coverage],
        1: [(hashed, number, None) for hashed, number in hashes],
    }
    files = []
    for place, found in ((place, found) for place, found in rows.items() if found):
        table = pa.table(dict(zip(("h", "file", "name"), map(list, zip(*found, strict=True)), strict=True)))
        pq.write_table(table, root / str(place))
        files.append(add(str(place), partitionValues={"path": str(place)}))
    commit(root, 0, PROTOCOL, {"metaData": form}, {"txn": {"appId": APP, "version": 1}}, *files)
    return SearchIndex.of(snapshot_at(DeltaLog.open(str(root)), 0), APP, (path,))


def test_rows_of_another_path_of_the_same_id_cover_nothing(tmp_path: Path) -> None:
    coverage = [(0, "a"), (1, "b"), (EVERYWHERE, BY_ID.meaning)]
    one, other = tmp_path / "one", tmp_path / "other"
    for root, path, covered in ((one, BY_ID, {1: frozenset("ab")}), (other, BY_N, {})):
        root.mkdir()
        found = index(root, path, coverage, [(17, 1)])
        assert dict(found.covered) == covered
        assert found.stored_ids == frozenset({1})
        assert found.look_up([(1, 17)]).covered == {1: covered.get(1, frozenset())}


def test_an_index_without_rows_has_no_ids(tmp_path: Path) -> None:
    found = index(tmp_path, BY_ID, [], [])
    assert (found.covered, found.stored_ids, found.next_number) == ({}, frozenset(), 0)


def test_rows_of_two_meanings_cover_nothing(tmp_path: Path) -> None:
    coverage = [(0, "a"), (EVERYWHERE, BY_ID.meaning), (EVERYWHERE, BY_N.meaning)]
    assert index(tmp_path, BY_ID, coverage, [(17, 0)]).covered == {}


def test_a_number_that_two_stores_gave_at_once_means_both_files(tmp_path: Path) -> None:
    found = index(tmp_path, BY_ID, [(0, "a"), (0, "b"), (EVERYWHERE, BY_ID.meaning)], [(17, 0)])
    assert found.look_up([(1, 17)]).found == {(1, 17): frozenset("ab")}
