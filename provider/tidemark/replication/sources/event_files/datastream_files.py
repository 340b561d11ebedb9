"""Files that Datastream writes: of any minute at any time, in no order, each event at least once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from tidemark.errors import EventFilesOutOfOrder, SourceRefused
from tidemark.lake.file_listing import FileListing
from tidemark.lake.storage import Storage, StoredFile, canonical_uri
from tidemark.model.foreign_json import parsed
from tidemark.replication.model.replication import Column
from tidemark.replication.planning.debezium_marks import Lanes
from tidemark.replication.planning.event_file_columns import require_header
from tidemark.replication.sources.debezium.inputs import input_errors_named, lost
from tidemark.replication.sources.event_files.contents import ENDINGS, header_columns, records_of
from tidemark.replication.sources.event_files.cuts import (
    FolderMark,
    cut_at,
    is_event_file,
    newer_than,
    object_of,
    reading_order,
)
from tidemark.replication.sources.event_files.inputs import FOLDER, Read, invalid
from tidemark.replication.sources.event_files.settings import EventFileSettings

__all__ = ["DatastreamFolder"]

SCHEMA_ENDING = ".schema"
AGAIN = "Copy it there again, so that its time is new, or delete it."


@dataclass
class DatastreamFolder:
    """The `EventFolder` of a folder that Datastream writes. `numeric_as`: as in ReplicationOptions."""

    settings: EventFileSettings
    numeric_as: str | None = None
    in_order: bool = False

    def __post_init__(self) -> None:
        self.place = canonical_uri(self.settings.location)
        self._listed: list[StoredFile] | None = None
        self._schemas: dict[str, StoredFile] = {}

    def ends(self) -> Lanes:
        """Behind the newest file that is old enough."""
        newest = datetime.now(UTC) - timedelta(seconds=self.settings.wait_seconds)
        cut = cut_at(one for one in self._list() if one.modified_at <= newest)
        return {FOLDER: FolderMark(cut, cut).lane} if cut.files else {}

    def require_kept(self, lanes: Lanes, position: str) -> None:
        """A file may be deleted once it was read. A file that came unseen has an old time, and is known by the
        number and the names of files.
        """
        mark = FolderMark.of(lanes.get(FOLDER))
        found = self._list()
        self._require_left(found, mark, position)
        before = [one for one in found if not newer_than(one, mark.until)]
        now = cut_at(before)
        if now.files > mark.until.files or (now.files == mark.until.files and now.digest != mark.until.digest):
            raise self._unseen(before)

    def is_behind(self, lanes: Lanes, end: Lanes) -> bool:
        """A part of the last look is left, or there are files behind it."""
        mark, until = FolderMark.of(lanes.get(FOLDER)), FolderMark.of(end.get(FOLDER)).until
        return not mark.is_whole or until.place > mark.until.place

    def records(self, lanes: Lanes, end: Lanes) -> Iterator[Read]:
        """First the files that an earlier look has left, then those behind it."""
        until, mark = FolderMark.of(end.get(FOLDER)).until, FolderMark.of(lanes.get(FOLDER))
        found = self._list() if self._listed is None else self._listed
        if not mark.is_whole:
            yield from self._files(self._require_left(found, mark, "the captured position"), mark)
        if until.place <= mark.until.place:
            return
        new = [one for one in found if newer_than(one, mark.until) and not newer_than(one, until)]
        new.sort(key=lambda one: reading_order(one.name))
        yield from self._files(new, FolderMark(mark.until, until, left=len(new)))

    def samples(self, lanes: Lanes, end: Lanes) -> Iterator[Read]:
        """The first event of the first file of each folder, and of the last one."""
        until, mark = FolderMark.of(end.get(FOLDER)).until, FolderMark.of(lanes.get(FOLDER))
        found = self._list() if self._listed is None else self._listed
        files = [one for one in found if newer_than(one, mark.until) and not newer_than(one, until)]
        files = [*self._left(found, mark), *sorted(files, key=lambda one: reading_order(one.name))]
        folders: dict[str, list[StoredFile]] = {}
        for one in files:
            folders.setdefault(object_of(one.name), []).append(one)
        for of_object in folders.values():
            for file in dict.fromkeys((of_object[0], of_object[-1])):
                yield from self._first(file)

    def amount(self, lanes: Lanes, end: Lanes) -> int:
        """Bytes of files as they are stored."""
        until, mark = FolderMark.of(end.get(FOLDER)).until, FolderMark.of(lanes.get(FOLDER))
        found = self._list()
        new = [one for one in found if newer_than(one, mark.until) and not newer_than(one, until)]
        return sum(one.size for one in (*self._left(found, mark), *new))

    def _list(self) -> list[StoredFile]:
        found: list[StoredFile] = []
        others, self._schemas = None, {}
        with input_errors_named(self.place, "the event files"):
            for one in FileListing(self.place, self.settings.storage_options):
                if one.problem is not None:
                    raise SourceRefused(source=self.place, what=one.name, problem=one.problem, remedy="Take it away.")
                if one.name.endswith(SCHEMA_ENDING):
                    self._schemas[one.name.removesuffix(SCHEMA_ENDING)] = one
                elif one.name.endswith(ENDINGS) and is_event_file(one.name):
                    found.append(one)
                elif one.name.endswith(ENDINGS):
                    others = one.name
        if others is not None and not found:
            problem = f"it has {others}, and no file in a folder <object>/yyyy/mm/dd/hh/mm"
            remedy = "Name the folder in which Datastream has those of objects."
            raise SourceRefused(source=self.place, what="the event files", problem=problem, remedy=remedy)
        self._listed = found
        return found

    def _require_left(self, found: list[StoredFile], mark: FolderMark, position: str) -> list[StoredFile]:
        """The files that the last look has left. Raises SlotLost, EventFilesOutOfOrder."""
        left = self._left(found, mark)
        if len(left) < mark.left:
            raise lost(self.place, "lost files before they were read", position)
        if len(left) > mark.left:
            raise self._unseen(left)
        return left

    def _unseen(self, among: list[StoredFile]) -> EventFilesOutOfOrder:
        newest = max(among, key=lambda one: one.modified_at).name
        problem = f"a file came with an old time, so it was not seen; the newest such file is {newest}"
        return EventFilesOutOfOrder(place=self.place, problem=problem, remedy=AGAIN)

    def _left(self, found: list[StoredFile], mark: FolderMark) -> list[StoredFile]:
        """Files between the cuts of the mark that were not read to their end."""
        if mark.is_whole:
            return []
        between = [one for one in found if newer_than(one, mark.begun) and not newer_than(one, mark.until)]
        between.sort(key=lambda one: reading_order(one.name))
        if not mark.name:
            return between
        at = reading_order(mark.name)
        return [one for one in between if reading_order(one.name) > at or (one.name == mark.name and mark.records >= 0)]

    def _files(self, files: list[StoredFile], mark: FolderMark) -> Iterator[Read]:
        """`mark`: before the first of them."""
        left = len(files)
        for file in files:
            skipped = mark.records if file.name == mark.name else 0
            for number, record in enumerate(self._records(file), 1):
                if number > skipped:
                    at = mark._replace(name=file.name, records=number, left=left)
                    yield Read(at.lane, (file.name, number), record)
            left -= 1
            done = mark._replace(name=file.name, records=-1, left=left)
            if not left:
                done = FolderMark(mark.until, mark.until)
            yield Read(done.lane, (file.name, 0), None)

    def _first(self, file: StoredFile) -> Iterator[Read]:
        for record in self._records(file):
            yield Read((), (file.name, 1), record)
            return

    def _records(self, file: StoredFile) -> Iterator[Any]:
        storage = Storage(self.place, self.settings.storage_options)
        columns = self._columns(storage, file)
        with input_errors_named(self.place, file.name), storage.open(file.name) as opened:
            yield from records_of(opened, f"{self.place}/{file.name}", lambda _: columns, self.numeric_as)

    def _columns(self, storage: Storage, file: StoredFile) -> tuple[Column, ...] | None:
        """By the schema that Datastream may write beside a file of JSON, under the same name."""
        plain = file.name
        while plain.endswith((*ENDINGS, ".gz")):
            plain = plain.rpartition(".")[0]
        beside = self._schemas.get(file.name) or self._schemas.get(plain)
        if beside is None or file.name.endswith(".avro"):
            return None
        with input_errors_named(self.place, beside.name):
            text = storage.read_bytes(beside.name)
        try:
            header = parsed(text)
            require_header(header)
            return header_columns(header, self.numeric_as)
        except ValueError as error:
            raise invalid(f"{self.place}/{beside.name}", f"is not a schema of events: {error}") from error
