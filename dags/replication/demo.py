"""`make demo-replication`: a database that is written to, replicated in some rounds, each compared with its source.

The server is deleted at the end; the replicated tables stay in the lake until the next demo.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from flights.airflow_log import DRIVER_LOG, entry_of, reason_of
from replication.compare import COLUMNS, TABLES, Comparison, rows_of_target
from replication.mariadb.source import mariadb_source
from replication.postgresql.source import postgresql_source
from replication.source import DemoSource
from replication.target import read_rows
from tidemark.testing import MariaDBNotInstalled, PostgresNotInstalled

DAG, REPLICATION = "replicate_database", "shop"
SOURCES: Mapping[str, tuple[str, Callable[[int], AbstractContextManager[DemoSource]]]] = {
    "mariadb": ("MariaDB", mariadb_source),
    "postgresql": ("PostgreSQL", postgresql_source),
}
STARTING, ENDING = "[DAG TEST] starting task_id=", "[DAG TEST] end task task_id="
TOLD_BY = "tidemark.operators."  # part of the loggers of operators


@dataclass
class Telling:
    """Turns Airflow's log, one JSON object a line, into the lines to show."""

    started: float = field(default_factory=time.monotonic)

    def lines(self, entry: Mapping[str, Any]) -> Iterator[str]:
        event = str(entry.get("event", ""))
        if event.startswith(STARTING):
            task, _, index = event.removeprefix(STARTING).partition(" ")
            mapped = index.removeprefix("map_index=")
            yield f"[{time.monotonic() - self.started:4.0f} s] {task.removeprefix('replicate.')}" + (
                f" {mapped}" if mapped not in ("", "-1") else ""
            )
        elif entry.get("level") in ("error", "critical"):
            yield f"         {event}. {reason_of(entry)}"
        elif TOLD_BY in str(entry.get("logger")) or entry.get("filename") == DRIVER_LOG:
            yield f"         {event}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--source", choices=sorted(SOURCES), default="postgresql", help="the kind of database")
    parser.add_argument("--rounds", type=int, default=2, help="runs of the DAG")
    parser.add_argument("--orders", type=int, default=10_000, help="orders that the shop begins with")
    asked = parser.parse_args()
    home = Path(os.environ["AIRFLOW_HOME"])
    lake = home / "replication"
    shutil.rmtree(lake, ignore_errors=True)
    lake.mkdir(parents=True)
    began = time.monotonic()
    migrating = threading.Thread(target=_migrate, args=(home,))
    migrating.start()
    product, make = SOURCES[asked.source]
    try:
        with make(asked.orders) as source:
            print(
                f"A throw-away {product} on port {source.port}, a shop of {source.rows:,} rows in {len(TABLES)} tables"
            )
            migrating.join()
            code = _rounds(source, lake, asked.rounds)
    except (MariaDBNotInstalled, PostgresNotInstalled) as error:
        print(error)
        return 1
    if code == 0:
        _look_next(home, lake, time.monotonic() - began)
    return code


def _rounds(source: DemoSource, lake: Path, rounds: int) -> int:
    telling, names = Telling(), [f"shop.{table}" for table in TABLES]
    source.writer.start()
    print("A writer begins, and continues all the time: orders, cancellations, new keys, rollbacks", flush=True)
    if source.how_copied is not None:
        print(source.how_copied, flush=True)
    try:
        for number in range(1, rounds + 1):
            again = ["shop.customers"] if number == rounds > 1 else []
            print(f"\nRound {number} of {rounds}" + (f": {again[0]} is copied again" if again else ""))
            code = _round(source, lake, telling, names if number == 1 else again, again)
            if code != 0:
                return code
    finally:
        source.writer.stop()
    if source.writer.error is not None:
        print(f"The writer failed: {source.writer.error}")
        return 1
    if source.how_copied is None:
        return 0
    print("\nThe writer has ended. A last run: each table must be its source, row by row")
    return _round(source, lake, telling, [], [])


