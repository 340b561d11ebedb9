"""The context of a running job."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from tidemark.errors import InvalidArgument, StorageRefused, StorageUnreachable
from tidemark.jobs.progress import Progress
from tidemark.jobs.workspace import Workspace
from tidemark.lake.orphans import sweep_directories
from tidemark.model.jobs import JobSpec
from tidemark.model.source_address import SourceAddress
from tidemark.model.source_connection import SourceConnection

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["JobContext"]

ORPHANS_AFTER = timedelta(days=7)  # as Delta keeps unneeded files; no job lives as long
_LOOKED_AT = 100


@dataclass(frozen=True)
class JobContext:
    """One run of a job: its spec, a session that nothing else writes in (V15), its log lines and its stop signal."""

    session: SparkSession
    spec: JobSpec
    options: Mapping[str, str] = field(repr=False)  # credentials of the storage
    progress: Progress
    started_at: datetime
    stop_if_due: Callable[[], None]
    source: SourceAddress | SourceConnection | None = field(default=None, repr=False)  # of a replication, or of rows

    def require_source(self) -> SourceAddress:
        """The database that the job reads. Raises InvalidArgument if the job got none."""
        if not isinstance(self.source, SourceAddress):
            raise InvalidArgument(argument="source", value=None, problem="the job got no database to read")
        return self.source

    @property
    def source_connection(self) -> SourceConnection | None:
        """The connection of the source of rows that the job reads, if it got one."""
        return self.source if isinstance(self.source, SourceConnection) else None

    def new_workspace(self, owner_id: str) -> Workspace:
        """The job's own directories. Some leftovers of dead processes are removed first, others by later jobs. A
        directory that cannot be removed is logged and kept.
        """
        workspace = Workspace(self.spec.workspace, owner_id, options=self.options)
        try:
            older_than = self.started_at - ORPHANS_AFTER
            left = sweep_directories(workspace.root, self.options, older_than=older_than, at_most=_LOOKED_AT).left
        except (StorageRefused, StorageUnreachable) as error:
            left = {workspace.root: error.facts["problem"]}
        if left:
            place, problem = next(iter(left.items()))
            self.progress.say(f"could not remove an unused directory: {place} ({problem}), one of {len(left)}")
        return workspace
