"""Commits of a MariaDB come into the event log exactly once, however runs of capture end."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from tests.databases.mariadb import BinlogServer, mariadb_or_skip
from tests.databases.mysql.captured import BinlogWorld
from tests.engine.replication.capturing import NOW
from tests.until import wait_until
from tidemark.errors import LogPurged, SourceIsAnother, SourceRefused, SourceSetBack, SourceUnreachable
from tidemark.jobs.workspace import Workspace
from tidemark.lake.delta_log import DeltaLog
from tidemark.lake.event_logs import batches, capture_app_id
from tidemark.replication.driver.capture import capture_events
from tidemark.replication.model.jobs import CaptureReport
from tidemark.replication.model.replication import LogPosition, TableSchema
from tidemark.replication.planning.events import EVENT_NAMESPACE
from tidemark.replication.planning.positions import parse_file_place

pytestmark = pytest.mark.spark

APP_ID = capture_app_id("store", "uid")


class Died(Exception):
    """Stands for the end of the process."""


@dataclass
class CaptureWorld:
    """`source.position` and `batches` are what a store would know, once `store` was called with a report."""

    spark: SparkSession
    source: BinlogWorld
    home: Path
    batches: int = 0
    schemas: dict[str, TableSchema] = field(default_factory=dict)

    def capture(
        self,
        *,
        say: Callable[[str], None] = lambda _: None,
        stop_if_due: Callable[[], None] = lambda: None,
        system_id: str | None = None,
        **options: Any,
    ) -> CaptureReport:
        request = self.source.request(**options)
        objects = tuple(replace(one, schema=self.schemas.get(one.source_id)) for one in request.objects)
        request = replace(
            request,
            event_log=f"file://{self.home}/events",
            objects=objects,
            captured=self.source.position,
            batches=self.batches,
            system_id=system_id or request.system_id,
        )
        with Workspace(f"file://{self.home}/_tidemark", "capture") as workspace:
            return capture_events(
                self.spark, "store", request, self.source.address, workspace, now=NOW, say=say, stop_if_due=stop_if_due
            )

    def store(self, report: CaptureReport) -> None:
        self.source.position, self.batches = report.captured, report.batches
        self.schemas.update(report.schemas)

    @property
    def log(self) -> DeltaLog:
        return DeltaLog.open(f"file://{self.home}/events")

    @property
    def rows(self) -> DataFrame:
        return self.spark.read.format("delta").load(f"{self.home}/events")

    def events(self) -> list[Any]:
        return self.rows.where("change <> 'SCHEMA'").orderBy("position", "sequence").collect()

    def keys(self) -> list[str]:
        return [row["key"] for row in self.events()]


@pytest.fixture(scope="module")
def server() -> Iterator[BinlogServer]:
    with mariadb_or_skip() as server:
        yield server


@pytest.fixture
def world(spark: SparkSession, server: BinlogServer, tmp_path: Path) -> CaptureWorld:
    source = BinlogWorld(server)
    source.sql("CREATE TABLE t (id INT PRIMARY KEY, v VARCHAR(2000))")
    source.replicate("t")
    return CaptureWorld(spark, source, tmp_path)


def test_an_event_has_what_datastream_tells_and_its_place(world: CaptureWorld) -> None:
    world.source.sql("INSERT INTO t VALUES (1, 'a')", "UPDATE t SET id = 2")
    report = world.capture()
    database = world.source.database
    insert, gone, come = world.events()
    assert report.events == {f"{database}.t": 3}
    assert (report.transactions, report.batches, report.protocol, report.lag_bytes) == (2, 1, "binlog", 0)
    assert (insert["stream_name"], insert["read_method"]) == ("shop", "mariadb-cdc-binlog")
    assert insert["object"] == f"{database}_t"
    metadata = insert["source_metadata"]
    assert (metadata["database"], metadata["table"], metadata["change_type"]) == (database, "t", "INSERT")
    assert (metadata["primary_keys"], metadata["server_id"], metadata["log_file"]) == (["id"], 901, "test-bin.000001")
    assert metadata["gtid"] == metadata["tx_id"]
    assert metadata["gtid"].startswith("0-901-")
    assert [row["source_metadata"]["is_deleted"] for row in (insert, gone, come)] == [False, True, False]
    assert (gone["key"], come["key"], come["old_key"]) == ('["1"]', '["2"]', '["1"]')
    assert json.loads(insert["payload"]) == {"id": "1", "v": "a"}
    place = parse_file_place(insert["position"])
    assert place.file == metadata["log_file"]
    assert place.offset < metadata["log_position"]


def test_uuids_and_sort_keys_come_of_the_place_in_the_log(world: CaptureWorld) -> None:
    world.source.sql("INSERT INTO t VALUES (1, 'a'), (2, 'b'), (3, 'c')", "UPDATE t SET id = 9 WHERE id = 1")
    begin = world.source.position
    staged = {(row["commit"], row["sequence"]): row for row in world.source.batch()}
    world.source.position = begin
    world.capture()
    rows = world.rows.collect()
    assert len(rows) == len(staged) == 6
    assert len({row["uuid"] for row in rows}) == 6
    for row in rows:
        one = staged[row["position"], row["sequence"]]
        name = f"{one['gtid']}|{one['nth']}|{one['row']}|{one['half']}"
        assert row["uuid"] == str(uuid.uuid5(EVENT_NAMESPACE, name))
        assert row["sort_keys"] == [str(one["at"] // 1000), one["file"], str(one["place"]), str(one["sequence"])]


def test_batches_are_whole_transactions(world: CaptureWorld) -> None:
    for first in range(0, 50, 10):
        world.source.sql(f"INSERT INTO t VALUES {', '.join(f'({n}, NULL)' for n in range(first, first + 10))}")
    report = world.capture(max_events=15)
    assert (report.batches, report.transactions, set(report.events.values())) == (3, 5, {50})
    assert world.keys() == [f'["{number}"]' for number in range(50)]
    found = list(batches(world.log, APP_ID))
    assert [(one.number, one.transactions) for one in found] == [(3, 1), (2, 2), (1, 2)]
    assert found[0].start == found[1].end
    assert found[0].end == report.captured.commit


def test_a_run_without_an_event_writes_nothing(world: CaptureWorld) -> None:
    world.source.sql("INSERT INTO t VALUES (1, 'a')")
    world.store(world.capture())
    head, before = world.log.head(), world.source.position
    world.source.sql("CREATE TABLE beside (a INT)", "INSERT INTO beside VALUES (1)")
    report = world.capture()
    assert (world.log.head(), report.batches, sum(report.events.values())) == (head, 1, 0)
    assert report.captured > before


@pytest.mark.parametrize("call", [1, 2, 3])
def test_a_run_that_dies_loses_and_doubles_nothing(world: CaptureWorld, call: int) -> None:
    """At any of its steps before the commit."""
    world.source.sql("INSERT INTO t VALUES (1, 'a'), (2, 'b')", "DELETE FROM t WHERE id = 1")
    calls: list[None] = []

    def die() -> None:
        calls.append(None)
        if len(calls) == call:
            raise Died

    if call < 3:
        with pytest.raises(Died):
            world.capture(stop_if_due=die)
    else:  # behind the commit, before anybody knows of it
        with pytest.raises(Died):
            world.capture(say=lambda _: (_ for _ in ()).throw(Died()))
    world.source.sql("INSERT INTO t VALUES (3, 'c')")
    report = world.capture()
    assert [(row["change"], row["key"]) for row in world.events()] == [
        ("INSERT", '["1"]'),
        ("INSERT", '["2"]'),
        ("DELETE", '["1"]'),
        ("INSERT", '["3"]'),
    ]
    assert sum(report.events.values()) == 4
    assert world.rows.where("change = 'SCHEMA'").count() == 1


def test_of_two_captures_at_once_one_takes_over_what_the_other_wrote(world: CaptureWorld) -> None:
    world.source.sql("INSERT INTO t VALUES (1, 'a'), (2, 'b')")
    said: list[str] = []
    others: list[CaptureReport] = []

    def other_comes_first() -> None:
        if not others and not world_is_empty():
            others.append(world.capture())

    calls: list[None] = []

    def world_is_empty() -> bool:
        calls.append(None)
        return len(calls) < 2

    late = world.capture(stop_if_due=other_comes_first, say=said.append)
    assert world.keys() == ['["1"]', '["2"]']
    assert late.events == others[0].events
    assert any("another capture" in line for line in said)


def test_a_source_that_goes_away_in_the_middle_loses_nothing(world: CaptureWorld) -> None:
    numbers = ", ".join(f"({number})" for number in range(120))
    world.source.sql("CREATE TABLE n (n INT)", f"INSERT INTO n VALUES {numbers}")
    world.source.sql("INSERT INTO t SELECT x.n * 120 + y.n, REPEAT('v', 2000) FROM n x, n y")
    ended: list[None] = []

    def end_sessions() -> None:
        ended.append(None)
        if len(ended) == 2:
            for number, user in world.source.sql("SELECT id, user FROM information_schema.processlist"):
                if user == "tidemark":
                    world.source.sql(f"KILL {number}")

    with pytest.raises(SourceUnreachable):
        world.capture(stop_if_due=end_sessions)
    assert world.rows.count() == 0
    assert sum(world.capture().events.values()) == 14400
    assert world.rows.select("key").distinct().count() == 14401  # and null, of the schema


def test_another_server_or_log_is_noticed_before_anything_is_read(world: CaptureWorld) -> None:
    world.source.sql("INSERT INTO t VALUES (1, 'a')")
    with pytest.raises(SourceIsAnother):
        world.capture(system_id="0-1")
    known = world.source.position
    place = parse_file_place(known.commit)
    for wrong in (
        replace(place, number=place.number + 7),
        replace(place, offset=1 << 39),
        replace(place, base="other"),
    ):
        world.source.position = wrong.position
        with pytest.raises(SourceSetBack):
            world.capture()
    world.source.position = replace(place, number=0).position
    with pytest.raises(LogPurged, match="purged"):
        world.capture()
    world.source.position = known
    assert sum(world.capture().events.values()) == 1


def test_a_server_that_restarts_goes_on_in_a_new_file(spark: SparkSession, tmp_path: Path) -> None:
    """A crash in between loses nothing that was committed, and the error of a purged log names it."""
    with mariadb_or_skip(("--sync-binlog=1", "--innodb-flush-log-at-trx-commit=1")) as server:
        source = BinlogWorld(server)
        source.sql("CREATE TABLE t (id INT PRIMARY KEY, v VARCHAR(20))")
        source.replicate("t")
        world = CaptureWorld(spark, source, tmp_path)
        source.sql("INSERT INTO t VALUES (1, 'a')")
        server.stop(crash=True)
        with pytest.raises((SourceUnreachable, ConnectionError)):
            world.source.here()
        server.start()
        source.sql("INSERT INTO t VALUES (2, 'b')")
        world.store(world.capture())
        assert world.keys() == ['["1"]', '["2"]']
        source.sql("INSERT INTO t VALUES (3, 'c')", "FLUSH BINARY LOGS", "INSERT INTO t VALUES (4, 'd')")
        wait_until(lambda: _purged(source, parse_file_place(source.position.commit).file))
        with pytest.raises(LogPurged, match=r"purged its binary log test-bin\.\d+"):
            world.capture()
        assert world.rows.count() == 3


def _purged(source: BinlogWorld, file: str) -> bool:
    """A server keeps a file for a moment, until its engine does not need it after a crash."""
    number = int(file.rpartition(".")[2])
    source.sql("FLUSH BINARY LOGS", f"PURGE BINARY LOGS TO 'test-bin.{number + 1:06d}'")
    return file not in [row[0] for row in source.sql("SHOW BINARY LOGS")]


def test_events_in_a_form_without_rows_or_names_write_nothing(world: CaptureWorld) -> None:
    for name, bad, good, statement in (
        ("binlog_row_metadata", "MINIMAL", "FULL", "INSERT INTO t VALUES (5, 'a')"),
        ("binlog_row_image", "MINIMAL", "FULL", "UPDATE t SET v = 'b'"),
        ("binlog_format", "STATEMENT", "ROW", "UPDATE t SET v = 'c'"),
    ):
        world.source.sql(f"SET GLOBAL {name} = {bad}")
        try:
            world.source.sql(statement)
        finally:
            world.source.sql(f"SET GLOBAL {name} = {good}")
        with pytest.raises(SourceRefused, match=f"{name}|STATEMENT"):
            world.capture()
        world.source.position = world.source.here()
    assert world.rows.count() == 0
    assert isinstance(world.source.position, LogPosition)
