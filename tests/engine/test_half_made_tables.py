"""A table of our own whose making died between its directory and its first commit, or is under way elsewhere."""

from __future__ import annotations

import json
import os
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from threading import Barrier

import pytest
from pyspark.sql import SparkSession

from tests.databases.postgresql.event_log import EVENT_COLUMNS
from tests.engine.change_streams.captured import CREATED, UID, Captured, on_one_table
from tests.engine.half_made import DATA_AND_LOG, EMPTY, EMPTY_LOG, NOT_RENAMED, WITHOUT_ROWS, half_made
from tests.engine.lakes import Lake
from tests.tiers import some
from tidemark.change_streams.driver.capture import capture_batch
from tidemark.change_streams.driver.read import read_change_stream
from tidemark.change_streams.model.change_streams import CaptureResult
from tidemark.changes.planning import source_schema
from tidemark.delivery.driver.quarantine_table import create_quarantine_table
from tidemark.delivery.model.quarantine import QUARANTINE_COLUMNS
from tidemark.errors import TargetNotDelta
from tidemark.jobs.workspace import Workspace
from tidemark.lake.delta_log import DeltaLog
from tidemark.lake.external_tables import list_uri
from tidemark.lake.orphans import sweep_directories
from tidemark.model.external_tables import ExternalTableRequest, FileFormat
from tidemark.model.source_address import SourceKind
from tidemark.model.streams import TableRef
from tidemark.pipes.driver.files_table import EVENTS_SCHEMA, FilesTable
from tidemark.replication.driver.event_log import open_event_log
from tidemark.replication.driver.target_table import Target
from tidemark.replication.model.jobs import CaptureEvents
from tidemark.replication.model.replication import (
    Column,
    LogPosition,
    ReplicationOptions,
    TableSchema,
    TypeKind,
    UnifiedType,
    WriteMode,
)
from tidemark.streams.driver.external_tables.refresh import refresh_external_table

pytestmark = pytest.mark.spark

TEXT, WHOLE = UnifiedType(TypeKind.STRING), UnifiedType(TypeKind.LONG)
SCHEMA = TableSchema((Column("id", WHOLE, "bigint", key=True), Column("a b", TEXT, "text")))


def columns_at(place: Path) -> list[str]:
    return [field.name for field in source_schema.fields(DeltaLog.open(str(place)).state().metadata)]


@pytest.mark.parametrize(
    "names",
    some([EMPTY, NOT_RENAMED, WITHOUT_ROWS], now=[NOT_RENAMED, WITHOUT_ROWS]),
    ids=["an empty directory", "a commit that was not renamed", "a file without rows"],
)
def test_event_logs_targets_quarantines_and_queues_are_made_and_found(
    spark: SparkSession, tmp_path: Path, names: tuple[str, ...]
) -> None:
    places = ("events", "target", "quarantine", "files")
    events, target, quarantine, files = (half_made(tmp_path / name, names) for name in places)
    request = CaptureEvents(
        replication_uid="r",
        stream="shop",
        kind=SourceKind.POSTGRESQL,
        event_log=f"file://{events}",
        slot="s",
        publication="p",
        system_id="1",
        captured=LogPosition(""),
        batches=0,
        objects=(),
        options=ReplicationOptions(target="mirror"),
    )
    asked = Target(TableRef("lake.t", str(target), ""), "store", "object")
    for _ in range(2):
        assert open_event_log(spark, request).head() == 0
        assert create_quarantine_table(spark, str(quarantine)).head() == 0
        assert FilesTable.open(spark, str(files), None, kept=timedelta(days=64)).is_new
        made = asked.make(spark, SCHEMA, WriteMode.MERGE, replication="shop")
        assert (made.ref.table_id, DeltaLog.open(str(target)).head()) == (made.known().ref.table_id, 0)
    assert columns_at(events) == list(EVENT_COLUMNS)
    assert columns_at(quarantine) == list(QUARANTINE_COLUMNS)
    assert columns_at(files) == EVENTS_SCHEMA.names
    assert columns_at(target)[:2] == ["id", "a b"]
    state = DeltaLog.open(str(target)).state()
    assert (state.row_tracking, state.metadata.configuration["delta.columnMapping.mode"]) == (True, "name")


def test_a_directory_with_files_of_others_is_no_target(spark: SparkSession, tmp_path: Path) -> None:
    place = half_made(tmp_path / "target", ("_delta_log/", "part-0.parquet"))
    with pytest.raises(TargetNotDelta):
        Target(TableRef("lake.t", str(place), ""), "s", "o").make(spark, SCHEMA, WriteMode.MERGE, replication="shop")
    assert sorted(one.name for one in place.iterdir()) == ["_delta_log", "part-0.parquet"]


