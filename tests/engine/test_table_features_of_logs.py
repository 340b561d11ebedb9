"""Tables whose files or logs are not where or what one expects: clones, converted tables, other forms of a log."""

from __future__ import annotations

import json
from pathlib import Path
from urllib.parse import unquote

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import UnsupportedOperationException
from pyspark.sql import SparkSession

from tests.engine.lakes import Lake
from tests.engine.oracle import assert_difference
from tidemark.changes.driver.rows import read_snapshot
from tidemark.client import connect
from tidemark.errors import LogIncomplete, RowTrackingDisabled, UnsupportedTableFeature, VersionVacuumed
from tidemark.jobs.workspace import Workspace

pytestmark = pytest.mark.spark

TRACK = "ALTER TABLE {t} SET TBLPROPERTIES ('delta.enableRowTracking' = 'true', 'delta.enableDeletionVectors' = 'true')"
MERGE = (
    "MERGE INTO {t} t USING (SELECT EXPLODE(ARRAY(1, 2, 9)) AS k) s ON t.k = s.k WHEN MATCHED AND s.k = 1 THEN "
    "UPDATE SET v = 'new' WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT (k, v) VALUES (s.k, 'new')"
)


@pytest.fixture
def lake(spark: SparkSession, tmp_path: Path) -> Lake:
    """Under a name that a log has to encode."""
    return Lake(spark, tmp_path / "t 100% ä", Workspace(f"file://{tmp_path}/_tidemark", "test"))


def clone_of(lake: Lake) -> Lake:
    return Lake(lake.spark, Path(f"{lake.path} clone"), lake.workspace)


def adds(lake: Lake) -> list[dict[str, object]]:
    lines = (lake.path / "_delta_log" / f"{0:020d}.json").read_text().splitlines()
    return [action["add"] for action in map(json.loads, lines) if "add" in action]


def test_a_shallow_clone_is_read_in_the_files_of_its_origin(lake: Lake) -> None:
    """Absolute paths of files and of deletion vectors; what the origin does later is not the clone's."""
    lake.create("k INT, v STRING", "PARTITIONED BY (v)").sql(
        "INSERT INTO {t} SELECT CAST(id AS INT), IF(id < 5, 'a %', 'b') FROM range(0, 9, 1, 1)",
        "DELETE FROM {t} WHERE k = 0",
    )
    clone = clone_of(lake)
    start = clone.sql(f"CREATE TABLE {{t}} SHALLOW CLONE {lake.name}")
    assert all(str(add["path"]).startswith("file:/") for add in adds(clone))
    assert {add["deletionVector"]["storageType"] for add in adds(clone) if "deletionVector" in add} == {"p"}  # type: ignore[index]
    clone.sql(MERGE, "DELETE FROM {t} WHERE k = 6")
    lake.sql("DELETE FROM {t} WHERE k = 7")
    assert len(assert_difference(clone, start)) == 5
    assert read_snapshot(clone.spark, clone.log, start).count() == 8
    gone = next(Path(unquote(str(add["path"]).removeprefix("file:"))) for add in adds(clone))
    gone.unlink()
    with pytest.raises(VersionVacuumed, match=r"Data files of .* are gone"):
        clone.changes(start)


def test_a_clone_numbers_rows_and_versions_anew(lake: Lake) -> None:
    """Ids and versions that the origin's files keep for their rows are not those of the clone, where the same numbers
    stand for other things: its version 1 is an update, the origin's the insert.
    """
    lake.create(delta__enableDeletionVectors="false")
    lake.sql("INSERT INTO {t} VALUES (1, 'a'), (2, 'b'), (3, 'c'), (4, 'd')", "DELETE FROM {t} WHERE k = 4")
    clone = clone_of(lake)
    start = clone.sql(f"CREATE TABLE {{t}} SHALLOW CLONE {lake.name}")
    hidden = "delta.rowTracking.materializedRowIdColumnName"
    assert clone.log.state().metadata.configuration[hidden] != lake.log.state().metadata.configuration[hidden]
    assert clone.sql("UPDATE {t} SET v = 'new' WHERE k = 1") == 1
    assert len(assert_difference(clone, start)) == 2


def test_a_table_converted_from_parquet_is_read(lake: Lake) -> None:
    """Rows get their ids when row tracking is turned on, for which Delta wants statistics."""
    rows = lake.spark.sql("SELECT CAST(id AS INT) k, CAST(id % 2 AS STRING) v FROM range(0, 6, 1, 2)")
    rows.write.partitionBy("v").parquet(str(lake.path))
    start = lake.sql(f"CONVERT TO DELTA parquet.`{lake.path}` PARTITIONED BY (v STRING)", TRACK)
    lake.sql(MERGE, "DELETE FROM {t} WHERE k = 4")
    assert len(assert_difference(lake, start)) == 5


