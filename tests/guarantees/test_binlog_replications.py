"""A MariaDB or MySQL that is written to all the while is mirrored row by row, backfills included."""

from __future__ import annotations

import random
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import pymysql
import pytest
from pyspark.sql import SparkSession

from tests.databases.mariadb import BinlogServer, mariadb_or_skip
from tests.databases.mysql_server import mysql_or_skip
from tests.guarantees.binlog_world import NAME, BinlogWorld
from tests.tiers import some
from tidemark.replication.model.replication import WriteMode
from tidemark.replication.planning.positions import epoch_of
from tidemark.replication.worker.objects import request_backfill
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


@contextmanager
def bag_writers(world: BinlogWorld, number: int) -> Iterator[None]:
    """Sessions that write to the table `bag`, whose rows repeat."""
    ending = threading.Event()

    def write(seed: int) -> None:
        chance = random.Random(seed)
        with closing(world.server.connection(world.database)) as connection, connection.cursor() as cursor:
            while not ending.wait(0.03):
                row = (chance.randint(1, 9), chance.choice(["a", "b", None]))
                changed = chance.choice(["UPDATE bag SET v = 'c'", "DELETE FROM bag"])
                with suppress(pymysql.err.OperationalError):  # a deadlock
                    cursor.execute("INSERT INTO bag VALUES (%s, %s), (%s, %s)", (*row, *row))
                    cursor.execute(f"{changed} WHERE n = %s LIMIT 1", (chance.randint(1, 9),))
                    connection.commit()

    threads = [threading.Thread(target=write, args=(seed,), daemon=True) for seed in range(number)]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        ending.set()
        for thread in threads:
            thread.join(60)


@pytest.mark.parametrize("without_key", [WriteMode.APPEND_ONLY, WriteMode.MERGE], ids=["a log", "a mirror"])
def test_a_table_without_a_key_that_is_written_to_while_it_is_copied_has_each_row_as_often(
    spark: SparkSession, server: BinlogServer, tmp_path: Path, without_key: WriteMode
) -> None:
    database = server.new_database()
    server.sql("CREATE TABLE bag (n INT, v VARCHAR(9))", database)
    world = BinlogWorld(spark, server, tmp_path, database=database, without_key=without_key)
    with bag_writers(world, 3):
        world.turn("one")
        world.turn("two")
        if without_key is WriteMode.MERGE:
            request_backfill(world.store, NAME, [f"{database}.bag"], by=world.by("again"))
            world.turn("three")
    world.catch_up()
    source = Counter(server.sql("SELECT n, v FROM bag", database))
    target: Counter[tuple[object, ...]] = Counter()
    rows = spark.read.format("delta").load(world.objects()["bag"].target.path)
    for row in rows.collect():
        target[(row.n, row.v)] += -1 if "is_deleted" in row and row.is_deleted else 1
    assert min(target.values()) >= 0
    assert +target == source
    assert source.total() > 50


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
