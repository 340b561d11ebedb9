"""Scattered changes in a file of half a million rows, and of 2 million in `make test-all`: vectors too large for a log
name the rows to read.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from tests.benchmarks.answers import pairs
from tests.engine.views.view_lake import NOW, ViewLake
from tidemark.changes.driver.every_change import plan_pages
from tidemark.changes.driver.plan import plan_changes
from tidemark.changes.driver.rows import read_changes
from tidemark.changes.driver.views.read import read_view_changes
from tidemark.jobs.workspace import Workspace
from tidemark.lake.delta_log import DeltaLog
from tidemark.model.streams import ACTION, COMMIT_VERSION, IS_UPDATE, BaseWindow, StreamMode, TableRef

pytestmark = pytest.mark.spark

ROWS = [500_000, 2_000_000]
LOADED, DELETED, UPDATED, INSERTED, RESTORED = range(1, 6)  # versions
COLUMNS = ("id", "v")
Counted = set[tuple[object, ...]]


@pytest.fixture(scope="module", params=ROWS)
def rows(request: pytest.FixtureRequest) -> int:
    """Of the file."""
    return int(request.param)


@pytest.fixture(scope="module")
def lake(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory, rows: int) -> Iterator[ViewLake]:
    home, quick = tmp_path_factory.mktemp("large"), spark.newSession()
    for name, value in (("wholeStage", "true"), ("factoryMode", "FALLBACK")):
        quick.conf.set(f"spark.sql.codegen.{name}", value)  # which small tables do not pay for
    with Workspace(home.as_uri(), "large") as workspace:
        quick.sql("CREATE DATABASE large_vectors")
        lake = ViewLake(quick, home / "tables", workspace, "large_vectors")
        lake.table("t", "id BIGINT, v BIGINT")
        lake.sql(
            f"INSERT INTO {{db}}.t SELECT id, id AS v FROM range(0, {rows}, 1, 1)",
            "DELETE FROM {db}.t WHERE id % 50 = 0",
            "UPDATE {db}.t SET v = -v WHERE id % 4 = 1",
            f"INSERT INTO {{db}}.t SELECT id, id AS v FROM range({rows}, {rows + 1000}, 1, 1)",
            f"RESTORE TABLE {{db}}.t TO VERSION AS OF {LOADED}",
        )
        yield lake
    quick.sql("DROP DATABASE large_vectors CASCADE")


@pytest.fixture(scope="module")
def log(lake: ViewLake) -> DeltaLog:
    return DeltaLog.open(str(lake.home / "t"))


def counted(changes: DataFrame) -> Counted:
    """How many rows of each kind, and a hash of them all."""
    found = changes.groupBy("action", "is_update").agg(F.count("*"), F.bit_xor(F.xxhash64(*COLUMNS)))
    return set(map(tuple, found.collect()))


def shown(changes: DataFrame) -> Counted:
    return counted(changes.select(F.col(ACTION).alias("action"), F.col(IS_UPDATE).alias("is_update"), *COLUMNS))


def difference(lake: ViewLake, start: int, end: int) -> DataFrame:
    """Both snapshots whole, joined by row id."""
    old, new = (
        lake.spark.read.format("delta")
        .option("versionAsOf", version)
        .load(str(lake.home / "t"))
        .select(F.col("_metadata.row_id").alias("row_id"), F.struct(*COLUMNS).alias(name))
        for version, name in ((start, "old"), (end, "new"))
    )
    return pairs(old.join(new, "row_id", "full_outer"))


@pytest.fixture(scope="module")
def expected(lake: ViewLake, rows: int) -> Counted:
    """Of all commits but the last, which takes them back."""
    found = counted(difference(lake, LOADED, INSERTED))
    assert {kind[:3] for kind in found} == {
        ("DELETE", False, rows // 50),
        ("DELETE", True, rows // 4),
        ("INSERT", True, rows // 4),
        ("INSERT", False, 1000),
    }
    return found


def test_the_standard_changes(lake: ViewLake, log: DeltaLog, expected: Counted) -> None:
    plan = plan_changes(log, LOADED, INSERTED, StreamMode.STANDARD)
    assert shown(read_changes(lake.spark, log, plan, lake.workspace)) == expected


def test_rows_that_a_restore_brings_back(lake: ViewLake, log: DeltaLog, expected: Counted) -> None:
    plan = plan_changes(log, INSERTED, RESTORED, StreamMode.STANDARD)
    back = {"INSERT": "DELETE", "DELETE": "INSERT"}
    taken_back = {(back[str(kind[0])], *kind[1:]) for kind in expected}
    assert shown(read_changes(lake.spark, log, plan, lake.workspace)) == taken_back


def test_appended_rows_behind_commits_with_large_vectors(lake: ViewLake, log: DeltaLog, expected: Counted) -> None:
    plan = plan_changes(log, LOADED, INSERTED, StreamMode.APPEND_ONLY)
    born = {kind for kind in expected if kind[:2] == ("INSERT", False)}
    assert shown(read_changes(lake.spark, log, plan, lake.workspace)) == born


def test_changes_by_key(lake: ViewLake, log: DeltaLog, expected: Counted) -> None:
    plan = plan_changes(log, LOADED, INSERTED, StreamMode.STANDARD, keys=("id",))
    assert shown(read_changes(lake.spark, log, plan, lake.workspace)) == expected


def test_every_change_of_every_commit(lake: ViewLake, log: DeltaLog, expected: Counted, rows: int) -> None:
    """No row changes twice, so that all commits together say what the window does."""
    (page,) = plan_pages(log, LOADED, INSERTED, rows_per_page=2 * rows)
    changes = read_changes(lake.spark, log, page, lake.workspace).withColumn("commit", F.col(COMMIT_VERSION))
    found = changes.groupBy("commit", ACTION, IS_UPDATE).agg(F.count("*"), F.bit_xor(F.xxhash64(*COLUMNS))).collect()
    assert {row[1:] for row in map(tuple, found)} == expected
    assert {row[:3] for row in map(tuple, found)} == {
        (DELETED, "DELETE", False),
        (UPDATED, "DELETE", True),
        (UPDATED, "INSERT", True),
        (INSERTED, "INSERT", False),
    }


def test_a_view(lake: ViewLake, log: DeltaLog, rows: int) -> None:
    lake.sql("CREATE VIEW {db}.v AS SELECT id, v FROM {db}.t WHERE id IS NOT NULL")
    query = lake.resolved("v")
    table = TableRef("t", log.uri, log.state().table_id)
    windows = [BaseWindow(table, LOADED, DELETED)]
    found = read_view_changes(lake.spark, query, windows, StreamMode.STANDARD, NOW, lake.workspace, reader="s").rows
    gone = lake.spark.range(0, rows, 50).select("id", F.col("id").alias("v"))
    deleted = gone.withColumn("action", F.lit("DELETE")).withColumn("is_update", F.lit(False))
    assert shown(found) == counted(deleted)


def test_nothing_is_left_of_the_vectors(lake: ViewLake, log: DeltaLog) -> None:
    """Also by a sweep, if the process died before its log was there."""
    room = Path(lake.workspace.root.removeprefix("file://"))
    assert list(room.rglob("deletion_vectors_*.bin"))
    lake.workspace.close()
    assert list(room.iterdir()) == []
