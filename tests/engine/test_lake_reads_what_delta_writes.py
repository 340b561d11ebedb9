"""The log reader against real tables: what Delta itself says of a table is what the reader says without Spark."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest
from pyspark.sql import SparkSession

from tidemark.errors import LogIncomplete
from tidemark.lake.deletion_vectors import absolute, inline, load
from tidemark.lake.delta_log import DeltaLog
from tidemark.lake.paths import file_uri
from tidemark.lake.storage import Storage, canonical_uri
from tidemark.lake.tables import table_ref
from tidemark.model.table_log import AddFile

pytestmark = pytest.mark.spark

TRACKED = {"delta.enableRowTracking": "true", "delta.checkpointInterval": "3"}
ODD_NAMES = ["a b", "a.b", "100%", "a%20b", 'it\'s "q"', "żółw ä 日本", "a#b?c=d;e,f", "[x]{y}"]


def create(spark: SparkSession, table: Path, columns: str = "k INT, p STRING", rest: str = "", **more: str) -> str:
    name = f"delta.`{table}`"
    properties = ", ".join(f"'{key}' = '{value}'" for key, value in {**TRACKED, **more}.items())
    spark.sql(f"CREATE TABLE {name} ({columns}) USING delta {rest} TBLPROPERTIES ({properties})")
    return name


def insert(spark: SparkSession, name: str, times: int) -> None:
    for number in range(times):
        spark.sql(f"INSERT INTO {name} VALUES ({number}, 'a'), ({number + 100}, 'b')")


def history(spark: SparkSession, name: str) -> dict[int, Any]:
    return {row.version: row for row in spark.sql(f"DESCRIBE HISTORY {name}").collect()}


def live_files(log: DeltaLog) -> dict[str, AddFile]:
    """The files of the head by path, folded from version 0 on."""
    live: dict[str, AddFile] = {}
    for commit in log.commits(-1, log.head()):
        for gone in commit.removes:
            live.pop(gone.path, None)
        live.update({file.path: file for file in commit.adds})
    return live


def local_path(uri: str) -> str:
    return unquote(urlsplit(uri).path)


def drop_commits_before(table: Path, version: int) -> None:
    """What log cleanup leaves behind a checkpoint."""
    for file in (table / "_delta_log").iterdir():
        number = file.name.removeprefix(".").split(".", 1)[0]
        if number.isdigit() and int(number) < version:
            file.unlink()


@pytest.mark.parametrize("policy", ["classic", "v2"])
def test_the_state_behind_a_checkpoint_is_the_state_of_the_whole_log(
    spark: SparkSession, tmp_path: Path, policy: str
) -> None:
    name = create(spark, tmp_path / "t", **{"delta.checkpointPolicy": policy})
    insert(spark, name, 7)
    spark.sql(f"ALTER TABLE {name} SET TBLPROPERTIES ('x' = 'y')")
    log = DeltaLog.open(str(tmp_path / "t"))
    before = {version: log.state(version) for version in range(6, log.head() + 1)}
    assert before[log.head()].metadata.configuration["x"] == "y"
    assert "x" not in before[log.head() - 1].metadata.configuration
    drop_commits_before(tmp_path / "t", 6)
    assert log.earliest() == 6
    assert {version: log.state(version) for version in before} == before
    assert before[log.head()].row_id_high_water_mark is not None
    detail = spark.sql(f"DESCRIBE DETAIL {name}").first()
    assert detail is not None
    assert (before[log.head()].table_id, before[log.head()].row_tracking) == (detail.id, True)
    with pytest.raises(LogIncomplete) as found:
        list(log.commits(1, log.head()))
    assert found.value.facts["version"] == 2


def test_a_checkpoint_in_v2_json_is_read(spark: SparkSession, tmp_path: Path) -> None:
    session = spark.newSession()
    session.conf.set("spark.databricks.delta.checkpointV2.topLevelFileFormat", "json")
    name = create(session, tmp_path / "t", **{"delta.checkpointPolicy": "v2"})
    insert(session, name, 4)
    assert list((tmp_path / "t" / "_delta_log").glob("*.checkpoint.*.json"))
    log = DeltaLog.open(str(tmp_path / "t"))
    before = log.state()
    drop_commits_before(tmp_path / "t", 3)
    assert log.state() == before


def test_a_checkpoint_in_parts_is_read(spark: SparkSession, tmp_path: Path) -> None:
    session = spark.newSession()
    session.conf.set("spark.databricks.delta.checkpoint.partSize", "1")
    name = create(session, tmp_path / "t")
    insert(session, name, 4)
    assert len(list((tmp_path / "t" / "_delta_log").glob(f"{3:020d}.checkpoint.*.*.parquet"))) > 1
    log = DeltaLog.open(str(tmp_path / "t"))
    before = log.state()
    drop_commits_before(tmp_path / "t", 3)
    assert log.state() == before


@pytest.mark.parametrize("exact", ["true", "false"])
def test_times_are_those_of_the_history(spark: SparkSession, tmp_path: Path, exact: str) -> None:
    name = create(spark, tmp_path / "t", **{"delta.enableInCommitTimestamps": exact})
    insert(spark, name, 3)
    assert_times_agree(spark, name, DeltaLog.open(str(tmp_path / "t")))


def test_times_agree_where_in_commit_timestamps_came_later(spark: SparkSession, tmp_path: Path) -> None:
    name = create(spark, tmp_path / "t")
    insert(spark, name, 2)
    spark.sql(f"ALTER TABLE {name} SET TBLPROPERTIES ('delta.enableInCommitTimestamps' = 'true')")
    insert(spark, name, 2)
    assert_times_agree(spark, name, DeltaLog.open(str(tmp_path / "t")))


def assert_times_agree(spark: SparkSession, name: str, log: DeltaLog) -> None:
    said = {
        row.version: datetime.fromtimestamp(row.millis / 1000, UTC)
        for row in spark.sql(f"DESCRIBE HISTORY {name}")
        .selectExpr("version", "unix_millis(timestamp) AS millis")
        .collect()
    }
    assert {version: log.timestamp(version) for version in said} == said
    assert {version: log.version_at(time) for version, time in said.items()} == {version: version for version in said}


def test_operations_and_marks_are_those_of_the_history(spark: SparkSession, tmp_path: Path) -> None:
    session = spark.newSession()
    name = create(session, tmp_path / "t")
    session.conf.set("spark.databricks.delta.commitInfo.userMetadata", 'a mark, "quoted"\nand more')
    insert(session, name, 1)
    session.sql(f"DELETE FROM {name} WHERE k = 0")
    log = DeltaLog.open(str(tmp_path / "t"))
    said = {version: (row.operation, row.userMetadata) for version, row in history(session, name).items()}
    assert {found.version: (found.operation, found.user_metadata) for found in log.commits(-1, log.head())} == said
    assert not log.has_changes(-1, 0)
    assert log.has_changes(0, log.head())


@pytest.mark.parametrize("odd", ODD_NAMES)
def test_files_are_found_under_any_table_name_and_partition_value(
    spark: SparkSession, tmp_path: Path, odd: str
) -> None:
    table = tmp_path / odd / "t"
    frame = spark.createDataFrame([(1, odd), (2, "a"), (3, None)], "k INT, p STRING")
    frame.write.format("delta").partitionBy("p").save(str(table))
    log = DeltaLog.open(str(table))
    assert log.uri == canonical_uri(str(table)) == f"file://{table}"
    files = live_files(log)
    assert {file.partition_values["p"] for file in files.values()} == {odd, "a", None}
    found = {local_path(file_uri(log.uri, path)) for path in files}
    assert found == {str(file) for file in table.rglob("*.parquet") if "_delta_log" not in file.parts}
    assert table_ref(str(table), str(tmp_path)).table_id == log.state().table_id


@pytest.mark.parametrize("odd", ["plain", "a b%20ü"])
def test_deletion_vectors_are_those_that_delta_wrote(spark: SparkSession, tmp_path: Path, odd: str) -> None:
    table = tmp_path / odd
    name = create(spark, table, "k BIGINT", **{"delta.enableDeletionVectors": "true"})
    spark.range(0, 10_000, 1, 1).toDF("k").write.format("delta").mode("append").save(str(table))
    spark.sql(f"DELETE FROM {name} WHERE k % 7 = 3")
    log = DeltaLog.open(str(table))
    (file,) = live_files(log).values()
    vector = file.deletion_vector
    assert vector is not None
    rows = load(vector, log.uri, log.storage)
    assert list(rows) == [k for k in range(10_000) if k % 7 == 3]
    elsewhere = Storage(str(tmp_path))
    assert load(absolute(vector, log.uri), "file:///elsewhere", elsewhere) == rows
    assert load(inline(rows), "file:///elsewhere", elsewhere) == rows
    stats = json.loads(file.stats or "{}")
    assert stats["numRecords"] == 10_000


def test_a_table_is_found_after_log_cleanup_without_its_hint(spark: SparkSession, tmp_path: Path) -> None:
    name = create(spark, tmp_path / "t")
    insert(spark, name, 4)
    log = DeltaLog.open(str(tmp_path / "t"))
    before = log.state()
    drop_commits_before(tmp_path / "t", 3)
    hint = tmp_path / "t" / "_delta_log" / "_last_checkpoint"
    hint.write_text('{"version": 99, "size": 1}')
    assert (log.head(), log.state()) == (4, before)
    hint.unlink()
    assert (log.head(), log.state()) == (4, before)
