"""Data files that are garbage end in an error with their name: the reader's, or that of Spark, which gets few rows."""

from __future__ import annotations

import json
import struct
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.unit.lake.delta_directories import PROTOCOL, add, commit
from tests.unit.pipes.queues import Queue
from tidemark.changes.driver.few_rows import few_sides
from tidemark.changes.planning.sets.plan import Candidate, ChangePlan, Netting, Origin, PlannedFile
from tidemark.errors import CorruptLog
from tidemark.lake.delta_log import DeltaLog
from tidemark.model.streams import StreamMode
from tidemark.pipes.worker.queue_names import read_queue
from tidemark.search.driver.index import SearchIndex
from tidemark.search.driver.job_keep import _ROWS_OF_A_GUESS, _rows_in
from tidemark.search.driver.rows import matching_rows
from tidemark.search.driver.snapshots import Snapshot, snapshot_at
from tidemark.search.model.paths import COVERAGE, SearchColumn, ValueKind
from tidemark.search.model.terms import IsIn

GARBAGE = {
    "a footer that is no thrift": b"PAR1" + b"\xff" * 40 + struct.pack("<I", 40) + b"PAR1",  # an OSError of PyArrow
    "no magic number": b"\xff" * 40,
    "nothing": b"",
}
APP = "tidemark/search/1"
NO_SPARK = cast(Any, None)


@pytest.mark.parametrize("content", GARBAGE.values(), ids=GARBAGE)
def test_few_changed_rows_are_left_to_spark(tmp_path: Path, content: bytes) -> None:
    snapshot = table(tmp_path, content, k="long")
    place = f"{snapshot.log.uri}/part"
    file = PlannedFile(Origin.ADDED, place, len(content), 1, (), {}, None, None, 0, 0)
    kinds = {"mode": StreamMode.STANDARD, "candidate": Candidate.STATE, "netting": Netting.ONE_SIDE}
    plan = ChangePlan(
        snapshot.log.uri, "id", 0, 1, **kinds, metadata=snapshot.state.metadata, files=(file,), in_driver=True
    )
    assert few_sides(NO_SPARK, snapshot.log, plan) is None


@pytest.mark.parametrize("content", GARBAGE.values(), ids=GARBAGE)
def test_few_rows_of_a_search_are_left_to_spark(tmp_path: Path, content: bytes) -> None:
    snapshot = table(tmp_path, content, k="long")
    term = IsIn(SearchColumn(("k",), ("k",), ValueKind.WHOLE, "long"), (1,))
    files = list(snapshot.files.values())
    assert matching_rows(snapshot, files, term, ["k"]) is None
    assert matching_rows(snapshot, files * 2, term, ["k"]) is None


@pytest.mark.parametrize("content", GARBAGE.values(), ids=GARBAGE)
def test_an_index_names_the_file(tmp_path: Path, content: bytes) -> None:
    with pytest.raises(CorruptLog, match="/part cannot be read"):
        SearchIndex.of(search_table(tmp_path, content, path=str(COVERAGE)), APP, ())
    index = SearchIndex.of(search_table(tmp_path, content, path="5"), APP, ())
    with pytest.raises(CorruptLog, match="/part cannot be read"):
        index.look_up([(5, 17)])


def test_an_index_names_a_file_of_another_form(tmp_path: Path) -> None:
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table({"h": ["a"], "x": [1]}), sink)
    content = sink.getvalue().to_pybytes()
    with pytest.raises(CorruptLog, match="/part cannot be read"):
        SearchIndex.of(search_table(tmp_path, content, path=str(COVERAGE)), APP, ())
    index = SearchIndex.of(search_table(tmp_path, content, path="5"), APP, ())
    with pytest.raises(CorruptLog, match="/part cannot be read"):
        index.look_up([(5, 17)])


@pytest.mark.parametrize("path", ["five", "²", "-1", "9" * 5_000])
def test_an_index_names_a_file_of_no_path(tmp_path: Path, path: str) -> None:
    snapshot = search_table(tmp_path, b"", path=path)
    with pytest.raises(CorruptLog, match="part cannot be read"):
        SearchIndex.of(snapshot, APP, ())


ODD_BOUNDS: dict[str, Any] = {"text": "x", "nothing": None, "an object": {}, "no number": float("nan"), "yes": True}


@pytest.mark.parametrize("bound", ODD_BOUNDS.values(), ids=ODD_BOUNDS)
def test_bounds_of_another_form_leave_no_file_out(tmp_path: Path, bound: Any) -> None:
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table({"h": [17], "file": [3], "name": ["f"]}), sink)
    stats = {"numRecords": 1, "minValues": {"h": bound}, "maxValues": {"h": bound}}
    index = SearchIndex.of(
        search_table(tmp_path, sink.getvalue().to_pybytes(), path="5", stats=json.dumps(stats)), APP, ()
    )
    assert dict(index.look_up([(5, 17)]).found) == {(5, 17): frozenset()}  # a file of a number without a name


@pytest.mark.parametrize("said", ODD_BOUNDS.values(), ids=ODD_BOUNDS)
def test_a_file_of_an_odd_number_of_rows_has_a_usual_one(tmp_path: Path, said: Any) -> None:
    snapshot = table(tmp_path, b"", k="long", stats=json.dumps({"numRecords": said}))
    assert _rows_in(snapshot, "part") == _ROWS_OF_A_GUESS


@pytest.mark.parametrize("content", GARBAGE.values(), ids=GARBAGE)
def test_a_queue_names_the_file(tmp_path: Path, content: bytes) -> None:
    queue = Queue(tmp_path / "queue")
    queue.put("queued", "a.csv")
    path, _ = queue.added[0]
    (queue.place / path).write_bytes(content)
    with pytest.raises(CorruptLog, match=r"part-1\.parquet cannot be read"):
        read_queue(DeltaLog.open(str(queue.place)), datetime.now(UTC), str(tmp_path))


def search_table(root: Path, content: bytes, *, path: str, **more: Any) -> Snapshot:
    used = {"txn": {"appId": APP, "version": 1}}
    return table(root / f"path-{path[:9]}", content, used, values={"path": path}, path="integer", h="long", **more)


def table(
    root: Path, content: bytes, *actions: dict[str, Any], values: dict[str, str] | None = None, **columns: str
) -> Snapshot:
    """A table with one file of this content."""
    stats = {"stats": columns.pop("stats")} if "stats" in columns else {}
    fields = [{"name": name, "type": kind, "nullable": True, "metadata": {}} for name, kind in columns.items()]
    form = {"id": "id", "schemaString": json.dumps({"type": "struct", "fields": fields}), "configuration": {}}
    described = {**form, "partitionColumns": list(values or ()), "format": {"provider": "parquet"}}
    file = add("part", **{"partitionValues": values or {}, **stats})
    commit(root, 0, PROTOCOL, {"metaData": described}, file, *actions)
    (root / "part").write_bytes(content)
    log = DeltaLog.open(str(root))
    return snapshot_at(log, 0)
