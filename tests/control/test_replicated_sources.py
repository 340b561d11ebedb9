"""Replications of a real server, which changes behind the store's back: nothing is lost without a word."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import timedelta

import pytest
import sqlalchemy as sa

from tests.control.replication_model import ME
from tests.postgresql import PostgresServer
from tidemark.control.schema import replicated_objects as objects_table
from tidemark.control.schema import replications as replications_table
from tidemark.control.store import ControlStore
from tidemark.databases.postgresql.source import PostgresSource
from tidemark.errors import SourceSetBack
from tidemark.model.jobs import JobResult, JobSpec
from tidemark.model.replication import (
    ObjectName,
    ObjectState,
    Replicated,
    Replication,
    ReplicationOptions,
    ReplicationState,
    Selection,
    SourceKind,
)
from tidemark.model.streams import TableRef
from tidemark.planning.replication.positions import lsn_of, position_of_lsn
from tidemark.transactions.limits import JobPlaces
from tidemark.transactions.replication.capture import capture
from tidemark.transactions.replication.definitions import alter_selection, create_replication, get_replication
from tidemark.transactions.replication.objects import objects_of
from tidemark.transactions.replication.preparing import Prepared, prepare

PATIENCE = timedelta(seconds=20)
NO_JOB = JobPlaces("/nowhere", "/nowhere")
EVERYTHING = Selection(include=("public",))


def _no_job(spec: JobSpec) -> JobResult:
    raise AssertionError(f"no job has anything to do: {spec.kind}")


@dataclass
class Shop:
    """A replication `r` of tables `t` and `u` of a database; no job of it is ever run."""

    store: ControlStore
    server: PostgresServer
    options: ReplicationOptions = field(default_factory=lambda: ReplicationOptions(target="lake"))
    database: str = field(init=False)

    def __post_init__(self) -> None:
        self.database = self.server.new_database()
        self.sql("CREATE TABLE t (id int PRIMARY KEY, secret text)", "CREATE TABLE u (id int PRIMARY KEY)")
        create_replication(
            self.store,
            name="r",
            kind=SourceKind.POSTGRESQL,
            source_conn_id="pg",
            selection=EVERYTHING,
            options=self.options,
            event_log="/nowhere/log",
            by=ME,
        )

    @property
    def source(self) -> PostgresSource:
        return PostgresSource(self.server.address(self.database))

    @property
    def replication(self) -> Replication:
        return get_replication(self.store, "r")

    def object(self, name: str) -> Replicated:
        return next(one for one in objects_of(self.store, "r") if one.name.text == name)

    def sql(self, *texts: str) -> None:
        for text in texts:
            self.server.sql(text, self.database)

    def select(self, selection: Selection) -> None:
        alter_selection(self.store, "r", selection, by=ME)

    def prepare(self) -> Prepared:
        return prepare(self.store, "r", source=self.source, targets=_target, by=ME, patience=PATIENCE)

    def capture(self) -> None:
        capture(self.store, "r", run=_no_job, places=NO_JOB, source=self.source, by=ME)

    def set(self, table: sa.Table, **values: object) -> None:
        """Have the store stand as after jobs."""
        self.store.write(lambda connection: connection.execute(table.update().values(values)))

    def replicated(self) -> None:
        """As after both backfills."""
        self.prepare()
        captured = self.replication.captured
        completed = ObjectState.COMPLETED.value
        self.set(objects_table, state=completed, snapshot=captured, applied=captured, applied_at=self.store.clock())

    def drop(self) -> None:
        for stored in (self.replication,):
            self.source.drop(stored)


def _target(name: ObjectName) -> TableRef:
    return TableRef(f"lake.{name.folded}", f"/nowhere/{name.folded}", "")


@pytest.fixture
def shop(copied_store: ControlStore, source_server: PostgresServer) -> Iterator[Shop]:
    made = Shop(copied_store, source_server)
    yield made
    made.drop()


def test_a_source_that_was_set_back_fails_for_good_and_keeps_its_changes(shop: Shop) -> None:
    shop.replicated()
    known = shop.replication
    assert known.captured is not None
    shop.set(replications_table, captured=position_of_lsn(lsn_of(known.captured) + (64 << 20)))
    shop.sql("INSERT INTO u VALUES (1)")
    with pytest.raises(SourceSetBack, match="set back"):
        shop.capture()
    assert shop.replication.state is ReplicationState.FAILED_PERMANENTLY
    assert shop.source.slot_position(known) == known.captured
    assert shop.source.has_changes(known, shop.source.current_position())
