"""Reads a slot to its end in a process of its own, for `replication_capture`: what capture's Python side does.

    python -m tests.benchmarks.replication_reader SLOT PUBLICATION OID functions|protocol [DIRECTORY]

The database is told by TIDEMARK_SOURCE. Rows are decoded, made into events and staged as Parquet files in DIRECTORY, so
that only the commit of these files by Spark is not here; without DIRECTORY they are thrown away.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from tidemark.databases.postgresql.change_log import read_by_functions, read_by_protocol
from tidemark.databases.postgresql.connection import connect
from tidemark.databases.postgresql.relations import CatalogSchemas
from tidemark.databases.postgresql.slots import current_position
from tidemark.databases.postgresql.transactions import EventRow, TransactionReader
from tidemark.model.codec import from_json
from tidemark.model.replication import LogPosition, ObjectName, SourceAddress
from tidemark.model.replication_jobs import CapturedObject
from tidemark.planning.replication.positions import lsn_of, position_of_lsn


def main(slot: str, publication: str, oid: str, how: str, directory: str | None = None) -> None:
    began = int(os.environ["BENCHMARK_BEGAN"]) / 1000
    first: list[float] = []

    def watched(messages: Iterator[tuple[int, bytes]]) -> Iterator[tuple[int, bytes]]:
        for message in messages:
            if not first:
                first.append(time.time() - began)
            yield message

    address = from_json(SourceAddress, os.environ["TIDEMARK_SOURCE"])
    with connect(address) as connection, _staging(directory) as stage:
        end = current_position(connection)
        objects = {oid: CapturedObject(ObjectName("shop", "orders"), oid, ("id",))}
        reader = TransactionReader(objects, {}, CatalogSchemas(connection, None), 0, lsn_of(end), 10**9)
        with _messages(address, slot, publication, how, end) as messages:
            for rows in reader.chunks(watched(messages)):
                stage(rows, reader)
    changes = reader.total - len(reader.changed)  # without the SCHEMA event
    print(json.dumps({"first": first[0], "last": time.time() - began, "events": changes}))


@contextmanager
def _staging(directory: str | None) -> Iterator[Callable[[list[EventRow], TransactionReader], None]]:
    if directory is None:
        yield lambda rows, reader: None
        return
    from tidemark.engine.replication.staging import EventStaging
    from tidemark.engine.workspace import Workspace

    with Workspace(directory, "reader") as workspace:
        staging = EventStaging(workspace)
        yield lambda rows, reader: staging.stage(rows, reader.facts)


@contextmanager
def _messages(
    address: SourceAddress, slot: str, publication: str, how: str, end: LogPosition
) -> Iterator[Iterator[tuple[int, bytes]]]:
    if how == "functions":
        with connect(address, autocommit=False) as reading:
            yield read_by_functions(reading, slot, publication, end)
    else:
        with connect(address, replication=True) as reading:
            yield read_by_protocol(reading, slot, publication, position_of_lsn(1), end)


if __name__ == "__main__":
    main(*sys.argv[1:])
