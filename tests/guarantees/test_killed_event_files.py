"""Kill -9 of a job that writes event files, at each of its points, then the same again: each event is in one file."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.databases.postgresql.captured import SourceWorld
from tests.engine.replication.capturing import CaptureWorld
from tests.engine.replication.written_events import contents, of_files, of_log
from tests.guarantees.test_killed_event_captures import killed
from tests.postgresql import PostgresServer
from tests.tiers import nightly
from tidemark.failpoints import EVENT_FILES_POINTS
from tidemark.jobs.run import run
from tidemark.model.codec import from_plain, to_plain
from tidemark.model.jobs import JobSpec
from tidemark.replication.model.jobs import WRITE_EVENT_FILES, EventFilesReport, FileFormat, WriteEventFiles

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.e2e, pytest.mark.spark, pytest.mark.timeout(900)]

BETWEEN = "files.before"  # all files, and the table does not know it


@pytest.fixture
def world(spark: SparkSession, source_server: PostgresServer, tmp_path: Path) -> Iterator[CaptureWorld]:
    source = SourceWorld(source_server, "killed_files")
    source.sql("CREATE TABLE t (id int PRIMARY KEY, v text)")
    source.replicate("t")
    made = CaptureWorld(spark, source, tmp_path)
    source.sql("INSERT INTO t SELECT g, 'a' FROM generate_series(1, 30) AS g", "UPDATE t SET id = -id WHERE id < 5")
    made.store(made.capture())
    yield made
    source.close()


def spec_of(world: CaptureWorld, kind: FileFormat) -> JobSpec:
    ask = WriteEventFiles(
        replication_uid=world.request.replication_uid,
        stream="shop",
        event_log=world.request.event_log,
        batches=world.request.batches,
        end=world.request.captured,
        target=f"file://{world.home}/files",
        format=kind,
        file_bytes=4000,
        interval_seconds=60.0,
    )
    return JobSpec(
        kind=WRITE_EVENT_FILES.name,
        entry=WRITE_EVENT_FILES.entry,
        request=to_plain(ask),
        store_id="store",
        workspace=f"file://{world.home}/_tidemark",
        result_uri=f"{world.home}/result.json",
        cancel_uri=f"{world.home}/cancel",
        deadline=datetime.now(UTC) + timedelta(hours=1),
    )


def once_though_killed_at(world: CaptureWorld, point: str) -> EventFilesReport:
    """The report of the attempt after the kill; in between more is captured, and another format is asked for."""
    killed(world.home, spec_of(world, FileFormat.AVRO), world.source, point)
    left = contents(world)
    world.source.sql("INSERT INTO t VALUES (100, 'later')")
    world.store(world.capture())
    result = run(world.spark, spec_of(world, FileFormat.JSON))
    assert result.error is None, result.error
    after = contents(world)
    assert {name: after[name] for name in left} == left
    assert of_files(world) == of_log(world)
    assert len(left) == {"files.begun": 0, "files.first": 1}.get(point, len(after) - 1)
    return from_plain(EventFilesReport, result.report)


def test_killed_between_the_files_and_what_is_stored_each_event_is_in_one_file(world: CaptureWorld) -> None:
    assert once_though_killed_at(world, BETWEEN).continued
    again = run(world.spark, spec_of(world, FileFormat.AVRO))
    assert from_plain(EventFilesReport, again.report).files == 0


@nightly(
    "a start of Spark for each point",
    "tests/engine/replication/test_event_files.py"
    "::test_after_a_death_the_same_files_are_written_whatever_was_captured_since",
)
@pytest.mark.parametrize("point", sorted({*EVENT_FILES_POINTS} - {BETWEEN}))
def test_killed_anywhere_each_event_is_in_one_file(world: CaptureWorld, point: str) -> None:
    assert once_though_killed_at(world, point).continued is (point != "files.stored")
