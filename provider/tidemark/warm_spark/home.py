"""The directory of servers with equal settings: which one is in use, and what earlier ones have left."""

from __future__ import annotations

import os
import platform
import shutil
import signal
import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from tidemark.model.codec import from_json, to_json
from tidemark.warm_spark.locks import is_held, locked
from tidemark.warm_spark.records import FailedStart, ServerRecord
from tidemark.warm_spark.scratch import remove_scratch

__all__ = [
    "ALIVE",
    "LOG",
    "SILENCE",
    "Pulse",
    "ServerHome",
    "StartingServer",
    "end_server",
    "end_starting",
    "heap_in_use",
    "is_alive",
    "is_starting",
    "last_sign",
    "living_servers",
    "note_process",
    "server_in",
    "starting_servers",
    "write_pulse",
]

ALIVE = "alive"
LOG = "server.log"
SILENCE = timedelta(minutes=2)
"""A server without a sign of life for longer is sick."""

_RECORD = "server.json"
_CHANGE = "change"
_FAILED = "failed.json"
_PULSE = "pulse"
_PROCESS = "process"
_FORGOTTEN_AFTER = timedelta(days=7)
_KEPT = 3  # directories of ended servers, for their logs
_KEPT_RELATIVES = 1


@dataclass(frozen=True)
class ServerHome:
    """`root` has the record of the server in use, the locks of its start and its change, and directories of servers."""

    root: Path

    @property
    def lock(self) -> Path:
        """The file that a task holds while it starts a server."""
        return self.root / "lock"

    def running(self) -> ServerRecord | None:
        """The server in use, or None. A record of another release, or of a server that has ended, is none."""
        record = _read(self.root / _RECORD)
        return record if record is not None and is_alive(record) else None

    def uses(self, directory: str) -> bool:
        """Whether the server of that directory is the one in use."""
        current = self.running()
        return current is not None and current.directory == directory

    def note_failure(self, failed: FailedStart) -> None:
        """Tells those that wait for the start. On a full disk nobody learns of it, and each tries once."""
        with suppress(OSError):
            _write_whole(self.root / _FAILED, to_json(failed))

    def failure_since(self, asked_at: datetime, packages: Sequence[str]) -> FailedStart | None:
        """The last start with these packages, if it failed after that time."""
        try:
            failed: FailedStart = from_json(FailedStart, (self.root / _FAILED).read_text(encoding="utf-8"))
        except (FileNotFoundError, ValueError):
            return None
        return failed if failed.at > asked_at and failed.packages == tuple(packages) else None

    def put(self, record: ServerRecord) -> None:
        """Makes it the server in use; readers see the whole record or the one before."""
        _write_whole(record.place / _RECORD, to_json(record))
        with self._changing():
            _write_whole(self.root / _RECORD, to_json(record))

    def retire(self, record: ServerRecord) -> None:
        """The server takes no new job, and ends after those that it runs. Idempotent, and harmless to a successor."""
        with suppress(FileNotFoundError), self._changing():  # another task has just removed the home
            if self.uses(record.directory):
                (self.root / _RECORD).unlink(missing_ok=True)

    def _changing(self) -> AbstractContextManager[None]:
        """Held while the server in use changes, so that no successor comes between a question and its consequence. It
        is not `lock`: a task holds that one until its server has put itself in use.
        """
        return locked(self.root / _CHANGE, lambda: None)

    def servers(self) -> Iterator[Path]:
        """The directories of all servers, the newest first; none of a home that another task has just removed."""
        places: list[tuple[float, Path]] = []
        with suppress(FileNotFoundError):
            entries = (entry for entry in self.root.iterdir() if (entry / ALIVE).exists())
            places = [(entry.stat().st_mtime, entry) for entry in entries]
        yield from (place for _, place in sorted(places, reverse=True))

    def living(self) -> Iterator[tuple[ServerRecord, bool]]:
        """(server, whether it takes jobs) of each server that lives, the newest first."""
        for place in self.servers():
            record = _read(place / _RECORD)
            if record is not None and is_alive(record):
                yield record, self.uses(record.directory)

    def starting(self) -> list[Path]:
        """The directories of servers that do not listen yet. Unless the lock is held, their tasks were killed."""
        return [place for place in self.servers() if is_starting(place)]

    def retire_relatives(self, family: str) -> None:
        """Retires the servers in other homes whose settings differ in temporary credentials only, but the newest."""
        found = [record for record, in_use in living_servers(self.root.parent) if in_use and record.order.family]
        others = [one for one in found if one.order.family == family and one.place.parent != self.root]
        for record in sorted(others, key=lambda one: one.started_at, reverse=True)[_KEPT_RELATIVES:]:
            ServerHome(record.place.parent).retire(record)

    def sweep(self, now: datetime) -> None:
        """Removes the temporary files of ended servers, also of other homes of this host, and directories of servers
        but the last few. Homes that nobody has used for a week go, too. A second run finds nothing to do.
        """
        ended = self._ended()
        for place in reversed(ended):  # which changes their times, and keeps their order
            remove_scratch(place)
        for place in ended[_KEPT:]:
            shutil.rmtree(place, ignore_errors=True)
        for other in _all_in(self.root.parent):
            if other.root == self.root or not other.root.is_dir():
                continue
            is_forgotten = other.is_forgotten(now - _FORGOTTEN_AFTER)
            for place in reversed(other._ended()):
                if is_forgotten or _leader(place) is not None:
                    remove_scratch(place)
            if is_forgotten:
                shutil.rmtree(other.root, ignore_errors=True)

    def _ended(self) -> list[Path]:
        """The directories of servers that have ended, the newest first."""
        return [place for place in self.servers() if not is_held(place / ALIVE)]

    def is_forgotten(self, before: datetime) -> bool:
        """Whether no server of this home lives, nobody starts one, and nothing has changed since `before`."""
        if is_held(self.lock) or any(is_held(place / ALIVE) for place in self.servers()):
            return False
        with suppress(FileNotFoundError):  # another task has just removed it
            return datetime.fromtimestamp(self.root.stat().st_mtime, UTC) < before
        return False


