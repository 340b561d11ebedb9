"""The messages between worker and driver for a replication: asks one way, answers the other. No secret is in them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from tidemark.model.jobs import ErrorRecord, Job
from tidemark.model.source_address import SourceKind
from tidemark.model.streams import TableRef
from tidemark.replication.model.catalog import HeldColumn, SeenTable
from tidemark.replication.model.replication import (
    InvalidValues,
    LogPosition,
    ObjectName,
    ReplicatedObject,
    ReplicationOptions,
    Selection,
    TableSchema,
    WriteMode,
)

__all__ = [
    "APPLY_EVENTS",
    "BACKFILL_OBJECT",
    "BACKFILL_OBJECTS",
    "CAPTURE_EVENTS",
    "EXPIRE_EVENTS",
    "FORGET_EVENT_FILES",
    "WRITE_EVENT_FILES",
    "AppliedObject",
    "AppliedObjects",
    "ApplyEvents",
    "ApplyObjects",
    "ApplyReport",
    "BackfillObject",
    "BackfillObjects",
    "BackfillReport",
    "BackfilledObject",
    "BackfilledObjects",
    "CaptureEvents",
    "CaptureReport",
    "CapturedObject",
    "ColumnRules",
    "EventFilesReport",
    "ExpireEvents",
    "ExpireReport",
    "FileFormat",
    "ForgetEventFiles",
    "ForgottenEventFiles",
    "WriteEventFiles",
]


@dataclass(frozen=True)
class ColumnRules:
    """Which columns of an object the lake has, and how. The rules go by a column's name at that moment and by its
    former names (`held`); the one that hides more counts. `mask`, `hash`: patterns, as in ReplicationOptions;
    `hash_mark` likewise. `by_name`: a column has no number, and its name is the same in any case.
    """

    selection: Selection = field(default_factory=Selection)
    mask: tuple[str, ...] = ()
    hash: tuple[str, ...] = ()
    held: tuple[HeldColumn, ...] = ()
    hash_mark: str | None = None
    by_name: bool = False


@dataclass(frozen=True)
class CapturedObject:
    """An object whose events are captured. `schema`: the newest that the log has an event of; None: none yet.

    `keys`: columns of its primary key as the catalog has it now. `excluded`: columns that no event shows, with what
    `rules` say of those that come. `registered`: what it was known to have before the log had an event of it. `seen`:
    what the catalog had when somebody looked last.
    """

    name: ObjectName
    source_id: str
    keys: tuple[str, ...]
    schema: TableSchema | None = None
    excluded: tuple[str, ...] = ()
    registered: TableSchema | None = None
    rules: ColumnRules = field(default_factory=ColumnRules)
    seen: SeenTable | None = None


@dataclass(frozen=True)
class CaptureEvents:
    """One bounded run: the log of the source up to `until`, which the worker read before it read the list of objects.

    So a batch holds no time at which an object was replicated already that the job did not know. An object that is
    registered later is backfilled as of a later position. None: up to the end of the log at the job's start, for
    callers whose objects stay the same. `captured` and `batches` are what the store knows; the event log may be further
    by what an attempt wrote that died. `selection`: of the replication; `left_out`: ids of its objects that are not
    captured. A source without a catalog stops before a table that is selected, and is none of its objects. `gtids`: of
    all transactions before `captured`, by which a server that took over is read on; "": not known.
    """

    replication_uid: str
    stream: str  # the replication's name, as events have it
    kind: SourceKind
    event_log: str
    slot: str
    publication: str
    system_id: str
    captured: LogPosition
    batches: int
    objects: tuple[CapturedObject, ...]
    options: ReplicationOptions
    until: LogPosition | None = None
    selection: Selection = field(default_factory=Selection)
    left_out: tuple[str, ...] = ()
    gtids: str = ""


@dataclass(frozen=True)
class CaptureReport:
    """The result of a run of capture. `captured`: every transaction that committed before it is in the event log.

    `events`: of each object, by `schema.table`; `schemas`: the newest of each object that changed; `renamed`: object →
    the name it has now. `lag_bytes`: of the log behind `captured` when the run ended. `server`, `gtids`: as in an
    EventBatch, of `captured`.
    """

    captured: LogPosition
    batches: int
    transactions: int
    events: Mapping[str, int]
    schemas: Mapping[str, TableSchema] = field(default_factory=dict)
    renamed: Mapping[str, str] = field(default_factory=dict)
    newest_source_timestamp: datetime | None = None
    lag_bytes: int = 0
    protocol: str = "functions"  # or "replication"
    server: str = ""
    gtids: str = ""


@dataclass(frozen=True)
class BackfillObject:
    """Copy an object as of one exact position. `number`: drawn from the object's `writes`; an older one never
    overwrites what a newer one wrote. `catch_up`: the position up to which events are applied to the copy before it
    takes the target's place. So the target never goes back; None for a target that nobody reads yet. `excluded`,
    `rules`: as in CapturedObject; `numeric_as`: as in ReplicationOptions. `batches`: as in ApplyEvents. `earlier`: uids
    of objects of replications that were dropped, which had this target; the copy takes it over. `gives_way_after`,
    `fetch_rows`: as in ReplicationOptions. `epoch`: of the places in the source's log files (`FilePlace`).
    """

    replication_uid: str
    stream: str
    object: ReplicatedObject
    kind: SourceKind
    number: int
    event_log: str
    system_id: str
    invalid_values: InvalidValues
    expected_rows: int
    partitions: int
    batches: int
    catch_up: LogPosition | None = None
    excluded: tuple[str, ...] = ()
    numeric_as: str | None = None
    earlier: tuple[str, ...] = ()
    gives_way_after: float = 5.0
    fetch_rows: int | None = None
    rules: ColumnRules = field(default_factory=ColumnRules)
    epoch: int = 1


@dataclass(frozen=True)
class BackfillReport:
    """The result of a backfill. `snapshot`: the position it is exact at; `applied`: what the target has now. `seen`:
    what the catalog had at the snapshot; None for a copy that was found.
    """

    snapshot: LogPosition
    applied: LogPosition
    rows: int
    schema: TableSchema
    target: TableRef
    found: bool = False
    seen: SeenTable | None = None


@dataclass(frozen=True)
class ApplyEvents:
    """Apply an object's events [start, end) to its target, written ahead under `number`. `batches`: those that the
    store knows to be in the event log, so that a log with a gap is recognised.
    """

    replication_uid: str
    object_uid: str
    stream: str
    name: ObjectName
    number: int
    start: LogPosition
    end: LogPosition
    schema: TableSchema  # as of `start`
    mode: WriteMode
    target: TableRef
    event_log: str
    invalid_values: InvalidValues
    batches: int
    source_id: str | None = (
        None  # ReplicatedObject.source_id: two names may fold to one; None takes all events of the name
    )


@dataclass(frozen=True)
class ApplyReport:
    """The result of an apply. `applied`: how far it came: `end`, or before the event that stopped it.

    `schema`: as of `applied`. `needs_backfill`: why only a backfill continues from here; None if that is not so.
    """

    applied: LogPosition
    schema: TableSchema
    segments: int
    events: int
    rows: Mapping[str, int]  # inserted, updated, deleted
    newest_source_timestamp: datetime | None = None
    needs_backfill: str | None = None
    found: int = 0  # segments that an earlier attempt had written


@dataclass(frozen=True)
class BackfillObjects:
    """Copy several objects in one job, one after another. Each copy has a position of its own."""

    objects: tuple[BackfillObject, ...]


@dataclass(frozen=True)
class BackfilledObject:
    """The result of one object: `report`, or `error` if its copy failed. `uid`: of the object."""

    uid: str
    report: BackfillReport | None = None
    error: ErrorRecord | None = None


@dataclass(frozen=True)
class BackfilledObjects:
    """The result of each object that was asked for, in their order."""

    objects: tuple[BackfilledObject, ...]


@dataclass(frozen=True)
class ApplyObjects:
    """Apply events to several targets in one job, one after another."""

    objects: tuple[ApplyEvents, ...]


@dataclass(frozen=True)
class AppliedObject:
    """The result of one object: `report`, or `error` if its apply failed. `uid`: of the object."""

    uid: str
    report: ApplyReport | None = None
    error: ErrorRecord | None = None


@dataclass(frozen=True)
class AppliedObjects:
    """The result of each object that was asked for, in their order."""

    objects: tuple[AppliedObject, ...]


@dataclass(frozen=True)
class ExpireEvents:
    """Take out of the event log what was read `before` then and nobody needs. `needed`: from which position on the
    events of an object are, by its `source_id`. `batches`: those that the store knows; the newest of them stays.
    `only_writer`: whether nothing is captured while it runs.
    """

    replication_uid: str
    stream: str
    event_log: str
    batches: int
    before: datetime
    needed: Mapping[str, LogPosition]
    only_writer: bool = False


@dataclass(frozen=True)
class ExpireReport:
    """`events`: how many went. `held`: how many were old enough and are needed, by `source_id`."""

    events: int
    held: Mapping[str, int] = field(default_factory=dict)


class FileFormat(StrEnum):
    """The format of event files."""

    JSON = "json"  # lines, packed with gzip
    AVRO = "avro"


@dataclass(frozen=True)
class WriteEventFiles:
    """Write the events before `end` that `target` does not have as files. `batches`: as in ApplyEvents. `schemas`: some
    that the objects have or had; the event log has the others. `file_bytes`, `interval_seconds`: after so much a file
    ends; a range that was begun keeps its own.
    """

    replication_uid: str
    stream: str
    event_log: str
    batches: int
    end: LogPosition
    target: str
    format: FileFormat
    file_bytes: int
    interval_seconds: float
    schemas: tuple[TableSchema, ...] = ()


@dataclass(frozen=True)
class EventFilesReport:
    """`written`: the target has every event before it. `events`: of each folder. `continued`: files that an earlier
    attempt had begun were among them.
    """

    written: LogPosition
    files: int
    events: Mapping[str, int] = field(default_factory=dict)
    continued: bool = False


@dataclass(frozen=True)
class ForgetEventFiles:
    """Forget which events `target` has as files."""

    replication_uid: str
    stream: str
    event_log: str
    target: str


@dataclass(frozen=True)
class ForgottenEventFiles:
    """`written`: the target had every event before it. None: nothing was known of it."""

    written: LogPosition | None


CAPTURE_EVENTS = Job(
    "capture_events", CaptureEvents, CaptureReport, "replication.driver.job_capture_events:capture_events"
)
BACKFILL_OBJECT = Job(
    "backfill_object",
    BackfillObject,
    BackfillReport,
    "replication.driver.job_backfill_object:backfill_object",
    is_long=True,
)
BACKFILL_OBJECTS = Job(
    "backfill_objects",
    BackfillObjects,
    BackfilledObjects,
    "replication.driver.job_backfill_object:backfill_objects",
    is_long=True,
)
APPLY_EVENTS = Job("apply_events", ApplyObjects, AppliedObjects, "replication.driver.job_apply_events:apply_objects")
EXPIRE_EVENTS = Job("expire_events", ExpireEvents, ExpireReport, "replication.driver.job_expire_events:expire_events")
WRITE_EVENT_FILES = Job(
    "write_event_files",
    WriteEventFiles,
    EventFilesReport,
    "replication.driver.job_write_event_files:write_event_files",
)
FORGET_EVENT_FILES = Job(
    "forget_event_files",
    ForgetEventFiles,
    ForgottenEventFiles,
    "replication.driver.job_write_event_files:forget_event_files",
)
