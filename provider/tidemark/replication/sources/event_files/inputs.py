"""A folder of event files, as capture and the worker read it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple, Protocol

from tidemark.errors import EventFileInvalid
from tidemark.replication.planning.debezium_marks import Lanes
from tidemark.replication.planning.event_file_records import FileRecord

__all__ = ["FOLDER", "EventFolder", "Read", "invalid"]

FOLDER = ""
"""The lane of the folder in a mark. The other lanes are tables, with the newest place of each in its source's log."""


class Read(NamedTuple):
    """An event, or the end of a part (`record` is None). `mark`: how far the folder is read behind it. `place`: file
    and number in it, for people.
    """

    mark: tuple[Any, ...]
    place: tuple[str, int]
    record: FileRecord | None


class EventFolder(Protocol):
    """Everything raises SourceUnreachable, SourceRefused, SourceDriverNotInstalled, EventFileInvalid."""

    place: str  # for people
    in_order: bool  # whether each event comes once, in the order of its source

    def ends(self) -> Lanes:
        """A look: the current end."""
        ...

    def require_kept(self, lanes: Lanes, position: str) -> None:
        """That all behind `lanes` can be read, and no file came unseen. Raises SlotLost, EventFilesOutOfOrder."""
        ...

    def is_behind(self, lanes: Lanes, end: Lanes) -> bool:
        """Whether there is something between the two."""
        ...

    def records(self, lanes: Lanes, end: Lanes) -> Iterator[Read]:
        """The events between the two. Raises SlotLost."""
        ...

    def samples(self, lanes: Lanes, end: Lanes) -> Iterator[Read]:
        """At least one event of each folder of a table, between the two."""
        ...

    def amount(self, lanes: Lanes, end: Lanes) -> int:
        """Bytes between the two, or events if bytes are not known."""
        ...


def invalid(place: str, problem: str) -> EventFileInvalid:
    """The error for a file that is none."""
    return EventFileInvalid(place=place, problem=problem, remedy="Write the whole file again.")
