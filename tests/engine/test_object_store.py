"""A lake on an S3-compatible store: the worker's side by s3fs, Spark's by S3A, one name for both."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from tests.object_store import BUCKET, ObjectStore, object_store_of
from tests.tiers import nightly
from tidemark.changes.driver.window import plan_window
from tidemark.client import Version, connect
from tidemark.client.lake import Lake
from tidemark.lake.delta_log import DeltaLog
from tidemark.lake.tables import table_ref
from tidemark.model.streams import ACTION, IS_UPDATE, StreamMode, StreamWindow, WindowKind

pytestmark = [pytest.mark.spark, pytest.mark.e2e]

ODD = "it's 100% a+b #ü"
TRACKED = "'delta.enableRowTracking' = 'true', 'delta.enableDeletionVectors' = 'true'"


@pytest.fixture(scope="module")
def store(spark: SparkSession) -> Iterator[ObjectStore]:
    with object_store_of(spark) as running:
        yield running


@pytest.fixture(scope="module")
def root(store: ObjectStore) -> str:
    return f"s3://{BUCKET}/{ODD}"


@pytest.fixture
def lake(spark: SparkSession, store: ObjectStore, root: str, tmp_path: Path) -> Iterator[Lake]:
    client = connect(spark, f"sqlite:///{tmp_path}/control.db", lake_root=root, storage_options=store.options)
    yield client
    client.close()


def create(spark: SparkSession, root: str, name: str, partitioned: str = "") -> str:
    path = f"{root}/db/{name}"
    spark.sql(f"CREATE TABLE delta.`{path}` (k INT, v STRING) USING delta {partitioned} TBLPROPERTIES ({TRACKED})")
    return path


def rows(frame: DataFrame) -> list[tuple[Any, ...]]:
    return sorted((row[ACTION], row.k, row.v) for row in frame.collect())


def test_a_stream_is_consumed_into_a_table_of_the_same_store_once(
    spark: SparkSession, store: ObjectStore, root: str, lake: Lake
) -> None:
    """Updates by deletion vectors, partition values that need escapes, a merge, the marks read back, nothing left."""
    source = create(spark, root, "orders", "PARTITIONED BY (v)")
    target = create(spark, root, "target")
    spark.sql(f"INSERT INTO delta.`{source}` SELECT CAST(id AS INT), 'x/y=ü %' FROM range(0, 5, 1, 1)")
    lake.create_stream("orders_stream", on="db.orders")
    assert not lake.has_data("orders_stream")
    spark.sql(f"DELETE FROM delta.`{source}` WHERE k = 1")
    spark.sql(f"INSERT INTO delta.`{source}` VALUES (9, 'a+b#c d')")
    assert lake.has_data("orders_stream")
    expected = [("DELETE", 1, "x/y=ü %"), ("INSERT", 9, "a+b#c d")]
    assert rows(lake.stream("orders_stream")) == expected
    assert rows(lake.changes("s3a://" + source.removeprefix("s3://"), at=Version(1))) == expected
    with lake.transaction() as tx:
        tx.sql("INSERT INTO db.target SELECT k, v FROM orders_stream WHERE METADATA$ACTION = 'INSERT'")
    assert not lake.has_data("orders_stream")
    written = spark.read.format("delta").load(target)
    assert [tuple(row) for row in written.collect()] == [(9, "a+b#c d")]
    log = DeltaLog.open(target, store.options)
    marks = [commit.transactions for commit in log.commits(0, log.head()) if commit.transactions]
    assert [next(iter(mark)).split("/")[0] for mark in marks] == ["tidemark"]
    lake.close()
    assert [key for key in store.keys(f"{ODD}/_tidemark/") if "/log_only/" in key] == []


def test_a_window_is_planned_without_spark(spark: SparkSession, store: ObjectStore, root: str) -> None:
    path = create(spark, root, "planned")
    spark.sql(f"INSERT INTO delta.`{path}` SELECT CAST(id AS INT), 'a' FROM range(0, 5, 1, 1)")
    spark.sql(f"UPDATE delta.`{path}` SET v = 'b' WHERE k = 1")
    ref = table_ref("db.planned", root, store.options)
    assert ref.path == f"{root}/db/planned"
    window = StreamWindow("u", "s", ref, StreamMode.STANDARD, WindowKind.CHANGES, start=1, end=2)
    (plan,) = plan_window(window, store.options)
    assert (plan.table_uri, plan.start, plan.end) == (ref.path, 1, 2)
    assert {side: plan.explain()[side]["rows"] for side in ("removed", "added")} == {"removed": 1, "added": 1}


def test_initial_rows_and_every_spelling_of_the_scheme(
    spark: SparkSession, store: ObjectStore, root: str, lake: Lake
) -> None:
    path = create(spark, root, "first")
    spark.sql(f"INSERT INTO delta.`{path}` VALUES (1, 'a')")
    by_s3a = "s3a://" + path.removeprefix("s3://")
    lake.create_stream("first_stream", on=by_s3a, show_initial_rows=True)
    assert rows(lake.stream("first_stream")) == [("INSERT", 1, "a")]
    assert lake.describe_stream("first_stream").stale is False


@nightly("two million rows in an object store", "test_a_stream_is_consumed_into_a_table_of_the_same_store_once")
def test_scattered_changes_of_a_large_file_are_named_by_vectors_in_the_store(
    spark: SparkSession, store: ObjectStore, root: str, lake: Lake
) -> None:
    path, rows = create(spark, root, "large"), 2_000_000
    spark.sql(f"INSERT INTO delta.`{path}` SELECT CAST(id AS INT), 'a' FROM range(0, {rows}, 1, 1)")
    spark.sql(f"DELETE FROM delta.`{path}` WHERE k % 50 = 0")
    spark.sql(f"UPDATE delta.`{path}` SET v = 'b' WHERE k % 4 = 1")
    found = lake.changes(path, at=Version(1)).groupBy(ACTION, IS_UPDATE, "v").count().collect()
    vectors = [key for key in store.keys(f"{ODD}/_tidemark/log_only/") if "deletion_vectors" in key]
    assert vectors
    assert set(map(tuple, found)) == {
        ("DELETE", False, "a", rows // 50),
        ("DELETE", True, "a", rows // 4),
        ("INSERT", True, "b", rows // 4),
    }
    lake.close()
    assert [key for key in store.keys(f"{ODD}/_tidemark/") if "/log_only/" in key] == []


def test_answers_and_views_are_kept_in_the_store_and_answers_are_removed_there(
    spark: SparkSession, store: ObjectStore, root: str, tmp_path: Path
) -> None:
    late = [timedelta()]

    def client(session: SparkSession | Callable[[], SparkSession], **more: Any) -> Lake:
        url, clock = f"sqlite:///{tmp_path}/answers.db", lambda: datetime.now(UTC) + late[0]
        return connect(session, url, lake_root=root, storage_options=store.options, clock=clock, **more)

    def never() -> SparkSession:
        raise AssertionError("Spark was started")

    def kept() -> list[str]:
        return [key for key in store.keys(f"{ODD}/_tidemark/results/") if key.endswith(".parquet")]

    path = create(spark, root, "sold")
    spark.sql(f"INSERT INTO delta.`{path}` SELECT CAST(id % 3 AS INT), 'ü %' FROM range(0, 9, 1, 3)")
    text = "SELECT k, count(*) AS n, max(v) AS v FROM db.sold GROUP BY k ORDER BY k"
    lake, expected = client(spark), [(0, 3, "ü %"), (1, 3, "ü %"), (2, 3, "ü %")]
    zone = {"spark.sql.session.timeZone": str(spark.conf.get("spark.sql.session.timeZone"))}
    others = {name: value for name, value in spark.conf.getAll.items() if name.startswith("spark.sql.")}
    idle = client(never, session_settings={**others, **zone})
    missed = lake.query(text)
    assert (missed.origin, list(map(tuple, missed.collect()))) == ("spark", expected)
    assert kept()
    hit = idle.query(text)
    assert (hit.origin, hit.why, list(map(tuple, hit.collect()))) == ("cache", "", expected)
    counted = idle.query("SELECT count(*) AS n, max(k) AS k FROM db.sold")
    assert (counted.origin, list(map(tuple, counted.collect()))) == ("log", [(9, 2)])

    lake.create_materialized_view(
        "db.sums", "SELECT k, count(*) AS n FROM db.sold GROUP BY k", enable_row_tracking=True
    )
    spark.sql(f"DELETE FROM delta.`{path}` WHERE k = 1")
    assert sorted(map(tuple, lake.table("db.sums").collect())) == [(0, 3), (2, 3)]
    assert lake.refresh_view("db.sums", refresh_mode="incremental").how == "changes"
    assert sorted(map(tuple, lake.table("db.sums").collect())) == [(0, 3), (2, 3)]

    assert "version" in idle.why_not(text)
    assert list(map(tuple, lake.query(text).collect())) == [expected[0], expected[2]]
    before = kept()
    assert lake.forget_results() == 2
    late[0] = timedelta(hours=2)
    lake.query("SELECT k AS other FROM db.sold")  # sweeps
    assert not set(before) & set(kept())
    assert len({key.split("/")[-2] for key in kept()}) == 1
    lake.close()
    idle.close()
