"""A replication of landed envelopes or event files with a store, an event log and targets of its own, turned in this
process.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.applies import run_apply
from tests.databases.debezium.landed import address_of
from tidemark.control.store import ControlStore
from tidemark.jobs.run import run
from tidemark.model.jobs import JobResult, JobSpec
from tidemark.model.source_address import SourceAddress
from tidemark.model.streams import Addressing, TableRef
from tidemark.replication.model.replication import (
    Actor,
    ObjectName,
    ReplicatedObject,
    Replication,
    ReplicationOptions,
    Selection,
)
from tidemark.replication.sources.open import Source, open_source
from tidemark.replication.worker.capture import capture
from tidemark.replication.worker.definitions import create_replication, get_replication
from tidemark.replication.worker.objects import objects_of
from tidemark.replication.worker.preparing import Prepared, prepare
from tidemark.streams.worker.limits import JobPaths
from tidemark.streams.worker.runtime import Runtime

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tidemark.replication.model.jobs import CaptureReport

__all__ = ["NAME", "LandedWorld"]

NAME = "landed"


class LandedWorld:
    """The envelopes at `home`/landed; what the replication knows and writes is at `home`, and is found again.
    `parameters`: of the connection.
    """

    def __init__(
        self,
        spark: SparkSession,
        home: Path,
        *,
        parameters: dict[str, Any] | None = None,
        selection: Selection | None = None,
        address: SourceAddress | None = None,
        **options: Any,
    ) -> None:
        self.spark, self.home = spark, home
        self.landed = home / "landed"
        self.landed.mkdir(exist_ok=True)
        self.address = address or address_of(self.landed, **(parameters or {}))
        self.store = ControlStore(f"sqlite:///{home}/tidemark.db")
        self.paths = JobPaths(f"{home}/work", f"{home}/jobs")
        self.jobs: list[str] = []  # kinds of the jobs that ran
        self.by = Actor("a test", run="landed/1/task/-1")
        create_replication(
            self.store,
            name=NAME,
            kind=self.address.kind,
            source_conn_id="envelopes",
            selection=selection or Selection(),
            options=ReplicationOptions(target=f"{home}/lake", **options),
            event_log=f"{home}/events",
            by=self.by,
            if_not_exists=True,
        )

    @property
    def source(self) -> Source:
        return open_source(self.address)

    @property
    def replication(self) -> Replication:
        return get_replication(self.store, NAME)

    @property
    def runtime(self) -> Runtime:
        return Runtime(self.store, run=self._job, paths=self.paths)

    def _job(self, spec: JobSpec) -> JobResult:
        self.jobs.append(spec.kind)
        return run(self.spark, spec, source=self.address, say=lambda _: None)

    def objects(self) -> dict[str, ReplicatedObject]:
        """By `schema.table`."""
        return {one.name.text: one for one in objects_of(self.store, NAME)}

    def prepare(self) -> Prepared:
        return prepare(
            self.store, NAME, source=self.source, targets=self._target, by=self.by, patience=timedelta(seconds=5)
        )

    def capture(self) -> CaptureReport | None:
        return capture(self.runtime, NAME, source=self.source, by=self.by)

    def apply(self) -> None:
        for one in self.objects().values():
            if one.applied is not None:
                run_apply(self.runtime, one.uid, by=self.by)

    def turn(self) -> CaptureReport | None:
        """The steps of a DAG run."""
        self.prepare()
        report = self.capture()
        self.apply()
        return report

    def rows(self, table: str, *columns: str) -> list[tuple[Any, ...]]:
        """Of the table's target, sorted."""
        frame = self.spark.read.format("delta").load(f"{self.home}/lake/{table.replace('.', '_')}")
        return sorted(map(tuple, frame.select(*columns).collect()), key=repr)

    def events(self) -> list[Any]:
        """Of the event log, in order, without schemas."""
        rows = self.spark.read.format("delta").load(f"{self.home}/events").where("change <> 'SCHEMA'")
        return rows.orderBy("position", "sequence").collect()

    @property
    def _target(self) -> Callable[[ObjectName], TableRef]:
        def place(name: ObjectName) -> TableRef:
            path = f"{self.home}/lake/{name.folded}"
            return TableRef(name=path, path=path, table_id="", addressing=Addressing.PATH)

        return place
