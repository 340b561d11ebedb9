"""What the log says is read from the range's start on, and what it lacks is named."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.unit.lake.delta_directories import PROTOCOL, add, born, commit, metadata, remove, row_id_mark
from tidemark.errors import CorruptLog, LogIncomplete, NotADeltaTable, TableNotFound, VersionNotFound
from tidemark.lake.delta_log import DeltaLog
from tidemark.model.table_log import ChangeFile

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def test_a_missing_directory_is_table_not_found(tmp_path: Path) -> None:
    with pytest.raises(TableNotFound) as error:
        DeltaLog.open(str(tmp_path / "absent"))
    assert error.value.facts["path"].endswith("/absent")


def test_a_directory_of_other_files_is_not_a_delta_table(tmp_path: Path) -> None:
    (tmp_path / "part-0.parquet").write_bytes(b"PAR1")
    with pytest.raises(NotADeltaTable):
        DeltaLog.open(str(tmp_path))


def test_a_table_that_was_begun_and_has_no_commit_is_none_and_beside_other_files_not_a_delta_table(
    tmp_path: Path,
) -> None:
    (tmp_path / "_delta_log_$folder$").write_bytes(b"")  # what Hadoop leaves for a directory in a store that has none
    with pytest.raises(TableNotFound):
        DeltaLog.open(str(tmp_path))
    (tmp_path / "_delta_log" / "_staged_commits").mkdir(parents=True)
    (tmp_path / "_delta_log" / ".00000000000000000000.json.1b2.tmp").write_text("{}")
    with pytest.raises(TableNotFound):
        DeltaLog.open(str(tmp_path))
    (tmp_path / "part-0.parquet").write_bytes(b"PAR1")
    with pytest.raises(NotADeltaTable, match="holds no commit"):
        DeltaLog.open(str(tmp_path))


def test_a_creation_that_died_after_its_file_without_rows_is_no_table_and_any_row_makes_it_a_directory_of_others(
    tmp_path: Path,
) -> None:
    (tmp_path / "_delta_log" / "_staged_commits").mkdir(parents=True)
    file = tmp_path / "part-00000-8d.c000.snappy.parquet"
    for none in (b"", None):  # the file as it is opened, and as it is closed
        if none is None:
            pq.write_table(pa.table({"id": pa.array([], pa.int64())}), file)
            (tmp_path / f".{file.name}.crc").write_bytes(b"crc")
        else:
            file.write_bytes(none)
        with pytest.raises(TableNotFound):
            DeltaLog.open(str(tmp_path))
    pq.write_table(pa.table({"id": [1]}), file)
    with pytest.raises(NotADeltaTable, match="holds no commit"):
        DeltaLog.open(str(tmp_path))


def test_the_state_is_that_of_its_version(tmp_path: Path) -> None:
    log = born(tmp_path, row_id_mark(9))
    commit(tmp_path, 1, metadata("id-1", **{"delta.enableRowTracking": "true"}), row_id_mark(19))
    commit(tmp_path, 2, metadata("id-2"))
    assert [log.state(v).table_id for v in (0, 1, 2)] == ["id-1", "id-1", "id-2"]
    assert [log.state(v).row_id_high_water_mark for v in (0, 1, 2)] == [9, 19, 19]
    assert [log.state(v).row_tracking for v in (0, 1, 2)] == [False, True, False]
    assert log.head() == 2


def test_a_state_starts_at_the_newest_checkpoint_before_it(tmp_path: Path) -> None:
    log = born(tmp_path)
    (tmp_path / "_delta_log" / f"{0:020d}.json").unlink()
    v2 = [PROTOCOL, metadata("id-7"), row_id_mark(5), {"sidecar": {"path": "x.parquet"}}, add("a")]
    name = f"{3:020d}.checkpoint.80a083e8-7026-4e79-81be-64bd76c43a11.json"
    (tmp_path / "_delta_log" / name).write_text("\n".join(json.dumps(action) for action in v2))
    commit(tmp_path, 4, row_id_mark(8), add("b"))
    assert (log.state().table_id, log.state().row_id_high_water_mark, log.head()) == ("id-7", 8, 4)
    assert log.earliest() == 4


def test_a_multi_part_checkpoint_counts_only_when_whole(tmp_path: Path) -> None:
    log = born(tmp_path)
    commit(tmp_path, 1, metadata("id-1"))
    schema = {
        "id": "id-9",
        "schemaString": '{"type": "struct", "fields": []}',
        "partitionColumns": [],
        "configuration": [("k", "v")],
    }
    rows = pa.Table.from_pylist(
        [
            {"metaData": {**schema, "format": {"provider": "parquet"}}, "protocol": None},
            {"protocol": PROTOCOL["protocol"]},
        ],
        schema=pa.schema(
            [
                (
                    "metaData",
                    pa.struct(
                        [
                            ("id", pa.string()),
                            ("schemaString", pa.string()),
                            ("partitionColumns", pa.list_(pa.string())),
                            ("configuration", pa.map_(pa.string(), pa.string())),
                            ("format", pa.struct([("provider", pa.string())])),
                        ]
                    ),
                ),
                (
                    "protocol",
                    pa.struct(
                        [
                            ("minReaderVersion", pa.int32()),
                            ("minWriterVersion", pa.int32()),
                            ("readerFeatures", pa.list_(pa.string())),
                            ("writerFeatures", pa.list_(pa.string())),
                        ]
                    ),
                ),
            ]
        ),
    )
    parts = [tmp_path / "_delta_log" / f"{1:020d}.checkpoint.{n:010d}.{2:010d}.parquet" for n in (1, 2)]
    pq.write_table(rows.slice(0, 1), parts[0])
    assert log.state().table_id == "id-1"
    pq.write_table(rows.slice(1, 1), parts[1])
    assert (log.state().table_id, log.state().metadata.configuration) == ("id-9", {"k": "v"})


def test_a_range_is_read_from_its_start_on(tmp_path: Path) -> None:
    log = born(tmp_path)
    for version in range(1, 6):
        commit(tmp_path, version, add(f"f{version}"))
    for version in (0, 1, 2):
        (tmp_path / "_delta_log" / f"{version:020d}.json").unlink()
    assert [[file.path for file in found.adds] for found in log.commits(2, 5)] == [["f3"], ["f4"], ["f5"]]
    assert log.earliest() == 3


def test_a_gap_is_named_with_the_missing_version(tmp_path: Path) -> None:
    log = born(tmp_path)
    commit(tmp_path, 1, add("a"))
    commit(tmp_path, 3, add("c"))
    with pytest.raises(LogIncomplete) as error:
        list(log.commits(0, 3))
    assert (error.value.facts["version"], error.value.facts["start"]) == (2, 0)
    with pytest.raises(VersionNotFound):
        list(log.commits(0, 4))
    with pytest.raises(VersionNotFound):
        log.state(9)


@pytest.mark.parametrize(
    "text",
    [
        '{"add":{"path":"a"',
        '{"add":{"size":1,"dataChange":true}}',
        "not json",
        '{"add":7}',
        '{"add":{"path":"a","size":1}}',
    ],
)
def test_a_garbled_commit_is_a_corrupt_log(tmp_path: Path, text: str) -> None:
    log = born(tmp_path)
    commit(tmp_path, 1).write_text(text)
    with pytest.raises(CorruptLog) as error:
        list(log.commits(0, 1))
    assert "0001.json" in error.value.facts["file"]


def test_a_garbled_checkpoint_is_a_corrupt_log(tmp_path: Path) -> None:
    log = born(tmp_path)
    (tmp_path / "_delta_log" / f"{0:020d}.checkpoint.parquet").write_bytes(b"PAR1 and nothing else PAR1")
    with pytest.raises(CorruptLog):
        log.state()


def test_file_times_never_go_backwards(tmp_path: Path) -> None:
    log = born(tmp_path)
    for version, seconds in ((0, 0), (1, 60), (2, 30), (3, 90)):
        actions = (PROTOCOL, metadata()) if version == 0 else ()
        commit(tmp_path, version, *actions, at=NOON + timedelta(seconds=seconds))
    assert log.timestamp(2) == NOON + timedelta(seconds=60, milliseconds=1)
    assert [log.version_at(NOON + timedelta(seconds=s)) for s in (0, 59, 60, 61, 1000)] == [0, 0, 1, 2, 3]
    with pytest.raises(VersionNotFound):
        log.version_at(NOON - timedelta(seconds=1))


def test_an_in_commit_timestamp_wins(tmp_path: Path) -> None:
    log = born(tmp_path)
    exact = NOON + timedelta(days=3)
    info = {"commitInfo": {"inCommitTimestamp": int(exact.timestamp() * 1000), "operation": "WRITE"}}
    commit(tmp_path, 1, info, at=NOON)
    assert log.timestamp(1) == exact
    assert [found.timestamp for found in log.commits(0, 1)] == [exact]


def test_what_a_commit_says_of_itself_is_kept(tmp_path: Path) -> None:
    log = born(tmp_path)
    info = {"operation": "MERGE", "userMetadata": "mark", "operationMetrics": {"numOutputRows": "3"}}
    changes = {"path": "_change_data/c", "partitionValues": {"p": "1"}, "size": 7, "dataChange": False}
    commit(tmp_path, 1, {"commitInfo": info}, {"txn": {"appId": "a", "version": 4}}, {"cdc": changes}, remove("x"))
    (found,) = log.commits(0, 1)
    assert found.change_files == (ChangeFile("_change_data/c", 7, {"p": "1"}),)
    assert (found.operation, found.user_metadata, found.transactions) == ("MERGE", "mark", {"a": 4})
    assert found.operation_metrics == {"numOutputRows": "3"}
    assert [file.path for file in found.removes] == ["x"]


def test_only_changed_rows_count_as_changes(tmp_path: Path) -> None:
    log = born(tmp_path)
    commit(tmp_path, 1, metadata(x="y"))
    commit(tmp_path, 2, add("a", data_change=False), remove("b", data_change=False))
    assert not log.has_changes(0, 2)
    commit(tmp_path, 3, remove("a"))
    assert log.has_changes(0, 3)
    assert not log.has_changes(3, 3)


def test_time_travel_goes_by_in_commit_timestamps_from_where_they_begin(tmp_path: Path) -> None:
    log = born(tmp_path)
    commit(tmp_path, 0, PROTOCOL, metadata(), at=NOON)
    settings = {"delta.enableInCommitTimestamps": "true", "delta.inCommitTimestampEnablementVersion": "2"}
    commit(tmp_path, 1, at=NOON + timedelta(minutes=1))
    for version, minutes in ((2, 10), (3, 20)):
        info = {"inCommitTimestamp": int((NOON + timedelta(minutes=minutes)).timestamp() * 1000)}
        commit(tmp_path, version, {"commitInfo": info}, metadata(**settings), at=NOON)
    assert [log.version_at(NOON + timedelta(minutes=m)) for m in (0, 1, 9, 10, 19, 20, 99)] == [0, 1, 1, 2, 2, 3, 3]


def test_a_file_time_counts_in_whole_milliseconds(tmp_path: Path) -> None:
    log = born(tmp_path)
    commit(tmp_path, 0, PROTOCOL, metadata(), at=NOON + timedelta(microseconds=1999))
    assert log.timestamp(0) == NOON + timedelta(milliseconds=1)
    assert log.version_at(NOON + timedelta(milliseconds=1)) == 0


def test_changes_past_the_head_are_not_taken_for_a_gap(tmp_path: Path) -> None:
    log = born(tmp_path)
    with pytest.raises(VersionNotFound):
        log.has_changes(0, 1)


@pytest.mark.parametrize(
    ("path", "operation", "removed"),
    [
        ("a0/deletion_vector_61d16c75-6994-46b7-a15b-8b538852e50e.bin", "ANY", []),
        ("file:///t/any.bin", "DELETION VECTOR TOMBSTONES", []),
        ("part-0.parquet", "ANY", ["part-0.parquet"]),
    ],
)
def test_a_removed_file_of_deletion_vectors_is_no_removed_data_file(
    tmp_path: Path, path: str, operation: str, removed: list[str]
) -> None:
    log = born(tmp_path)
    commit(tmp_path, 1, {"commitInfo": {"operation": operation}}, remove(path, data_change=False))
    (found,) = log.commits(0, 1)
    assert [file.path for file in found.removes] == removed
