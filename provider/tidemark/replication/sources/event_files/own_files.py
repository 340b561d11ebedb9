"""Files that Tidemark's EventFilesOperator writes: each event once, in the order of its source.

Lists of ranges say which files are whole, and where each begins. So the files of a range are read together, in the
order of the events of all tables.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

from tidemark.errors import SourceRefused
from tidemark.lake.file_listing import FileListing
from tidemark.lake.storage import Storage, canonical_uri
from tidemark.model.codec import from_json
from tidemark.replication.model.replication import Column, LogPosition
from tidemark.replication.planning.debezium_marks import Lanes
from tidemark.replication.planning.event_file_ranges import (
    RANGES_FOLDER,
    FilesOfRange,
    ListName,
    RangeFile,
    list_named,
)
from tidemark.replication.planning.event_file_records import FileRecord
from tidemark.replication.planning.file_rotation import CONTROL_FOLDER
from tidemark.replication.sources.debezium.inputs import input_errors_named, lost
from tidemark.replication.sources.event_files.contents import records_of
from tidemark.replication.sources.event_files.inputs import FOLDER, Read, invalid
from tidemark.replication.sources.event_files.settings import EventFileSettings

__all__ = ["OwnFolder", "is_own"]


class _Mark(NamedTuple):
    """Up to `position` and `sequence` all events were read. `number`: of the range that has them; `whole`: whether it
    has no others.
    """

    number: int = 0
    position: str = ""
    sequence: int = 0
    whole: bool = True

    @classmethod
    def of(cls, lanes: Lanes) -> _Mark:
        return cls(*lanes[FOLDER]) if FOLDER in lanes else cls()

    @property
    def place(self) -> LogPosition:
        return LogPosition(self.position, self.sequence)


def is_own(settings: EventFileSettings) -> bool:
    """Whether the folder has lists of ranges."""
    place = canonical_uri(settings.location)
    with input_errors_named(place, "the event files"):
        return bool(_lists(place, settings))


@dataclass
class OwnFolder:
    """The `EventFolder` of a target of EventFilesOperator."""

    settings: EventFileSettings
    in_order: bool = True

    def __post_init__(self) -> None:
        self.place = canonical_uri(self.settings.location)

    def ends(self) -> Lanes:
        """Behind the newest range that is whole."""
        names = self._names()
        if not names:
            return {}
        return {FOLDER: tuple(_Mark(names[-1].number, self._range(names[-1]).end))}

    def require_kept(self, lanes: Lanes, position: str) -> None:
        """The range that was read in part, and the files behind it."""
        mark = _Mark.of(lanes)
        names = self._names()
        if not mark.whole and all(one.number != mark.number for one in names):
            raise lost(self.place, f"lost the list of range {mark.number} before it was read", position)

    def is_behind(self, lanes: Lanes, end: Lanes) -> bool:
        """There are more ranges, or one was read in part."""
        mark = _Mark.of(lanes)
        return not mark.whole or _Mark.of(end).number > mark.number

    def records(self, lanes: Lanes, end: Lanes) -> Iterator[Read]:
        """Range by range, of each the events of all files in their order."""
        mark, until = _Mark.of(lanes), _Mark.of(end)
        for name in self._between(mark, until):
            found = self._range(name)
            for record, file, number in self._merged(found, mark.place):
                place = LogPosition(*record.order)
                mark = _Mark(name.number, place.commit, place.sequence, whole=False)
                yield Read(tuple(mark), (file, number), record)
            mark = _Mark(name.number, max(mark.position, found.end), 0 if found.end >= mark.position else mark.sequence)
            yield Read(tuple(mark), (name.text, 0), None)

    def samples(self, lanes: Lanes, end: Lanes) -> Iterator[Read]:
        """The first event of each table of each range, and all that change no row: SCHEMA events are among them."""
        for name in self._between(_Mark.of(lanes), _Mark.of(end)):
            found = self._range(name)
            control = [one for one in found.files if one.name.startswith(f"{CONTROL_FOLDER}/")]
            first = {_table_of(one): one for one in reversed(found.files) if one not in control}
            for file in (*control, *first.values()):
                for number, record in enumerate(self._records(found, file), 1):
                    yield Read((), (file.name, number), record)
                    if file not in control:
                        break

    def amount(self, lanes: Lanes, end: Lanes) -> int:
        """Events of ranges that were not read to their end."""
        names = self._between(_Mark.of(lanes), _Mark.of(end))
        mark = _Mark.of(lanes)
        return sum(one.events for name in names for one in self._range(name).files if one.last > mark.place)

    def _between(self, mark: _Mark, until: _Mark) -> list[ListName]:
        first = mark.number + 1 if mark.whole else mark.number
        return [one for one in self._names() if first <= one.number <= until.number]

    def _names(self) -> list[ListName]:
        with input_errors_named(self.place, "the event files"):
            names = _lists(self.place, self.settings)
        if len({one.writer for one in names}) > 1:
            problem = "several replications have written it, and their positions do not compare"
            remedy = "Give each replication a target of its own in EventFilesOperator."
            raise SourceRefused(source=self.place, what="the event files", problem=problem, remedy=remedy)
        return names

    def _range(self, name: ListName) -> FilesOfRange:
        with input_errors_named(self.place, name.text):
            text = self._storage().read_bytes(name.text)
        try:
            found: FilesOfRange = from_json(FilesOfRange, text.decode())
        except ValueError as error:
            raise invalid(f"{self.place}/{name.text}", f"is not a list of event files: {error}") from error
        return found

    def _merged(self, found: FilesOfRange, start: LogPosition) -> Iterator[tuple[FileRecord, str, int]]:
        """The events behind `start`. A file is opened when the first of its events is next."""
        waiting = sorted((one for one in found.files if one.last > start), key=lambda one: one.first, reverse=True)
        opened: list[tuple[LogPosition, str, int, FileRecord, Iterator[FileRecord]]] = []
        while waiting or opened:
            while waiting and (not opened or waiting[-1].first <= opened[0][0]):
                file = waiting.pop()
                self._next(opened, file.name, 0, self._records(found, file))
            if not opened:
                return
            place, name, number, record, others = heapq.heappop(opened)
            if place > start:
                yield record, name, number
            self._next(opened, name, number, others)

    def _next(self, opened: list[Any], name: str, number: int, records: Iterator[FileRecord]) -> None:
        record = next(records, None)
        if record is not None:
            heapq.heappush(opened, (LogPosition(*record.order), name, number + 1, record, records))

    def _records(self, found: FilesOfRange, file: RangeFile) -> Iterator[FileRecord]:
        def columns(schema_key: str | None) -> tuple[Column, ...] | None:
            known = found.schemas.get(schema_key or "")
            return None if known is None else known.columns

        storage = self._storage()
        count = 0
        try:
            with input_errors_named(self.place, file.name), storage.open(file.name) as opened:
                for record in records_of(opened, f"{self.place}/{file.name}", columns):
                    count += 1
                    yield record
        except SourceRefused as error:
            if not storage.exists(file.name):
                raise lost(self.place, f"lost the file {file.name}", "the captured position") from error
            raise
        if count != file.events:
            raise invalid(f"{self.place}/{file.name}", f"has {count} events, and was written with {file.events}")

    def _storage(self) -> Storage:
        return Storage(self.place, self.settings.storage_options)


def _lists(place: str, settings: EventFileSettings) -> list[ListName]:
    """The names of lists, in the order of their ranges."""
    try:
        found = [list_named(one.name) for one in FileListing(f"{place}/{RANGES_FOLDER}", settings.storage_options)]
    except FileNotFoundError:
        return []
    return sorted(one for one in found if one is not None)


def _table_of(file: RangeFile) -> tuple[str, str]:
    """The folder, and the digest of the table in the name."""
    folder, _, name = file.name.partition("/")
    return folder, name.rpartition("/")[2].split("_")[1]
