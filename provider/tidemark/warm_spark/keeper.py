"""`spark-submit …/warm_spark/keeper.py HOME DIRECTORY`: the driver of a warm server, which says where it listens, ends
what killed jobs have left, and ends itself.

1. It writes the record of the server. From then on tasks take slots.
2. Twice a second it takes every free slot. A slot that still names a session is that of a killed job. The session is
   ended, and the slot is free. Spark's jobs of closed sessions are cancelled: Spark may start a stage of a query just
   after it has cancelled that query.
3. If it has all slots, no job runs and none can start. Then it may end: after its idle time, or if it was retired.
4. At rest it collects the heap. If too much stays in use, it retires, and the next task starts a successor.
"""

from __future__ import annotations

import errno
import os
import re
import signal
import socket
import sys
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tidemark.model.codec import from_json
from tidemark.warm_spark.home import LOG, ServerHome, write_pulse
from tidemark.warm_spark.locks import lock_now
from tidemark.warm_spark.records import ORDER, TOKEN, USER, ServerOrder, ServerRecord
from tidemark.warm_spark.scratch import remove_scratch
from tidemark.warm_spark.slots import Slot, slot_files

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_SECONDS_BETWEEN_LOOKS = 0.5
_SECONDS_OF_REST = 1.0
_MOST_FAILURES = 20  # in a row, before the server ends itself
_LONGEST_LOG = 64 * 1024 * 1024
_KEPT_OF_LOG = 1024 * 1024
_SERVICE = "org.apache.spark.sql.connect.service"
_TAG = re.compile(r"SparkConnect_OperationTag_User_.*_Session_(.+)_Operation_.+")  # Spark's own, on all jobs of a query


class ConnectService:
    """The Connect service in this driver's JVM."""

    def __init__(self, spark: SparkSession) -> None:
        self._jvm: Any = spark.sparkContext._jvm
        service = getattr(self._jvm, f"{_SERVICE}.SparkConnectService$")
        self._service: Any = getattr(service, "MODULE$")
        self._context: Any = spark.sparkContext._jsc.sc()

    @property
    def port(self) -> int:
        """The port that it listens on."""
        return int(self._service.localPort())

    def end_session(self, session_id: str) -> None:
        """Cancels all that runs in the session, and refuses later requests for it. A session that does not exist is
        no error.
        """
        holder = self._session(session_id)
        if holder.isDefined():
            holder.get().interruptAll()
            self._service.sessionManager().closeSession(holder.get().key(), False)

    def cancel_orphans(self) -> int:
        """Cancels the jobs of Spark whose sessions are closed; how many."""
        orphans = [tag for tag, session_id in self._running() if not self._session(session_id).isDefined()]
        for tag in orphans:
            self._context.cancelJobsWithTag(tag)
        return len(orphans)

    def heap_in_use(self) -> tuple[int, int]:
        """(bytes in use after a full collection, most bytes)."""
        self._jvm.java.lang.System.gc()
        runtime = self._jvm.java.lang.Runtime.getRuntime()
        return int(runtime.totalMemory() - runtime.freeMemory()), int(runtime.maxMemory())

    def answers(self) -> bool:
        """Whether the service listens."""
        return bool(self._service.started()) and not bool(self._service.stopped())

    def _session(self, session_id: str) -> Any:
        """Scala's Option of the session's holder."""
        key = getattr(self._jvm, f"{_SERVICE}.SessionKey")(USER, session_id)
        return self._service.sessionManager().getIsolatedSessionIfPresent(key)

    def _running(self) -> list[tuple[str, str]]:
        """(tag of the query, session) of all jobs of Spark that run."""
        running = self._jvm.java.util.List.of(self._jvm.org.apache.spark.JobExecutionStatus.RUNNING)
        jobs = self._context.statusStore().jobsList(running)
        tags = [tag for number in range(jobs.size()) for tag in jobs.apply(number).jobTags().mkString("\n").split("\n")]
        return [(tag, found.group(1)) for tag in tags if (found := _TAG.fullmatch(tag))]


