"""The parts of a connected client."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING

from tidemark.client.catalog import SparkTables
from tidemark.client.sessions import ClientSession
from tidemark.control.store import ControlStore
from tidemark.jobs.run import run as run_job
from tidemark.jobs.workspace import Workspace
from tidemark.lake.tables import location_of
from tidemark.model.jobs import JobResult, JobSpec
from tidemark.model.source_address import SourceAddress
from tidemark.model.statements import TransactionKey
from tidemark.model.streams import TableRef
from tidemark.replication.model.replication import Actor
from tidemark.results.model.answers import DEFAULT_RULES, ReuseRules
from tidemark.sql.statements import path_name
from tidemark.sql.table_names import table_name
from tidemark.streams.worker.limits import JobPaths, Limits
from tidemark.streams.worker.runtime import Runtime

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["ClientContext", "logger"]

SHORTEST_SECRET = 5

logger = logging.getLogger("tidemark")


@dataclass(frozen=True)
class ClientContext:
    """Spark, the control store, the tables and the paths of one client; jobs run in this process."""

    session: ClientSession
    store: ControlStore
    tables: SparkTables
    workspace: Workspace
    paths: JobPaths
    limits: Limits
    who: str
    lake_root: str | None = None
    options: Mapping[str, str] = field(default_factory=dict, repr=False)
    sources: Mapping[str, SourceAddress] = field(default_factory=dict, repr=False)
    run_id: str = ""
    use_cached_result: bool = True
    rules: ReuseRules = DEFAULT_RULES

    @property
    def spark(self) -> SparkSession:
        """The session, which may start now."""
        return self.session.spark

    @property
    def key(self) -> TransactionKey:
        """The client among the runs that work at replications; the same in all of its calls."""
        return TransactionKey("client", self.run_id, "transaction")

    @property
    def by(self) -> Actor:
        """The one who moves a replication."""
        return Actor(self.who, run=str(self.key))

    @property
    def runtime(self) -> Runtime:
        """The runtime of steps on the worker's side."""
        return Runtime(self.store, self.run, self.paths, self.tables, self.limits)

    def runtime_on(self, source: SourceAddress) -> Runtime:
        """The same, for jobs that read a source database."""
        return replace(self.runtime, run=partial(self.run, source=source))

    def run(self, spec: JobSpec, source: SourceAddress | None = None) -> JobResult:
        """Run a job on this Spark, in a session of its own."""
        return run_job(self.spark, spec, options=self.options, source=source, clock=self.store.clock, say=logger.info)

    def place_of(self, name: str) -> str | None:
        """The path of a table by its name, whether or not it exists; None if only a catalog knows it."""
        meant = table_name(name)
        if meant.only_in_catalog or (meant.path is None and self.lake_root is None):
            return None
        return location_of(name, self.lake_root or "/")[0]

    def turn_on_row_tracking(self, table: TableRef) -> None:
        """Makes up to three commits on the table (R3)."""
        self.spark.sql(f"ALTER TABLE {path_name(table.path)} SET TBLPROPERTIES ('delta.enableRowTracking' = 'true')")

    def without_secrets(self, text: str) -> str:
        """The text without the values of the storage options, since some are keys."""
        for value in self.options.values():
            if len(str(value)) >= SHORTEST_SECRET:
                text = text.replace(str(value), "***")
        return text
