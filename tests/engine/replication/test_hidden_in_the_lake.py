"""Values that are hidden are in no file of the lake, however they came; and rows of which the log tells too little."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from tests.engine.replication.event_histories import STORE
from tests.engine.replication.replicated_world import ReplicatedWorld
from tests.postgresql import PostgresServer
from tidemark.errors import InvalidArgument, ObjectNotReplicable, SourceRefused
from tidemark.replication.driver.apply import apply_events
from tidemark.replication.model.jobs import ColumnRules
from tidemark.replication.model.replication import ReplicationOptions, Selection
from tidemark.replication.planning.hiding import mark_of
from tidemark.replication.planning.seen_tables import carried
from tidemark.replication.planning.showing import held_columns, rules_of
from tidemark.replication.sources.postgresql.catalog import columns_of
from tidemark.replication.sources.postgresql.connection import connect
from tidemark.replication.sources.postgresql.fingerprints import seen_tables

SECRET = "a secret of sixteen"
PRIVATE = "123-45-6789"
NUMBER = 987654321

Make = Callable[..., ReplicatedWorld]


@pytest.fixture
def make(spark: SparkSession, source_server: PostgresServer, tmp_path: Path) -> Iterator[Make]:
    made: list[ReplicatedWorld] = []

    def new(*sql: str) -> ReplicatedWorld:
        made.append(ReplicatedWorld(spark, source_server, tmp_path / f"world{len(made)}", sql))
        made[-1].source.hash_secret = SECRET
        return made[-1]

    yield new
    for world in made:
        world.close()


def look(world: ReplicatedWorld, options: ReplicationOptions | None = None, *exclude: str) -> ColumnRules:
    """As a run does it: jobs are told of it."""
    options = ReplicationOptions(target="mirror") if options is None else options
    one = world.source.captured[world.oid]
    with connect(world.source.address) as connection:
        found = columns_of(connection, int(world.oid))
        seen = seen_tables(connection, [int(world.oid)])[world.oid]
    rules = rules_of(Selection(exclude=exclude), options, ())
    rules = replace(rules, held=held_columns(rules, one.name, found))
    excluded = tuple(name.rsplit(".", 1)[1] for name in exclude)
    world.source.captured[world.oid] = replace(
        one, rules=rules, seen=carried(None, seen), excluded=excluded, registered=world.schema
    )
    world.capturing.request = replace(world.capturing.request, options=options)
    return rules


def hashed(text: object) -> str:
    return hmac.new(SECRET.encode(), str(text).encode(), hashlib.sha256).hexdigest()


def everything_in(home: Path) -> str:
    """All values of all files, whatever they are compressed with."""
    told = []
    for file in home.rglob("*"):
        if file.suffix == ".parquet":
            told.append(str(pq.read_table(file).to_pydict()))
        elif file.is_file():
            told.append(file.read_bytes().decode("latin-1"))
    return "\n".join(told)


def test_hidden_values_are_in_no_file_and_rows_are_told_apart_by_hashes(make: Make) -> None:
    world = make(
        "CREATE TABLE t (id text PRIMARY KEY, n int, ns int[], b bytea, f real, gone text, name text, free text)",
        f"INSERT INTO t SELECT '{PRIVATE}/' || i, {NUMBER}, ARRAY[{NUMBER}, NULL], '\\xab', 1.5, '{PRIVATE}',"
        f" nullif('Ann {PRIVATE}', 'Ann {PRIVATE}' || repeat('.', i % 2)), 'free ' || i FROM generate_series(1, 4) i",
    )
    options = ReplicationOptions(
        target="mirror", mask_columns=("public.t.name",),
        hash_columns=("public.t.id", "public.t.n*", "public.t.b", "public.t.f"), hash_mark=mark_of(SECRET),
    )  # fmt: skip
    rules = look(world, options, "public.t.gone")
    world.source.sql("ALTER TABLE t RENAME gone TO still_here")  # behind the look
    report = world.backfill(world.backfill_ask(rules=rules, excluded=("gone",)))
    assert report.seen is not None
    world.source.sql(
        "UPDATE t SET free = 'again', name = 'Bob', n = n WHERE id LIKE '%/1'",
        f"UPDATE t SET id = '{PRIVATE}/moved' WHERE id LIKE '%/2'", "DELETE FROM t WHERE id LIKE '%/3'",
        f"INSERT INTO t VALUES ('{PRIVATE}/5', {NUMBER}, '{{}}', '\\xab', 1.5, '{PRIVATE}', '{PRIVATE}', 'new')",
    )  # fmt: skip
    look(world, options, "public.t.gone", "public.t.still_here")
    assert world.apply().needs_backfill is None
    same = (hashed(NUMBER), hashed(f'["{NUMBER}",null]'), hashed("ab"), hashed("1.5"))
    assert set(world.rows("id", "n", "ns", "b", "f", "name", "free")) == {
        (hashed(f"{PRIVATE}/1"), *same, "****", "again"),
        (hashed(f"{PRIVATE}/moved"), *same, None, "free 2"),
        (hashed(f"{PRIVATE}/4"), *same, None, "free 4"),
        (hashed(f"{PRIVATE}/5"), same[0], hashed("[]"), *same[2:], "****", "new"),
    }
    told = everything_in(world.home)
    assert hashed(f"{PRIVATE}/5") in told
    assert [one for one in (PRIVATE, str(NUMBER), SECRET, "still_here") if one in told] == []


def test_another_secret_or_none_hashes_nothing(make: Make) -> None:
    world = make("CREATE TABLE t (id int PRIMARY KEY)", "INSERT INTO t VALUES (1)")
    options = ReplicationOptions(target="mirror", hash_columns=("public.t.id",), hash_mark=mark_of(SECRET))
    rules = look(world, options)
    for secret, told in ((None, "has none"), ("short", "5 characters"), (SECRET + "!", "Restore the old one")):
        world.source.hash_secret = secret
        with pytest.raises(InvalidArgument, match=told):
            world.capture()
        with pytest.raises(InvalidArgument, match=told):
            world.backfill(world.backfill_ask(rules=rules))
    assert not (world.home / "events").exists()
    masked = rules_of(Selection(), ReplicationOptions(target="mirror", mask_columns=("*.*.id",)), ())
    with pytest.raises(ObjectNotReplicable, match="excluded or masked"):
        world.backfill(world.backfill_ask(rules=masked))


def test_rows_that_were_rewritten_under_another_type_need_a_backfill_at_once(make: Make) -> None:
    world = make("CREATE TABLE t (id int PRIMARY KEY, cents int, v varchar(3))", "INSERT INTO t VALUES (1, 5, 'a')")
    world.backfill()
    look(world)
    world.source.sql("ALTER TABLE t ALTER v TYPE text", "UPDATE t SET cents = 6")
    assert world.apply().needs_backfill is None
    look(world)
    world.source.sql("ALTER TABLE t ALTER cents TYPE bigint USING cents * 100", "INSERT INTO t VALUES (2, 7, 'b')")
    report = world.apply()
    assert report.needs_backfill == "column cents changed its type from integer to bigint, and its rows were rewritten"
    assert world.rows() == [(1, 6, "a")]


def test_what_old_rows_may_have_does_not_matter_to_a_target_without_rows(make: Make, tmp_path: Path) -> None:
    world = make("CREATE TABLE t (id int PRIMARY KEY, n int)")
    world.backfill()
    look(world)
    world.source.sql(
        "ALTER TABLE t ADD at timestamptz DEFAULT clock_timestamp()", "ALTER TABLE t ALTER n TYPE bigint USING n * 100",
        "INSERT INTO t VALUES (1, 100, 'epoch')",
    )  # fmt: skip
    request = world.apply_ask(world.capture())
    first = apply_events(world.spark, STORE, request, stop_after=3)  # the rows are in, and its answer is lost
    assert (first.needs_backfill, len(world.rows("id"))) == (None, 1)
    again = apply_events(world.spark, STORE, request)
    assert (again.needs_backfill, again.applied) == (None, request.end)
    assert world.rows("id", "n") == [(1, 100)]


def test_an_error_of_a_message_tells_no_value(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    from tidemark.replication.sources.postgresql import pgoutput

    world = make("CREATE TABLE t (id text PRIMARY KEY)")
    look(world)
    world.source.sql(f"INSERT INTO t VALUES ('{PRIVATE}')")
    real = pgoutput.decode_insert
    monkeypatch.setattr(pgoutput, "decode_insert", lambda data: (data + b"\xff").decode() and real(data))
    with pytest.raises(SourceRefused) as raised:
        world.capture()
    assert "UnicodeDecodeError" in str(raised.value)
    assert PRIVATE not in str(raised.value)
