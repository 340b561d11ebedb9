"""A control store with streams in every state that the monitor tells apart, and the logs of their sources. No Spark."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

from tests.guarantees.synthetic_tables import SyntheticTable
from tests.guarantees.world import World
from tidemark.errors import IncompatibleSchemaChange
from tidemark.model.statements import TransactionKey
from tidemark.model.streams import StreamMode, TableRef
from tidemark.streams.worker.begin import begin
from tidemark.streams.worker.consume import consume
from tidemark.streams.worker.statistics import count_failure
from tidemark.streams.worker.streams import advance_stream, create_stream

__all__ = ["DAG", "Monitored"]

DAG = "shop_mirror"  # the DAG whose runs consumed the streams
HOUR = timedelta(hours=1)


@dataclass
class Monitored:
    """`order_changes` moved often and is behind, with an open window; `payments` is up to date; `customers` is nearly
    stale; `returns` has lost its source; `stock` was made anew under the stream, and failed three times; `clicks` owes
    its rows at the start, and failed once, in a DAG that nobody may read.
    """

    root: Path
    url: str
    tables: dict[str, SyntheticTable] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.now = datetime.now(UTC).replace(microsecond=0)
        self.world = World(self.root, self.url)
        self.store = self.world.store

    def fill(self) -> Monitored:
        self._clock(hours=40)
        self._stream("order_changes", comment="for the mirror")
        self._stream("payments", mode=StreamMode.APPEND_ONLY)
        for step in range(12):
            self._clock(hours=38 - 3 * step)
            self._commit("order_changes", times=1 + step % 3)
            self._commit("payments", times=1)
            self._consume(f"scheduled__{self.world.clock.now:%Y-%m-%dT%H}:00:00+00:00", "order_changes")
            self._consume(f"payments__{step}", "payments")
        self._clock(hours=158)
        self._stream("customers")
        self._commit("customers", times=4)
        self._clock(hours=30)
        self._stream("returns")
        self._stream("stock")
        self._stream("clicks", initial_rows=True)
        shutil.rmtree(self.tables["returns"].path)
        self.tables["stock"].replace()
        self._clock(hours=2)
        advance_stream(self.store, "clicks", 0, "ana", "skip the import")
        self._commit("order_changes", times=2)
        self._clock(hours=0.1)
        self._begin("manual__open", "order_changes")
        self._clock(hours=0.05)
        self._commit("order_changes", times=3)
        self._clock(hours=0.01)
        self._fail("stock", TransactionKey(DAG, "scheduled__failed", "deliver_stock"), times=3)
        self._fail("clicks", TransactionKey("not_for_all", "r", "t"), times=1)
        return self

    def _fail(self, name: str, run: TransactionKey, *, times: int) -> None:
        error = IncompatibleSchemaChange(table=f"shop.{name}", start=0, end=1, problem="a column has another type")
        for _ in range(times):
            count_failure(self.store, [name], error, run=run)

    def many(self, count: int) -> Monitored:
        """`count` streams more, on one table: bulk_0000 …"""
        self._clock(hours=1)
        table = self._table("bulk")
        with_names = (f"bulk_{number:04}" for number in range(count))
        self.store.migrate()
        for name in with_names:
            self._create(name, table, StreamMode.STANDARD)
        return self

    def unusual(self, name: str) -> Monitored:
        """A stream more. Its versions were taken at once, and the newest one has been waiting for three hours."""
        self.store.migrate()
        self._clock(hours=40)
        self._stream(name)
        for hours in range(35, 4, -2):
            self._clock(hours=hours)
            self._commit(name, times=1)
            self._consume(f"run_{hours}", name)
        self._clock(hours=3)
        self._commit(name, times=1)
        return self

    def _clock(self, *, hours: float) -> None:
        self.world.clock.now = self.now - hours * HOUR

    def _table(self, name: str) -> SyntheticTable:
        table = self.tables[name] = SyntheticTable(self.root / "shop" / name)
        self.world.by_uri[table.uri] = table
        self._date(table)
        return table

    def _commit(self, name: str, *, times: int) -> None:
        for _ in range(times):
            self.tables[name].append()
            self._date(self.tables[name])

    def _date(self, table: SyntheticTable) -> None:
        """The newest commit was made at the world's time, for those who go by the file."""
        seconds = self.world.clock.now.timestamp()
        os.utime(max(table.log.glob("*.json")), (seconds, seconds))

    def _stream(self, name: str, *, mode: StreamMode = StreamMode.STANDARD, **more: object) -> None:
        self._create(name, self._table(name), mode, **more)

    def _create(self, name: str, table: SyntheticTable, mode: StreamMode, **more: object) -> None:
        create_stream(
            self.store,
            name=name,
            source=TableRef(f"shop.{table.path.name}", table.uri, table.table_id),
            mode=mode,
            at_version=table.head(),
            who="ana",
            **more,  # type: ignore[arg-type]
        )

    def _consume(self, run: str, name: str) -> None:
        self._with(consume, run, name)

    def _begin(self, run: str, name: str) -> None:
        self._with(begin, run, name)

    def _with(self, act: Callable[..., object], run: str, name: str) -> None:
        key = TransactionKey(DAG, run, f"deliver_{name}")
        act(
            self.world.runtime,
            key=key,
            streams=(name,),
            writes=tuple(w.__class__(w.write_as, w.target, source=name) for w in self.world.writes(0, 1)),
            owner=f"{key}#1@worker-3:417",
        )
