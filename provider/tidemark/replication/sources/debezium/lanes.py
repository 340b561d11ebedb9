"""Files in lanes: which file belongs to which lane, and whether the files that were read are still the same."""

from __future__ import annotations

import hashlib
import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from tidemark.lake.storage import StoredFile

__all__ = ["ENDINGS", "FileMark", "Lane", "is_compressed", "lane_of", "lanes_of"]

ENDINGS = (".json", ".jsonl", ".ndjson", ".json.gz", ".jsonl.gz", ".ndjson.gz", ".avro")
"""Names of files with envelopes. Others are not looked at."""
_IN_ORDER = re.compile(r"\d.*|(?!partition=)[^=]+=.*")  # a directory of a time: `2024`, `year=2024`
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_BITS = 1 << 64


class FileMark(NamedTuple):
    """How far a lane of files was read: into the file `name`, which had `size` bytes. `done`: bytes of it that were
    read. A compressed or Avro file has none or all of them, and `records` counts those that were read.

    `files`, `digest`: number and names of the files up to it; `newest`: the newest of their times, in milliseconds.
    """

    name: str
    size: int
    done: int
    records: int
    files: int
    digest: str
    newest: int

    @property
    def is_in_part(self) -> bool:
        """Whether a part of the file was not read."""
        return self.done < self.size

    def is_behind(self, other: FileMark) -> bool:
        """Whether it is later in the lane, or other files are before it: these are judged by the next reader."""
        if self.name != other.name:
            return _order(self.name) > _order(other.name)
        others = self.files > other.files or (self.files == other.files and self.digest != other.digest)
        return self.done > other.done or others


def is_compressed(name: str) -> bool:
    """Whether the file is read as a whole, and never grows."""
    return name.endswith((".gz", ".avro"))


def lane_of(name: str) -> str:
    """The directories of a file, up to the first that stands for a time. A `partition=…` is always part of it."""
    parts = name.split("/")[:-1]
    first = next((place for place, part in enumerate(parts) if _IN_ORDER.fullmatch(part)), len(parts))
    return "/".join([*parts[:first], *(part for part in parts[first:] if part.startswith("partition="))])


class Lane:
    """The files of a lane as they are now, in the order of their names."""

    def __init__(self, name: str, files: Sequence[StoredFile]) -> None:
        self.name = name
        self.files = sorted(files, key=lambda one: _order(one.name))
        self._upto: dict[str, tuple[int, int, int]] = {}
        total = newest = 0
        for count, one in enumerate(self.files, 1):
            total, newest = total + _number(one.name), max(newest, _millis(one))
            self._upto[one.name] = count, total, newest

    def upto(self, file: StoredFile, *, done: int) -> FileMark:
        """The mark in that file of the lane."""
        count, total, newest = self._upto[file.name]
        return FileMark(file.name, file.size, done, 0, count, f"{total % _BITS:016x}", newest)

    def end(self) -> FileMark:
        """Behind all files."""
        return self.upto(self.files[-1], done=self.files[-1].size)

    def between(self, start: FileMark | None, end: FileMark) -> list[StoredFile]:
        """The files that have something to read."""
        return [
            one
            for one in self.files
            if _order(one.name) <= _order(end.name) and (start is None or _order(one.name) >= _order(start.name))
        ]

    def lost(self, mark: FileMark) -> str | None:
        """Why something behind the mark can no longer be read; None if all can."""
        current = next((one for one in self.files if one.name == mark.name), None)
        if current is None:
            return f"lost the file {mark.name} before all of it was read" if mark.is_in_part else None
        if current.size < mark.done:
            return f"has a shorter file {mark.name} than was read: {current.size} bytes after {mark.done}"
        return None

    def out_of_order(self, mark: FileMark) -> str | None:
        """A file that came, or changed, before the mark, with the reason; None if there is none."""
        before = [one for one in self.files if _order(one.name) <= _order(mark.name)]
        for one in before:
            if one.name == mark.name:
                if is_compressed(one.name) and one.size != mark.size:
                    return f"the file {one.name} has another size since it was read"
            elif _millis(one) > mark.newest:
                return f"the file {one.name} came or changed after {mark.name} was read, and sorts before it"
        if len(before) > mark.files or (len(before) == mark.files and _digest(before) != mark.digest):
            last = max(before, key=_millis)
            return f"a file came that sorts before {mark.name}, which was read; the newest of these is {last.name}"
        return None


def lanes_of(files: Iterable[StoredFile]) -> dict[str, Lane]:
    """The lanes of files, in the order of their names."""
    found: defaultdict[str, list[StoredFile]] = defaultdict(list)
    for one in files:
        if one.name.endswith(ENDINGS):
            found[lane_of(one.name)].append(one)
    return {name: Lane(name, found[name]) for name in sorted(found)}


def _order(name: str) -> bytes:
    return name.encode("utf-8", "surrogateescape")


def _digest(files: Iterable[StoredFile]) -> str:
    """Of a set of names."""
    return f"{sum(_number(one.name) for one in files) % _BITS:016x}"


def _number(name: str) -> int:
    return int.from_bytes(hashlib.sha256(_order(name)).digest()[:8], "big")


def _millis(file: StoredFile) -> int:
    return (file.modified_at - _EPOCH) // timedelta(milliseconds=1)
