"""A PostgreSQL's log on its way into the event log: events a CPU second and memory, step by step, without Spark.

    python -m tests.benchmarks.replication_decode --events 100000 --rounds 3 [--transaction 100]

Rows of 6 columns (bigint key, integer, numeric, two texts, timestamptz): 40 % inserts, 40 % updates, 20 % deletes,
`transaction` of them in each. Every round is a process of its own that reads the same slot, which never moves. *fetch*:
the messages only; *events*: what they become, dropped; *staged*: in Parquet files, as Spark takes them up. CPU seconds
are the process's own, without the server's; memory is its peak, and above what it had before the first message.
"""

from __future__ import annotations

import argparse
import json
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tests.postgresql import LOGICAL, PostgresServer, running_postgresql
from tidemark.jobs.workspace import Workspace
from tidemark.model.codec import from_json, to_json
from tidemark.model.source_address import SourceAddress, SourceKind
from tidemark.replication.driver.staging import EventStaging
from tidemark.replication.model.jobs import CapturedObject
from tidemark.replication.model.replication import START, LogPosition, ObjectName
from tidemark.replication.planning.events import Change, Half
from tidemark.replication.planning.positions import lsn_of
from tidemark.replication.sources.change_log import ObjectFacts
from tidemark.replication.sources.postgresql.change_log import read_by_functions, read_by_protocol
from tidemark.replication.sources.postgresql.connection import connect
from tidemark.replication.sources.postgresql.relations import CatalogSchemas
from tidemark.replication.sources.postgresql.slots import current_position
from tidemark.replication.sources.postgresql.transactions import TransactionReader

WAYS = ("functions", "protocol")
STEPS = ("fetch", "events", "staged")


def main() -> None:
    given = argparse.ArgumentParser()
    given.add_argument("--events", type=int, default=100_000)
    given.add_argument("--rounds", type=int, default=3)
    given.add_argument("--transaction", type=int, default=100)
    given.add_argument("--one", help="what a process of a round does: not for people")
    asked = given.parse_args()
    if asked.one:
        print(json.dumps(one_round(**json.loads(asked.one))))
        return
    with running_postgresql(LOGICAL) as server:
        database, oid = prepared(server, asked.events, asked.transaction)
        address = to_json(server.address(database))
        print(
            "| way | step | events/CPU s | CPU s | wall s | peak MB | MB above the start |\n| --- | --- |"
            + " --- |" * 5
        )
        for way in WAYS:
            for step in STEPS:
                rounds = [in_a_process(way, step, address, oid) for _ in range(asked.rounds)]
                told = {name: statistics.median(one[name] for one in rounds) for name in rounds[0]}
                print(
                    f"| {way} | {step} | {told['events'] / told['cpu']:,.0f} | {told['cpu']:.2f} | {told['wall']:.2f} "
                    f"| {told['peak']:.0f} | {told['more']:.0f} |",
                    flush=True,
                )


def prepared(server: PostgresServer, events: int, transaction: int) -> tuple[str, str]:
    """The database, and the OID of its table, behind whose slot the events stand."""
    import psycopg

    database = server.new_database()
    server.sql(
        "CREATE TABLE t (id bigint PRIMARY KEY, n int, amount numeric(12,2), name text, note text, at timestamptz)",
        database,
    )
    server.sql("CREATE PUBLICATION p FOR TABLE t", database)
    server.sql("SELECT pg_create_logical_replication_slot('s', 'pgoutput')", database)
    inserts, updates = transaction * 2 // 5, transaction * 2 // 5
    deletes = transaction - inserts - updates
    insert = (
        "INSERT INTO t SELECT g, g %% 1000, g / 7.0, 'name of ' || g, 'a long note, with words, of ' || md5(g::text), "
        "now() FROM generate_series(%s::bigint, %s::bigint) AS g"
    )
    url = server.url(database).replace("+psycopg", "")
    with psycopg.connect(url) as connection:
        for first in range(0, events // transaction * transaction, transaction):
            connection.execute(insert, (first, first + inserts - 1))
            connection.execute("UPDATE t SET n = n + 1 WHERE id >= %s AND id < %s", (first, first + updates))
            connection.execute("DELETE FROM t WHERE id >= %s AND id < %s", (first, first + deletes))
            connection.commit()
    oid = server.sql("SELECT 't'::regclass::oid::bigint", database)[0][0]
    return database, str(oid)


def in_a_process(way: str, step: str, address: str, oid: str) -> dict[str, float]:
    one = json.dumps({"way": way, "step": step, "address": address, "oid": oid})
    done = subprocess.run(
        [sys.executable, "-m", __spec__.name, "--one", one], capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise RuntimeError(done.stderr)
    told: dict[str, float] = json.loads(done.stdout)
    return told


def one_round(way: str, step: str, address: str, oid: str) -> dict[str, float]:
    source = from_json(SourceAddress, address)
    with connect(source) as connection, tempfile.TemporaryDirectory() as home:
        end = current_position(connection)
        captured = {oid: CapturedObject(ObjectName("public", "t"), oid, ("id",))}
        reader = TransactionReader(captured, {}, CatalogSchemas(connection, None), 0, lsn_of(end), 1 << 60)
        warm_up(home)
        before, began, cpu = peak(), time.monotonic(), time.process_time()
        with messages(source, way, end) as found:
            if step == "fetch":
                events = sum(1 for _, data in found if data[0] in b"IUD")
            elif step == "events":
                events = sum(len(rows) for rows in reader.chunks(found))
            else:
                with Workspace(f"file://{home}", "bench") as workspace:
                    staging = EventStaging(workspace, SourceKind.POSTGRESQL)
                    for rows in reader.chunks(found):
                        staging.stage(rows, reader.facts)
                events = reader.total
        spent = {"cpu": time.process_time() - cpu, "wall": time.monotonic() - began}
    return {"events": events, **spent, "peak": peak(), "more": peak() - before}


def warm_up(home: str) -> None:
    """What every job loads once: with pandas installed, pyarrow loads it, too."""
    with Workspace(f"file://{home}", "warm") as workspace:
        row = (0, 1, 1, 1, 1, 1, 1, Change.MESSAGE, Half.WHOLE, "{}", None, None, None, None)
        EventStaging(workspace, SourceKind.POSTGRESQL).stage([row], [ObjectFacts(None, None, None, None, None, ())])


@contextmanager
def messages(source: SourceAddress, way: str, end: LogPosition) -> Iterator[Iterator[tuple[int, bytes]]]:
    replication: dict[str, Any] = {"autocommit": False} if way == "functions" else {"replication": True}
    with connect(source, **replication) as reading:
        if way == "functions":
            yield read_by_functions(reading, "s", "p", end)
        else:
            yield read_by_protocol(reading, "s", "p", START, end)


def peak() -> float:
    """The process's largest size so far, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


if __name__ == "__main__":
    main()
