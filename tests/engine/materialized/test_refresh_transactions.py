"""A refresh is a transaction of a hidden stream: repeated, killed, refused."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from tests.engine.materialized.kept_world import KeptWorld
from tidemark.errors import InvalidArgument, ViewChanged, ViewNotUnderstood, ViewRefused
from tidemark.lake.delta_log import DeltaLog
from tidemark.materialized.model.definitions import KeptKind
from tidemark.materialized.model.shapes import Shape
from tidemark.model.jobs import JobSpec
from tidemark.model.statements import RefreshHow
from tidemark.streams.model.transaction_jobs import WRITE

pytestmark = pytest.mark.spark

SUMS = "SELECT k, count(*) AS c, sum(n) AS s, max(n) AS m FROM orders GROUP BY k"
ROWS = "SELECT o.k, o.n, c.city FROM orders AS o JOIN cities AS c ON o.k = c.k"
PLAIN = "SELECT k, n, rank() OVER (PARTITION BY k ORDER BY n) AS place FROM orders"


@pytest.fixture(scope="module")
def world(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> KeptWorld:
    session = spark.newSession()  # a catalog's view remembers settings, also those that another test has left
    world = KeptWorld(session, tmp_path_factory.mktemp("kept"))
    world.table("orders", "k INT, n BIGINT", "(1, 10), (1, 20), (2, 5)")
    world.table("cities", "k INT, city STRING", "(1, 'Rom'), (2, 'Oslo')")
    return world


class Died(Exception):
    """A worker that ends between a write and its report."""


def test_a_view_lives_through_refreshes_repeats_and_a_death(world: KeptWorld) -> None:
    world.create("sums", SUMS, "orders")
    world.create("rows", ROWS, "orders", "cities", kind=KeptKind.DYNAMIC_TABLE, cluster_by="k")
    for name in ("sums", "rows"):
        world.refresh(name, "1")
    assert world.rows("sums") == [(1, 2, 30, 20), (2, 1, 5, 5)]
    assert world.rows("rows") == [(1, 10, "Rom"), (1, 20, "Rom"), (2, 5, "Oslo")]
    world.sql("DELETE FROM {orders} WHERE n = 20")
    world.sql("UPDATE {cities} SET city = 'Bergen' WHERE k = 2")
    before = {name: world.version(name) for name in ("sums", "rows")}
    dies_after_its_write(world)
    for name in ("sums", "rows"):
        with pytest.raises(Died):
            world.refresh(name, "2")
    world.after = lambda _: None
    for name in ("sums", "rows"):
        world.refresh(name, "2")
        assert world.refresh(name, "2").delivered_before
        assert world.version(name) == before[name] + 1
    assert world.rows("sums") == [(1, 1, 10, 10), (2, 1, 5, 5)]
    assert world.rows("rows") == [(1, 10, "Rom"), (2, 5, "Bergen")]
    nothing = world.refresh("sums", "3")
    assert (world.version("sums"), nothing.result.evidence) == (before["sums"] + 1, ())
    rows = world.kept["rows"].kept
    assert rows is not None
    found = world.spark.sql(f"DESCRIBE DETAIL delta.`{rows.path}`").collect()[0]
    assert found["clusteringColumns"] == ["k"]
    assert DeltaLog.open(rows.path).state().table_id == rows.table_id


def dies_after_its_write(world: KeptWorld) -> None:
    def die(spec: JobSpec) -> None:
        if spec.kind == WRITE.name:
            raise Died

    world.after = die


def test_a_plain_query_is_written_as_a_whole_at_pinned_versions(world: KeptWorld) -> None:
    found = world.create("ranks", PLAIN, "orders")
    assert found.shape.shape is Shape.PLAIN
    assert "window functions" in (found.shape.why or "")
    assert "line 1, column 21" in (found.shape.why or "")
    world.refresh("ranks", "1")
    world.sql("INSERT INTO {orders} VALUES (2, 1)")
    world.refresh("ranks", "2", RefreshHow.WHOLE)
    assert [row for row in world.rows("ranks") if row[0] == 2] == [(2, 1, 1), (2, 5, 2)]


def test_extreme_values_that_went_before_a_compaction_never_come_back(world: KeptWorld) -> None:
    world.table("tasks", "k INT, n BIGINT, open BOOLEAN", "(1, 5, true), (2, 5, true), (1, 9, false), (2, 9, false)")
    least, most = (f"{role}(CASE WHEN open THEN n END)" for role in ("min", "max"))
    found = world.create("open", f"SELECT k, {least} AS least, {most} AS most FROM tasks GROUP BY k", "tasks")
    assert found.shape.shape is Shape.SUMS
    world.refresh("open", "1")
    world.sql("UPDATE {tasks} SET open = false")
    world.refresh("open", "2")
    world.sql("INSERT INTO {tasks} VALUES (1, 1, false), (2, 1, false)")
    world.refresh("open", "3", RefreshHow.COMPACTED)
    assert world.rows("open") == [(1, None, None), (2, None, None)]
    world.sql("INSERT INTO {tasks} VALUES (1, 7, true), (2, 3, true)")
    world.refresh("open", "4")
    assert world.rows("open") == [(1, 7, 7), (2, 3, 3)]


def test_a_catalogs_view_that_has_changed_is_refused(world: KeptWorld) -> None:
    world.spark.sql(f"CREATE VIEW kept_big AS SELECT k, n FROM delta.`{world.path('orders')}` WHERE n > 3")
    try:
        found = world.create("big", "SELECT k, sum(n) AS s FROM kept_big GROUP BY k")
        assert found.shape.shape is Shape.SUMS
        world.refresh("big", "1")
        world.spark.sql(f"ALTER VIEW kept_big AS SELECT k, n FROM delta.`{world.path('orders')}` WHERE n > 4")
        world.sql("INSERT INTO {orders} VALUES (3, 9)")
        with pytest.raises(ViewChanged):
            world.refresh("big", "2")
    finally:
        world.spark.sql("DROP VIEW kept_big")


@pytest.mark.parametrize(
    ("text", "error", "said"),
    [
        ("SELECT k, current_date() AS d FROM orders", ViewRefused, "line 1, column 11"),
        ("SELECT k FROM orders WHERE n > rand()", ViewRefused, "'rand'"),
        ("SELECT k, n AS k FROM orders", InvalidArgument, "two columns of one name"),
        ("SELECT k AS _row_id FROM orders", InvalidArgument, "reserved"),
        ("SELECT NULL AS k FROM orders", InvalidArgument, "cast it"),
        ("SELECT 1 AS k", InvalidArgument, "reads no table"),
        ("SELECT z FROM orders", ViewNotUnderstood, "Spark says"),
    ],
)
def test_queries_that_cannot_be_kept_are_refused(
    text: str, error: type[Exception], said: str, world: KeptWorld
) -> None:
    with pytest.raises(error, match=said):
        world.resolve(text, "orders")


def test_a_dynamic_table_with_a_run_time_value_is_computed_in_full(world: KeptWorld) -> None:
    found = world.resolve("SELECT k, current_date() AS d FROM orders", "orders", kind=KeptKind.DYNAMIC_TABLE)
    assert (found.shape.shape, found.shape.runtime_value) == (Shape.PLAIN, "current_date")
    assert "'current_date'" in (found.shape.why or "")
    assert world.resolve(PLAIN, "orders", kind=KeptKind.DYNAMIC_TABLE).shape.runtime_value is None


@pytest.mark.parametrize(
    "query", ["SELECT k, n FROM kept_new WHERE n > 3", "SELECT k, rank() OVER (ORDER BY n) AS place FROM kept_new"]
)
def test_a_run_time_value_counts_also_in_a_view_of_the_query(query: str, world: KeptWorld) -> None:
    world.spark.sql(
        f"CREATE VIEW kept_new AS SELECT k, n FROM delta.`{world.path('orders')}` WHERE n > day(current_date()) - 99"
    )
    try:
        found = world.resolve(query, "orders", kind=KeptKind.DYNAMIC_TABLE)
        assert (found.shape.shape, found.shape.runtime_value) == (Shape.PLAIN, "current_date")
        with pytest.raises(ViewRefused, match="run-time value 'current_date'"):
            world.resolve(query, "orders")
    finally:
        world.spark.sql("DROP VIEW kept_new")
