"""What a job works with."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING

from tidemark.engine.writes.exactly_once import Delivering
from tidemark.jobs.progress import Progress
from tidemark.model.jobs import JobSpec
from tidemark.model.replication import SourceAddress

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["JobContext"]


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

    @property
    def delivering(self) -> Delivering:
        """What the statements of the job's transaction share."""
        return Delivering(self.spec.store_id, self.spec.key, self.spec.windows, self.options, self.stop_if_due)
