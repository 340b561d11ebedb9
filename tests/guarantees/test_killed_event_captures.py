"""Kill -9 of a capture of events at each of its points, then the same again: the log has each event once."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.databases.postgresql.captured import SourceWorld
from tests.postgresql import PostgresServer
from tests.tiers import nightly
from tidemark.failpoints import CAPTURE_EVENTS_POINTS, KILL_AT
from tidemark.jobs.run import run
from tidemark.model.codec import from_plain, to_json, to_plain
from tidemark.model.jobs import JobSpec
from tidemark.model.source_address import SourceKind
from tidemark.replication.model.jobs import CAPTURE_EVENTS, CaptureEvents, CaptureReport
from tidemark.replication.model.replication import ReplicationOptions
from tidemark.replication.sources.postgresql.catalog import server_facts
from tidemark.replication.sources.postgresql.connection import connect
from tidemark.replication.sources.postgresql.slots import slot_status

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.e2e, pytest.mark.spark, pytest.mark.timeout(900)]

HERE = Path(__file__).parent


@pytest.fixture
def source(source_server: PostgresServer) -> Iterator[SourceWorld]:
    made = SourceWorld(source_server, "killed")
    made.sql("CREATE TABLE t (id int PRIMARY KEY, v text)")
    made.replicate("t")
    yield made
    made.close()


@nightly(
    "a start of Spark for each point",
    "tests/engine/replication/test_landed_envelopes.py"
    "::test_a_run_that_was_killed_is_continued_and_nothing_is_lost_or_twice",
)
@pytest.mark.parametrize("point", CAPTURE_EVENTS_POINTS)
def test_a_capture_that_was_killed_is_gone_on_with(
    spark: SparkSession, source: SourceWorld, tmp_path: Path, point: str
) -> None:
    source.sql("INSERT INTO t SELECT g, 'a' FROM generate_series(1, 30) AS g", "UPDATE t SET v = 'b' WHERE id <= 10")
    source.sql("DELETE FROM t WHERE id > 25", "UPDATE t SET id = -id WHERE id = 1")
    spec = spec_of(source, tmp_path)
    killed(tmp_path, spec, source, point)
    source.sql("INSERT INTO t VALUES (100, 'later')")
    result = run(spark, spec, source=source.address)
    assert result.error is None, result.error
    report = from_plain(CaptureReport, result.report)
    rows = spark.read.format("delta").load(f"file://{tmp_path}/events").collect()
    assert Counter(row["change"] for row in rows) == {"INSERT": 32, "UPDATE": 10, "DELETE": 6, "SCHEMA": 1}
    assert len({row["uuid"] for row in rows}) == len(rows) == 49
    assert report.events == {"public.t": 48}
    assert set(report.schemas) == {"public.t"}
    assert report.batches == 2
    with connect(source.address) as connection:
        assert slot_status(connection, source.slot).confirmed == report.captured


def spec_of(source: SourceWorld, home: Path) -> JobSpec:
    """A capture of which the store knows no batch; two batches are there, as one has 30 events at least."""
    with connect(source.address) as connection:
        system_id = server_facts(connection).system_id
        confirmed = slot_status(connection, source.slot).confirmed
    assert confirmed is not None
    ask = CaptureEvents(
        replication_uid="uid-1",
        stream="shop",
        kind=SourceKind.POSTGRESQL,
        event_log=f"file://{home}/events",
        slot=source.slot,
        publication="p",
        system_id=system_id,
        captured=confirmed,
        batches=0,
        objects=tuple(source.captured.values()),
        options=ReplicationOptions(target="mirror", max_events=30),
    )
    return JobSpec(
        kind=CAPTURE_EVENTS.name,
        entry=CAPTURE_EVENTS.entry,
        request=to_plain(ask),
        store_id="store",
        workspace=f"file://{home}/_tidemark",
        result_uri=f"{home}/result.json",
        cancel_uri=f"{home}/cancel",
        deadline=datetime.now(UTC) + timedelta(hours=1),
    )


def killed(home: Path, spec: JobSpec, source: SourceWorld, point: str) -> None:
    """The job in a process group of its own, which ends at `point`."""
    (home / "spec.json").write_text(to_json(spec))
    (home / "source.json").write_text(to_json(source.address))
    path = os.pathsep.join(filter(None, (str(HERE.parents[1]), os.environ.get("PYTHONPATH"))))
    done = subprocess.run(
        [sys.executable, str(HERE / "killed_event_capture.py"), str(home)],
        env={**os.environ, "PYTHONPATH": path, KILL_AT: point},
        start_new_session=True,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == -signal.SIGKILL, done.stdout + done.stderr
