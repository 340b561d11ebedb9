"""Event files: their places, their names, and the event with which the next file begins."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from tidemark.replication.model.jobs import FileFormat
from tidemark.replication.planning.events import Change

__all__ = ["CONTROL_FOLDER", "CONTROL_KINDS", "FilePart", "Rotation", "file_name", "next_part"]

CONTROL_FOLDER = "_control"
"""The folder of events that change no row. No `schema_table` has this name, and readers of a lake skip it."""

CONTROL_KINDS = (Change.SCHEMA.value, Change.TRUNCATE.value, Change.MESSAGE.value)

_ENDS = {FileFormat.JSON: "jsonl.gz", FileFormat.AVRO: "avro"}
_PLAIN = frozenset("-_.~")


@dataclass(frozen=True)
class Rotation:
    """A file ends before the event with which it would have more than `max_bytes`. It also ends at `interval` of source
    time since its first event.
    """

    max_bytes: int
    interval: timedelta


@dataclass(frozen=True)
class FilePart:
    """A file as it fills. `group`: that which all its events have in common; `began`: source time of the first."""

    group: tuple[str, ...]
    began: datetime
    size: int
    events: int = 1


def next_part(
    part: FilePart | None, rotation: Rotation, *, group: tuple[str, ...], at: datetime, size: int
) -> FilePart:
    """The file that gets the next event of `size` bytes: `part` with it, or a new file, whose `events` are 1.

    A file has one event at least. An event whose source's clock went back stays in its file.
    """
    full = part is not None and part.size + size > rotation.max_bytes
    if part is None or full or part.group != group or at - part.began >= rotation.interval:
        return FilePart(group, at, size)
    return replace(part, size=part.size + size, events=part.events + 1)


def file_name(
    folder: str, at: datetime, *, position: str, sequence: int, identity: str, read_method: str, kind: FileFormat
) -> str:
    """The name below the target: `<folder>/yyyy/mm/dd/hh/mm/<file>`, in the order of the log. `at`: source time of the
    file's first event, whose place is `position` and `sequence`. `identity` tells two objects of one folder apart.
    """
    digest = hashlib.sha1(identity.encode(), usedforsecurity=False).hexdigest()[:12]
    minute = f"{at.year:04d}/{at.month:02d}/{at.day:02d}/{at.hour:02d}/{at.minute:02d}"
    name = f"{_safe(position)}-{sequence:010d}_{digest}_{_safe(read_method)}.{_ENDS[kind]}"
    return f"{_safe(folder)}/{minute}/{name}"


def _safe(name: str) -> str:
    """A part of a path. Letters and digits of any script stay, others are percent-encoded."""
    if name.strip(".") == "":
        return "".join(f"%{byte:02X}" for byte in name.encode())
    kept = (one if one.isalnum() or one in _PLAIN else _encoded(one) for one in name)
    return "".join(kept)


def _encoded(letter: str) -> str:
    return "".join(f"%{byte:02X}" for byte in letter.encode(errors="surrogatepass"))