def _round(source: DemoSource, lake: Path, telling: Telling, copied: Sequence[str], again: Sequence[str]) -> int:
    """A run of the DAG, and the comparison. `copied`: tables that the run copies. `again`: those on request."""
    with source.copying([name.partition(".")[2] for name in copied]):
        code = _run(source, lake, telling, {"backfill": list(again)})
    if code != 0:
        print(f"\nThe run failed. All of its log: {lake / 'demo.log'}")
        return code
    return 0 if _report(source, lake) else 1


def _run(source: DemoSource, lake: Path, telling: Telling, conf: Mapping[str, Any]) -> int:
    """Run the DAG in a process of its own; its log goes to a file and, shortened, to the terminal."""
    command = ["airflow", "dags", "test", DAG, "--conf", json.dumps(conf)]
    with (lake / "demo.log").open("a", encoding="utf-8") as log:
        run = subprocess.Popen(
            command, env=_environment(source, lake), text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )
        assert run.stdout is not None
        for line in run.stdout:
            log.write(line)
            for told in telling.lines(entry_of(line)):
                print(told, flush=True)
    return run.wait()


def _environment(source: DemoSource, lake: Path) -> Mapping[str, str]:
    return os.environ | {
        "AIRFLOW_CONN_SHOP_DATABASE": json.dumps(source.airflow_connection),
        "TIDEMARK_LAKE_ROOT": str(lake / "lake"),
        "TIDEMARK_CONTROL_STORE": f"sqlite:///{lake / 'control.db'}",
        "AIRFLOW__LOGGING__JSON_LOGS": "True",
        "PYTHONUNBUFFERED": "1",
    }


def _report(source: DemoSource, lake: Path) -> bool:
    """Prints one line for each table; returns whether all agree."""
    compared = list(_compared(source, lake))
    still_writes = "; the writer continues" if source.writer.is_alive() else ""
    later = "" if source.how_copied is None else f"{'later':>10}"
    print(f"\n  {source.writer.transactions:,} transactions by now{still_writes}")
    print(f"  {'table':<14}{'as of':>24}{'source':>10}{'target':>10}{'now':>10}{later}")
    for position, one in compared:
        verdict = "agree" if one.agrees else f"{one.differs} ROWS DIFFER"
        also = f"{one.later:>10,}" if later else ""
        print(f"  {one.table:<14}{position:>24}{one.source:>10,}{one.target:>10,}{one.now:>10,}{also}   {verdict}")
    sys.stdout.flush()
    return all(one.agrees for _, one in compared)


def _compared(source: DemoSource, lake: Path) -> Iterator[tuple[str, Comparison]]:
    """Compares each target with its table as of the target's position."""
    from tidemark.control.store import ControlStore
    from tidemark.replication.planning.positions import position_text
    from tidemark.replication.worker.objects import objects_of

    for one in objects_of(ControlStore(f"sqlite:///{lake / 'control.db'}"), REPLICATION):
        assert one.applied is not None
        table, path = one.name.table, Path(one.target.path.removeprefix("file://"))
        rows = rows_of_target(table, read_rows(path, COLUMNS[table]))
        yield position_text(one.applied), source.compare(table, one.applied, rows)


def _migrate(home: Path) -> None:
    if not (home / "airflow.db").exists():
        print("Making Airflow's own database (once)", flush=True)
    subprocess.run(["airflow", "db", "migrate"], check=True, capture_output=True)


def _look_next(home: Path, lake: Path, seconds: float) -> None:
    print(
        f"""
Done in {seconds:.0f} s; the server is gone. Look next
  {lake / "demo.log"}     the whole log of the tasks
  {lake / "lake" / "replicated"}     the tables
  provider/docs/how-to/replicate-a-database.md     the same with a database of yours"""
    )


if __name__ == "__main__":
    sys.exit(main())
