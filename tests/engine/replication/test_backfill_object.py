"""A backfill is the table as of one exact position; the events behind it complete it, whatever is written meanwhile."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import RFC_4122, UUID

import psycopg
import pytest
from pyspark.sql import SparkSession

from tests.engine.replication.event_histories import STORE
from tests.engine.replication.replicated_world import ReplicatedWorld
from tests.postgresql import PASSWORD, USER, PostgresServer
from tidemark.errors import (
    BackfillGaveWay,
    BackfillInterrupted,
    ObjectNotReplicable,
    SlotBlocked,
    SourceRefused,
    TargetMovedOn,
    ValueDoesNotFit,
)
from tidemark.replication.driver.target_table import Target
from tidemark.replication.model.marks import parse_object_mark
from tidemark.replication.model.replication import LogPosition, WriteMode
from tidemark.replication.planning.positions import parse_lsn, position_of_lsn

pytestmark = pytest.mark.spark

SIMPLE = (
    "CREATE TABLE t (id int PRIMARY KEY, v text)",
    "INSERT INTO t SELECT g, 'v' || g FROM generate_series(1, 500) g",
)
TYPES = {
    "b": ("bool", "true", "false"),
    "s": ("smallint", "-32768", "7"),
    "l": ("bigint", "9223372036854775807", "-1"),
    "o": ("oid", "4294967295", "0"),
    "r": ("real", "'1.1'", "'NaN'"),
    "d": ("double precision", "1e-300", "'-Infinity'"),
    "n": ("numeric(12,3)", "-123456789.125", "0"),
    "nn": ("numeric", "1234567890123456789012345678901234567890.5", "'NaN'"),
    "c": ("char(5)", "'ab'", "''"),
    "vc": ("varchar(9)", "'ż\"\\'", "E'\\n\\t'"),
    "by": ("bytea", "'\\x00ff'", "''"),
    "da": ("date", "'0001-01-01'", "'9999-12-31'"),
    "ts": ("timestamp", "'2024-02-29 12:00:00.123456'", "'1500-01-01'"),
    "tz": ("timestamptz", "'2024-02-29 12:00:00.1+05:30'", "'1969-12-31 23:59:59.999999+00'"),
    "ti": ("time", "'23:59:59.5'", "'00:00'"),
    "iv": ("interval", "'1 year 2 days -03:04:05.6'", "'0'"),
    "u": ("uuid", "'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'", "'00000000-0000-0000-0000-000000000000'"),
    "j": ("json", "'{\"a\":  [1, null]}'", "'1'"),
    "jb": ("jsonb", '\'{"b":1,"a":"x"}\'', "'[]'"),
    "ip": ("inet", "'10.0.0.1'", "'10.0.0.0/8'"),
    "x": ("xml", "'<a>1</a>'", "'<b/>'"),
    "e": ("mood", "'sad'", "'it''s \"ok\"'"),
    "dom": ("code", "'ab'", "'cd'"),
    "ai": ("int[]", "'{1,NULL,3}'", "'{}'"),
    "at": ("text[]", '\'{"a,b","",NULL,"q\\""}\'', "'{x}'"),
    "ad": ("date[]", "'{2024-02-29}'", "'{}'"),
    "ab": ("bytea[]", "'{\"\\\\x00ff\"}'", "'{}'"),
    "ac": ("char(3)[]", "'{a,b}'", "'{}'"),
    "af": ("double precision[]", "'{1.5,NaN}'", "'{}'"),
    "al": ("bool[]", "'{t,f,NULL}'", "'{}'"),
    "ran": ("int4range", "'[1,5)'", "'empty'"),
    'Odd `name`, with.dots "q"': ("text", "'odd'", "''"),
}


@contextmanager
def opened(
    spark: SparkSession, server: PostgresServer, home: Path, *sql: str, **more: Any
) -> Iterator[ReplicatedWorld]:
    world = ReplicatedWorld(spark, server, home, sql, **more)
    try:
        yield world
    finally:
        world.close()


@pytest.fixture
def world(spark: SparkSession, source_server: PostgresServer, tmp_path: Path) -> Iterator[ReplicatedWorld]:
    with opened(spark, source_server, tmp_path, *SIMPLE) as made:
        yield made


def test_every_type_comes_alike_by_backfill_and_by_events(
    spark: SparkSession, source_server: PostgresServer, tmp_path: Path
) -> None:
    columns = ", ".join(f"{_quoted(name)} {kind}" for name, (kind, *_) in TYPES.items())
    first, second = (", ".join(value[place] for value in TYPES.values()) for place in (1, 2))
    nulls = ", ".join("NULL" for _ in TYPES)
    made = (
        "CREATE TYPE mood AS ENUM ('sad', 'it''s \"ok\"')",
        "CREATE DOMAIN code AS char(4)",
        f"CREATE TABLE t (id int PRIMARY KEY, {columns})",
    )
    with opened(spark, source_server, tmp_path, *made) as world:
        world.backfill()
        assert world.rows("id") == []
        world.source.sql(*(f"INSERT INTO t VALUES ({n}, {row})" for n, row in enumerate((first, second, nulls), 1)))
        world.apply()
        by_events = world.rows()
        metadata = world.rows("datastream_metadata")
        world.applied = None  # as if nobody read it
        report = world.backfill()
        assert (report.rows, report.applied) == (3, report.snapshot)
        assert repr(world.rows()) == repr(by_events)
        assert by_events[2][1:] == (None,) * len(TYPES)
        said = world.rows("datastream_metadata")
        uuids = {UUID(row[0]["uuid"]) for row in said}
        assert {(one.version, one.variant) for one in uuids} == {(8, RFC_4122)}
        assert len(uuids) == 3
        assert said != metadata


def test_a_copy_and_its_events_are_the_source_however_it_is_written_meanwhile(
    spark: SparkSession, source_server: PostgresServer, tmp_path: Path
) -> None:
    made = (
        "CREATE TABLE t (id int PRIMARY KEY, n int, big text)",
        "ALTER TABLE t ALTER big SET STORAGE EXTERNAL",
        "INSERT INTO t SELECT g, 0, repeat(g::text, 2000) FROM generate_series(1, 400) g",
    )
    with opened(spark, source_server, tmp_path, *made) as world:
        with writing(world) as written:
            first = world.backfill()
            world.apply()
            second = world.backfill()  # the target has been ahead of every older snapshot
        assert first.snapshot < second.snapshot <= second.applied
        assert written[0] > 10
        report = world.apply()
        assert report.needs_backfill is None
        assert world.rows() == world.source_rows()


@contextmanager
def writing(world: ReplicatedWorld) -> Iterator[list[int]]:
    """Updates, moved keys, deletes and inserts, as fast as they go; large values stay unchanged."""
    ended, count = threading.Event(), [0]

    def write() -> None:
        while not ended.wait(0.05):
            count[0] += 1
            n = count[0]
            a, b = n * 7919 % 400 + 1, n * 104729 % 400 + 1
            world.source.sql(
                f"UPDATE t SET n = n + 1 WHERE id IN ({a}, {b})",
                f"UPDATE t SET id = id + 100000 WHERE id = {a} AND {n} % 3 = 0",
                f"DELETE FROM t WHERE id = {b} AND {n} % 5 = 0",
                f"INSERT INTO t VALUES (1000 + {n}, {n}, repeat('x', 3000))",
            )

    thread = threading.Thread(target=write)
    thread.start()
    try:
        yield count
    finally:
        ended.set()
        thread.join()


def test_a_copy_is_found_again_and_an_older_one_comes_too_late(world: ReplicatedWorld) -> None:
    request = world.backfill_ask()
    report = world.backfill(request)
    assert (report.rows, report.found) == (500, False)
    assert world.left[-1].done == 500
    head = world.log.head()
    world.source.sql("DELETE FROM t")
    again = world.backfill(replace(request, object=replace(request.object, target=world.target)))
    assert report.seen is not None  # the catalog at its snapshot, which nobody knows any more of a copy that is found
    assert again == replace(report, found=True, seen=None)
    assert world.log.head() == head
    (commit,) = world.log.commits(head - 1, head)
    mark = parse_object_mark(commit.user_metadata)
    assert mark is not None
    assert (mark.kind.value, mark.start, mark.end) == ("backfill", report.snapshot, report.applied)
    assert mark.schema == report.schema
    world.apply()
    with pytest.raises(TargetMovedOn):
        world.backfill(request)
    assert world.rows() == []


def test_events_behind_the_copy_are_in_it_before_it_takes_the_place_of_a_target_that_has_them(
    world: ReplicatedWorld,
) -> None:
    world.backfill()
    ahead = LogPosition("7" * 16)

    def meanwhile(text: str) -> None:
        """The snapshot is taken; what commits now is behind it."""
        if "copying" in text:
            world.source.sql("UPDATE t SET v = 'later' WHERE id = 1", "DELETE FROM t WHERE id = 2")
            world.capture()

    request = world.backfill_ask(catch_up=ahead)
    head = world.log.head()
    report = world.backfill(request, say=meanwhile)
    assert (report.applied, report.rows) == (ahead, 499)
    assert report.snapshot < ahead
    assert world.rows() == world.source_rows()
    assert world.log.head() == head + 1
    assert not list((world.home / "_tidemark").glob("*/*"))


def test_a_copy_that_begins_anew_takes_nothing_of_the_try_before(world: ReplicatedWorld) -> None:
    """The target's events end between the two snapshots, so the first copy is laid beside it, and the second is not."""
    world.backfill()
    ((now,),) = world.source.sql("SELECT pg_current_wal_lsn()::text")
    between = position_of_lsn(parse_lsn(now) + (1 << 20))
    tries: list[str] = []

    def meanwhile(text: str) -> None:
        if "copying" in text and not tries:
            world.source.sql(
                "INSERT INTO t VALUES (501, 'later')",
                f"SELECT pg_logical_emit_message(false, 'more', repeat('x', {1 << 21}))",
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'tidemark'",
            )
        tries.extend([text] if "copying" in text else [])

    report = world.backfill(world.backfill_ask(catch_up=between), say=meanwhile, pauses=(0.0,))
    assert (len(tries), report.rows) == (2, 501)
    assert report.snapshot == report.applied > between
    assert world.rows() == world.source_rows()


