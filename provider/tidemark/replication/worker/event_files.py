"""Files of a replication's events: whether some are to be written, and the job that writes them."""

from __future__ import annotations

from collections.abc import Callable

import sqlalchemy as sa

from tidemark.control.store import ControlStore
from tidemark.errors import ReplicationRefused, TableNotFound
from tidemark.lake.delta_log import DeltaLog
from tidemark.lake.log_paths import written_files_path
from tidemark.lake.written_files import newest_range
from tidemark.model.statements import TransactionKey
from tidemark.replication.model.jobs import (
    FORGET_EVENT_FILES,
    WRITE_EVENT_FILES,
    EventFilesReport,
    FileFormat,
    ForgetEventFiles,
    ForgottenEventFiles,
    WriteEventFiles,
)
from tidemark.replication.model.replication import LogPosition
from tidemark.replication.store import replicated_objects, replications
from tidemark.streams.worker.runtime import Runtime

__all__ = ["forget_event_files", "known_event_files", "write_event_files"]


def write_event_files(
    runtime: Runtime,
    name: str,
    *,
    target: str,
    kind: FileFormat,
    file_bytes: int,
    interval_seconds: float,
    open_log: Callable[[str], DeltaLog],
    key: TransactionKey | None = None,
) -> EventFilesReport | None:
    """Write the captured events that `target` (a canonical URI) does not have as files, by a job. None without a job if
    it has all of them. In any state of the replication.

    The job stores how far it came, so a second run writes what is left. Raises ReplicationNotFound, ReplicationRefused
    (being dropped), EventLogChanged, EventFilesIncomplete, JobError.
    """

    def decide(connection: sa.Connection) -> WriteEventFiles | None:
        found = replications.find(connection, name)
        replication = found.replication
        if found.dropping:
            raise ReplicationRefused(replication=replication.name, problem="it is being dropped.")
        if replication.captured is None or not replication.batches:
            return None
        stored = replicated_objects.of_replication(connection, replication.uid)
        schemas = [schema for one in stored for schema in (one.object.schema, one.captured_schema) if schema]
        return WriteEventFiles(
            replication_uid=replication.uid,
            stream=replication.name,
            event_log=replication.event_log,
            batches=replication.batches,
            end=replication.captured,
            target=target,
            format=kind,
            file_bytes=file_bytes,
            interval_seconds=interval_seconds,
            schemas=tuple(dict.fromkeys(schemas)),
        )

    request = runtime.store.read(decide)
    if request is None or _has_all(request, open_log):
        return None
    return runtime.run_job(WRITE_EVENT_FILES, request, key=key)


def known_event_files(
    store: ControlStore, name: str, target: str, *, open_log: Callable[[str], DeltaLog]
) -> LogPosition | None:
    """The position before which the target has every event as a file; None if no commit that exists tells it. Raises
    ReplicationNotFound.
    """
    replication = store.read(lambda connection: replications.find(connection, name)).replication
    try:
        found = newest_range(open_log(written_files_path(replication.event_log)), target)
    except TableNotFound:
        return None
    return None if found is None or not found.end else LogPosition(found.end if found.done else found.start)


def forget_event_files(
    runtime: Runtime, name: str, target: str, *, open_log: Callable[[str], DeltaLog]
) -> ForgottenEventFiles:
    """Forget, by a job, which events `target` (a canonical URI) has as files. Its files stay. Events that only this
    target needed may expire. A second run finds nothing to forget. Raises ReplicationNotFound, EventFilesIncomplete,
    JobError.
    """
    replication = runtime.store.read(lambda connection: replications.find(connection, name)).replication
    try:
        open_log(written_files_path(replication.event_log))
    except TableNotFound:
        return ForgottenEventFiles(None)
    request = ForgetEventFiles(replication.uid, replication.name, replication.event_log, target)
    return runtime.run_job(FORGET_EVENT_FILES, request, key=None)


def _has_all(request: WriteEventFiles, open_log: Callable[[str], DeltaLog]) -> bool:
    """Whether the newest commit of the target says so; a commit that was cleaned up costs a job."""
    try:
        newest = newest_range(open_log(written_files_path(request.event_log)), request.target)
    except TableNotFound:
        return False
    return newest is not None and newest.done and newest.end >= request.end.commit
