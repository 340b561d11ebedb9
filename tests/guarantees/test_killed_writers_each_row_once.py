"""Writers of channels die at any moment, and continue behind the committed token: no row is lost, none comes twice."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pyarrow.dataset as ds
import pytest
from pyspark.sql import SparkSession

from tests.guarantees.killed_processes import run_script, script_of
from tests.table_templates import put_table
from tests.until import wait_until
from tidemark.channels.planning.listing import records_of
from tidemark.failpoints import CHANNEL_POINTS, KILL_AT, KILL_ONCE
from tidemark.lake.delta_log import DeltaLog

pytestmark = [pytest.mark.spark, pytest.mark.e2e]

SCRIPT = "killed_writer.py"
LAST = 400
SOAK = int(os.environ.get("TIDEMARK_SOAK", "200"))


@pytest.fixture
def lake(spark: SparkSession, tmp_path: Path) -> Path:
    properties = "TBLPROPERTIES ('delta.enableRowTracking' = 'true')"
    put_table(spark, tmp_path / "events", f"CREATE TABLE {{t}} (channel STRING, n BIGINT) USING delta {properties}")
    return tmp_path


def rows_of(table: Path) -> list[dict[str, Any]]:
    """The rows of a table in the order of their row ids, from the files of the log."""
    log = DeltaLog.open(str(table))
    adds = [add for commit in log.commits(0, log.head()) for add in commit.adds]
    adds.sort(key=lambda add: add.base_row_id or 0)
    if not adds:
        return []
    rows: list[dict[str, Any]] = (
        ds.dataset([str(table / add.path) for add in adds], format="parquet").to_table().to_pylist()
    )
    return rows


def numbers(lake: Path, channel: str) -> list[int]:
    return [row["n"] for row in rows_of(lake / "events") if row["channel"] == channel]


def bad_numbers(lake: Path, channel: str) -> list[int]:
    """The rows of a channel in quarantine."""
    found = [row["row"] for row in rows_of(lake / "bad_events") if row["channel_name"] == channel.upper()]
    return [int(json.loads(text)["n"].removeprefix("bad ")) for text in found]


def assert_contiguous(lake: Path, channel: str) -> int:
    """Rows are 1 … token, each once, in order; of bad ones at most those of the last commit still wait. The token."""
    record = records_of(DeltaLog.open(str(lake / "events")).state()).get(channel.upper())
    token = int(record.offset_token or 0) if record is not None else 0
    assert numbers(lake, channel) == [n for n in range(1, token + 1) if n % 10]
    if record is not None:
        bad = bad_numbers(lake, channel)
        assert bad == list(range(10, token + 1, 10))[: len(bad)]
        assert record.pending is not None or len(bad) == token // 10
    return token


def finish(lake: Path, channel: str) -> None:
    done = run_script(SCRIPT, lake, channel, str(LAST))
    assert done.returncode == 0, done.stderr
    assert assert_contiguous(lake, channel) == LAST
    assert bad_numbers(lake, channel) == list(range(10, LAST + 1, 10))


def kill_now_and_then(lake: Path, channels: list[str], times: int) -> None:
    """Writers of all channels at once. A random one is killed after a random time, and started again."""
    writers = {channel: _start(lake, channel, LAST * 100) for channel in channels}
    for _ in range(times):
        time.sleep(random.uniform(0.5, 4.0))
        channel = random.choice(channels)
        _kill(writers[channel])
        assert_contiguous(lake, channel)
        writers[channel] = _start(lake, channel, LAST * 100)
    for channel, writer in writers.items():
        _kill(writer)
        assert_contiguous(lake, channel)


def _start(lake: Path, channel: str, last: int) -> subprocess.Popen[bytes]:
    command, environment = script_of(SCRIPT, lake, channel, str(last))
    return subprocess.Popen(command, env=environment, start_new_session=True, stdout=subprocess.DEVNULL)


def _kill(writer: subprocess.Popen[bytes]) -> None:
    os.killpg(writer.pid, signal.SIGKILL)
    writer.wait()


@pytest.mark.parametrize("point", CHANNEL_POINTS)
def test_a_writer_killed_at_a_failpoint_loses_and_doubles_nothing(
    lake: Path, point: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(KILL_AT, point)
    monkeypatch.setenv(KILL_ONCE, str(lake / "killed"))
    done = run_script(SCRIPT, lake, "a", str(LAST))
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert_contiguous(lake, "a")
    finish(lake, "a")


def test_writers_killed_at_random_lose_and_double_nothing(lake: Path) -> None:
    kill_now_and_then(lake, ["a", "b"], times=5)


def test_a_paused_writer_that_wakes_after_it_was_fenced_writes_nothing_more(lake: Path) -> None:
    paused = _start(lake, "a", LAST * 100)
    wait_until(lambda: assert_contiguous(lake, "a") > 0)
    os.killpg(paused.pid, signal.SIGSTOP)
    taken = _start(lake, "a", LAST * 100)
    at = assert_contiguous(lake, "a")
    wait_until(lambda: assert_contiguous(lake, "a") > at)
    os.killpg(paused.pid, signal.SIGCONT)
    assert paused.wait(60) != 0
    at = assert_contiguous(lake, "a")
    wait_until(lambda: assert_contiguous(lake, "a") > at)
    _kill(taken)
    assert_contiguous(lake, "a")


@pytest.mark.nightly(
    reason="200 kills of writers at random moments take ten minutes",
    proven_by="test_writers_killed_at_random_lose_and_double_nothing",
)
@pytest.mark.timeout(3600)
def test_writers_killed_two_hundred_times_lose_and_double_nothing(lake: Path) -> None:
    kill_now_and_then(lake, ["a", "b", "c", "d"], times=SOAK)