def test_values_that_do_not_fit_leave_the_target_as_it_was(world: ReplicatedWorld) -> None:
    world.backfill()
    world.source.sql("ALTER TABLE t ADD until date", "UPDATE t SET until = 'infinity' WHERE id = 3")
    head = world.log.head()
    with pytest.raises(ValueDoesNotFit) as refused:
        world.backfill()
    assert (refused.value.facts["column"], refused.value.facts["value"]) == ("until", "infinity")
    assert world.log.head() == head


def test_a_table_without_a_key_is_appended_and_rows_that_are_alike_have_uuids_of_their_own(
    spark: SparkSession, source_server: PostgresServer, tmp_path: Path
) -> None:
    made = (
        "CREATE TABLE t (v text)",
        "ALTER TABLE t REPLICA IDENTITY FULL",
        "INSERT INTO t VALUES ('a'), ('a'), (NULL)",
    )
    with opened(spark, source_server, tmp_path, *made, keys=(), mode=WriteMode.APPEND_ONLY) as world:
        world.backfill()
        world.source.sql("DELETE FROM t WHERE v IS NULL")
        world.apply()
        assert world.rows("v", "change_type", "is_deleted") == [
            ("a", "INSERT", False),
            ("a", "INSERT", False),
            (None, "DELETE", True),
            (None, "INSERT", False),
        ]
        assert len({row[0]["uuid"] for row in world.rows("datastream_metadata")}) == 4
        report = world.backfill()
        assert (report.rows, len(world.rows("v"))) == (2, 6)
        numbers = [row[0] for row in world.rows("change_sequence_number")]
        assert len(numbers) == 6