class Keeper:
    """The life of one server, from its record to its end."""

    def __init__(self, service: ConnectService, home: ServerHome, record: ServerRecord) -> None:
        self._service, self._home, self._record = service, home, record
        self._order = record.order
        self._last_used = self._began = time.monotonic()
        self._used = self._collected = 0
        self._heap = (0, 0)
        self._failures: Counter[str] = Counter()
        self._jvm = os.getppid()

    def keep(self) -> None:
        """Returns when the server is to end, with all slots held."""
        while self._service.answers() and os.getppid() == self._jvm:
            held = self._free_slots()
            self._tried("Jobs of closed sessions could not be cancelled", self._cancel_orphans)
            running = self._order.slots - len(held)
            self._note_use(running)
            if running == 0 and self._is_over():
                return
            for slot in held:
                slot.release()
            self._retire_if_due(running)
            write_pulse(self._record.place, self._heap[0])
            _rotate(self._record.place / LOG)
            time.sleep(_SECONDS_BETWEEN_LOOKS)

    def _free_slots(self) -> list[Slot]:
        """All slots that no job holds, after what their jobs have left was ended."""
        held = []
        for file in slot_files(self._record.place, self._order.slots):
            if (number := lock_now(file)) is None:
                continue
            slot = Slot(file, number)
            if left := slot.session_left:
                if not self._ended(left):
                    slot.release()
                    continue
                slot.clear()
            held.append(slot)
        return held

    def _ended(self, session_id: str) -> bool:
        """Ends a session that its job has left; False if it must be tried again."""
        print(f"A job has ended without leaving its session {session_id}; it is ended now.", flush=True)
        return self._tried(f"Session {session_id} could not be ended", partial(self._service.end_session, session_id))

    def _cancel_orphans(self) -> None:
        if found := self._service.cancel_orphans():
            print(f"{found} running jobs of closed sessions are cancelled.", flush=True)

    def _tried(self, failed: str, action: Callable[[], None]) -> bool:
        """False if the JVM refused, and it must be tried again. After many refusals of one action the server ends."""
        from py4j.protocol import Py4JError

        try:
            action()
        except Py4JError as error:
            self._failures[failed] += 1
            print(f"{failed}: {error}", flush=True)
            if self._failures[failed] > _MOST_FAILURES:
                raise
            return False
        del self._failures[failed]
        return True

    def _note_use(self, running: int) -> None:
        """A slot's file is written when a job claims it and when it gives it back."""
        files = slot_files(self._record.place, self._order.slots)
        used = max(file.stat().st_mtime_ns for file in files)
        if running or used != self._used:
            self._used, self._last_used = used, time.monotonic()

    def _is_over(self) -> bool:
        if not self._home.uses(self._record.directory):
            return True
        if time.monotonic() - self._last_used < self._order.idle.total_seconds():
            return False
        self._home.retire(self._record)
        return True

    def _retire_if_due(self, running: int) -> None:
        """At rest it collects the heap, once after the last job."""
        if not running and self._used != self._collected and time.monotonic() - self._last_used > _SECONDS_OF_REST:
            self._collected = self._used
            self._heap = self._service.heap_in_use()
        used, most = self._heap
        age = time.monotonic() - self._began
        is_due = used > self._order.heap_share * most > 0 or age > self._order.longest.total_seconds()
        if is_due and self._home.uses(self._record.directory):
            print(f"Retiring after {age:.0f} s with {used} of {most} bytes of heap in use.", flush=True)
            self._home.retire(self._record)


def main(arguments: list[str]) -> None:
    """Keeps the server until its end, then ends its JVM."""
    from pyspark.sql import SparkSession

    home, directory = ServerHome(Path(arguments[0])), Path(arguments[1])
    order = from_json(ServerOrder, (directory / ORDER).read_text(encoding="utf-8"))
    spark = SparkSession.builder.getOrCreate()
    service = ConnectService(spark)
    record = ServerRecord(
        directory=str(directory),
        port=service.port,
        process_id=os.getpgid(0),
        order=order,
        started_at=datetime.now(UTC),
        spark=spark.version,
        token=os.environ[TOKEN],
    )
    guard = guarded(record.port)
    home.put(record)
    try:
        Keeper(service, home, record).keep()
    finally:
        if guard is not None:
            guard.close()
        with suppress(Exception):
            spark.stop()
        remove_scratch(directory)
        os.killpg(record.process_id, signal.SIGKILL)


def guarded(port: int) -> socket.socket | None:
    """A socket in the place where nobody else may listen; None on a host without IPv6.

    The server listens on 127.0.0.1. Clients may try `localhost` at ::1 first, and would send the token to a
    process that listens there. Raises OSError if somebody does already.
    """
    try:
        guard = socket.socket(socket.AF_INET6, socket.SOCK_STREAM)
    except OSError:
        return None
    try:
        guard.bind(("::1", port))
    except OSError as error:
        guard.close()
        if error.errno == errno.EADDRINUSE:
            raise
        return None
    return guard


def _rotate(log: Path) -> None:
    """Keeps the end of a log that has grown too long; its writers append. The next look tries again after a failure."""
    with suppress(OSError):  # a full disk ends no server
        if log.stat().st_size > _LONGEST_LOG:
            with log.open("rb") as file:
                file.seek(-_KEPT_OF_LOG, os.SEEK_END)
                log.with_suffix(".log.1").write_bytes(file.read())
            os.truncate(log, 0)


if __name__ == "__main__":
    main(sys.argv[1:])
