"""What a job works with."""

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

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["JobContext"]

ORPHANS_AFTER = timedelta(days=7)  # as long as Delta itself keeps files that nobody needs; no job lives as long
_LOOKED_AT = 100


@dataclass(frozen=True)
class JobContext:
    """One run of a job: its spec, an own session that nothing else writes in (V15), and how it speaks and stops."""

    session: SparkSession
    spec: JobSpec
    options: Mapping[str, str] = field(repr=False)  # credentials of the storage
    progress: Progress
    started_at: datetime
    stop_if_due: Callable[[], None]
    source: SourceAddress | None = field(default=None, repr=False)  # the database that a replication reads

    def require_source(self) -> SourceAddress:
        """The database that the job reads. Raises InvalidArgument if the job was not told of one."""
        if self.source is None:
            raise InvalidArgument(argument="source", value=None, problem="the job was not told which database to read")
        return self.source

    def new_workspace(self, owner_id: str) -> Workspace:
        """The job's own directories. What processes that died have left there goes first, some of it in each job; what
        cannot be removed is said and stays.
        """
        workspace = Workspace(self.spec.workspace, owner_id, options=self.options)
        try:
            older_than = self.started_at - ORPHANS_AFTER
            left = sweep_directories(workspace.root, self.options, older_than=older_than, at_most=_LOOKED_AT).left
        except (StorageRefused, StorageUnreachable) as error:
            left = {workspace.root: error.facts["problem"]}
        if left:
            place, problem = next(iter(left.items()))
            self.progress.say(f"not removed, though nobody needs it: {place} ({problem}), one of {len(left)}")
        return workspace