def test_a_source_that_goes_away_in_the_middle_is_named(world: ReplicatedWorld) -> None:
    world.backfill()
    head = world.log.head()

    def stop(text: str) -> None:
        if "copying" in text:
            world.source.sql(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE backend_type = 'walsender'",
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'tidemark'",
            )

    with pytest.raises(BackfillGaveWay, match="the session that holds it was ended"):
        world.backfill(say=stop, pauses=())
    assert world.log.head() == head


def test_a_table_that_is_truncated_meanwhile_is_no_empty_copy(world: ReplicatedWorld) -> None:
    """The session that held it is gone, so nobody had to wait, and its snapshot, which would see no rows now."""

    def truncate(text: str) -> None:
        if "copying" in text:
            world.source.sql(
                "SELECT pg_terminate_backend(pid) FROM pg_locks "
                "WHERE relation = 't'::regclass AND pid <> pg_backend_pid()",
                "TRUNCATE t",
            )

    with pytest.raises(BackfillGaveWay, match="the session that holds it was ended"):
        world.backfill(say=truncate, pauses=())
    assert world.rows() == []
    assert world.target.table_id  # it was made, and has no copy
    assert Target(world.target, STORE, "o").newest() is None


def test_a_dropped_table_is_named(world: ReplicatedWorld) -> None:
    request = world.backfill_ask()
    world.source.sql("DROP TABLE t")
    with pytest.raises(ObjectNotReplicable, match="dropped"):
        world.backfill(request)


