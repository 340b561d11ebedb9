"""How the control store grows in a year: windows that deliver, windows that hold nothing, with and without pruning.

    python -m tests.benchmarks.store_growth --streams 50 --days 365 --looks 4 [--keep 90] [--url postgresql+psycopg://…]

Days are simulated: each stream delivers once a day to one target and looks `--looks` times more, in vain; the rows are
those that begin, submit and commit write, written by the functions that they use, one store transaction a day.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import sqlalchemy as sa

from tidemark.control.schema import all_tables
from tidemark.control.store import ControlStore
from tidemark.delivery.model.transactions import CommitResult, Plan, Transaction, TransactionState
from tidemark.model.statements import Evidence, PlannedWrite, Statement, TransactionKey, WriteAs
from tidemark.model.streams import Stream, StreamMode, StreamWindow, TableRef, WindowKind
from tidemark.streams.model.transaction_jobs import WRITE
from tidemark.streams.store import empty_windows, jobs, streams, transactions
from tidemark.streams.worker.begin import NOTHING_IS_REMEMBERED
from tidemark.streams.worker.offsets import delivered, move_offsets
from tidemark.streams.worker.older_store import keep_ordered
from tidemark.streams.worker.pruning import prune
from tidemark.streams.worker.streams import create_stream

START = datetime(2026, 1, 1, tzinfo=UTC)


class Year:
    """A store whose days pass as fast as they can be written."""

    def __init__(self, url: str, count: int, looks: int) -> None:
        self.now = START
        self.store = ControlStore(url, clock=lambda: self.now)
        self.store.migrate()
        self.looks = looks
        self.streams = [self._stream(number) for number in range(count)]
        self.steps: list[float] = []

    def _stream(self, number: int) -> Stream:
        source = TableRef(f"sales.orders_{number}", f"s3://lake/sales/orders_{number}", self.store.new_id())
        mode = StreamMode.STANDARD
        return create_stream(
            self.store, name=f"orders_{number}_changes", source=source, mode=mode, at_version=0, who="me"
        )

    def day(self, number: int) -> None:
        """Each stream delivers once and looks in vain."""
        self.store.write(lambda connection: [self._deliver(connection, one, number) for one in self.streams])
        for look in range(self.looks):
            self.now += timedelta(hours=24) / (self.looks + 1)
            self.store.write(lambda c, look=look: [self._look(c, one, number, look) for one in self.streams])
        self.now = START + timedelta(days=number + 1)

    def prune(self, keep: timedelta) -> None:
        """As the daily DAG does, without its pauses; how long each step took is kept."""
        prune(self.store, keep, pause=self.steps.append)

    def size(self) -> tuple[int, int]:
        """Rows and bytes."""

        def look(connection: sa.Connection) -> tuple[int, int]:
            count = [sa.select(sa.func.count()).select_from(table) for table in all_tables().tables.values()]
            rows = sum(connection.execute(query).scalar_one() for query in count)
            if self.store.url.startswith("sqlite"):
                pages, free, page = (connection.exec_driver_sql(f"PRAGMA {name}").scalar_one() for name in PRAGMAS)
                return rows, (pages - free) * page
            return rows, connection.execute(sa.text("SELECT pg_database_size(current_database())")).scalar_one()

        return self.store.read(look)

    def _deliver(self, connection: sa.Connection, stream: Stream, day: int) -> None:
        key = TransactionKey("orders_to_warehouse", f"scheduled__{self.now.isoformat()}", "consume")
        key = replace(key, dag_id=f"{stream.name}_to_warehouse")
        window = _window(stream, day, day + 1)
        target = TableRef(f"warehouse.{stream.name}", f"s3://lake/warehouse/{stream.name}", stream.uid)
        write = PlannedWrite(WriteAs.MERGE, target.name, source=stream.name, keys=("order_id",))
        serial = streams.draw_serial(connection, stream.uid)
        statement = Statement(1, write, target, 2 * day, f"tidemark/{stream.uid}/1", serial)
        opened = _transaction(key, window, self.now, Plan((statement,)))
        transaction_id, job_id = self.store.new_id(), self.store.new_id()
        transactions.insert(connection, transaction_id, opened, serial)
        deadline = self.now + timedelta(hours=6)
        jobs.insert(connection, job_id, transaction_id, WRITE.name, (statement,), at=self.now, deadline=deadline)
        keep_ordered(connection, (statement,))
        transactions.mark_submitted(connection, transaction_id, deadline=deadline, lease=deadline)
        jobs.end(connection, job_id, at=self.now, outcome="done")
        rows = {"inserted": 1000, "updated": 250, "deleted": 50}
        evidence = Evidence(1, target.table_id, 2 * day + 1, serial, statement.digest, rows)
        transactions.record_evidence(connection, transaction_id, evidence)
        move_offsets(connection, key, (window,), at=self.now, who=opened.owner)
        transactions.close(connection, transaction_id, TransactionState.COMMITTED, _result(opened, serial, (evidence,)))

    def _look(self, connection: sa.Connection, stream: Stream, day: int, look: int) -> None:
        key = TransactionKey(f"{stream.name}_to_warehouse", f"scheduled__{self.now.isoformat()}_{look}", "consume")
        window = _window(stream, day + 1, day + 1)
        quiet = _transaction(key, window, self.now, Plan(()))
        quiet = replace(quiet, state=TransactionState.COMMITTED, result=_result(quiet, day, ()))
        before = self.now - NOTHING_IS_REMEMBERED
        empty_windows.insert(connection, self.store.new_id(), quiet, day, forget_before=before)
        move_offsets(connection, key, (window,), at=self.now, who=quiet.owner)


PRAGMAS = ("page_count", "freelist_count", "page_size")


def _window(stream: Stream, start: int, end: int) -> StreamWindow:
    return StreamWindow(stream.uid, stream.name, stream.source, stream.mode, WindowKind.CHANGES, start, end)


def _transaction(key: TransactionKey, window: StreamWindow, now: datetime, plan: Plan) -> Transaction:
    owner = f"{key}#1@worker-17.example.com:12345"
    lease = now + timedelta(minutes=10)
    return Transaction(key, TransactionState.OPEN, (window,), plan, owner, lease, False, None, now)


def _result(opened: Transaction, serial: int, evidence: tuple[Evidence, ...]) -> CommitResult:
    told = delivered(opened.windows, at=opened.opened_at, end_times={})
    return CommitResult(opened.key, told, serial, evidence, opened.opened_at)


def main() -> None:
    """Let the days pass; a line for each quarter."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--streams", type=int, default=50)
    parser.add_argument("--days", type=int, default=365)
    parser.add_argument("--looks", type=int, default=4, help="in vain, a day and stream")
    parser.add_argument("--keep", type=int, default=0, help="days of history; 0: for ever")
    parser.add_argument("--url", help="an empty store (default: SQLite in a temporary directory)")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as home:
        year = Year(given.url or f"sqlite:///{Path(home)}/control.db", given.streams, given.looks)
        began = time.monotonic()
        print("| day | rows | MB | MB of 1,000 streams |\n| --- | --- | --- | --- |", flush=True)
        for day in range(given.days):
            year.day(day)
            if given.keep:
                year.prune(timedelta(days=given.keep))
            if (day + 1) % 73 == 0 or day + 1 == given.days:
                rows, size = year.size()
                scaled = size / 1e6 * 1000 / given.streams
                print(f"| {day + 1} | {rows:,} | {size / 1e6:.1f} | {scaled:,.0f} |", flush=True)
        steps = sorted(year.steps)
        if steps:
            median, longest = steps[len(steps) // 2] * 1e3, steps[-1] * 1e3
            print(f"steps that pruned: {len(steps)}, median {median:.0f} ms, longest {longest:.0f} ms")
        print(f"{time.monotonic() - began:.0f} s")


if __name__ == "__main__":
    main()
