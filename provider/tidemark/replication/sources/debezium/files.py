"""Envelopes in files: JSON lines, plain or compressed, and Avro object containers."""

from __future__ import annotations

import gzip
import io
import zlib
from collections.abc import Iterator, Mapping
from typing import IO, Any, cast

from tidemark.errors import EnvelopeInvalid, EnvelopesOutOfOrder, SourceRefused
from tidemark.lake.file_listing import FileListing
from tidemark.lake.storage import Storage, StoredFile, canonical_uri
from tidemark.replication.planning.debezium import landed
from tidemark.replication.planning.debezium_marks import Lanes
from tidemark.replication.sources.debezium.avro_files import avro_records
from tidemark.replication.sources.debezium.inputs import Record, input_errors_named, lost
from tidemark.replication.sources.debezium.lanes import FileMark, Lane, is_compressed, lanes_of
from tidemark.replication.sources.debezium.settings import DebeziumSettings

__all__ = ["FileInput"]

REWRITE = "Land it whole, under a name that sorts after the files that were read."
LONGEST_LINE = 1 << 28
BUFFER = 1 << 20


class FileInput:
    """The `EnvelopeInput` of a directory or a bucket."""

    def __init__(self, settings: DebeziumSettings) -> None:
        self._settings = settings
        self._listed: Mapping[str, Lane] | None = None
        self.place = canonical_uri(settings.location)

    def identity(self) -> str:
        """The canonical URI."""
        return self.place

    def remedy(self, lane: str) -> str:
        """Files can be corrected."""
        return "Correct the file."

    def ends(self) -> Lanes:
        """Behind the last file of each lane."""
        return {name: tuple(lane.end()) for name, lane in self._lanes().items()}

    def require_kept(self, lanes: Lanes, position: str) -> None:
        """A file may be deleted once it was read. A file that comes too late is recognised by its time, or by the
        number and the names of files.
        """
        found = self._lanes()
        for name, place in lanes.items():
            mark = FileMark(*place)
            lane = found.get(name, Lane(name, ()))
            if (why := lane.lost(mark)) is not None:
                raise lost(self.place, why, position)
            if (why := lane.out_of_order(mark)) is not None:
                raise EnvelopesOutOfOrder(place=self.place, problem=why, remedy=f"{REWRITE} Or delete it.")

    def is_behind(self, lanes: Lanes, end: Lanes) -> bool:
        """A lane has more files, or its last one grew."""
        for name, place in end.items():
            there = FileMark(*place)
            if name not in lanes or there.is_behind(FileMark(*lanes[name])):
                return True
        return False

    def records(self, lanes: Lanes, end: Lanes) -> Iterator[Record]:
        """Each file is opened once. The files are those of the last look, so a later one is never part of a mark."""
        found = self._lanes() if self._listed is None else self._listed
        storage = Storage(self.place, self._settings.storage_options)
        for name, place in end.items():
            start = FileMark(*lanes[name]) if name in lanes else None
            lane, until = found.get(name), FileMark(*place)
            if start is not None and (start.name, start.done) == (until.name, until.done):
                continue
            if lane is None or all(one.name != until.name for one in lane.files):
                raise lost(self.place, f"lost the file {until.name} before it was read", "the captured position")
            for file in lane.between(start, until):
                begun = start if start is not None and start.name == file.name else None
                yield from self._file(storage, lane, file, begun, until)

    def has_siblings(self, lane: str, lanes: Lanes) -> bool:
        """Another partition of the same topic."""
        topic = _without_partition(lane)
        return any(one != lane and _without_partition(one) == topic for one in lanes)

    def amount(self, lanes: Lanes, end: Lanes) -> int:
        """Bytes of files as they are stored."""
        total = 0
        for name, lane in self._lanes().items():
            if name in end:
                start = FileMark(*lanes[name]) if name in lanes else None
                total += sum(one.size for one in lane.between(start, FileMark(*end[name])))
                total -= 0 if start is None or all(one.name != start.name for one in lane.files) else start.done
        return max(0, total)

    def _lanes(self) -> Mapping[str, Lane]:
        with input_errors_named(self.place):
            found = lanes_of(FileListing(self.place, self._settings.storage_options))
        for lane in found.values():
            for one in lane.files:
                if one.problem is not None:
                    remedy = "Take it away."
                    raise SourceRefused(source=self.place, what=one.name, problem=one.problem, remedy=remedy)
        self._listed = found
        return found

    def _file(
        self, storage: Storage, lane: Lane, file: StoredFile, begun: FileMark | None, until: FileMark
    ) -> Iterator[Record]:
        if begun is not None and not begun.is_in_part and begun.done >= file.size:
            return
        with input_errors_named(self.place, file.name), storage.open(file.name) as opened:
            if not is_compressed(file.name):
                limit = until.done if until.name == file.name else file.size
                yield from self._lines(lane, file, opened, 0 if begun is None else begun.done, limit)
                return
            skipped = 0 if begun is None else begun.records
            found = self._avro(file, opened) if file.name.endswith(".avro") else self._zipped(file, opened)
            base = lane.upto(file, done=0)
            for number, (value, avro) in enumerate(found, 1):
                if number > skipped:
                    yield Record(lane.name, tuple(base._replace(records=number)), (file.name, number), value, avro)
            yield Record(lane.name, tuple(lane.upto(file, done=file.size)), (file.name, 0), None)

    def _lines(self, lane: Lane, file: StoredFile, opened: IO[bytes], done: int, limit: int) -> Iterator[Record]:
        """From a byte on. The last line may be without its end, if it is whole."""
        opened.seek(done)
        base, lines = lane.upto(file, done=done), io.BufferedReader(cast("io.RawIOBase", opened), BUFFER)
        while done < limit:
            line = lines.readline(LONGEST_LINE)
            if not line:
                raise lost(self.place, f"has a shorter file {file.name} than it had", "the captured position")
            at, done = done, done + len(line)
            if line.strip():
                mark = tuple(base._replace(size=max(file.size, done), done=done))
                yield Record(lane.name, mark, (file.name, at), self._parsed(line, file, f"at byte {at}"))
        yield Record(lane.name, tuple(base._replace(size=max(file.size, done), done=done)), (file.name, done), None)

    def _zipped(self, file: StoredFile, opened: IO[bytes]) -> Iterator[tuple[Any, None]]:
        lines = gzip.GzipFile(fileobj=opened)
        number = 0
        while True:
            try:
                line = lines.readline(LONGEST_LINE)
            except (EOFError, gzip.BadGzipFile, zlib.error) as error:
                raise self._invalid(file, f"cannot be unpacked behind line {number}: {error}") from error
            if not line:
                return
            number += 1
            yield self._parsed(line, file, f"in line {number}") if line.strip() else None, None

    def _avro(self, file: StoredFile, opened: IO[bytes]) -> Iterator[tuple[Any, Mapping[str, Any] | None]]:
        try:
            yield from avro_records(opened)
        except ValueError as error:
            raise self._invalid(file, f"is not a file of envelopes: {error}") from error

    def _parsed(self, line: bytes, file: StoredFile, where: str) -> Any:
        try:
            return landed(line)
        except ValueError as error:
            cut = "" if line.endswith(b"\n") else "; the line has no end, so the file was cut off, or is still written"
            raise self._invalid(file, f"has no JSON object {where} ({error}){cut}") from error

    def _invalid(self, file: StoredFile, problem: str) -> EnvelopeInvalid:
        return EnvelopeInvalid(place=f"{self.place}/{file.name}", problem=problem, remedy="Land the file whole.")


def _without_partition(lane: str) -> str:
    return "/".join(part for part in lane.split("/") if not part.startswith("partition="))
