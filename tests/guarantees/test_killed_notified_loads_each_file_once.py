"""Runs that were woken by notifications die: the notifications come again, and each file is loaded once."""

from __future__ import annotations

import json
import signal
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NoReturn

import pytest
from pyspark.sql import SparkSession

from tests.guarantees.load_world import LoadWorld, load_of, pipe_spec
from tests.guarantees.test_killed_loads_each_file_once import assert_whole, fill, started
from tidemark.failpoints import KILL_AT, KILL_ONCE, NOTIFIED_POINTS
from tidemark.model.jobs import JobSpec
from tidemark.pipes.model.pipes import Pipe
from tidemark.pipes.worker.notification_directory import DirectoryChannel
from tidemark.pipes.worker.notified import acknowledged_after, notified_files

pytestmark = [pytest.mark.spark, pytest.mark.e2e]

PIPE = Pipe("uid", "db.p", "COPY INTO t FROM @s", "/q", True, None, None, datetime.now(UTC))


class Announced:
    """The world of a pipe with a directory of notifications. A run lists its files only if it must."""

    def __init__(self, world: LoadWorld) -> None:
        self.world = world
        self.notes = world.home / "notes"
        self.notes.mkdir()
        self.channel = DirectoryChannel(str(self.notes))

    def announce(self, *names: str) -> None:
        (self.notes / f"{len(list(self.notes.iterdir()))} {names[0]}.json").write_text(json.dumps({"files": names}))

    def run(self, **limits: Any) -> Any:
        found = notified_files(PIPE, load_of(self.world.home), self.channel)
        with acknowledged_after(self.channel, found):
            return self.world.run(pipe_spec(self.world.home, has_channel=True, notified=found.files, **limits))

    def run_and_die(self, point: str) -> None:
        """A run whose driver is killed, as its task sees it."""
        found = notified_files(PIPE, load_of(self.world.home), self.channel)
        spec = pipe_spec(self.world.home, has_channel=True, notified=found.files, full_listing_seconds=1e9)
        killed = {KILL_AT: point, KILL_ONCE: str(self.world.home / point)}
        with pytest.raises(ChildProcessError), acknowledged_after(self.channel, found):
            self._die(spec, killed)

    def _die(self, spec: JobSpec, killed: dict[str, str]) -> NoReturn:
        assert started(self.world, spec, **killed).wait(timeout=300) == -signal.SIGKILL
        raise ChildProcessError

    def left(self) -> int:
        return len(list(self.notes.iterdir()))


@pytest.fixture
def announced(spark: SparkSession, tmp_path: Path) -> Announced:
    return Announced(LoadWorld(spark, tmp_path))


@pytest.mark.parametrize("point", NOTIFIED_POINTS)
def test_notifications_of_a_killed_run_come_again_and_the_file_is_loaded_once(announced: Announced, point: str) -> None:
    announced.run()  # the first listing, of an empty place
    fill(announced.world, 1)
    announced.announce("good 1.csv", "bad 1.csv", "empty 1.csv", "none.csv")
    announced.run_and_die(point)
    assert announced.left() == 1
    announced.run()
    assert announced.left() == 0
    assert_whole(announced.world)
    announced.announce("good 1.csv")
    assert announced.run()["batches"] == 0


def test_files_are_listed_only_once_in_the_interval_and_lost_notifications_are_found_then(announced: Announced) -> None:
    world = announced.world
    world.put("before.csv", ["1"])
    assert announced.run()["files"] == 1
    world.put("lost.csv", ["2"])
    world.put("told.csv", ["3"])
    announced.announce("told.csv")
    assert announced.run()["files"] == 1
    assert announced.run()["files"] == 0
    assert announced.run(full_listing_seconds=0)["files"] == 1
    world.note()
    assert_whole(world)


def test_a_file_with_a_known_name_that_is_announced_again_is_not_loaded_again(announced: Announced) -> None:
    world = announced.world
    world.put("a.csv", ["1"])
    world.note()
    announced.announce("a.csv")
    announced.run()
    world.put("a.csv", ["2"])
    announced.announce("a.csv")
    assert announced.run()["files"] == 0
    assert world.rows() == {1: 1}
