"""A slot's changes read by Tidemark and by Debezium's embedded engine: events/s, CPU seconds, peak memory.

    python -m tests.benchmarks.replication_capture --rounds 5 [--scale 1] [--no-spark]

100,000 row changes times `scale` (40 % inserts, 40 % updates, 20 % deletes) in transactions of 100, rows of 6 columns.
Each run is a process of its own and gets its own copy of one slot; ways are interleaved, after a round that warms up.
Debezium counts what it read; our reader makes events of it and writes them as Parquet besides, as the job does before
Spark takes them.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path

from tests.benchmarks.debezium import VERSION, Debezium, ReaderRun, run_process
from tests.postgresql import LOGICAL, PostgresServer, running_postgresql
from tidemark.model.codec import to_json

TABLE = "shop.orders"
SLOT, PUBLICATION = "measured", "measured"
_COPIES = count(1)
_ROW = "i, 'customer ' || i % 997, i * 1.25, i % 7, now(), md5(i::text)"


def load(server: PostgresServer, database: str, scale: float) -> int:
    """Makes the table, its publication and its slot, then writes; the number of row changes."""
    server.sql("CREATE SCHEMA shop", database)
    server.sql(
        f"CREATE TABLE {TABLE} (id bigint PRIMARY KEY, customer text, amount numeric(12,2), kind int,"
        " at timestamptz, note text)",
        database,
    )
    server.sql(f"CREATE PUBLICATION {PUBLICATION} FOR TABLE {TABLE}", database)
    server.sql(f"SELECT pg_create_logical_replication_slot('{SLOT}', 'pgoutput')", database)
    rows = int(40_000 * scale)
    for step, until in (
        (f"INSERT INTO {TABLE} SELECT {_ROW} FROM generate_series(n, n + 99) i", rows),
        (f"UPDATE {TABLE} SET amount = amount + 1, note = md5(note) WHERE id BETWEEN n AND n + 99", rows),
        (f"DELETE FROM {TABLE} WHERE id BETWEEN n AND n + 99", rows // 2),
    ):
        server.sql(f"DO $$ BEGIN FOR n IN 1 .. {until} BY 100 LOOP {step}; COMMIT; END LOOP; END $$", database)
    return rows * 2 + rows // 2


@contextmanager
def copied_slot(server: PostgresServer, database: str) -> Iterator[str]:
    """Another slot at the place of the first."""
    name = f"{SLOT}_{next(_COPIES)}"
    server.sql(f"SELECT pg_copy_logical_replication_slot('{SLOT}', '{name}')", database)
    try:
        yield name
    finally:
        server.sql(f"SELECT pg_drop_replication_slot('{name}')", database)


Way = Callable[[str], ReaderRun]


def compared(server: PostgresServer, database: str, ways: dict[str, Way], rounds: int) -> dict[str, list[ReaderRun]]:
    runs: dict[str, list[ReaderRun]] = {way: [] for way in ways}
    for number in range(rounds + 1):
        for name, way in ways.items():
            with copied_slot(server, database) as slot:
                run = way(slot)
            print(f"  {name}: {run}", file=sys.stderr, flush=True)
            if number:
                runs[name].append(run)
    counts = {run.events for each in runs.values() for run in each}
    assert len(counts) == 1, counts
    return runs


def table(runs: dict[str, list[ReaderRun]]) -> Iterator[str]:
    """Medians, and each against the quickest Debezium."""
    yield "| | whole s | CPU s | peak MiB | first event s | events / s, whole | events / s, after the first |"
    yield "| --- | --- | --- | --- | --- | --- | --- |"
    for name, each in runs.items():
        wall, cpu, peak, first, last = (
            statistics.median(getattr(run, what) for run in each) for what in ("wall", "cpu", "peak", "first", "last")
        )
        events = each[0].events
        yield (
            f"| {name} | {wall:.2f} | {cpu:.2f} | {peak:.0f} | {first:.2f} | {events / wall:,.0f}"
            f" | {events / max(last - first, 0.001):,.0f} |"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--scale", type=float, default=1)
    parser.add_argument("--no-spark", action="store_true")
    given = parser.parse_args()
    debezium = Debezium()
    with running_postgresql(LOGICAL) as server, tempfile.TemporaryDirectory() as place:
        home, database = Path(place), server.new_database()
        events = load(server, database, given.scale)

        def engine(form: str) -> Way:
            return lambda slot: debezium.read(
                server, database, slot=slot, publication=PUBLICATION, events=events, form=form, home=home
            )

        (oid,) = server.sql(f"SELECT '{TABLE}'::regclass::oid::text", database)[0]
        source = {"TIDEMARK_SOURCE": to_json(server.address(database))}

        def ours(how: str, *, staged: bool = True) -> Way:
            def way(slot: str) -> ReaderRun:
                command = [
                    sys.executable,
                    "-m",
                    "tests.benchmarks.replication_reader",
                    slot,
                    PUBLICATION,
                    str(oid),
                    how,
                ]
                return run_process([*command, str(home / slot)] if staged else command, source)

            return way

        def job(slot: str) -> ReaderRun:
            command = [sys.executable, "-m", "tests.benchmarks.replication_job", slot, PUBLICATION, str(oid)]
            return run_process([*command, str(home / slot)], source)

        ways: dict[str, Way] = {
            "Tidemark's reader, by functions": ours("functions"),
            "Tidemark's reader, by protocol": ours("protocol"),
            "the same without Parquet": ours("protocol", staged=False),
            f"Debezium {VERSION}, records": engine("records"),
            f"Debezium {VERSION}, JSON": engine("json"),
        }
        if not given.no_spark:
            ways["Tidemark's whole job, Spark's start with it"] = job
        for line in table(compared(server, database, ways, given.rounds)):
            print(line, flush=True)


if __name__ == "__main__":
    main()
