"""Kill -9 of a capture or an expiry, then the same again: the log has each record once, or none that is too old."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.guarantees.killed_capture import LATER, connected
from tests.guarantees.partition_invariants import require_invariants
from tests.tiers import nightly
from tidemark.change_streams.model.change_streams import ChangeStream
from tidemark.change_streams.worker.definitions import get_change_stream
from tidemark.failpoints import CHANGE_STREAM_POINTS, KILL_AT
from tidemark.lake.delta_log import DeltaLog

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.e2e, pytest.mark.spark, pytest.mark.timeout(900)]

HERE = Path(__file__).parent
EXPECTED = Counter({("INSERT", str(key)): 1 for key in range(6)} | {("DELETE", "5"): 1, ("UPDATE", "1"): 1})


def test_the_points_of_a_capture_are_those_that_are_tested() -> None:
    assert set(CHANGE_STREAM_POINTS) == {"capture.before", "capture.written", "expire.marked"}


@pytest.fixture(scope="module")
def home(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table of inserts, an update and a delete, and for each point a change stream that is to see them."""
    home = tmp_path_factory.mktemp("killed_captures")
    lake, table = connected(spark, home), f"delta.`{home}/lake/kill/source`"
    tracked = "TBLPROPERTIES ('delta.enableRowTracking' = 'true', 'tidemark.primaryKey' = 'id')"
    spark.sql(f"CREATE TABLE {table} (id INT, name STRING) USING delta {tracked}")
    for point in CHANGE_STREAM_POINTS:
        lake.create_change_stream(_stream_of(point), "kill.source", initial_partitions=2)
    spark.sql(f"INSERT INTO {table} SELECT id, 'new' FROM range(6)")
    spark.sql(f"UPDATE {table} SET name = 'eins' WHERE id = 1")
    spark.sql(f"DELETE FROM {table} WHERE id = 5")
    return home


@nightly(
    "a JVM for each kill",
    "tests/engine/change_streams/test_capture_once.py::test_a_second_attempt_answers_what_the_first_has_written",
)
@pytest.mark.parametrize("point", ["capture.before", "capture.written"])
def test_a_capture_that_was_killed_is_done_once(spark: SparkSession, home: Path, point: str) -> None:
    _killed(home, point, "capture")
    lake = connected(spark, home)
    done = lake.capture(_stream_of(point), allowed_skew=timedelta(0))
    assert done is not None
    assert (done.rows, done.found) == (8, point == "capture.written")
    stream = _require_sound(lake, point)
    assert _records(spark, stream) == EXPECTED
    log = DeltaLog.open(stream.log_path)
    assert [c.transactions[stream.uid] for c in log.commits(-1, log.head()) if stream.uid in c.transactions] == [1]


@nightly(
    "a start of Spark more",
    "tests/engine/change_streams/test_expire.py"
    "::test_a_run_that_was_broken_off_between_mark_and_removal_is_finished_by_the_next",
)
def test_an_expiry_that_was_killed_is_done_whole(spark: SparkSession, home: Path) -> None:
    point = "expire.marked"
    lake = connected(spark, home, LATER)
    captured = connected(spark, home).capture(_stream_of(point), allowed_skew=timedelta(0))
    assert captured is not None
    assert captured.rows == 8
    assert lake.capture(_stream_of(point)) is None  # what is published goes on with the clock
    _killed(home, point, "expire")
    stream = _require_sound(lake, point)
    assert _records(spark, stream) == EXPECTED
    assert lake.expire_change_log(_stream_of(point)).rows == 8
    assert not _records(spark, stream)
    assert lake.expire_change_log(_stream_of(point)).rows == 0


def _stream_of(point: str) -> str:
    return "at_" + point.replace(".", "_")


def _killed(home: Path, point: str, step: str) -> None:
    """The step in a process that ends at the point."""
    done = subprocess.run(
        [sys.executable, str(HERE / "killed_capture.py"), str(home), _stream_of(point), step],
        env={
            **os.environ,
            KILL_AT: point,
            "PYTHONPATH": os.pathsep.join(filter(None, (str(HERE.parent.parent), os.environ.get("PYTHONPATH")))),
        },
        start_new_session=True,
        capture_output=True,
        text=True,
        timeout=400,
    )
    assert done.returncode == -9, done.stdout[-2000:] + done.stderr[-4000:]


def _require_sound(lake: object, point: str) -> ChangeStream:
    store = lake._context.store  # type: ignore[attr-defined]
    require_invariants(store, _stream_of(point))
    return get_change_stream(store, _stream_of(point))


def _records(spark: SparkSession, stream: ChangeStream) -> Counter[tuple[str, str]]:
    rows = spark.read.format("delta").load(stream.log_path).where("record_type = 'data'").collect()
    return Counter((row["mod_type"], json.loads(row["keys"])["id"]) for row in rows)
