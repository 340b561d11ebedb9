"""Event logs of Spark: found by the id of their application, and read line by line.

A log is a file, or a directory of files that Spark has rolled. Lines that are too long are left out. Malformed lines
are treated as by Spark's history server. The last line of a log may be cut off; any other one is an error.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tidemark.acceleration.model.applications import Application
from tidemark.acceleration.planning.events import application_of
from tidemark.acceleration.worker.decompress import CODECS, TruncatedFile, UnreadableFile, parts_of
from tidemark.errors import EventLogNotFound, EventLogUnreadable, InvalidArgument
from tidemark.lake.storage import Storage, canonical_uri
from tidemark.model.foreign_json import parsed

__all__ = ["LONGEST_LINE", "EventLog", "find_event_log", "read_application"]

LONGEST_LINE = 64 << 20  # bytes; a plan of a query may have some
_ROLLED, _OF_ROLLED = "eventlog_v2_", re.compile(r"events_(\d{1,9})_.+")
_IN_PROGRESS, _COMPACT = ".inprogress", ".compact"
_UNREAD = tuple(
    f'{{"Event":"{name}"'.encode()
    for name in (
        "SparkListenerTaskStart",
        "SparkListenerTaskGettingResult",
        "SparkListenerStageExecutorMetrics",
        "org.apache.spark.sql.execution.ui.SparkListenerSQLAdaptiveExecutionUpdate",
        "org.apache.spark.sql.execution.ui.SparkListenerDriverAccumUpdates",
    )
)


@dataclass(frozen=True)
class EventLog:
    """The files of a log below `directory`, in the order in which they are read."""

    directory: str
    files: tuple[str, ...]
    options: Mapping[str, Any] = field(default_factory=dict, repr=False)


def find_event_log(of: str, directory: str | None, options: Mapping[str, Any] | None = None) -> EventLog:
    """The log of an application: `of` is its id, which is looked up in `directory`, or the path of the log.

    Of several attempts the last one is meant. Raises EventLogNotFound, StorageUnreachable, StorageRefused, and
    InvalidArgument for an id without a directory.
    """
    given = dict(options or {})
    if "/" in of:
        place, _, name = canonical_uri(of).rpartition("/")
        found = _files_named(Storage(place, given), name)
        if not found:
            raise EventLogNotFound(application=name, place=place)
        return EventLog(place, found, given)
    if directory is None:
        problem = "no directory of event logs is known; set spark.eventLog.dir, or give the path of the log"
        raise InvalidArgument(argument="application", value=of, problem=problem)
    storage = Storage(directory, given)
    try:
        attempts = sorted((attempt, name) for name in storage.names() if (attempt := _attempt(name, of)) is not None)
    except FileNotFoundError:
        attempts = []
    found = _files_named(storage, attempts[-1][1]) if attempts else ()
    if not found:
        raise EventLogNotFound(application=of, place=storage.uri)
    return EventLog(storage.uri, found, given)


def read_application(log: EventLog, *, longest_line: int = LONGEST_LINE) -> Application:
    """The application of the log. Memory is bounded by one line, and two numbers for each task.

    Raises EventLogUnreadable for a line that is not JSON, and for a codec that cannot be read. The same for a log
    without the start of an application.
    """
    lines = _Lines(log, longest_line)
    application = application_of(lines.events(), left_out=lambda: lines.left_out)
    if application is None:
        raise EventLogUnreadable(path=lines.path, line=lines.number, problem="it has no start of an application")
    return application


def _attempt(name: str, application: str) -> tuple[int, bool] | None:
    """The number of the attempt whose log has that name, and whether it ended; None for another application's."""
    known = _as_spark_names(application)
    rest = name.removeprefix(_ROLLED).removesuffix(_IN_PROGRESS)
    stem = rest.split(".", 1)[0]
    if stem == known:
        return 0, not name.endswith(_IN_PROGRESS)
    number = stem.removeprefix(f"{known}_")
    if stem.startswith(f"{known}_") and number.isdecimal():
        return int(number), not name.endswith(_IN_PROGRESS)
    return None


