"""A shop's orders under a change stream whose partitions have split and merged, for DAGs that read them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.airflow.runs import Lake
from tests.guarantees.partition_invariants import Snapshot, require_invariants

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tidemark.control.store import ControlStore
    from tidemark.hooks.tidemark import TidemarkHook

__all__ = ["COLUMNS", "STREAM", "Shop", "tokens_in_state"]

STREAM = "order_records"
COLUMNS = "id BIGINT, customer BIGINT, status STRING"


@dataclass
class Shop:
    """`shop.orders` with a key, a change stream on it, and the invariants of its partitions since the last look."""

    lake: Lake
    hook: TidemarkHook
    table: str = "shop.orders"
    stream: str = STREAM
    before: Snapshot | None = None

    @property
    def store(self) -> ControlStore:
        return self.hook.open_store()

    def open(self, partitions: int = 1, watch: Any = None, keys: Any = ("id",), **options: Any) -> Shop:
        from tidemark.change_streams.worker import defining
        from tidemark.hooks.lake_tables import lake_tables_of
        from tidemark.lake.log_paths import logs_root

        defining.create(
            self.store,
            self.stream,
            watch=watch or self.table,
            keys=keys,
            options=options,
            tables=lake_tables_of(self.hook),
            logs=logs_root(self.hook.settings.workspace),
            initial_partitions=partitions,
        )
        return self

    def change(self, *statements: str) -> None:
        for statement in statements:
            self.lake.sql(statement, self.table)

    def capture(self, *, split_rows: int = 1_000_000, merge_rows: int = 1) -> Any:
        """In this process: what the operator does, without a task."""
        from tidemark.change_streams.worker.capture import capture
        from tidemark.jobs.run import run
        from tidemark.streams.worker.runtime import Runtime

        return capture(
            Runtime(
                self.store,
                run=lambda spec: run(self.lake.spark, spec, say=lambda _: None),
                paths=self.hook.job_paths(),
                tables=self.hook.open_table,
            ),
            self.stream,
            allowed_skew=timedelta(0),
            split_rows=split_rows,
            merge_rows=merge_rows,
        )

    def check(self) -> Snapshot:
        """I1 to I9 hold, and nothing went back since the last look."""
        self.before = require_invariants(self.store, self.stream, self.before)
        return self.before

    @classmethod
    def at(
        cls,
        spark: SparkSession,
        root: Path,
        set_env: Callable[[str, str], None],
        table: str = "shop.orders",
        stream: str = STREAM,
    ) -> Shop:
        from tidemark.hooks.tidemark import TidemarkHook

        lake = Lake(spark, root / "lake")
        set_env("TIDEMARK_LAKE_ROOT", str(lake.root))
        set_env("TIDEMARK_CONTROL_STORE", f"sqlite:///{root}/control.db")
        lake.create(table, COLUMNS, row_tracking=True)
        return cls(lake, TidemarkHook(), table, stream)


def tokens_in_state(now: Snapshot, group: str) -> dict[str, int]:
    """How many partitions of the group are in each state."""
    (seen,) = (one for name, one in now.groups.items() if group in (name, one.group.name))
    counted: dict[str, int] = {}
    for one in seen.partitions.values():
        counted[one.state.value] = counted.get(one.state.value, 0) + 1
    return counted
