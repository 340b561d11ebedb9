"""Clustering by SQL: keys are set and dropped, tables described, suspended and reclustered."""

from __future__ import annotations

import json

import pytest

from tests.engine.clustering.world import World
from tidemark.errors import (
    ClusteringKeyMissing,
    ClusteringKeyRefused,
    InvalidArgument,
    NotYetSupported,
    SqlCompilationError,
    TableNotFound,
)

pytestmark = pytest.mark.spark


def information(world: World, arguments: str) -> dict[str, object]:
    row = world.one(f"SELECT SYSTEM$CLUSTERING_INFORMATION({arguments})")
    found: dict[str, object] = json.loads(row[0])
    return found


def test_a_key_is_set_the_table_described_and_reclustered(world: World) -> None:
    world.append(5)
    with pytest.raises(ClusteringKeyMissing, match=r"ALTER TABLE db\.events CLUSTER BY"):
        world.lake.clustering_information("db.events")
    assert information(world, "'db.events', '(k)'")["average_depth"] == 5.0
    assert "by LINEAR(k)" in world.status("ALTER TABLE db.events CLUSTER BY (K)")
    found = information(world, "'db.events'")
    assert (found["cluster_by_keys"], found["total_partition_count"]) == ("LINEAR(k)", 5)
    assert (found["average_overlaps"], found["average_depth"]) == (4.0, 5.0)
    assert found["partition_depth_histogram"] == {f"{n:05d}": 5 * (n == 5) for n in range(17)}
    assert world.one("SELECT SYSTEM$CLUSTERING_DEPTH('db.events', '(k)') AS depth").depth == 5.0
    keys = world.keys()
    said = world.status("ALTER TABLE db.events RECLUSTER")
    assert "average depth 5 before and 1 after" in said
    assert world.keys() == keys
    assert information(world, "'db.events'")["average_depth"] == 1.0
    assert "Nothing to recluster" in world.status("ALTER TABLE db.events RECLUSTER")
    (row,) = world.ledger()
    assert (row.state, row.how, row.depth_before, row.depth_after) == ("done", "full", 5.0, 1.0)
    assert row.bytes == sum(file.size for file in world.files)
    assert (row.files_removed, row.files_added, row.version) == (5, len(world.files), world.log.head())
    assert row.seconds > 0


def test_only_new_files_and_small_results_are_rewritten_within_max_size(world: World) -> None:
    world.append(2, rows=30_000)
    world.status("ALTER TABLE db.events CLUSTER BY (k)")
    world.status("ALTER TABLE db.events RECLUSTER")
    (large,) = world.files
    world.append(3)
    small = sum(file.size for file in world.files) - large.size
    assert "and the budget has 10" in world.status("ALTER TABLE db.events RECLUSTER MAX_SIZE = 10")
    said = world.status(f"ALTER TABLE db.events RECLUSTER MAX_SIZE = {small}")
    assert "average depth 4 before and 2 after" in said
    assert large.path in {file.path for file in world.files}
    assert len(world.files) == 2
    said = world.status("ALTER TABLE db.events RECLUSTER")
    assert "average depth 2 before and 1 after" in said
    assert len(world.files) == 1


def test_a_condition_says_which_files_count(world: World) -> None:
    world.append(3, rows=500)
    world.append(1, start=10_000, rows=500)
    world.status("ALTER TABLE db.events CLUSTER BY (k)")
    said = world.status("ALTER TABLE db.events RECLUSTER WHERE k >= 10000")
    assert said == "Nothing to recluster: depth 1 is within 1."
    said = world.status("ALTER TABLE db.events RECLUSTER WHERE k BETWEEN 100 AND 200")
    assert "average depth 3 before and 1 after" in said
    with pytest.raises(InvalidArgument, match=r"name is not in the clustering key \(k\)"):
        world.status("ALTER TABLE db.events RECLUSTER WHERE name = 'x'")
    with pytest.raises(InvalidArgument, match="another type"):
        world.status("ALTER TABLE db.events RECLUSTER WHERE k = 'x'")


