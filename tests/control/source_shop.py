"""A replication of a real server in a control store, whose jobs never run: what looks at the source make of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta

import sqlalchemy as sa

from tests.control.replication_model import ME
from tests.postgresql import PostgresServer
from tidemark.control.store import ControlStore
from tidemark.model.jobs import JobResult, JobSpec
from tidemark.model.source_address import SourceKind
from tidemark.model.streams import TableRef
from tidemark.replication.model.replication import (
    ObjectName,
    ObjectState,
    ReplicatedObject,
    Replication,
    ReplicationOptions,
    Selection,
)
from tidemark.replication.sources.postgresql.connection import connect
from tidemark.replication.sources.postgresql.publication import GENERATED
from tidemark.replication.sources.postgresql.source import PostgresSource
from tidemark.replication.store.schema import replicated_objects as objects_table
from tidemark.replication.worker.capture import capture
from tidemark.replication.worker.definitions import alter_selection, create_replication, get_replication
from tidemark.replication.worker.objects import objects_of
from tidemark.replication.worker.preparing import Prepared, prepare
from tidemark.replication.worker.recovering import recover_from
from tidemark.streams.worker.limits import JobPaths
from tidemark.streams.worker.runtime import Runtime

__all__ = ["EVERYTHING", "Shop"]

PATIENCE = timedelta(seconds=20)
NO_JOB = JobPaths("/nowhere", "/nowhere")
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
            event_log="/nowhere/event_logs/log",
            by=ME,
        )

    @property
    def source(self) -> PostgresSource:
        return PostgresSource(self.server.address(self.database))

    @property
    def replication(self) -> Replication:
        return get_replication(self.store, "r")

    @property
    def takes_generated(self) -> bool:
        """Whether the log of the server has stored generated columns."""
        with connect(self.server.address(self.database)) as connection:
            return bool(connection.server_version >= GENERATED)

    def object(self, name: str) -> ReplicatedObject:
        return next(one for one in objects_of(self.store, "r") if one.name.text == name)

    def sql(self, *texts: str) -> None:
        for text in texts:
            self.server.sql(text, self.database)

    def select(self, selection: Selection) -> None:
        alter_selection(self.store, "r", selection, by=ME)

    def prepare(self) -> Prepared:
        return prepare(self.store, "r", source=self.source, targets=_target, by=ME, patience=PATIENCE)

    def capture(self) -> None:
        capture(Runtime(self.store, run=_no_job, paths=NO_JOB), "r", source=self.source, by=ME)

    def recover(self, position: str, keep: tuple[str, ...] = (), source: PostgresSource | None = None) -> Replication:
        return recover_from(
            self.store,
            "r",
            position=position,
            source=source or self.source,
            event_log=lambda name: f"/nowhere/{name}",
            by=ME,
            keep=keep,
            patience=PATIENCE,
        )

    def set(self, table: sa.Table, where: dict[str, object] | None = None, **values: object) -> None:
        """Have the store stand as after jobs."""
        rows = table.update().where(*(table.c[name] == value for name, value in (where or {}).items()))
        self.store.write(lambda connection: connection.execute(rows.values(values)))

    def replicated(self) -> None:
        """As after both backfills."""
        self.prepare()
        captured = self.replication.captured
        completed = ObjectState.COMPLETED.value
        self.set(objects_table, state=completed, snapshot=captured, applied=captured, applied_at=self.store.clock())

    def drop(self) -> None:
        self.source.drop(self.replication)


def _target(name: ObjectName) -> TableRef:
    return TableRef(f"lake.{name.folded}", f"/nowhere/{name.folded}", "")
