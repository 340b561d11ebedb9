"""Writers of channels, their drivers and the ingest service die at any moment, and continue behind their tokens.

No row is lost and none comes twice, be it good or bad.
"""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.guarantees.channel_writers import LAST, SCRIPT, Writers, require_contiguous, tally_of, token_of
from tests.guarantees.killed_processes import run_script
from tests.table_templates import put_table
from tests.until import wait_until
from tidemark.failpoints import CHANNEL_POINTS, KILL_AT, KILL_ONCE

pytestmark = [pytest.mark.spark, pytest.mark.e2e]

SOAK = int(os.environ.get("TIDEMARK_SOAK", "200"))


@pytest.fixture
def lake(spark: SparkSession, tmp_path: Path) -> Path:
    properties = "TBLPROPERTIES ('delta.enableRowTracking' = 'true')"
    put_table(spark, tmp_path / "events", f"CREATE TABLE {{t}} (channel STRING, n BIGINT) USING delta {properties}")
    return tmp_path


@pytest.mark.parametrize("point", CHANNEL_POINTS)
def test_a_writer_killed_at_a_failpoint_loses_and_doubles_nothing(
    lake: Path, point: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(KILL_AT, point)
    monkeypatch.setenv(KILL_ONCE, str(lake / "killed"))
    done = run_script(SCRIPT, lake, "a", str(LAST), "own")
    assert done.returncode == -signal.SIGKILL, done.stderr
    require_contiguous(lake, "a")
    done = run_script(SCRIPT, lake, "a", str(LAST), "own")
    assert done.returncode == 0, done.stderr
    assert require_contiguous(lake, "a") == LAST
    found = tally_of(lake, ["a"])
    assert (found.rows, found.bad, found.waiting) == (LAST - LAST // 10, LAST // 10, 0)


@pytest.mark.parametrize(("host", "times"), [("own", 5), ("service", 4), ("driver", 1)])
def test_killed_at_random_nothing_is_lost_or_doubled(lake: Path, host: str, times: int) -> None:
    with Writers(lake, ["a", "b"], host) as writers:
        found = writers.kill_at_random(times)
    assert (found.lost, found.doubled) == (0, 0)
    assert found.rows > 0
    assert found.bad + found.waiting > 0  # on a slow machine all of them may still wait for their next writer


def test_a_paused_writer_that_wakes_after_it_was_fenced_writes_nothing_more(lake: Path) -> None:
    with Writers(lake, ["a"], "own") as writers:
        wait_until(lambda: token_of(lake, "a") > 0)
        paused = writers.pause("a")
        writers.start("a")
        at = token_of(lake, "a")
        wait_until(lambda: token_of(lake, "a") > at)
        os.killpg(paused.pid, signal.SIGCONT)
        assert paused.wait(60) != 0
        at = token_of(lake, "a")
        wait_until(lambda: token_of(lake, "a") > at)
    require_contiguous(lake, "a")


@pytest.mark.nightly(
    reason="200 kills of each at random moments take an hour",
    proven_by="test_a_writer_killed_at_a_failpoint_loses_and_doubles_nothing",
)
@pytest.mark.timeout(4 * 3600)
@pytest.mark.parametrize("host", ["own", "service", "driver"])
def test_killed_two_hundred_times_nothing_is_lost_or_doubled(lake: Path, host: str) -> None:
    with Writers(lake, ["a", "b", "c", "d"], host) as writers:
        found = writers.kill_at_random(SOAK)
    print(f"\n{host}: {SOAK} kills, {found}", flush=True)
    assert (found.lost, found.doubled) == (0, 0)
