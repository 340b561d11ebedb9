"""A stream that is called fresh can be read, one that is called stale is refused with the reason: random schedules of
writes, consumption, VACUUMs of ours and of others, and log cleanup, while time passes.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.engine.passing_time import pass_time
from tests.engine.test_retention import few_tasks
from tests.table_templates import put_table
from tests.tiers import some
from tidemark.client import connect
from tidemark.control.store import ControlStore
from tidemark.errors import StreamStale, VersionVacuumed
from tidemark.lake.delta_log import DeltaLog
from tidemark.model.streams import ACTION
from tidemark.streams.planning.staleness import Staleness

pytestmark = pytest.mark.spark
SCHEDULES = [(0, 6), (0, 14), (1, 14), *((seed, 40) for seed in range(2, 40))]  # a seed, and how many steps
PROPERTIES = {
    "delta.enableRowTracking": "true",
    "delta.enableDeletionVectors": "true",
    "delta.checkpointInterval": "3",
    "delta.deletedFileRetentionDuration": "interval 4 days",
    "delta.logRetentionDuration": "interval 6 days",
}
MODES = {"net": "standard", "appended": "append_only", "steps": "every_change", "keyed": "standard"}
LIMIT = 10


class Schedule:
    """One table with a consumer for each mode; what happens is drawn from `seed`.

    While `guarded`, our VACUUM runs every day; nobody switches Delta's check off before `ruthless` does.
    """

    def __init__(self, spark: SparkSession, path: Path, seed: int) -> None:
        self.spark, self.place, self.random = spark, path / "t", random.Random(seed)
        self.store = ControlStore(f"sqlite:///{path}/control.db")
        self.lake = connect(spark, f"sqlite:///{path}/control.db", lake_root=str(path))
        self.t = f"delta.`{self.place}`"
        listed = ", ".join(f"'{name}' = '{value}'" for name, value in PROPERTIES.items())
        made = f"CREATE TABLE {{t}} (id BIGINT, v STRING) USING delta TBLPROPERTIES ({listed})"
        put_table(spark, self.place, made, "INSERT INTO {t} SELECT id, 'a' FROM range(0, 6, 1, 2)")
        for name, mode in MODES.items():
            keys = ("id",) if name == "keyed" else ()
            self.lake.create_stream(name, on=self.t, mode=mode, keys=keys)
        self.lake.vacuum(self.t, max_extension_days=LIMIT)
        self.ids = iter(range(100, 10_000))
        self.found: Counter[Staleness] = Counter()

    def step(self) -> str:
        """One act, its name."""
        acts: list[Callable[[], Any]] = [
            *[self.write] * 4, *[self.a_day] * 6, self.consume, self.outside_vacuum, self.optimize,
        ]  # fmt: skip
        act = self.random.choice(acts)
        act()
        return act.__name__

    def write(self) -> None:
        number = next(self.ids)
        self.spark.sql(
            self.random.choice(
                [
                    f"INSERT INTO {self.t} VALUES ({number}, 'n')",
                    f"UPDATE {self.t} SET v = 'u{number}' WHERE id % 3 = {number % 3}",
                    f"DELETE FROM {self.t} WHERE id % 5 = {number % 5}",
                    f"INSERT OVERWRITE {self.t} SELECT id, v FROM {self.t}",
                ]
            )
        )

    def a_day(self) -> None:
        pass_time(self.spark, [self.place], self.store, timedelta(days=1))
        self.lake.vacuum(self.t)

    def consume(self) -> None:
        name = self.random.choice(list(MODES))
        if self.lake.describe_stream(name).staleness is not Staleness.STALE:
            self.lake.advance_stream(name)

    def outside_vacuum(self) -> None:
        self.spark.sql(f"VACUUM {self.t}")

    def optimize(self) -> None:
        self.spark.sql(f"OPTIMIZE {self.t}")

    def ruthless(self) -> None:
        """Somebody switches Delta's check off, after the limit has passed or not."""
        session = few_tasks(self.spark.newSession())
        session.conf.set("spark.databricks.delta.retentionDurationCheck.enabled", "false")
        session.sql(f"VACUUM {self.t} RETAIN 0 HOURS")

    def check(self) -> None:
        """Each stream is what it is called; what is read are the changes of its window, counted."""
        for name in MODES:
            called = self.lake.describe_stream(name).staleness
            self.found[called] += 1
            if called is Staleness.STALE:
                with pytest.raises((StreamStale, VersionVacuumed)):
                    self.lake.stream(name).collect()
            else:
                self.read(name)

    def read(self, name: str) -> None:
        rows = self.lake.stream(name).collect()
        if name == "net":
            gained = Counter(row[ACTION] for row in rows)
            now = self.spark.read.format("delta").load(str(self.place)).count()
            before = self.count_at(self.lake.describe_stream(name).offset_version)
            assert before is None or now - before == gained["INSERT"] - gained["DELETE"]

    def count_at(self, version: int) -> int | None:
        """By another way: the numbers of rows that the log says for each live file, as far as it goes back."""
        log = DeltaLog.open(str(self.place))
        if log.earliest() > 0:
            return None
        rows: dict[str, int] = {}
        for commit in log.commits(-1, version):
            for gone in commit.removes:
                rows.pop(gone.path, None)
            for new in commit.adds:
                deleted = new.deletion_vector.cardinality if new.deletion_vector else 0
                rows[new.path] = _records(new.stats) - deleted
        return sum(rows.values())


def _records(stats: str | None) -> int:
    import json

    return int(json.loads(stats or "{}")["numRecords"])


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("schedule", some(SCHEDULES, now=SCHEDULES[:1]), ids=str)
def test_fresh_is_readable_and_stale_is_refused_whatever_happens(
    spark: SparkSession, tmp_path: Path, schedule: tuple[int, int]
) -> None:
    seed, steps = schedule
    world = Schedule(few_tasks(spark.newSession()), tmp_path, seed)
    done = []
    for number in range(steps):
        done.append(world.step())
        if number % 3 == 2:
            print(seed, done)
            world.check()
    assert world.found[Staleness.FRESH] > 0, done
    world.ruthless()
    world.check()
    world.lake.close()