def test_a_shallow_clone_of_parquet_has_no_row_ids(lake: Lake) -> None:
    """Delta gives none where it has no statistics, so that no stream can read such a table."""
    lake.spark.sql("SELECT 1 k, 'old' v").write.parquet(f"{lake.path} b%")
    clone = f"CREATE TABLE {{t}} SHALLOW CLONE parquet.`{lake.path} b%`"
    with pytest.raises(UnsupportedOperationException, match="DELTA_CLONE_WITH_ROW_TRACKING_WITHOUT_STATS"):
        lake.sql(f"{clone} TBLPROPERTIES ('delta.enableRowTracking' = 'true')")
    lake.sql(clone)
    with pytest.raises(Py4JJavaError, match="DELTA_ROW_ID_ASSIGNMENT_WITHOUT_STATS"):
        lake.sql(TRACK)
    with pytest.raises(RowTrackingDisabled):
        lake.plan(0)


def test_a_log_with_compacted_commits_is_read(lake: Lake) -> None:
    """Written by Delta's kernel: x.y.json files beside the commits, which readers of state may take instead."""
    lake.create().sql("INSERT INTO {t} VALUES (1, 'a'), (2, 'b'), (3, 'c')")
    start = lake.version
    lake.sql(MERGE, "DELETE FROM {t} WHERE k = 3")
    jvm = lake.spark._jvm
    assert jvm is not None
    assert lake.spark._jsc is not None
    place, log = (
        jvm.io.delta.kernel.internal.fs.Path(f"file:{part}") for part in (lake.path, lake.path / "_delta_log")
    )
    engine = jvm.io.delta.kernel.defaults.engine.DefaultEngine.create(lake.spark._jsc.hadoopConfiguration())
    writer = jvm.io.delta.kernel.internal.compaction.LogCompactionWriter(place, log, 0, lake.version, 0)
    writer.writeLogCompactionFile(engine)
    assert list((lake.path / "_delta_log").glob("*.compacted.json"))
    assert len(assert_difference(lake, start)) == 5


def test_a_window_that_begins_at_a_v2_checkpoint_with_sidecars_is_read(lake: Lake) -> None:
    """With nothing before it: state and files of the start are in the checkpoint alone."""
    lake.spark = lake.spark.newSession()
    lake.spark.conf.set("spark.databricks.delta.checkpoint.partSize", "1")
    lake.create(delta__checkpointPolicy="v2", delta__checkpointInterval="2")
    start = lake.sql("INSERT INTO {t} VALUES (1, 'a'), (2, 'b')", "INSERT INTO {t} VALUES (3, 'c')")
    assert len(list((lake.path / "_delta_log" / "_sidecars").iterdir())) > 1
    for version in range(start):
        (lake.path / "_delta_log" / f"{version:020d}.json").unlink()
    lake.sql(MERGE)
    assert len(assert_difference(lake, start)) == 4
    with pytest.raises(LogIncomplete):
        lake.plan(0)


def test_a_table_of_a_catalog_is_refused_when_the_stream_is_created(lake: Lake, tmp_path: Path) -> None:
    """Delta itself refuses it by path; no catalog but Unity can make one, so the protocol is written here."""
    lake.create().sql("INSERT INTO {t} VALUES (1, 'a')")
    managed = clone_of(lake)
    (managed.path / "_delta_log").mkdir(parents=True)
    protocol = {
        "minReaderVersion": 3,
        "minWriterVersion": 7,
        "readerFeatures": ["catalogManaged", "deletionVectors", "vacuumProtocolCheck"],
        "writerFeatures": [
            *("catalogManaged", "deletionVectors", "vacuumProtocolCheck"),
            *("inCommitTimestamp", "rowTracking", "domainMetadata", "appendOnly", "invariants"),
        ],
    }
    lines = map(json.loads, (lake.path / "_delta_log" / f"{0:020d}.json").read_text().splitlines())
    actions = [{"protocol": protocol} if "protocol" in action else action for action in lines]
    commit = managed.path / "_delta_log" / f"{0:020d}.json"
    commit.write_text("\n".join(map(json.dumps, actions)))
    with pytest.raises(Py4JJavaError, match="PATH_BASED_ACCESS_TO_CATALOG_MANAGED_TABLE_BLOCKED"):
        managed.spark.read.format("delta").load(str(managed.path)).collect()
    client = connect(managed.spark, control_store=f"sqlite:///{tmp_path}/control.db", lake_root=str(tmp_path))
    with pytest.raises(UnsupportedTableFeature, match="'catalogManaged'"):
        client.create_stream("s", on=managed.name)
