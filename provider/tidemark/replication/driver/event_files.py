"""The events of an event log as files, each event in one file.

A range of positions is begun in the table of written files before its first file, and done after its last. Which events
a file has, its name and its bytes depend on the events and on the stored range alone. So an attempt after a kill writes
the same files over those that exist, and no file changes after it was written.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F

from tidemark.errors import EventFilesIncomplete
from tidemark.failpoints import failpoint
from tidemark.lake.event_logs import capture_app_id
from tidemark.lake.storage import Storage
from tidemark.lake.written_files import FileRange
from tidemark.model.codec import from_json, to_json
from tidemark.replication.driver.event_lines import ControlLines, EventEncoder, encoder_of
from tidemark.replication.driver.event_log import require_whole, widths
from tidemark.replication.driver.object_events import from_position
from tidemark.replication.driver.wide_rows import fitted
from tidemark.replication.driver.written_files import WrittenFiles
from tidemark.replication.model.jobs import EventFilesReport, FileFormat, WriteEventFiles
from tidemark.replication.model.replication import LogPosition, TableSchema
from tidemark.replication.planning.event_file_ranges import FilesOfRange, RangeFile, list_name
from tidemark.replication.planning.events import Change, schema_key
from tidemark.replication.planning.file_rotation import (
    CONTROL_FOLDER,
    CONTROL_KINDS,
    FilePart,
    Rotation,
    file_name,
    next_part,
)

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

__all__ = ["write_event_files"]

_EVENTS_OF_A_RANGE = 1_000_000
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_ORDER = ("object", "object_id", "position", "sequence")
_COLUMNS = (
    "stream_name", "read_method", "object", "schema_key", "uuid", "sort_keys", "source_metadata", "payload",
    "object_id", "position", "sequence", "change", "key", "old_key", "unchanged", "problem", "batch",
)  # fmt: skip


def _nothing(*_: str) -> None:
    return None


def write_event_files(
    session: SparkSession,
    store_id: str,
    request: WriteEventFiles,
    options: Mapping[str, str] | None = None,
    *,
    say: Callable[[str], None] = _nothing,
    stop_if_due: Callable[[], None] = _nothing,
    most: int = _EVENTS_OF_A_RANGE,
) -> EventFilesReport:
    """Write the events before `request.end` that the target does not have. A range that an attempt left is finished
    first, in its own format. Then ranges of about `most` events follow, each of whole batches.

    A second run, also at the same time, writes no other file. Raises EventLogChanged, EventFilesIncomplete,
    InvalidArgument, StorageRefused, StorageUnreachable.
    """
    log = require_whole(session, store_id, request, options)
    written = WrittenFiles(session, store_id, request, options)
    with fitted(session, *widths(log, capture_app_id(store_id, request.replication_uid))):
        events = session.read.format("delta").load(log.uri).where(F.col("change") != Change.HEARTBEAT.value)
        writing = _Writing(request, events, written, Storage(request.target, options), say, stop_if_due, most)
        return writing.run()


@dataclass
class _Writing:
    """The ranges of a target on their way into files."""

    request: WriteEventFiles
    events: DataFrame
    written: WrittenFiles
    storage: Storage
    say: Callable[[str], None]
    stop_if_due: Callable[[], None]
    most: int
    files: int = 0
    counts: Counter[str] = field(default_factory=Counter)
    known: dict[str, TableSchema] | None = None
    encoders: dict[tuple[FileFormat, str], EventEncoder] = field(default_factory=dict)
    listed: list[RangeFile] = field(default_factory=list)
    keys: set[str] = field(default_factory=set)

    def run(self) -> EventFilesReport:
        """Range by range."""
        newest = self.written.newest()
        continued = newest is not None and not newest.done
        if continued and newest is not None:
            self._require_all(newest)
        while True:
            if newest is None or newest.done:
                newest = self._begun(newest)
                if newest is None:
                    break
            if not newest.done:
                newest = self._wrote(newest)
        at = self.written.newest()
        return EventFilesReport(LogPosition("" if at is None else at.end), self.files, dict(self.counts), continued)

    def _begun(self, newest: FileRange | None) -> FileRange | None:
        """The next range, as it is stored; None if nothing is left. A range without events is done at once."""
        start = LogPosition("" if newest is None else newest.end)
        if start >= self.request.end:
            return None
        end, events = self._bounds(start)
        wanted = FileRange(
            target=self.request.target,
            number=0,
            start=start.commit,
            end=end.commit,
            done=not events,
            format=self.request.format.value,
            file_bytes=self.request.file_bytes,
            interval_seconds=float(self.request.interval_seconds),
            events=events,
        )
        stored = self.written.store(wanted)
        failpoint("files.begun")
        return stored

    def _bounds(self, start: LogPosition) -> tuple[LogPosition, int]:
        """The end of the range that begins at `start`, and its events."""
        each = (F.count("*").alias("events"), F.min("position").alias("first"))
        counted = self._between(start, self.request.end).groupBy("batch").agg(*each)
        total = 0
        for row in counted.orderBy("batch").collect():
            if total >= self.most:
                return LogPosition(row["first"]), total
            total += row["events"]
        return self.request.end, total

    def _require_all(self, one: FileRange) -> None:
        found = self._between(LogPosition(one.start), LogPosition(one.end)).count()
        if found != one.events:
            raise EventFilesIncomplete(
                replication=self.request.stream,
                target=self.request.target,
                problem=f"files of {one.events} events were begun, and the event log has {found} of these events",
                remedy="Events were deleted before they were written. Begin again with an empty target.",
            )

    def _wrote(self, one: FileRange) -> FileRange | None:
        """Write the files of the range. Returns what is stored then."""
        rows = self._between(LogPosition(one.start), LogPosition(one.end))
        control = F.col("change").isin(*CONTROL_KINDS)
        kind = FileFormat(one.format)
        rotation = Rotation(one.file_bytes, timedelta(seconds=one.interval_seconds))
        self.listed, self.keys = [], set()
        for folder, frame in ((None, rows.where(~control)), (CONTROL_FOLDER, rows.where(control))):
            self._write_all(_sorted(frame, _ORDER if folder is None else _ORDER[2:]), folder, kind, rotation)
        self._list(one)
        self.say(f"{one.events} events up to {one.end} are in files at {one.target}")
        failpoint("files.before")
        stored = self.written.store(replace(one, done=True))
        failpoint("files.stored")
        return stored

    def _list(self, one: FileRange) -> None:
        """Behind the last file, so that a reader knows which files are whole. It depends on the events alone, too."""
        known = self._schemas() if self.keys else {}
        files = FilesOfRange(
            self.request.stream, one.start, one.end, tuple(self.listed), {key: known[key] for key in sorted(self.keys)}
        )
        name = list_name(one.number, self.request.replication_uid)
        self.storage.write(name.text, to_json(files).encode())

    def _write_all(self, events: Iterator[Any], folder: str | None, kind: FileFormat, rotation: Rotation) -> None:
        file: _File | None = None
        for event in events:
            encoder = self._encoder(event, kind) if file is None or not file.takes(event, folder) else file.encoder
            item, size = encoder.encode(event)
            at = _time_of(event)
            part = next_part(
                None if file is None else file.part, rotation, group=_group_of(event, folder), at=at, size=size
            )
            if file is None or part.events == 1:
                self._write(file)
                place = LogPosition(event["position"], event["sequence"])
                file = _File(self._name(event, at, folder, kind), folder or event["object"], encoder, part, [], place)
            file.add(item, part, LogPosition(event["position"], event["sequence"]))
        self._write(file)

    def _write(self, file: _File | None) -> None:
        if file is None:
            return
        self.stop_if_due()
        self.storage.write(file.name, file.encoder.file_of(file.items, file.name))
        self.files += 1
        self.counts[file.folder] += len(file.items)
        self.listed.append(RangeFile(file.name, file.first, file.last, len(file.items)))
        failpoint("files.first")

    def _name(self, event: Any, at: datetime, folder: str | None, kind: FileFormat) -> str:
        object_id, key = event["object_id"] or "", event["schema_key"] or ""
        return file_name(
            folder or event["object"],
            at,
            position=event["position"],
            sequence=event["sequence"],
            identity="|".join((self.request.replication_uid, *(() if folder else (object_id, key)))),
            read_method="control" if folder else event["read_method"],
            kind=FileFormat.JSON if folder else kind,
        )

    def _encoder(self, event: Any, kind: FileFormat) -> EventEncoder:
        if event["change"] in CONTROL_KINDS:
            return ControlLines()
        key = (kind, event["schema_key"])
        self.keys.add(event["schema_key"])
        if key not in self.encoders:
            self.encoders[key] = encoder_of(kind, self._schema(event))
        return self.encoders[key]

    def _schema(self, event: Any) -> TableSchema:
        schema = self._schemas().get(event["schema_key"])
        if schema is None:
            raise EventFilesIncomplete(
                replication=self.request.stream,
                target=self.request.target,
                problem=f"the event log has no SCHEMA event of {event['object']} with key {event['schema_key']}",
                remedy="Forget the target (airflow tidemark replications forget-files), let these events expire, and "
                "begin with an empty target.",
            )
        return schema

    def _schemas(self) -> Mapping[str, TableSchema]:
        """By `schema_key`: those that the event log has, and those that the control store knows."""
        if self.known is None:
            told = self.events.where(F.col("change") == Change.SCHEMA.value).select("schema_key", "payload").distinct()
            found = {row["schema_key"]: from_json(TableSchema, row["payload"]) for row in told.collect()}
            self.known = {schema_key(one): one for one in self.request.schemas} | found
        return self.known

    def _between(self, start: LogPosition, end: LogPosition) -> DataFrame:
        return self.events.where(from_position(start) & ~from_position(end))


@dataclass
class _File:
    name: str
    folder: str
    encoder: EventEncoder
    part: FilePart
    items: list[Any]
    first: LogPosition
    last: LogPosition = field(init=False)

    def add(self, item: Any, part: FilePart, place: LogPosition) -> None:
        """One more event."""
        self.part, self.last = part, place
        self.items.append(item)

    def takes(self, event: Any, folder: str | None) -> bool:
        """Whether its encoder fits the event."""
        return self.part.group == _group_of(event, folder)


def _group_of(event: Any, folder: str | None) -> tuple[str, ...]:
    return (folder,) if folder else (event["object"], event["object_id"], event["schema_key"])


def _sorted(frame: DataFrame, order: tuple[str, ...]) -> Iterator[Any]:
    """Rows with times in microseconds, as PySpark gives times in the zone of the process."""
    times = (_micros("read_timestamp").alias("read_micros"), _micros("source_timestamp").alias("source_micros"))
    return frame.select(*_COLUMNS, *times).orderBy(*order).toLocalIterator(prefetchPartitions=True)


def _micros(name: str) -> Column:
    return F.unix_micros(F.col(name))


def _time_of(event: Any) -> datetime:
    """Source time; of a message outside a transaction, which has none, the time at which it was read."""
    micros = event["read_micros"] if event["source_micros"] is None else event["source_micros"]
    return _EPOCH + timedelta(microseconds=micros)
