"""What random writers did, as capture reads it from a slot: replayed one by one it is the source, and a table's history
holds each change once and in order, whichever way the slot is read and wherever batches are cut.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import pytest
import tenacity

from tests.guarantees.replication_comparison import differences, history_of, source_rows, told_of
from tests.guarantees.replication_replay import replayed
from tests.guarantees.replication_tables import SCHEMA, SourceTable
from tests.guarantees.replication_world import made_source
from tests.guarantees.replication_writers import Writers, opened
from tests.postgresql import PostgresServer
from tests.tiers import some
from tidemark.errors import SlotBusy
from tidemark.model.source_address import SourceAddress
from tidemark.replication.model.jobs import CapturedObject
from tidemark.replication.model.replication import LogPosition, ObjectName, TableSchema
from tidemark.replication.planning.positions import lsn_of, position_of_lsn
from tidemark.replication.sources.postgresql.change_log import read_by_functions, read_by_protocol
from tidemark.replication.sources.postgresql.connection import connect
from tidemark.replication.sources.postgresql.relations import CatalogSchemas
from tidemark.replication.sources.postgresql.slots import current_position, require_ours, slot_status
from tidemark.replication.sources.postgresql.transactions import TransactionReader


class Told(NamedTuple):
    """An event as the event log has it, as far as a replay needs it."""

    object_id: str
    tx_id: int
    position: int
    sequence: int
    change: str
    payload: str
    key: str | None
    old_key: str | None
    unchanged: tuple[str, ...] | None
    problem: str | None


class Reading:
    """Batch after batch, as capture reads them, its place and what it knows of objects kept between them."""

    def __init__(self, address: SourceAddress, tables: tuple[SourceTable, ...]) -> None:
        self.address = address
        with opened(address) as connection, connection.cursor() as cursor:
            cursor.execute(f"CREATE PUBLICATION p FOR TABLE {', '.join(table.sql for table in tables)}"
                           " WITH (publish_via_partition_root = true)")  # fmt: skip
            cursor.execute(f"SELECT pg_create_logical_replication_slot('f_' || oid, 'pgoutput'), 'f_' || oid"
                           f" FROM pg_namespace WHERE nspname = '{SCHEMA}'")  # fmt: skip
            self.slot = cursor.fetchone()[1]
            cursor.execute("SELECT relname, oid::text FROM pg_class")
            self.oids = dict(cursor.fetchall())
        self.objects = {
            self.oids[table.name]: CapturedObject(ObjectName(SCHEMA, table.name), self.oids[table.name], table.key)
            for table in tables
        }
        self.schemas: dict[str, TableSchema] = {}
        self.at = position_of_lsn(1)
        self.events: list[Told] = []

    def batch(self, chance: random.Random) -> None:
        with connect(self.address) as connection:
            self._wait_for_idle_slot(connection)
            end = current_position(connection)
            reader = TransactionReader(
                self.objects, dict(self.schemas), CatalogSchemas(connection, None), lsn_of(self.at), lsn_of(end),
                chance.choice((1, 30, 10**6)), chunk_rows=chance.choice((7, 20_000)),
            )  # fmt: skip
            with self._messages(chance.choice(("functions", "protocol")), end) as messages:
                for rows in reader.chunks(messages):
                    self.events += [
                        Told(str(reader.facts[row[0]].object_id), row[2] or 0, row[1], row[6], row[7].value, *row[9:])
                        for row in rows
                    ]
        self.at = end if reader.exhausted else position_of_lsn(reader.behind)
        self.schemas = reader.schemas

    @tenacity.retry(retry=tenacity.retry_if_exception_type(SlotBusy), stop=tenacity.stop_after_delay(30))
    def _wait_for_idle_slot(self, connection: Any) -> None:
        """The server lets go of it some time after the connection that read it was closed."""
        require_ours(slot_status(connection, self.slot))

    @contextmanager
    def _messages(self, how: str, end: LogPosition) -> Iterator[Iterator[tuple[int, bytes]]]:
        if how == "functions":
            with connect(self.address, autocommit=False) as reading:
                yield read_by_functions(reading, self.slot, "p", end)
        else:
            with connect(self.address, replication=True) as reading:
                yield read_by_protocol(reading, self.slot, "p", self.at, end)

    def of(self, table: SourceTable) -> list[Told]:
        return [event for event in self.events if event.object_id == self.oids[table.name]]

    def drop(self) -> None:
        with opened(self.address) as connection, connection.cursor() as cursor:
            self._wait_for_idle_slot(connection)
            cursor.execute(f"SELECT pg_drop_replication_slot('{self.slot}')")


@pytest.mark.parametrize("seed", some(range(200), now=range(4)))
def test_events_replayed_one_by_one_are_the_source(source_server: PostgresServer, seed: int) -> None:
    chance = random.Random(seed)
    address, tables, writers = made_source(source_server, seed)
    reading = Reading(address, tables)
    try:
        _read_while_written(reading, writers, chance)
        with opened(address) as connection:
            source, found = source_rows(connection, tables), []
            for table in tables:
                own = reading.of(table)
                assert own == sorted(own, key=lambda event: (event.position, event.sequence))
                if table.key:
                    found.append(differences(table, source[table.name], replayed(table, own)))
                else:
                    assert _by_transaction(table, own) == history_of(connection, table)
        assert not any(found), f"seed {seed}\n" + "\n".join(text for text in found if text)
    finally:
        writers.settle()
        reading.drop()


def _read_while_written(reading: Reading, writers: Writers, chance: random.Random) -> None:
    with writers.at_work(pause=0):
        for _ in range(5):
            reading.batch(chance)
    writers.run(300)
    writers.finish()
    with connect(reading.address) as connection:
        end = current_position(connection)
    while reading.at < end:
        reading.batch(chance)


def _by_transaction(table: SourceTable, events: list[Told]) -> dict[int, list[Any]]:
    found: dict[int, list[Any]] = defaultdict(list)
    for event in events:
        if event.change != "SCHEMA":
            found[event.tx_id].append(told_of(table, event.change, event.payload))
    return dict(found)
