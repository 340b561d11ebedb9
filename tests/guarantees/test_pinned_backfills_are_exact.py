"""A backfill that reads every part of its table as of one exact position, against one that reads each part as it is.

The second loses what the log does not repeat: a row that gets another key between two parts' reads is in neither, and
the event of its move leaves out the long text, which did not change.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql import functions as F

from tests.guarantees.replication_comparison import differences, source_rows, target_rows
from tests.guarantees.replication_tables import SourceTable
from tests.guarantees.replication_world import ReplicationWorld, made_source
from tests.guarantees.replication_writers import opened
from tests.postgresql import PostgresServer
from tidemark.errors import ObjectFailed

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.timeout(300)]

LONG = "(SELECT string_agg(md5((n * i)::text), '') FROM generate_series(1, 100) i)"
FILL = f"INSERT INTO shop.orders (id, note, amount) SELECT n, {LONG}, n FROM generate_series(1, 40) n"
MOVE = "UPDATE shop.orders SET id = id + 100 WHERE id <= 10"


@pytest.fixture
def world(spark: SparkSession, source_server: PostgresServer, tmp_path: Path) -> Iterator[ReplicationWorld]:
    """40 rows with long texts in `orders`."""
    address, tables, _ = made_source(source_server, 0, ["orders"])
    world = ReplicationWorld(spark, address, tables, tmp_path)
    run(world, FILL)
    yield world
    world.source.drop(world.replication)
    world.store.close()


def run(world: ReplicationWorld, text: str) -> list[Any]:
    with opened(world.address) as connection, connection.cursor() as cursor:
        cursor.execute(text)
        return list(cursor.fetchall()) if cursor.description else []


def difference(world: ReplicationWorld) -> str | None:
    (table,) = world.tables
    with opened(world.address) as connection:
        source = source_rows(connection, world.tables)[table.name]
    return differences(table, source, target_rows(_target(world, table), table))


def _target(world: ReplicationWorld, table: SourceTable) -> Any:
    return world.spark.read.format("delta").load(world.objects()[table.name].target.path)


def test_keys_that_move_while_the_table_is_read_are_read_where_they_were(world: ReplicationWorld) -> None:
    """They move when the position is taken and nothing is read yet."""
    world.prepare()
    moved = threading.Event()

    def move(text: str) -> None:
        if "copying as of" in text:
            run(world, MOVE)
            moved.set()

    world.said = move
    world.backfill("orders")
    assert moved.is_set()
    as_it_was = _target(world, world.tables[0])
    assert as_it_was.where("id > 100").count() == 0, "the read was not as of the position"
    world.catch_up()
    assert difference(world) is None


def test_parts_that_are_read_as_they_are_lose_rows_that_moved_and_this_is_noticed(world: ReplicationWorld) -> None:
    """Why a backfill is pinned: on rows that were read part by part the same events cannot be applied."""
    world.prepare()
    world.backfill("orders")
    upper = run(world, "SELECT id FROM shop.orders WHERE id > 20")
    run(world, MOVE)
    lower = run(world, "SELECT id FROM shop.orders WHERE id <= 20")
    read = [id for (id,) in (*upper, *lower)]
    assert len(read) == 30
    path = world.objects()["orders"].target.path
    part = world.spark.read.format("delta").load(path).where(F.col("id").isin(read)).localCheckpoint()
    part.write.format("delta").mode("overwrite").save(path)
    world.capture()
    with pytest.raises(ObjectFailed, match="leaves out values"):
        world.apply("orders")
    lacking = difference(world)
    assert lacking is not None
    assert "lacks 10 rows of 40" in lacking
