"""A backfill is the table as of the version behind which the group's records begin: no gap, no overlap, once."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest
from delta.tables import DeltaTable
from pyspark.sql import SparkSession

from tests.table_templates import put_table
from tidemark.change_streams.driver.backfill import backfill_table
from tidemark.change_streams.driver.sinks import ChunkSink
from tidemark.change_streams.model.backfill import BackfillRequest
from tidemark.change_streams.model.change_streams import ChangeStreamOptions, WatchedTable
from tidemark.change_streams.model.sinks import ChunkWrite, Sink, SinkKind
from tidemark.change_streams.worker.backfill import BackfillPoint, begin_backfill, finish_backfill
from tidemark.change_streams.worker.capture import capture
from tidemark.change_streams.worker.definitions import create_change_stream, get_change_stream, watch
from tidemark.change_streams.worker.groups import create_group, reset_group
from tidemark.change_streams.worker.waves import chunk_written, commit_wave, plan_wave
from tidemark.control.store import ControlStore
from tidemark.errors import InvalidArgument, TargetDoesNotFit
from tidemark.jobs.run import run as run_job
from tidemark.jobs.spark_work import own_session
from tidemark.lake.delta_log import DeltaLog
from tidemark.model.statements import Evidence
from tidemark.model.streams import Addressing, TableRef
from tidemark.streams.worker.limits import JobPaths
from tidemark.streams.worker.runtime import Runtime

pytestmark = pytest.mark.spark


class World:
    """A watched table `db.t` with two rows, and a target of the same columns."""

    def __init__(self, spark: SparkSession, root: Path) -> None:
        self.spark, self.root = spark, root
        self.store = ControlStore(f"sqlite:///{root}/control.db")
        self.source = self.create("t", "id BIGINT, v STRING", "TBLPROPERTIES ('delta.enableRowTracking' = 'true')")
        self.target = self.create("mirror", "id BIGINT, v STRING")
        self.sql("INSERT INTO {t} VALUES (1, 'a'), (2, 'b')")
        create_change_stream(
            self.store,
            name="s",
            tables=(WatchedTable(self.source, ("id",), None, 1),),
            everything=False,
            options=ChangeStreamOptions(),
            log_path=str(root / "log"),
        )

    def create(self, name: str, columns: str, properties: str = "") -> TableRef:
        path = str(self.root / name)
        put_table(self.spark, self.root / name, f"CREATE TABLE {{t}} ({columns}) USING delta {properties}")
        return TableRef(f"db.{name}", path, DeltaLog.open(path).state().table_id, Addressing.LAKE)

    def sql(self, text: str) -> None:
        self.spark.sql(text.format(t=f"delta.`{self.source.path}`"))

    def capture(self) -> None:
        capture(
            Runtime(
                self.store,
                run=lambda spec: run_job(self.spark, spec, say=lambda _: None),
                paths=JobPaths(str(self.root / "_tidemark"), str(self.root / "jobs")),
                tables=lambda one: DeltaLog.open(one if isinstance(one, str) else one.path),
            ),
            "s",
            allowed_skew=timedelta(0),
        )

    def begin(self, group: str, table: str = "db.t", target: TableRef | None = None) -> BackfillPoint:
        return begin_backfill(self.store, "s", group, table, target or self.target)

    def backfill(self, point: BackfillPoint, target: TableRef | None = None, *, overwrite: bool = False) -> Evidence:
        request = BackfillRequest(
            point.group.uid, self.source, point.version, ("id",), None, target or self.target, overwrite
        )
        done = backfill_table(own_session(self.spark), self.store.store_id, request, lambda: None)
        finish_backfill(self.store, point, sum(done.rows.values()))
        return done

    def deliver(self, group: str) -> None:
        """One wave of the group into the target."""
        log_path = get_change_stream(self.store, "s").log_path
        sink = Sink(SinkKind.MERGE, self.target)
        wave = plan_wave(self.store, "s", group, run="r", max_chunks=9, max_rows=9)
        for chunk in wave.chunks:
            one = ChunkSink(own_session(self.spark), self.store.store_id, log_path, sink, lambda: None)
            answer = one.write(ChunkWrite(chunk))
            chunk_written(self.store, chunk, answer.rows or 0, answer.facts)
        commit_wave(self.store, "s", group, run="r")

    def rows(self, table: TableRef) -> list[tuple[object, ...]]:
        return sorted(tuple(row) for row in self.spark.read.format("delta").load(table.path).collect())


@pytest.fixture
def world(spark: SparkSession, tmp_path: Path) -> World:
    return World(spark, tmp_path)


def test_rows_and_records_together_are_the_table_whatever_is_captured_between(world: World) -> None:
    world.sql("UPDATE {t} SET v = 'before' WHERE id = 1")
    point = world.begin("g", "DB.T")
    assert point.version == 1
    world.sql("DELETE FROM {t} WHERE id = 2")
    world.capture()
    world.sql("INSERT INTO {t} VALUES (3, 'c')")
    assert world.begin("g").version == 1
    assert world.backfill(point).found is False
    assert world.rows(world.target) == [(1, "a"), (2, "b")]
    world.deliver("g")
    assert world.rows(world.target) == [(1, "before")]
    again = world.backfill(world.begin("g"))
    assert (again.found, world.rows(world.target)) == (True, [(1, "before")])

    later = world.begin("later")
    assert later.version == 3
    world.capture()
    assert world.begin("later").version == 3


def test_rows_that_would_go_are_asked_for_first(world: World) -> None:
    point = world.begin("g")
    world.spark.sql(f"INSERT INTO delta.`{world.target.path}` VALUES (9, 'mine')")
    with pytest.raises(InvalidArgument, match="set overwrite=True"):
        world.backfill(point)
    assert world.rows(world.target) == [(9, "mine")]
    world.backfill(point, overwrite=True)
    assert world.rows(world.target) == [(1, "a"), (2, "b")]


def test_records_without_their_backfill_are_not_overwritten_by_it(world: World) -> None:
    create_group(world.store, "s", "g", "earliest")
    world.sql("INSERT INTO {t} VALUES (3, 'c')")
    world.capture()
    world.deliver("g")
    with pytest.raises(InvalidArgument, match="reset the group"):
        world.backfill(world.begin("g"), overwrite=True)
    reset_group(world.store, "s", "g", "now")
    assert world.backfill(world.begin("g"), overwrite=True).found is False
    assert world.rows(world.target) == world.rows(world.source)


def test_what_cannot_be_backfilled_is_refused_before_anything_is_written(world: World) -> None:
    with pytest.raises(InvalidArgument, match=r"does not watch it; it watches db\.t"):
        world.begin("g", "db.other")
    narrow = world.create("narrow", "id BIGINT")
    with pytest.raises(TargetDoesNotFit):
        world.backfill(world.begin("g", target=narrow), narrow)
    assert DeltaLog.open(narrow.path).head() == 0
    first = get_change_stream(world.store, "s").published_until
    world.sql("INSERT INTO {t} VALUES (3, 'c')")
    world.capture()
    create_group(world.store, "s", "between", first + timedelta(microseconds=1))
    with pytest.raises(InvalidArgument, match="in the middle of a batch"):
        world.begin("between")


def test_what_delta_generates_is_left_out_as_the_records_leave_it_out(world: World) -> None:
    (DeltaTable.create(world.spark).location(str(world.root / "made"))
        .addColumn("id", "BIGINT").addColumn("v", "STRING")
        .addColumn("shout", "STRING", generatedAlwaysAs="upper(v)")
        .property("delta.enableRowTracking", "true").execute())  # fmt: skip
    path = str(world.root / "made")
    world.source = TableRef("db.made", path, DeltaLog.open(path).state().table_id, Addressing.LAKE)
    world.spark.sql(f"INSERT INTO delta.`{path}` (id, v) VALUES (1, 'a')")
    watch(world.store, "s", (WatchedTable(world.source, ("id",), None, 1),), everything=False)
    world.backfill(world.begin("g", "db.made"))
    assert world.rows(world.target) == [(1, "a")]