def test_another_key_is_seen_and_all_files_are_rewritten_by_it(world: World) -> None:
    world.append(2)
    world.status("ALTER TABLE db.events CLUSTER BY (k)")
    world.status("ALTER TABLE db.events RECLUSTER")
    world.append(2)
    world.status("ALTER TABLE db.events CLUSTER BY (name, k)")
    assert world.lake.clustered_tables()[0].key == ("name", "k")
    assert information(world, "'db.events'")["average_depth"] == 3.0
    said = world.status("ALTER TABLE db.events RECLUSTER")
    assert "average depth 3 before and 1 after" in said
    assert world.ledger()[0].how == "full"


def test_a_suspended_table_keeps_its_key_and_a_dropped_key_ends_the_upkeep(world: World) -> None:
    world.append(2)
    world.status("ALTER TABLE db.events CLUSTER BY (day)")
    world.status("ALTER TABLE db.events SUSPEND RECLUSTER")
    (kept,) = world.lake.clustered_tables()
    assert kept.suspended == "ALTER TABLE … SUSPEND RECLUSTER, by ann"
    world.status("ALTER TABLE db.events RESUME RECLUSTER")
    assert world.lake.clustered_tables()[0].suspended is None
    assert [(one.kind, one.state) for one in world.lake.show_objects()] == [("clustered_table", "new")]
    world.status("ALTER TABLE db.events DROP CLUSTERING KEY")
    assert world.lake.clustered_tables() == ()
    with pytest.raises(ClusteringKeyMissing):
        world.status("ALTER TABLE db.events SUSPEND RECLUSTER")
    version = world.log.head()
    world.status("ALTER TABLE db.events DROP CLUSTERING KEY")
    assert world.log.head() == version


def test_show_tables_says_how_each_table_is_kept(world: World) -> None:
    def shown() -> dict[str, tuple[object, ...]]:
        rows = world.lake.sql("SHOW TABLES IN kept_tables").collect()
        return {row.tableName: tuple(row)[3:] for row in rows if not row.isTemporary}

    plain = ("", "OFF", "OFF", None, None)
    world.append(2)
    world.spark.sql("CREATE DATABASE kept_tables")
    try:
        world.spark.sql(f"CREATE TABLE kept_tables.events USING delta LOCATION '{world.path}'")
        world.spark.sql("CREATE TABLE kept_tables.others (id INT) USING delta")
        assert shown() == {"events": plain, "others": plain}
        world.status("ALTER TABLE kept_tables.events CLUSTER BY (day)")
        world.status("ALTER TABLE db.events ADD SEARCH OPTIMIZATION ON EQUALITY(k)")
        assert shown()["events"] == ("LINEAR(day)", "ON", "ON", 0, 0)
        size = world.lake.keep_search_path("db.events").search.size
        world.append(1)
        world.status("ALTER TABLE kept_tables.events SUSPEND RECLUSTER")
        assert shown() == {"events": ("LINEAR(day)", "OFF", "ON", 66, size), "others": plain}
    finally:
        world.spark.sql("DROP DATABASE kept_tables CASCADE")


def test_expressions_and_unknown_columns_are_refused_by_name(world: World) -> None:
    with pytest.raises(ClusteringKeyRefused, match=r"ADD COLUMNS \(to_date_name DATE\)"):
        world.lake.sql("ALTER TABLE db.events CLUSTER BY (k, to_date(name))")
    with pytest.raises(ClusteringKeyRefused, match=r"by kk: it is not a column .* It has k, day, name, payload\."):
        world.lake.sql("ALTER TABLE db.events CLUSTER BY (kk)")
    with pytest.raises(ClusteringKeyRefused, match="in the key twice"):
        world.lake.sql("ALTER TABLE db.events CLUSTER BY (k, K)")
    with pytest.raises(TableNotFound):
        world.lake.sql("ALTER TABLE db.nowhere CLUSTER BY (k)")
    with pytest.raises(NotYetSupported, match="Name the columns"):
        world.lake.sql("ALTER TABLE db.events CLUSTER BY AUTO")
    with pytest.raises(SqlCompilationError, match="unexpected 'OR'"):
        world.lake.sql("ALTER TABLE db.events RECLUSTER WHERE k = 5 OR k = 6")
    assert world.log.head() == 0
