"""Tables without a key: both rows of an update are kept, and the target can be a mirror, duplicates included."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.engine.replication.replicated_world import ReplicatedWorld
from tests.engine.replication.test_backfill_object import opened
from tests.postgresql import PostgresServer
from tests.tiers import some
from tidemark.replication.model.replication import LogPosition, WriteMode

pytestmark = pytest.mark.spark

MADE = (
    "CREATE TABLE t (a int, b text, c double precision, d int[], e numeric)",
    "ALTER TABLE t REPLICA IDENTITY FULL",
    "CREATE VIEW three AS SELECT generate_series(1, 3)",
    "INSERT INTO t SELECT g % 5, NULL, 'NaN', ARRAY[g % 2, NULL], 1.50 FROM generate_series(1, 40) g",
)


def _change(world: ReplicatedWorld, chance: random.Random, times: int) -> None:
    """Some of many rows that are alike come, go and change; values are of few, and NULL among them."""
    row = "ctid = (SELECT ctid FROM t OFFSET {} LIMIT 1)"
    for _ in range(times):
        one = row.format(chance.randrange(40))
        world.source.sql(
            chance.choice(
                [
                    f"INSERT INTO t SELECT {chance.randrange(5)}, NULL, 'NaN', '{{1,NULL}}', 1.5 FROM three",
                    f"DELETE FROM t WHERE {one}",
                    f"UPDATE t SET a = {chance.choice(['NULL', '1', 'a'])} WHERE {one}",
                    f"UPDATE t SET b = repeat('x', {chance.choice([1, 3000])}), c = -0.0 WHERE {one}",
                    f"UPDATE t SET a = 3 - a, d = NULL WHERE a = {chance.randrange(4)}",
                ]
            )
        )


def _meanwhile(world: ReplicatedWorld, text: str) -> None:
    """Changes behind the snapshot of a copy, which it has to catch up with."""
    if "copying" in text:
        _change(world, random.Random(7), 5)
        world.source.sql("DELETE FROM t WHERE ctid = (SELECT ctid FROM t LIMIT 1)")
        world.capture()


def _rows(world: ReplicatedWorld) -> Counter[str]:
    return Counter(map(repr, world.rows()))


def _source(world: ReplicatedWorld) -> Counter[str]:
    read = "SELECT a, b, c, d::text[], e::text FROM t"
    rows: list[tuple[Any, ...]] = world.source.sql(read)
    return Counter(repr((a, b, c, None if d is None else [x and int(x) for x in d], e)) for a, b, c, d, e in rows)


@pytest.mark.parametrize("history", some(["short", "long"], now=["short"]))
def test_a_mirror_without_a_key_has_each_row_as_often_as_the_source(
    spark: SparkSession, source_server: PostgresServer, tmp_path: Path, history: str
) -> None:
    chance = random.Random(20260101)
    with opened(spark, source_server, tmp_path, *MADE, keys=()) as world:
        world.backfill()
        assert _rows(world) == _source(world)
        _change(world, chance, 6)
        world.source.sql("INSERT INTO t VALUES (9)", "DELETE FROM t WHERE a = 9")  # which come to nothing
        if history == "long":
            world.source.sql("TRUNCATE t", "INSERT INTO t SELECT 1, NULL, 'NaN', '{1}', 1.5 FROM three, three u")
        _change(world, chance, 6)
        assert world.apply().needs_backfill is None
        assert _rows(world) == _source(world)
        if history == "long":
            _go_on(world)
        uuids = [row[0]["uuid"] for row in world.rows("datastream_metadata")]
        assert len(set(uuids)) == len(uuids)


def _go_on(world: ReplicatedWorld) -> None:
    """With a new column, and with a copy that takes the place of what the target has."""
    world.source.sql("DELETE FROM t WHERE ctid IN (SELECT ctid FROM t LIMIT 2)", "INSERT INTO t VALUES (5)")
    world.source.sql("ALTER TABLE t ADD COLUMN f int DEFAULT 7", "UPDATE t SET a = 4 WHERE a = 1 OR b IS NULL")
    world.apply()
    assert Counter(world.rows("a", "f")) == Counter(world.source.sql("SELECT a, f FROM t"))
    world.backfill(world.backfill_ask(catch_up=LogPosition("7" * 16)), say=lambda text: _meanwhile(world, text))
    assert Counter(world.rows("a", "b", "f")) == Counter(world.source.sql("SELECT a, b, f FROM t"))


def test_a_log_of_rows_tells_both_halves_and_the_table_can_be_made_of_it(
    spark: SparkSession, source_server: PostgresServer, tmp_path: Path
) -> None:
    made = (
        "CREATE TABLE t (v text)",
        "ALTER TABLE t REPLICA IDENTITY FULL",
        "INSERT INTO t VALUES ('a'), ('a'), (NULL)",
    )
    with opened(spark, source_server, tmp_path, *made, keys=(), mode=WriteMode.APPEND_ONLY) as world:
        world.backfill()
        world.source.sql("UPDATE t SET v = 'b' WHERE ctid = '(0,1)'", "DELETE FROM t WHERE v IS NULL")
        world.apply()
        told = world.rows("v", "change_type", "is_deleted")
        assert [one for one in told if one[1].startswith("UPDATE")] == [
            ("a", "UPDATE-DELETE", True),
            ("b", "UPDATE-INSERT", False),
        ]
        target = spark.read.format("delta").load(str(tmp_path / "target"))
        rebuilt = target.selectExpr("v", "CASE WHEN is_deleted THEN -1 ELSE 1 END AS n").groupBy("v").sum("n")
        assert {row[0]: row[1] for row in rebuilt.collect() if row[1]} == {"a": 1, "b": 1}
        assert sorted(world.source.sql("SELECT v FROM t")) == [("a",), ("b",)]
