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

from tidemark.model.codec import from_json
from tidemark.model.source_address import SourceAddress
from tidemark.replication.model.jobs import CapturedObject
from tidemark.replication.model.replication import LogPosition, ObjectName
from tidemark.replication.planning.positions import lsn_of, position_of_lsn
from tidemark.replication.sources.postgresql.change_log import read_by_functions, read_by_protocol
from tidemark.replication.sources.postgresql.connection import connect
from tidemark.replication.sources.postgresql.relations import CatalogSchemas
from tidemark.replication.sources.postgresql.slots import current_position
from tidemark.replication.sources.postgresql.transactions import EventRow, TransactionReader


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
    from tidemark.jobs.workspace import Workspace
    from tidemark.model.source_address import SourceKind
    from tidemark.replication.driver.staging import EventStaging

    with Workspace(directory, "reader") as workspace:
        staging = EventStaging(workspace, SourceKind.POSTGRESQL)
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
