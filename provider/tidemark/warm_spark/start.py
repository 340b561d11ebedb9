"""A slot in the warm server of a home. The first task that needs it starts the server, and others wait."""

from __future__ import annotations

import os
import subprocess
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from signal import SIGKILL
from uuid import uuid4

from tidemark.errors import WarmSparkNotStarted
from tidemark.model.codec import to_json
from tidemark.warm_spark.home import (
    ALIVE,
    LOG,
    SILENCE,
    Pulse,
    ServerHome,
    end_server,
    end_starting,
    is_starting,
    note_process,
)
from tidemark.warm_spark.locks import lock_now, locked
from tidemark.warm_spark.records import ORDER, FailedStart, ServerOrder, ServerRecord
from tidemark.warm_spark.slots import Slot, busy_slots, take_slot

__all__ = ["Spawn", "Taken", "start_server", "take"]

_SECONDS_BETWEEN_LOOKS = 0.05
_SECONDS_UNSAID = 1.0
_TAIL_LINES = 25

Spawn = Callable[[Path, ServerOrder, int], "AbstractContextManager[subprocess.Popen[bytes]]"]
"""Starts spark-submit for the keeper of a directory, with an order's packages; the process inherits the descriptor and
leads a process group. The context is left when it has started.
"""


@dataclass(frozen=True)
class Taken:
    """A slot of a server that is alive."""

    home: ServerHome
    server: ServerRecord
    slot: Slot


def take(
    home: ServerHome,
    order: ServerOrder,
    spawn: Spawn,
    *,
    stop_if_due: Callable[[], None],
    say: Callable[[str], object],
    silence: timedelta = SILENCE,
    is_long: bool = False,
) -> Taken:
    """Waits for a slot of the server with the packages of `order`, and starts the server if there is none. A long job
    leaves the last slot to others.

    A server without a sign of life for longer than `silence` is ended, and another one started. `stop_if_due` raises to
    end the wait. Raises WarmSparkNotStarted.
    """
    wait: _Wait | None = None
    while True:
        stop_if_due()
        server = start_server(home, order, spawn, stop_if_due=stop_if_due, say=say)
        if (slot := take_slot(server, is_long=is_long)) is None:
            if wait is None or wait.server != server:
                wait = _Wait(server, silence, is_long=is_long)
            wait.say_once(say)
            if wait.stands_still():
                _end_the_sick(home, server, say)
            time.sleep(_SECONDS_BETWEEN_LOOKS)
        elif home.running() == server:
            return Taken(home, server, slot)
        else:
            slot.release()


class _Wait(Pulse):
    """The wait for a slot of one server. It is not said at once: the keeper takes all free slots for a moment."""

    def __init__(self, server: ServerRecord, silence: timedelta, *, is_long: bool) -> None:
        super().__init__(server, silence)
        self._says_at: float | None = time.monotonic() + _SECONDS_UNSAID
        self._is_long = is_long

    def say_once(self, say: Callable[[str], object]) -> None:
        """The number of taken slots, when the wait has lasted."""
        if self._says_at is None or time.monotonic() < self._says_at:
            return
        self._says_at, slots = None, self.server.order.slots
        kept = "; the last is for short jobs" if self._is_long and slots > 1 else ""
        busy = busy_slots(self.server.place, slots)
        say(f"waits for a slot: {busy} of {slots} slots of the warm Spark of this host are taken{kept}")


def _end_the_sick(home: ServerHome, server: ServerRecord, say: Callable[[str], object]) -> None:
    say("the warm Spark of this host gave no sign of life; it is ended, and another one started")
    home.retire(server)
    end_server(server)


