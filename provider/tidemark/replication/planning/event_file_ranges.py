"""Lists of event files, by which a reader knows that they are whole: one for each range, written behind its last file.

The list of a range is `_control/_ranges/<number>_<digest>.json` below the target. The number is that of the range, and
the digest is of the replication. Numbers grow, and some are left out.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from tidemark.replication.model.replication import LogPosition, TableSchema
from tidemark.replication.planning.file_rotation import CONTROL_FOLDER

__all__ = ["RANGES_FOLDER", "FilesOfRange", "ListName", "RangeFile", "list_name", "list_named"]

RANGES_FOLDER = f"{CONTROL_FOLDER}/_ranges"
_NAME = re.compile(r"([0-9]{12})_([0-9a-f]{12})\.json")


@dataclass(frozen=True)
class RangeFile:
    """A file of a range. `first`, `last`: places of its events, which are in this order."""

    name: str
    first: LogPosition
    last: LogPosition
    events: int


@dataclass(frozen=True)
class FilesOfRange:
    """The files with the events [start, end) of a replication. `schemas`: of their change events, by `schema_key`."""

    stream: str
    start: str
    end: str
    files: tuple[RangeFile, ...]
    schemas: Mapping[str, TableSchema] = field(default_factory=dict)


@dataclass(frozen=True, order=True)
class ListName:
    """The parts of a list's name. `number`: of its range; `writer`: a digest of the replication that wrote it."""

    number: int
    writer: str

    @property
    def text(self) -> str:
        """Below the target."""
        return f"{RANGES_FOLDER}/{self.number:012d}_{self.writer}.json"


def list_name(number: int, replication_uid: str) -> ListName:
    """The name of the list of that range."""
    digest = hashlib.sha1(replication_uid.encode(), usedforsecurity=False).hexdigest()
    return ListName(number, digest[:12])


def list_named(file: str) -> ListName | None:
    """The parts of a name without its folder; None for another file."""
    found = _NAME.fullmatch(file)
    return None if found is None else ListName(int(found[1]), found[2])
