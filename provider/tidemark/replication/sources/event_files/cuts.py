"""How far a folder of Datastream's files was read.

Datastream writes files of any minute at any time, as a backfill has the minute at which it began. So new files are
known by their times, and a *cut* has all files up to a time. The files between two cuts are read in the order of their
minutes and names.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from tidemark.lake.storage import StoredFile

__all__ = ["Cut", "FolderMark", "cut_at", "is_event_file", "newer_than", "object_of", "reading_order"]

_LAYOUT = re.compile(r"(?P<object>[^/]+)/(?P<minute>\d{4}/\d{2}/\d{2}/\d{2}/\d{2})/[^/]+")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_BITS = 1 << 64


class Cut(NamedTuple):
    """All files up to the time `millis` since 1970; `name` is the last of them. `files`, `digest`: their number and
    names.
    """

    millis: int = 0
    name: str = ""
    files: int = 0
    digest: str = ""

    @property
    def place(self) -> tuple[int, bytes]:
        """By which cuts and files compare."""
        return self.millis, _bytes(self.name)


class FolderMark(NamedTuple):
    """`begun`: the cut up to which all files were read. `until`: the next one. Of the files between them those up to
    `name` were read, and of that file `records`. `left`: how many of these files were not read to their end.
    """

    begun: Cut = Cut()
    until: Cut = Cut()
    name: str = ""
    records: int = 0
    left: int = 0

    @property
    def lane(self) -> tuple[Any, ...]:
        """As a mark has it."""
        return (*self.begun, *self.until, self.name, self.records, self.left)

    @classmethod
    def of(cls, lane: tuple[Any, ...] | None) -> FolderMark:
        """The inverse; None is before all."""
        return cls() if lane is None else cls(Cut(*lane[:4]), Cut(*lane[4:8]), *lane[8:])

    @property
    def is_whole(self) -> bool:
        """Whether no file between the cuts is left."""
        return not self.left


def is_event_file(name: str) -> bool:
    """Whether the name is `<object>/yyyy/mm/dd/hh/mm/<file>`."""
    return _LAYOUT.fullmatch(name) is not None


def object_of(name: str) -> str:
    """The folder of the object."""
    return name.partition("/")[0]


def reading_order(name: str) -> tuple[str, bytes]:
    """By minutes, then by names."""
    found = _LAYOUT.fullmatch(name)
    return ("" if found is None else found["minute"]), _bytes(name)


def cut_at(files: Iterable[StoredFile]) -> Cut:
    """The cut behind all of them."""
    found, digest, last = 0, 0, Cut()
    for one in files:
        found, digest = found + 1, digest + _number(one.name)
        last = max(last, Cut(millis_of(one), one.name), key=lambda cut: cut.place)
    return last._replace(files=found, digest=f"{digest % _BITS:016x}" if found else "")


def newer_than(file: StoredFile, cut: Cut) -> bool:
    """Whether the file is behind the cut."""
    return (millis_of(file), _bytes(file.name)) > cut.place


def millis_of(file: StoredFile) -> int:
    """Its time, in milliseconds since 1970."""
    return (file.modified_at - _EPOCH) // timedelta(milliseconds=1)


def _bytes(name: str) -> bytes:
    return name.encode("utf-8", "surrogateescape")


def _number(name: str) -> int:
    return int.from_bytes(hashlib.sha256(_bytes(name)).digest()[:8], "big")