def _as_spark_names(application: str) -> str:
    """The id as a part of a file's name."""
    return re.sub(r"[.${}'\"]", "_", re.sub(r"[ :/]", "-", application)).lower()


def _files_named(storage: Storage, name: str) -> tuple[str, ...]:
    """The files of the log of that name: itself, or those of its directory. Empty if neither exists."""
    if not storage.exists(name):
        return ()
    if not name.startswith(_ROLLED) and storage.size(name) is not None:
        return (name,)
    try:
        rolled = _in_order([one for one in storage.names(name) if _OF_ROLLED.fullmatch(one)])
    except (FileNotFoundError, NotADirectoryError):
        return ()
    return tuple(f"{name}/{one}" for one in rolled)


def _in_order(names: Sequence[str]) -> list[str]:
    """Rolled files by their numbers, from the last one that has the events of all files before it."""

    def number(name: str) -> int:
        found = _OF_ROLLED.fullmatch(name)
        assert found is not None
        return int(found[1])

    ordered = sorted(names, key=number)
    compact = [name for name in ordered if name.endswith(_COMPACT)]
    if not compact:
        return ordered
    return [compact[-1], *(name for name in ordered if number(name) > number(compact[-1]))]


class _Lines:
    """The lines of a log as events. `path`, `number`: the place of the last line that was read."""

    def __init__(self, log: EventLog, longest: int) -> None:
        self._log, self._longest = log, longest
        self.path, self.number, self.left_out = log.directory, 0, 0

    def events(self) -> Iterator[Any]:
        """Each event. Raises EventLogUnreadable for a malformed line, unless it is the last one."""
        malformed: EventLogUnreadable | None = None
        for line in self._lines():
            if malformed is not None:
                raise malformed
            if line.startswith(_UNREAD) and line.endswith(b"}"):
                continue
            try:
                yield parsed(line)
            except ValueError as error:
                malformed = self._unreadable(f"it is not JSON ({error})")

    def _lines(self) -> Iterator[bytes]:
        """Each line that is neither blank nor too long."""
        for name in self._log.files:
            self.path, self.number = f"{self._log.directory}/{name}", 0
            for line in self._lines_of(name):
                self.number += 1
                if line is None:
                    self.left_out += 1
                elif line := line.strip():
                    yield line

    def _lines_of(self, name: str) -> Iterator[bytes | None]:
        """The lines of a file; None for one that is too long. The last one may lack its end."""
        kept, too_long = bytearray(), False
        for part in self._parts_of(name):
            *whole, rest = part.split(b"\n")
            for piece in whole:
                kept += piece
                yield None if too_long or len(kept) > self._longest else bytes(kept)
                kept, too_long = bytearray(), False
            kept += rest
            if len(kept) > self._longest:
                kept, too_long = bytearray(), True
        if kept or too_long:
            yield None if too_long else bytes(kept)

    def _parts_of(self, name: str) -> Iterator[bytes]:
        """The content of a file up to its end, or to the place where it was cut off."""
        with Storage(self._log.directory, self._log.options).open(name) as file:
            try:
                yield from parts_of(file, self._codec(name))
            except TruncatedFile:
                return
            except UnreadableFile as error:
                raise self._unreadable(str(error)) from error

    def _codec(self, name: str) -> str:
        last = name.rpartition("/")[2].removesuffix(_IN_PROGRESS).removesuffix(_COMPACT)
        suffix = last.partition(".")[2]
        if suffix not in ("", "json", "txt", *CODECS):
            known = ", ".join(CODECS)
            raise self._unreadable(f"its codec {suffix} cannot be read; {known} and plain logs can")
        return suffix if suffix in CODECS else ""

    def _unreadable(self, problem: str) -> EventLogUnreadable:
        return EventLogUnreadable(path=self.path, line=self.number, problem=problem)
