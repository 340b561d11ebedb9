"""Rows of a snapshot are told apart by UUIDs that a second reading of it gives again."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.engine.replication.replicated_world import ReplicatedWorld
from tests.postgresql import PostgresServer
from tidemark.replication.driver.postgresql_copy import source_rows
from tidemark.replication.sources.postgresql.pinned import pinned_table

pytestmark = pytest.mark.spark

PARTITIONED = (
    "CREATE TABLE t (id int PRIMARY KEY, v text) PARTITION BY RANGE (id)",
    "CREATE TABLE t1 PARTITION OF t FOR VALUES FROM (0) TO (1000)",
    "CREATE TABLE t2 PARTITION OF t FOR VALUES FROM (1000) TO (10000)",
    "INSERT INTO t SELECT g, repeat('v', 200) FROM generate_series(1, 2000) g",
)
WHOLE = ("CREATE TABLE t (id int PRIMARY KEY, v text)", *PARTITIONED[3:])


def uuids(world: ReplicatedWorld, *partitions: int) -> list[dict[int, str]]:
    """By the row's key, of one snapshot, read in so many sessions each time."""
    request, address = world.backfill_ask(), world.source.address
    with pinned_table(address, int(world.oid), name="t") as table:
        readings = [
            source_rows(world.spark, replace(request, partitions=count), address, table).collect()
            for count in partitions
        ]
    return [{row.id: row.datastream_metadata.uuid for row in rows} for rows in readings]


@pytest.mark.parametrize("made", [PARTITIONED, WHOLE], ids=["partitioned", "whole"])
def test_a_second_reading_of_a_snapshot_gives_each_row_its_uuid_again_and_another_snapshot_others(
    spark: SparkSession, source_server: PostgresServer, tmp_path: Path, made: tuple[str, ...]
) -> None:
    world = ReplicatedWorld(spark, source_server, tmp_path, made)
    try:
        first, again = uuids(world, 1, 3)
        world.source.sql("INSERT INTO t VALUES (2001, 'v')")
        (later,) = uuids(world, 2)
    finally:
        world.close()
    assert first == again
    assert len(set(first.values())) == len(first) == 2000
    assert not set(first.values()) & set(later.values())


def test_a_copy_reads_with_the_parameters_of_the_source(
    spark: SparkSession, source_server: PostgresServer, tmp_path: Path
) -> None:
    """The table can be read by a role alone that the user has to take."""
    world = ReplicatedWorld(spark, source_server, tmp_path, WHOLE)
    world.source.sql(
        "CREATE ROLE keeper_of_t REPLICATION",
        "CREATE ROLE guest_of_t LOGIN NOINHERIT REPLICATION PASSWORD 'x' IN ROLE keeper_of_t",
        "ALTER TABLE t OWNER TO keeper_of_t",
    )
    parameters = {"options": "-c role=keeper_of_t", "target_session_attrs": "read-write", "gssencmode": "disable"}
    guest = replace(world.source.address, user="guest_of_t", password="x", parameters=parameters)
    try:
        with pinned_table(guest, int(world.oid), name="t") as table:
            assert source_rows(world.spark, world.backfill_ask(), guest, table).count() == 2000
    finally:
        world.close()
