"""A board under a change stream whose partitions are read by `change_stream_reader`, and what became of its runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property
from typing import TYPE_CHECKING, Any

from tests.airflow.runs import Lake as Tables
from tests.deployment.airflow_deployment import Deployment
from tests.guarantees.partition_invariants import Snapshot, require_invariants
from tidemark.change_streams.model.change_streams import ChunkState
from tidemark.client import connect
from tidemark.control.store import ControlStore
from tidemark.lake.delta_log import DeltaLog

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tidemark.client.lake import Lake

__all__ = ["CAPTURE", "READER", "Board", "ReaderRun", "committed"]

CAPTURE, READER = "change_stream_capture", "change_stream_reader"
STREAM, GROUP, BOARD, MIRROR = "board_records", "board_continuously", "nyc.board", "nyc.board_continuously"
COLUMNS = "id BIGINT, customer BIGINT, status STRING"


@dataclass(frozen=True)
class ReaderRun:
    """A run of the reader as Airflow keeps it. `handed`: (token, number) of the chunks that its plan returned."""

    key: str
    state: str
    tasks: dict[str, dict[str, Any]]
    handed: list[tuple[str, int]]

    def task(self, name: str) -> str:
        return str(self.tasks[name]["state"])

    def began(self, name: str) -> datetime:
        return datetime.fromisoformat(self.tasks[name]["start_date"])

    def ended(self, name: str) -> datetime:
        return datetime.fromisoformat(self.tasks[name]["end_date"])


@dataclass
class Board:
    """`nyc.board`, its mirror, and the invariants of its partitions since the last look."""

    spark: SparkSession
    deployment: Deployment
    before: Snapshot | None = None

    @cached_property
    def lake(self) -> Lake:
        return connect(self.spark, self.deployment.store_url, lake_root=str(self.deployment.home / "lake"))

    @cached_property
    def tables(self) -> Tables:
        return Tables(self.spark, self.deployment.home / "lake")

    def open(self) -> None:
        """20 rows that the change stream does not have records of."""
        self.tables.create(BOARD, COLUMNS, row_tracking=True)
        self.tables.create(MIRROR, COLUMNS)
        self.change("INSERT INTO {t} SELECT id, 0, 'before' FROM range(20)")
        self.lake.create_change_stream(STREAM, BOARD, keys=("id",))

    def change(self, *statements: str) -> None:
        for statement in statements:
            self.tables.sql(statement, BOARD)

    def split(self) -> None:
        """Two captures of more than a partition may have, in this process: the second one splits it."""
        for number in (1, 2):
            self.change(f"INSERT INTO {{t}} SELECT id + {number * 20}, {number}, 'more' FROM range(20)")
            self.lake.capture(STREAM, split_rows=10, allowed_skew=timedelta(0))

    def check(self) -> Snapshot:
        """I1 to I9 hold, and nothing went back since the last look."""
        self.before = require_invariants(ControlStore(self.deployment.store_url), STREAM, self.before)
        return self.before

    def rows(self) -> list[tuple[Any, ...]]:
        return self.tables.rows(BOARD)

    def mirrored(self) -> list[tuple[Any, ...]]:
        return self.tables.rows(MIRROR)

    def written(self) -> Counter[tuple[str, int]]:
        """(token, number) of each chunk, as often as a commit of the mirror brought it."""
        return Counter(chunk for chunk, _ in self._commits())

    def written_at(self) -> dict[tuple[str, int], int]:
        """The mirror's version that brought each chunk."""
        return dict(self._commits())

    def _commits(self) -> Iterator[tuple[tuple[str, int], int]]:
        log = DeltaLog.open(str(self.deployment.home / "lake" / MIRROR.replace(".", "/")))
        tokens = set() if self.before is None else set(self.before.partitions)
        for commit in log.commits(0, log.head()):
            for app_id, number in commit.transactions.items():
                if (token := app_id.rpartition("/")[2]) in tokens:
                    yield (token, number - 1), commit.version

    def readers(self) -> list[ReaderRun]:
        return list(self._readers())

    def _readers(self) -> Iterator[ReaderRun]:
        for run in self.deployment.runs(READER):
            place = f"dags/{READER}/dagRuns/{run['dag_run_id']}/taskInstances"
            found = self.deployment.api("GET", place)["task_instances"]
            tasks = {one["task_id"]: one for one in found}
            handed = []
            if tasks["plan"]["state"] == "success":
                bundles = self.deployment.api("GET", f"{place}/plan/xcomEntries/return_value")["value"]
                handed = [(chunk["token"], chunk["number"]) for bundle in bundles for chunk in bundle["chunks"]]
            yield ReaderRun(run["partition_key"], run["state"], tasks, handed)


def committed(now: Snapshot) -> set[tuple[str, int]]:
    """(token, number) of the chunks that the one group is past."""
    (seen,) = now.groups.values()
    return {key for key, chunk in seen.chunks.items() if chunk.state is ChunkState.COMMITTED}