def start_server(
    home: ServerHome,
    order: ServerOrder,
    spawn: Spawn,
    *,
    stop_if_due: Callable[[], None],
    say: Callable[[str], object],
) -> ServerRecord:
    """The server in use, or a new one if there is none or it lacks a package. Two calls at once start one, and one that
    a killed task has left at its start is waited for.

    Raises WarmSparkNotStarted with the end of its log; the same if another call's start failed while this one waited.
    """
    if (server := _fitting(home, order.packages)) is not None:
        return server
    asked_at = datetime.now(UTC)
    with locked(home.lock, stop_if_due):
        _wait_for_the_left(home, order.starts_within.total_seconds(), stop_if_due, say)
        if (server := _fitting(home, order.packages)) is not None:
            return server
        if (failed := home.failure_since(asked_at, order.packages)) is not None:
            raise WarmSparkNotStarted(problem=failed.problem, log=failed.log, tail=failed.tail)
        before = home.running()
        home.sweep(datetime.now(UTC))
        home.retire_relatives(order.family)
        known = () if before is None else before.order.packages
        wanted = tuple(dict.fromkeys((*known, *order.packages)))
        say("starting the warm Spark of this host; later jobs find it running")
        try:
            return _start(home, replace(order, packages=wanted), spawn, stop_if_due)
        except WarmSparkNotStarted as error:
            home.note_failure(FailedStart(order.packages, datetime.now(UTC), **error.facts))
            raise


def _wait_for_the_left(
    home: ServerHome, seconds: float, stop_if_due: Callable[[], None], say: Callable[[str], object]
) -> None:
    """Returns when no server is starting. The caller holds the lock of the start, so a starting one is that of a task
    that was killed. After `seconds` it is killed, too.
    """
    for place in home.starting():
        say("waits for the warm Spark of this host, which another task has started")
        until = time.monotonic() + seconds
        while is_starting(place):
            stop_if_due()
            if time.monotonic() > until:
                end_starting(place)
                break
            time.sleep(_SECONDS_BETWEEN_LOOKS)


def _fitting(home: ServerHome, packages: Sequence[str]) -> ServerRecord | None:
    server = home.running()
    return server if server is not None and set(packages) <= set(server.order.packages) else None


def _start(home: ServerHome, order: ServerOrder, spawn: Spawn, stop_if_due: Callable[[], None]) -> ServerRecord:
    directory = home.root / str(uuid4())
    directory.mkdir(mode=0o700)
    (directory / ORDER).write_text(to_json(order), encoding="utf-8")
    alive = lock_now(directory / ALIVE)
    assert alive is not None, "nobody else knows of the directory"
    try:
        with spawn(directory, order, alive) as process, _killed_by_errors(process):
            note_process(directory, process.pid)
            return _listening(home, directory, process, order.starts_within.total_seconds(), stop_if_due)
    finally:
        os.close(alive)


def _listening(
    home: ServerHome,
    directory: Path,
    process: subprocess.Popen[bytes],
    seconds: float,
    stop_if_due: Callable[[], None],
) -> ServerRecord:
    until = time.monotonic() + seconds
    while True:
        server = home.running()
        if server is not None and server.directory == str(directory):
            return server
        stop_if_due()
        if process.poll() is not None:
            raise _not_started(directory, f"it ended with exit code {process.returncode}")
        if time.monotonic() > until:
            raise _not_started(directory, f"it did not listen within {seconds:g} s")
        time.sleep(_SECONDS_BETWEEN_LOOKS)


@contextmanager
def _killed_by_errors(process: subprocess.Popen[bytes]) -> Iterator[None]:
    """A start that fails, or is cancelled, leaves no server."""
    try:
        yield
    except BaseException:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, SIGKILL)
        process.wait()
        raise


def _not_started(directory: Path, problem: str) -> WarmSparkNotStarted:
    log = directory / LOG
    tail: deque[str] = deque(maxlen=_TAIL_LINES)
    with suppress(FileNotFoundError), log.open(encoding="utf-8", errors="replace") as lines:
        tail.extend(line.rstrip() for line in lines)
    return WarmSparkNotStarted(problem=problem, log=str(log), tail="\n".join(tail))
