"""Processes that write channels of one lake, and a tally of the rows that are there after each kill."""

from __future__ import annotations

import fcntl
import json
import os
import random
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow.dataset as ds

from tests.guarantees.killed_processes import script_of
from tests.ports import lasting_port
from tests.until import wait_until
from tidemark.channels.planning.listing import records_of
from tidemark.errors import TableNotFound
from tidemark.lake.delta_log import DeltaLog

__all__ = ["LAST", "SCRIPT", "Tally", "Writers", "require_contiguous", "tally_of", "token_of"]

SCRIPT = "killed_writer.py"
LAST = 400
_ENDLESS = LAST * 100


@dataclass(frozen=True)
class Tally:
    """Good and bad rows up to the committed tokens. `waiting`: bad rows of a last commit, which come with the next."""

    rows: int = 0
    bad: int = 0
    lost: int = 0
    doubled: int = 0
    waiting: int = 0

    def __add__(self, other: Tally) -> Tally:
        return Tally(*(getattr(self, name) + getattr(other, name) for name in self.__dataclass_fields__))


def token_of(lake: Path, channel: str) -> int:
    """The committed token of a channel; 0 without one."""
    record = records_of(DeltaLog.open(str(lake / "events")).state()).get(channel.upper())
    return int(record.offset_token or 0) if record is not None else 0


def tally_of(lake: Path, channels: Iterable[str]) -> Tally:
    """All rows of the channels. Nobody may write them now."""
    records = records_of(DeltaLog.open(str(lake / "events")).state())
    good, bad = _rows(lake / "events"), _rows(lake / "bad_events")
    total = Tally()
    for channel in channels:
        record = records.get(channel.upper())
        token = int(record.offset_token or 0) if record is not None else 0
        here = [row["n"] for row in good if row["channel"] == channel]
        kept = [json.loads(row["row"])["n"] for row in bad if row["channel_name"] == channel.upper()]
        may_wait = record is not None and record.pending is not None
        total += _tally(here, [n for n in range(1, token + 1) if n % 10])
        total += _tally_of_bad([int(text.removeprefix("bad ")) for text in kept], token, may_wait=may_wait)
    return total


def require_contiguous(lake: Path, channel: str) -> int:
    """The token of a channel whose rows are 1 … token, each once, in order."""
    found = tally_of(lake, [channel])
    assert (found.lost, found.doubled) == (0, 0), found
    return token_of(lake, channel)


def _tally(found: Sequence[int], expected: Sequence[int]) -> Tally:
    counted, wanted = Counter(found), Counter(expected)
    lost, doubled = (wanted - counted).total(), (counted - wanted).total()
    assert lost or doubled or list(found) == list(expected), "rows are out of order"
    return Tally(rows=len(found), lost=lost, doubled=doubled)


def _tally_of_bad(found: Sequence[int], token: int, *, may_wait: bool) -> Tally:
    expected = list(range(10, token + 1, 10))
    seen = expected[: len(found)] if may_wait else expected
    judged = _tally(found, seen)
    return Tally(bad=judged.rows, lost=judged.lost, doubled=judged.doubled, waiting=len(expected) - len(seen))


def _rows(table: Path) -> list[dict[str, Any]]:
    """The rows of a table in the order of their row ids, from the files of the log. None before its first commit."""
    try:
        log = DeltaLog.open(str(table))
    except TableNotFound:
        return []
    adds = [add for commit in log.commits(0, log.head()) for add in commit.adds]
    adds.sort(key=lambda add: add.base_row_id or 0)
    paths = [str(table / add.path) for add in adds]
    return ds.dataset(paths, format="parquet").to_table().to_pylist() if paths else []


def _commits(table: Path) -> bool:
    """Whether a process holds the lock of commits to a table (a lock of POSIX, as Java takes it)."""
    with (table / "_delta_log" / "_tidemark_commit.lock").open("r+b") as lock:
        try:
            fcntl.lockf(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        return False


@dataclass
class Writers:
    """A writer for each channel. `host`: who commits, as `killed_writer.py` has it, or `service` for one of the test.
    Their words are in files of the lake.
    """

    lake: Path
    channels: Sequence[str]
    host: str
    _running: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._port = lasting_port()

    def __enter__(self) -> Writers:
        if self.host == "service":
            self._start_service()
        for channel in self.channels:
            self.start(channel)
        return self

    def __exit__(self, *_: object) -> None:
        for name in list(self._running):
            self._kill(name)

    def start(self, channel: str, last: int = _ENDLESS) -> subprocess.Popen[bytes]:
        host = f"http://127.0.0.1:{self._port}" if self.host == "service" else self.host
        return self._start(channel, SCRIPT, channel, str(last), host)

    def pause(self, channel: str) -> subprocess.Popen[bytes]:
        """A writer that stands still until somebody wakes it, outside of a commit. Another one may be started."""
        paused = self._running.pop(channel)
        os.killpg(paused.pid, signal.SIGSTOP)
        while _commits(self.lake / "events"):  # all others would wait for its lock
            os.killpg(paused.pid, signal.SIGCONT)
            time.sleep(0.05)
            os.killpg(paused.pid, signal.SIGSTOP)
        return paused

    def kill_at_random(self, times: int) -> Tally:
        """Kill so often one that writes, or the service of all, and start it again. The rows at the end."""
        for number in range(times):
            channel = random.choice(self.channels)
            at = token_of(self.lake, channel)
            if self.host != "own" or number % 2:  # others are killed while they start, too
                wait_until(lambda: token_of(self.lake, channel) > at, 600)  # noqa: B023 - it is waited for here
            time.sleep(random.uniform(0, 2))
            dead = self._kill_one(channel, number)
            found = tally_of(self.lake, dead)
            assert (found.lost, found.doubled) == (0, 0), found
            self._start_again(channel)
        self.__exit__()
        return tally_of(self.lake, self.channels)

    def _kill_one(self, channel: str, number: int) -> Sequence[str]:
        """The channels that nobody writes now."""
        if self.host != "service":
            self._kill(channel)
            return [channel]
        self._kill("service")
        if number % 3 == 0:
            self._kill(channel)
        return self.channels

    def _start_again(self, channel: str) -> None:
        if self.host == "service":
            self._start_service()
        if channel not in self._running:
            self.start(channel)

    def _start_service(self) -> None:
        self._start("service", "killed_service.py", str(self._port))

    def _start(self, name: str, script: str, *arguments: str) -> subprocess.Popen[bytes]:
        command, environment = script_of(script, self.lake, *arguments)
        with (self.lake / f"{name}.log").open("ab") as log:
            made = subprocess.Popen(command, env=environment, start_new_session=True, stdout=log, stderr=log)
        self._running[name] = made
        return made

    def _kill(self, name: str) -> None:
        process = self._running.pop(name)
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
