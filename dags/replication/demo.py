"""`make demo-replication`: a PostgreSQL that is written to, replicated in some rounds, each compared with its source.

The server is deleted at the end; the replicated tables stay in the lake until the next demo.
"""

from __future__ import annotations

import argparse
import json
import os
import secrets
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from flights.airflow_log import DRIVER_LOG, entry_of, reason_of
from replication.compare import Comparison, compare, rows_of_target
from replication.install import require_postgresql
from replication.shop import COLUMNS, TABLES, fill, make_shop
from replication.target import read_rows
from replication.writer import Writer
from tidemark.testing import PostgresNotInstalled, ThrowAwayPostgres, throw_away_postgresql

DAG, REPLICATION = "replicate_database", "shop"
DATABASE = "shop"
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
    parser.add_argument("--rounds", type=int, default=2, help="runs of the DAG")
    parser.add_argument("--orders", type=int, default=10_000, help="orders that the shop begins with")
    asked = parser.parse_args()
    home = Path(os.environ["AIRFLOW_HOME"])
    lake = home / "replication"
    shutil.rmtree(lake, ignore_errors=True)
    lake.mkdir(parents=True)
    try:
        require_postgresql()
    except PostgresNotInstalled as error:
        print(error)
        return 1
    began = time.monotonic()
    migrating = threading.Thread(target=_migrate, args=(home,))
    migrating.start()
    with throw_away_postgresql(password=secrets.token_urlsafe()) as server, _connected(server, "postgres") as admin:
        admin.cursor().execute(f"CREATE DATABASE {DATABASE}")
        with _connected(server, DATABASE) as connection, _connected(server, DATABASE) as writing:
            make_shop(connection)
            rows = fill(connection, orders=asked.orders)
            print(f"A throw-away PostgreSQL on port {server.port}, a shop of {rows:,} rows in {len(TABLES)} tables")
            migrating.join()
            code = _rounds(server, connection, writing, lake, asked.rounds)
    if code == 0:
        _look_next(home, lake, time.monotonic() - began)
    return code


def _rounds(server: ThrowAwayPostgres, connection: Any, writing: Any, lake: Path, rounds: int) -> int:
    writer, telling = Writer(writing), Telling()
    writer.start()
    print("A writer begins, and goes on all the time: orders, cancellations, new keys, rollbacks", flush=True)
    try:
        for number in range(1, rounds + 1):
            again = ["shop.customers"] if number == rounds > 1 else []
            print(f"\nRound {number} of {rounds}" + (f": {again[0]} is asked to be copied anew" if again else ""))
            code = _run(server, lake, telling, {"backfill": again})
            if code != 0:
                print(f"\nThe run failed. All of its log: {lake / 'demo.log'}")
                return code
            if not _report(connection, lake, writer):
                return 1
    finally:
        writer.stop()
    return 0 if writer.error is None else 1


def _run(server: ThrowAwayPostgres, lake: Path, telling: Telling, conf: Mapping[str, Any]) -> int:
    """Run the DAG in a process of its own; its log goes to a file and, shortened, to the terminal."""
    command = ["airflow", "dags", "test", DAG, "--conf", json.dumps(conf)]
    with (lake / "demo.log").open("a", encoding="utf-8") as log:
        run = subprocess.Popen(
            command, env=_environment(server, lake), text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )
        assert run.stdout is not None
        for line in run.stdout:
            log.write(line)
            for told in telling.lines(entry_of(line)):
                print(told, flush=True)
    return run.wait()


def _environment(server: ThrowAwayPostgres, lake: Path) -> Mapping[str, str]:
    source = {
        "conn_type": "postgres", "host": "127.0.0.1", "port": server.port, "schema": DATABASE, "login": "postgres",
        "password": server.password,
    }  # fmt: skip
    return os.environ | {
        "AIRFLOW_CONN_SHOP_DATABASE": json.dumps(source),
        "TIDEMARK_LAKE_ROOT": str(lake / "lake"),
        "TIDEMARK_CONTROL_STORE": f"sqlite:///{lake / 'control.db'}",
        "AIRFLOW__LOGGING__JSON_LOGS": "True",
        "PYTHONUNBUFFERED": "1",
    }


def _report(connection: Any, lake: Path, writer: Writer) -> bool:
    """Prints one line for each table; returns whether all agree."""
    compared = list(_compared(connection, lake))
    print(f"\n  {writer.transactions:,} transactions by now; the writer goes on")
    print(f"  {'table':<14}{'as of':>12}{'source':>10}{'target':>10}{'now':>10}")
    for position, one in compared:
        verdict = "agree" if one.agrees else f"{one.differs} ROWS DIFFER"
        print(f"  {one.table:<14}{position:>12}{one.source:>10,}{one.target:>10,}{one.now:>10,}   {verdict}")
    sys.stdout.flush()
    return all(one.agrees for _, one in compared)


def _compared(connection: Any, lake: Path) -> Iterator[tuple[str, Comparison]]:
    """Compares each target with its table as of the target's position."""
    from tidemark.control.store import ControlStore
    from tidemark.replication.planning.positions import lsn_of, lsn_text
    from tidemark.replication.worker.objects import objects_of

    for one in objects_of(ControlStore(f"sqlite:///{lake / 'control.db'}"), REPLICATION):
        assert one.applied is not None
        table, position = one.name.table, lsn_text(lsn_of(one.applied))
        path = Path(one.target.path.removeprefix("file://"))
        rows = rows_of_target(table, read_rows(path, COLUMNS[table]))
        yield position, compare(connection, table, position, rows)


@contextmanager
def _connected(server: ThrowAwayPostgres, database: str) -> Iterator[Any]:
    import psycopg2

    connection = psycopg2.connect(
        host="127.0.0.1", port=server.port, user="postgres", password=server.password, dbname=database
    )
    connection.autocommit = True
    try:
        yield connection
    finally:
        connection.close()


def _migrate(home: Path) -> None:
    if not (home / "airflow.db").exists():
        print("Making Airflow's own database (once)", flush=True)
    subprocess.run(["airflow", "db", "migrate"], check=True, capture_output=True)


def _look_next(home: Path, lake: Path, seconds: float) -> None:
    print(
        f"""
Done in {seconds:.0f} s; the server is gone. Look next
  {lake / "demo.log"}     everything the tasks said
  {lake / "lake" / "replicated"}     the tables
  provider/docs/how-to/replicate-a-database.md     the same with a database of yours"""
    )


if __name__ == "__main__":
    sys.exit(main())