def living_servers(homes: Path) -> Iterator[tuple[ServerRecord, bool]]:
    """As `ServerHome.living`, for all homes of this host in a directory. A directory that does not exist has none."""
    for home in _all_in(homes):
        yield from ((record, in_use) for record, in_use in home.living() if record.is_of_this_host)


def _all_in(homes: Path) -> list[ServerHome]:
    return [ServerHome(root) for root in sorted(homes.iterdir())] if homes.is_dir() else []


def server_in(place: Path) -> ServerRecord | None:
    """The server of that directory, or None if it has ended."""
    record = _read(place / _RECORD)
    return record if record is not None and is_alive(record) else None


def is_alive(record: ServerRecord) -> bool:
    """Whether a process of the server still exists: each holds the lock of its file."""
    return is_held(record.place / ALIVE)


def is_starting(place: Path) -> bool:
    """Whether a process of the server exists, and it does not listen yet."""
    return is_held(place / ALIVE) and not (place / _RECORD).exists()


@dataclass(frozen=True)
class StartingServer:
    """A server that does not listen yet. `process_id`: the leader of its group."""

    place: Path
    process_id: int
    since: datetime


def starting_servers(homes: Path) -> Iterator[StartingServer]:
    """The servers that start on this host, of all homes in a directory. One whose process nobody has named may be that
    of another host that shares the directory, and is left out.
    """
    for home in _all_in(homes):
        for place in home.starting():
            with suppress(FileNotFoundError):
                since = datetime.fromtimestamp((place / ALIVE).stat().st_mtime, UTC)
                if (leader := _leader(place)) is not None:
                    yield StartingServer(place, leader, since)


def note_process(place: Path, leader: int) -> None:
    """Names the process group of a server that is starting, for others of this host that must end it."""
    _write_whole(place / _PROCESS, f"{leader} {platform.node()}")


def _leader(place: Path) -> int | None:
    """The process group of a server that starts on this host; None if nobody has named it."""
    with suppress(FileNotFoundError):
        leader, _, host = (place / _PROCESS).read_text(encoding="utf-8").partition(" ")
        return int(leader) if host == platform.node() else None
    return None


def end_starting(place: Path) -> None:
    """Kills a server that does not listen. Nothing if its task was killed before it named the process."""
    leader = _leader(place)
    if leader is not None and is_starting(place):
        with suppress(ProcessLookupError):
            os.killpg(leader, signal.SIGKILL)
    remove_scratch(place)


def end_server(record: ServerRecord) -> None:
    """Kills the server with all that runs in it. Idempotent: an ended server is left alone."""
    if is_alive(record):
        with suppress(ProcessLookupError):
            os.killpg(record.process_id, signal.SIGKILL)
        remove_scratch(record.place)


def heap_in_use(place: Path) -> int:
    """Bytes after the last full collection at rest, as of the last sign of life; 0 before the first."""
    try:
        return int((place / _PULSE).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return 0


def last_sign(place: Path) -> int:
    """A number that changes with each sign of life; 0 before the first."""
    try:
        return (place / _PULSE).stat().st_mtime_ns
    except FileNotFoundError:
        return 0


class Pulse:
    """The signs of life of a server, for one who looks again and again. `silence`: the longest that is healthy."""

    def __init__(self, server: ServerRecord, silence: timedelta = SILENCE) -> None:
        self.server = server
        self._silence = silence.total_seconds()
        self._last, self._seen = last_sign(server.place), time.monotonic()

    def stands_still(self) -> bool:
        """Whether the last sign of life is too long ago."""
        if (now := last_sign(self.server.place)) != self._last:
            self._last, self._seen = now, time.monotonic()
        return time.monotonic() - self._seen > self._silence


def write_pulse(place: Path, heap_used: int) -> None:
    """Gives a sign of life. On a full disk it has no new facts."""
    try:
        _write_whole(place / _PULSE, str(heap_used))
    except OSError:
        with suppress(FileNotFoundError):
            os.utime(place / _PULSE)


def _read(file: Path) -> ServerRecord | None:
    try:
        record: ServerRecord = from_json(ServerRecord, file.read_text(encoding="utf-8"))
    except (FileNotFoundError, ValueError):
        return None
    return record


def _write_whole(file: Path, text: str) -> None:
    half = file.with_name(f"{file.name}.{os.getpid()}.half")
    descriptor = os.open(half, os.O_CREAT | os.O_TRUNC | os.O_WRONLY | os.O_NOFOLLOW, 0o600)
    with open(descriptor, "w", encoding="utf-8") as target:
        target.write(text)
    half.replace(file)
