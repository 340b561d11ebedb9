"""The jobs of replications in a client: where targets are, and a backfill with its progress and its end."""

from __future__ import annotations

from dataclasses import dataclass, replace

from tidemark.client.context import ClientContext
from tidemark.errors import InvalidArgument
from tidemark.jobs.files import read_text, write_text
from tidemark.lake.tables import location_of
from tidemark.model.codec import from_json
from tidemark.model.jobs import JobResult, JobSpec
from tidemark.model.source_address import SourceAddress
from tidemark.model.streams import Addressing, TableRef
from tidemark.replication.model.replication import BackfillProgress, ObjectName, ReplicatedObject, ReplicationOptions
from tidemark.replication.planning.target_names import table_of, target_name
from tidemark.replication.worker.backfill import BackfillOutcome, run_backfill

__all__ = ["PlacedTargets", "run_backfill_of"]


@dataclass(frozen=True)
class PlacedTargets:
    """Targets below the lake root, or below the path that the options have."""

    context: ClientContext
    options: ReplicationOptions

    @classmethod
    def require_root(cls, context: ClientContext) -> str:
        """The root of the lake. Raises InvalidArgument without one."""
        if context.lake_root is None:
            problem = "a replication keeps its events and its targets below the root of the lake; give it to connect()"
            raise InvalidArgument(argument="lake_root", value=None, problem=problem)
        return context.lake_root

    def of(self, name: ObjectName) -> TableRef:
        """The target of a new object, which need not exist."""
        target = self.options.target
        named = target_name(target, table_of(name, self.options.target_table))
        addressing = Addressing.PATH if "/" in target else Addressing.LAKE
        path, _ = location_of(named, self.require_root(self.context))
        return TableRef(name=named, path=path, table_id="", addressing=addressing)


def run_backfill_of(
    context: ClientContext, one: ReplicatedObject, address: SourceAddress, *, partitions: int
) -> BackfillOutcome:
    """One backfill, whose progress is stored while it runs, and which ends when somebody stops it."""
    specs: list[JobSpec] = []

    def run(spec: JobSpec) -> JobResult:
        specs.append(spec)
        return context.run(spec, address)

    return run_backfill(
        replace(context.runtime, run=run),
        one.uid,
        by=context.by,
        cancel=lambda: write_text(specs[-1].cancel_uri, "stopped"),
        read_progress=_read_progress,
        partitions=partitions,
        key=context.key,
    )


def _read_progress(spec: JobSpec) -> BackfillProgress | None:
    """The newest that the job has said; None before its first word."""
    try:
        return from_json(BackfillProgress, read_text(f"{spec.result_uri}.progress"))
    except (OSError, ValueError, KeyError, TypeError):
        return None
