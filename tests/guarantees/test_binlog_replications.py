"""A MariaDB or MySQL that is written to all the while is mirrored row by row, backfills included."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.databases.mariadb import BinlogServer, mariadb_or_skip
from tests.databases.mysql_server import mysql_or_skip
from tests.guarantees.binlog_world import BinlogWorld
from tests.tiers import some

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module", params=some(["mariadb", "mysql"], ["mariadb"], "a server that has to be fetched first"))
def server(request: pytest.FixtureRequest) -> Iterator[BinlogServer]:
    with (mariadb_or_skip if request.param == "mariadb" else mysql_or_skip)() as running:
        yield running


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