def test_an_open_transaction_that_blocks_the_snapshot_is_named(world: ReplicatedWorld) -> None:
    address = world.source.address
    with psycopg.connect(
        host=address.host, port=address.port, user=USER, password=PASSWORD, dbname=address.database
    ) as idle:
        idle.execute("UPDATE t SET v = 'x' WHERE id = 1")
        with pytest.raises(SlotBlocked, match="idle in transaction"):
            world.backfill(patience=timedelta(seconds=1))
        idle.rollback()


def test_rows_that_a_policy_hides_are_no_copy(world: ReplicatedWorld) -> None:
    world.source.sql(
        "CREATE ROLE reader LOGIN REPLICATION PASSWORD 'of-a-reader'",
        "GRANT SELECT ON t TO reader",
        "ALTER TABLE t ENABLE ROW LEVEL SECURITY",
        "CREATE POLICY few ON t USING (id < 10)",
    )
    try:
        reader = world.server.address(world.source.database, "reader", "of-a-reader")
        with pytest.raises((BackfillInterrupted, SourceRefused), match="row-level security"):
            world.backfill(address=reader)
    finally:
        world.source.sql("DROP OWNED BY reader", "DROP ROLE reader")


def test_a_partitioned_table_is_copied_whole(
    spark: SparkSession, source_server: PostgresServer, tmp_path: Path
) -> None:
    made = (
        "CREATE TABLE t (id int PRIMARY KEY, v text) PARTITION BY RANGE (id)",
        "CREATE TABLE t1 PARTITION OF t FOR VALUES FROM (0) TO (100)",
        "CREATE TABLE t2 PARTITION OF t FOR VALUES FROM (100) TO (10000)",
        "INSERT INTO t SELECT g, repeat('v', 200) FROM generate_series(1, 2000) g",
    )
    with opened(spark, source_server, tmp_path, *made) as world:
        assert world.backfill().rows == 2000
        assert len(set(world.rows("id"))) == 2000
        assert len({row[0]["uuid"] for row in world.rows("datastream_metadata")}) == 2000


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
