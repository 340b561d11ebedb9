"""A stream on a table `orders`, a target with constraints, and a quarantine, for the tests of bad rows."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.table_templates import put_table
from tidemark.client import connect
from tidemark.client.lake import Lake
from tidemark.delivery.model.quarantine import CONSTRAINTS
from tidemark.delivery.model.transactions import CommitResult
from tidemark.delivery.planning.quarantine import with_quarantine
from tidemark.lake.delta_log import DeltaLog
from tidemark.model.statements import PlannedWrite, TransactionKey, WriteAs
from tidemark.streams.worker.begin import begin
from tidemark.streams.worker.commit import commit
from tidemark.streams.worker.consume import consume
from tidemark.streams.worker.outcomes import Opened
from tidemark.streams.worker.submit import submit

__all__ = ["World", "new_world"]


@dataclass
class World:
    spark: SparkSession
    root: Path
    lake: Lake
    runs: Iterator[int] = field(default_factory=itertools.count)

    def name(self, table: str) -> str:
        return f"delta.`{self.root}/{table}`"

    def sql(self, *texts: str) -> None:
        for text in texts:
            self.spark.sql(text.format(**{t: self.name(t) for t in ("orders", "target", "bad", "other")}))

    def source(self, columns: str = "id INT, v INT", *, mode: str = "standard", properties: str = "") -> World:
        tracked = f"TBLPROPERTIES ('delta.enableRowTracking' = 'true'{properties})"
        put_table(self.spark, self.root / "orders", f"CREATE TABLE {{t}} ({columns}) USING delta {tracked}")
        self.lake.create_stream("s", on=f"{self.root}/orders", mode=mode)
        return self

    def target(self, columns: str = "id INT, v INT", *checks: str, properties: str = "") -> World:
        made = f"CREATE TABLE {{t}} ({columns}) USING delta {properties}"
        bound = (f"ALTER TABLE {{t}} ADD CONSTRAINT c{number} CHECK ({check})" for number, check in enumerate(checks))
        put_table(self.spark, self.root / "target", made, *bound)
        return self

    def write(self, *keys: str, evolution: str = "fail", quarantine: str | None = "bad") -> CommitResult:
        """One transaction of the client: an append, or a merge by `keys`."""
        place = None if quarantine is None else f"{self.root}/{quarantine}"
        more: dict[str, Any] = {"schema_evolution": evolution, "quarantine": place}
        with self.lake.transaction() as tx:
            if keys:
                tx.merge("s", f"{self.root}/target", list(keys), **more)
            else:
                tx.append("s", f"{self.root}/target", **more)
        assert tx._result is not None
        return tx._result

    def rows(self, table: str = "target", columns: Sequence[str] = ("*",)) -> list[tuple[Any, ...]]:
        frame = self.spark.read.format("delta").load(f"{self.root}/{table}").selectExpr(*columns)
        return sorted((tuple(row) for row in frame.collect()), key=repr)

    def bad(self, *columns: str) -> list[tuple[Any, ...]]:
        """The columns of the quarantined rows, then what each of them breaks."""
        return self.rows("bad", [*(columns or ("id", "v")), f"`{CONSTRAINTS}`"])

    def log(self, table: str) -> DeltaLog:
        return DeltaLog.open(f"{self.root}/{table}")

    # the protocol, step by step

    def writes(self, *keys: str) -> tuple[PlannedWrite, ...]:
        from tidemark.client.quarantine import make_quarantine

        target, bad = f"{self.root}/target", f"{self.root}/bad"
        kind = WriteAs.MERGE if keys else WriteAs.APPEND
        write = PlannedWrite(kind, target, source="s", keys=keys, tables={target: f"file://{target}"}, quarantine=bad)
        return with_quarantine(write, make_quarantine(self.lake._context, bad))

    def begin(self, run: str, *keys: str) -> Opened:
        context = self.lake._context
        begun = begin(
            context.runtime,
            key=TransactionKey("dag", run, "consume"),
            streams=("s",),
            writes=self.writes(*keys),
            owner="a test",
        )
        assert isinstance(begun, Opened)
        return begun

    def finish(self, opened: Opened) -> CommitResult:
        context = self.lake._context
        submit(context.runtime, opened.transaction)
        return commit(context.store, opened.transaction.key, tables=context.tables)

    def consume(self, run: str, *keys: str) -> CommitResult:
        context = self.lake._context
        return consume(
            context.runtime,
            key=TransactionKey("dag", run, "consume"),
            streams=("s",),
            writes=self.writes(*keys),
            owner="a test",
        ).result


def new_world(spark: SparkSession, root: Path) -> World:
    return World(spark, root, connect(spark, f"sqlite:///{root}/control.db", lake_root=str(root)))


@pytest.fixture
def world(spark: SparkSession, tmp_path: Path) -> Iterator[World]:
    made = new_world(spark, tmp_path)
    yield made
    made.lake.close()
