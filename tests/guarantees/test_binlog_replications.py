"""A MariaDB or MySQL that is written to all the while is mirrored row by row, backfills included."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.databases.mariadb import BinlogServer, mariadb_or_skip
from tests.databases.mysql_server import mysql_or_skip
from tests.guarantees.binlog_world import NAME, BinlogWorld
from tests.tiers import some
from tidemark.replication.planning.positions import epoch_of
from tidemark.replication.worker.status import history

pytestmark = pytest.mark.spark


STARTED = {"mariadb": mariadb_or_skip, "mysql": mysql_or_skip}


@pytest.fixture(scope="module", params=some([*STARTED], ["mariadb"], "a server that has to be fetched first"))
def server(request: pytest.FixtureRequest) -> Iterator[BinlogServer]:
    with STARTED[request.param]() as running:
        yield running


@pytest.fixture(params=some([*STARTED], ["mariadb"], "a server that has to be fetched first"))
def pair(request: pytest.FixtureRequest) -> Iterator[tuple[BinlogServer, BinlogServer]]:
    """A primary and its replica."""
    start, own = STARTED[request.param], ("--server-id=77", "--log-slave-updates", "--log-bin=other")
    with start() as primary, start(own) as replica:
        for one in (primary, replica):
            one.forget_log()
        replica.follow(primary)
        yield primary, replica


def test_random_writers_are_mirrored_through_backfills_ddl_and_a_restart(
    spark: SparkSession, server: BinlogServer, tmp_path: Path
) -> None:
    world = BinlogWorld(spark, server, tmp_path)
    world.write(1)
    world.write(2)
    world.turn("one")
    server.sql("ALTER TABLE orders ADD COLUMN more INT NOT NULL DEFAULT 7, MODIFY v VARCHAR(60)", world.database)
    server.sql("INSERT INTO items VALUES (-1, 'x', NULL)", world.database)
    world.turn("two")
    assert world.rest() > 50
    server.restart()
    server.sql("UPDATE orders SET more = 8 WHERE id < 10", world.database)
    world.catch_up()
    world.require_same()


def test_a_table_that_is_emptied_and_one_that_comes_later_are_mirrored(
    spark: SparkSession, server: BinlogServer, tmp_path: Path
) -> None:
    world = BinlogWorld(spark, server, tmp_path)
    server.sql("INSERT INTO items VALUES (1, 'x', 'n'), (2, 'y', NULL)", world.database)
    world.turn("one")
    server.sql("TRUNCATE TABLE items", world.database)
    server.sql("INSERT INTO items VALUES (3, 'z', 'after')", world.database)
    server.sql("CREATE TABLE later (id BIGINT UNSIGNED PRIMARY KEY)", world.database)
    server.sql("INSERT INTO later VALUES (18446744073709551615)", world.database)
    world.catch_up()
    world.require_same()
    assert set(world.objects()) == {"orders", "items", "later"}


def test_a_primary_that_is_killed_under_load_is_followed_to_the_replica_that_takes_over(
    spark: SparkSession, pair: tuple[BinlogServer, BinlogServer], tmp_path: Path
) -> None:
    """Without a person: no copy is made again, and each event is in the event log once."""
    primary, replica = pair
    world = BinlogWorld(spark, primary, tmp_path)
    world.write(1)
    world.turn("one")
    world.prepare()
    world.capture()  # more than targets have
    copies = {name: one.snapshot for name, one in world.objects().items()}
    replica.wait_for(world.replication.gtids or "")
    primary.stop(crash=True)
    assert world.rest() > 20
    replica.promote()
    world.answer_from(replica)
    world.write(2)
    world.prepare()
    world.capture()
    assert world.rest() > 20
    world.catch_up()
    world.require_same()
    assert epoch_of(world.replication.captured) == 2
    assert {name: one.snapshot for name, one in world.objects().items()} == copies
    acts = [one.act for one in history(world.store, NAME, limit=1000) if one.object_uid is None]
    assert acts.count("fail over") == 1
    events = spark.read.format("delta").load(f"{tmp_path}/events")
    assert events.count() == events.select("uuid").distinct().count() > 0
    for epoch in (1, 2):
        assert events.where(f"position LIKE '000{epoch}-%' AND change <> 'HEARTBEAT'").count() > 0
