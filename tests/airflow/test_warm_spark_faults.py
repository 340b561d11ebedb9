"""The warm Spark dies, hangs, is restarted or has no room at any moment of a transaction: each change comes once."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import psutil
import pytest

from tests.airflow.connect_server import SMALL
from tests.airflow.runs import Lake
from tests.airflow.warm_hook import end_warm_servers, warm_hook
from tests.tiers import nightly
from tidemark.hooks.spark_job import SparkJob
from tidemark.hooks.tidemark import TidemarkHook
from tidemark.model.streams import StreamMode
from tidemark.streams.worker.streams import create_stream
from tidemark.warm_spark.records import ServerRecord

pytestmark = [
    pytest.mark.airflow,
    pytest.mark.spark,
    pytest.mark.e2e,
    pytest.mark.timeout(3000),
    nightly(
        "a start of a server after most faults",
        "tests/airflow/test_warm_spark.py::test_a_job_whose_server_is_killed_is_repeated_in_another_and_each_change_comes_once",
    ),
]
ROUNDS = int(os.environ.get("TIDEMARK_ROUNDS", 24))
TRIES = 6
"""As a task with five retries."""


@dataclass
class Followed:
    """A source that changes, and what its two targets must have: all change rows, and the rows of now."""

    lake: Lake
    schema: str
    now: dict[int, str] = field(default_factory=dict)
    changes: Counter[tuple[int, str]] = field(default_factory=Counter)

    @property
    def source(self) -> str:
        return f"{self.schema}.source"

    @property
    def appended(self) -> str:
        return f"{self.schema}_targets.appended"

    @property
    def merged(self) -> str:
        return f"{self.schema}_targets.merged"

    def make_targets(self) -> None:
        for name in (self.appended, self.merged):
            self.lake.create(name, "id BIGINT, name STRING")

    def task(self, turn: int) -> subprocess.Popen[str]:
        """A process that consumes as a task of that round."""
        arguments = [f"run {turn}", self.schema, self.appended, self.merged]
        return subprocess.Popen([sys.executable, "-m", "tests.airflow.consuming", *arguments], text=True)

    def change(self, turn: int, chance: random.Random) -> None:
        """Three new rows, one changed and one deleted, in three commits."""
        new = {10 * turn + n: f"new in {turn}" for n in range(3)}
        self.lake.sql(f"INSERT INTO {{t}} VALUES {', '.join(map(str, new.items()))}", self.source)
        self.changes.update(new.items())
        if self.now:
            changed, deleted = chance.sample(sorted(self.now), 2)
            self.lake.sql(f"UPDATE {{t}} SET name = 'changed in {turn}' WHERE id = {changed}", self.source)
            self.lake.sql(f"DELETE FROM {{t}} WHERE id = {deleted}", self.source)
            after = (changed, f"changed in {turn}")
            self.changes.update([(changed, self.now[changed]), after, (deleted, self.now.pop(deleted))])
            self.now.update([after])
        self.now.update(new)

    def assert_each_change_came_once(self) -> None:
        assert Counter(self.lake.rows(self.appended)) == self.changes
        assert self.lake.rows(self.merged) == sorted(self.now.items())


@pytest.fixture
def chance() -> random.Random:
    seed = int(os.environ.get("TIDEMARK_SEED", time.time_ns() % 10**6))
    print("TIDEMARK_SEED =", seed)
    return random.Random(seed)


@pytest.fixture
def followed(lake: Lake, warm: TidemarkHook, chance: random.Random) -> Followed:
    """Before its targets exist, so that a disk can be put in their place."""
    one = Followed(lake, schema=f"faults_{chance.getrandbits(32):x}")
    lake.create(one.source, "id BIGINT, name STRING", row_tracking=True)
    source, store = warm.table(one.source), warm.open_store()
    create_stream(store, name=one.schema, source=source, mode=StreamMode.STANDARD, at_version=0, who="test")
    return one


@pytest.fixture
def small_disk() -> Iterator[Callable[[Path], Path]]:
    """Puts a disk of 300 MiB in the place of a directory."""
    mounted: list[Path] = []

    def mount(place: Path) -> Path:
        place.mkdir(parents=True, exist_ok=True)
        done = subprocess.run(
            ["mount", "-t", "tmpfs", "-o", "size=300m", "tmpfs", place], capture_output=True, check=False
        )
        if done.returncode:
            pytest.skip("a small disk needs the right to mount one")
        mounted.append(place)
        return place

    yield mount
    for place in mounted:
        subprocess.run(["umount", "--lazy", place], check=True)


@pytest.fixture
def jobs_root(tmp_path: Path) -> Iterator[Path]:
    yield tmp_path / "jobs"
    end_warm_servers(tmp_path / "jobs")


@pytest.fixture
def warm(jobs_root: Path, airflow_home: Path, monkeypatch: pytest.MonkeyPatch) -> TidemarkHook:
    monkeypatch.setenv("TMPDIR", str(jobs_root.parent))
    return warm_hook(jobs_root, monkeypatch, spark_conf=SMALL, spark_slots=2)


def _kill_the_server(hook: TidemarkHook, task: subprocess.Popen[str], chance: random.Random) -> None:
    os.killpg(_server(hook).process_id, signal.SIGKILL)


def _kill_its_jvm_or_keeper(hook: TidemarkHook, task: subprocess.Popen[str], chance: random.Random) -> None:
    leader = psutil.Process(_server(hook).process_id)
    chance.choice([leader, *leader.children(recursive=True)]).kill()


def _pause_the_server(hook: TidemarkHook, task: subprocess.Popen[str], chance: random.Random) -> None:
    group = _server(hook).process_id
    os.killpg(group, signal.SIGSTOP)
    time.sleep(chance.uniform(0.2, 8))
    os.killpg(group, signal.SIGCONT)


def _restart_the_server(hook: TidemarkHook, task: subprocess.Popen[str], chance: random.Random) -> None:
    SparkJob(hook.settings).warm_spark().home.retire(_server(hook))


def _kill_the_driver(hook: TidemarkHook, task: subprocess.Popen[str], chance: random.Random) -> None:
    chance.choice(psutil.Process(task.pid).children(recursive=True)).kill()


def _kill_the_task(hook: TidemarkHook, task: subprocess.Popen[str], chance: random.Random) -> None:
    task.kill()


FAULTS: Mapping[str, Callable[[TidemarkHook, subprocess.Popen[str], random.Random], None]] = {
    "the server is killed": _kill_the_server,
    "a process of the server is killed": _kill_its_jvm_or_keeper,
    "the server is paused": _pause_the_server,
    "the server is stopped by its command": _restart_the_server,
    "the driver is killed": _kill_the_driver,
    "the task is killed": _kill_the_task,
}


def test_whatever_ends_or_hangs_at_any_moment_each_change_comes_once(
    warm: TidemarkHook, followed: Followed, chance: random.Random
) -> None:
    """Each transaction is disturbed once or twice, and repeated as a task with five retries is."""
    followed.make_targets()
    disturbed: Counter[str] = Counter()
    for turn in range(1, ROUNDS + 1):
        for attempt, task in _attempts(followed, turn, chance):
            if attempt < chance.choice((1, 2)):
                disturbed.update(_disturbed(warm, task, chance))
    print("disturbed while it ran:", dict(disturbed))
    assert sum(disturbed.values()) > ROUNDS / 2


@pytest.mark.parametrize("place", ["the targets", "the files of the server"])
def test_a_disk_that_fills_at_any_moment_loses_and_doubles_nothing(
    warm: TidemarkHook,
    followed: Followed,
    jobs_root: Path,
    small_disk: Callable[[Path], Path],
    place: str,
    chance: random.Random,
) -> None:
    """The disk is full for some seconds, then somebody makes room, and the task is repeated until it succeeds."""
    disk = small_disk(jobs_root.parent if place != "the targets" else followed.lake.root / f"{followed.schema}_targets")
    followed.make_targets()
    for turn in range(1, ROUNDS // 4 + 1):
        for attempt, _ in _attempts(followed, turn, chance):
            if attempt == 0:
                time.sleep(chance.uniform(0.5, 7))
                with _filled(disk):
                    time.sleep(chance.uniform(0.5, 10))


def _attempts(followed: Followed, turn: int, chance: random.Random) -> Iterator[tuple[int, subprocess.Popen[str]]]:
    """A round: the source changes, and tasks run until one succeeds. Each is yielded while it runs."""
    followed.change(turn, chance)
    for attempt in range(TRIES):
        task = followed.task(turn)
        yield attempt, task
        if task.wait(timeout=180) == 0:
            followed.assert_each_change_came_once()
            return
    pytest.fail(f"{TRIES} attempts of round {turn} failed")


def _disturbed(hook: TidemarkHook, task: subprocess.Popen[str], chance: random.Random) -> list[str]:
    """The fault that came while the task ran; none if it came too late or found nothing to hit."""
    time.sleep(chance.uniform(0.5, 7))
    if task.poll() is not None:
        return []
    fault = chance.choice(list(FAULTS))
    print(fault)
    with suppress(LookupError, psutil.NoSuchProcess, ProcessLookupError):
        FAULTS[fault](hook, task, chance)
        return [fault]
    return []


@contextmanager
def _filled(disk: Path) -> Iterator[None]:
    """Nothing more can be written there meanwhile."""
    filler = disk / "filler"
    with suppress(OSError), filler.open("wb", buffering=0) as file:
        while True:
            file.write(bytes(1 << 16))
    try:
        yield
    finally:
        filler.unlink()


def _server(hook: TidemarkHook) -> ServerRecord:
    """Raises LookupError if none is in use."""
    found = SparkJob(hook.settings).warm_spark().home.running()
    if found is None:
        raise LookupError
    return found