def test_a_first_capture_goes_on_and_reads_before_it_find_the_first_partitions(
    lake: Lake, workspace: Workspace
) -> None:
    lake.create()
    captured = on_one_table(lake, workspace)
    half_made(captured.log_path, NOT_RENAMED)
    told = read_change_stream(
        lake.spark,
        captured.stream,
        now=CREATED + timedelta(minutes=1),
        start_timestamp=CREATED,
        heartbeat_milliseconds=1_000,
        as_json=True,
        first=captured.active,
    ).collect()
    (child,) = json.loads(told[0][0])["child_partitions_record"]["child_partitions"]
    assert child["token"] == captured.active[0].token
    lake.sql("INSERT INTO {t} VALUES (1, 'a')")
    assert captured.capture(lake.version).rows == 1
    assert len(captured.rows()) == 1


@pytest.mark.parametrize("names", some([(), EMPTY_LOG], now=[EMPTY_LOG]), ids=["no log", "a half-made log"])
def test_two_first_captures_at_once_make_one_batch(
    lake: Lake, workspace: Workspace, tmp_path: Path, names: tuple[str, ...]
) -> None:
    lake.create()
    captured: Captured = on_one_table(lake, workspace)
    half_made(captured.log_path, names)
    lake.sql("INSERT INTO {t} SELECT id, 'a' FROM range(9)")
    batch = captured.batch(lake.version)
    together = Barrier(3)

    def capture(number: int) -> CaptureResult:
        with Workspace(f"file://{tmp_path}/_tidemark", f"capture{number}") as own:
            together.wait()
            return capture_batch(lake.spark.newSession(), batch, own)

    with ThreadPoolExecutor(3) as pool:
        found = sorted(result.found for result in pool.map(capture, range(3)))
    assert (found, len(captured.rows()), len(captured.rows("window"))) == ([False, True, True], 9, 1)
    log = DeltaLog.open(str(captured.log_path))
    assert sum(UID in commit.transactions for commit in log.commits(-1, log.head())) == 1


@pytest.mark.parametrize(
    "names",
    some([EMPTY_LOG, ("part-0.parquet",), DATA_AND_LOG], now=[DATA_AND_LOG]),
    ids=["an empty log", "data alone", "data and an empty log"],
)
def test_the_list_of_an_external_tables_files_is_made_in_one_commit(
    spark: SparkSession, tmp_path: Path, names: tuple[str, ...]
) -> None:
    workspace, request = external(tmp_path)
    half_made(Path(list_uri(workspace, request.name).removeprefix("file://")), names)
    assert (made := refresh_external_table(spark, workspace, request)).version == 0
    assert (made.added, refresh_external_table(spark, workspace, request).version) == (1, 0)


def test_refreshes_that_make_a_list_at_once_make_one(spark: SparkSession, tmp_path: Path) -> None:
    workspace, request = external(tmp_path)
    half_made(Path(list_uri(workspace, request.name).removeprefix("file://")), ("part-0.parquet", "_delta_log/"))
    together = Barrier(2)

    def refresh(_: int) -> int:
        together.wait()
        return refresh_external_table(spark.newSession(), workspace, request).added

    with ThreadPoolExecutor(2) as pool:
        assert sorted(pool.map(refresh, range(2)))[-1] == 1
    assert spark.read.format("delta").load(list_uri(workspace, request.name)).count() == 1


def external(home: Path) -> tuple[str, ExternalTableRequest]:
    (home / "files").mkdir()
    (home / "files" / "a.json").write_text('{"id": 1}\n')
    request = ExternalTableRequest("arrivals", location=f"file://{home}/files", file_format=FileFormat.JSON)
    return f"file://{home}/_tidemark", request


def test_a_workspace_directory_that_never_got_a_file_is_swept(tmp_path: Path) -> None:
    (tmp_path / "log_only" / "dead-1" / "_delta_log").mkdir(parents=True)
    now = datetime.now(UTC)
    os.utime(tmp_path / "log_only" / "dead-1", (now.timestamp(), now.timestamp()))
    place = f"file://{tmp_path}/log_only"
    swept = [sweep_directories(place, older_than=now + timedelta(hours=hours)) for hours in (-1, 1)]
    assert [len(one.removed) for one in swept] == [0, 1]
