"""A whole capture job in a process of its own, for `replication_capture`: Spark starts, and the slot is captured.

    python -m tests.benchmarks.replication_job SLOT PUBLICATION OID DIRECTORY

The database is told by TIDEMARK_SOURCE. CPU seconds and memory are those of the process tree, Python and JVM.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from datetime import UTC, datetime

import psutil

from tests.benchmarks.change_sets import AS_IN_PRODUCTION
from tidemark.jobs.workspace import Workspace
from tidemark.model.codec import from_json
from tidemark.model.source_address import SourceAddress, SourceKind
from tidemark.replication.driver.capture import capture_events
from tidemark.replication.model.jobs import CapturedObject, CaptureEvents
from tidemark.replication.model.replication import ObjectName, ReplicationOptions
from tidemark.replication.planning.positions import position_of_lsn
from tidemark.replication.sources.postgresql.catalog import server_facts
from tidemark.replication.sources.postgresql.connection import connect
from tidemark.testing import local_spark


def main(slot: str, publication: str, oid: str, directory: str) -> None:
    began, peak = int(os.environ["BENCHMARK_BEGAN"]) / 1000, _Peak()
    address = from_json(SourceAddress, os.environ["TIDEMARK_SOURCE"])
    spark = local_spark(warehouse=directory, more=AS_IN_PRODUCTION)
    started = time.time() - began
    with connect(address) as connection, connection.cursor() as cursor:
        system_id = server_facts(connection).system_id
        place = "SELECT (confirmed_flush_lsn - '0/0')::bigint FROM pg_replication_slots WHERE slot_name = %s"
        cursor.execute(place, (slot,))
        captured = position_of_lsn(cursor.fetchone()[0])
    request = CaptureEvents(
        replication_uid="measured",
        stream="measured",
        kind=SourceKind.POSTGRESQL,
        event_log=f"{directory}/events",
        slot=slot,
        publication=publication,
        system_id=system_id,
        captured=captured,
        batches=0,
        objects=(CapturedObject(ObjectName("shop", "orders"), oid, ("id",)),),
        options=ReplicationOptions(target=directory),
    )
    say, stop_if_due = (lambda _: None), (lambda: None)
    with Workspace(directory, "job") as workspace:
        report = capture_events(
            spark, "measured", request, address, workspace, now=datetime.now(UTC), say=say, stop_if_due=stop_if_due
        )
    last = time.time() - began
    told = {"first": started, "last": last, "events": sum(report.events.values()) - 1, "cpu": _cpu(), "peak": peak.most}
    print(json.dumps(told))
    spark.stop()


class _Peak:
    """The most memory that the process tree had, in MiB, looked at ten times a second."""

    def __init__(self) -> None:
        self.most = 0.0
        threading.Thread(target=self._look, daemon=True).start()

    def _look(self) -> None:
        while True:
            self.most = max(self.most, sum(one.memory_info().rss for one in _tree()) / 2**20)
            time.sleep(0.1)


def _tree() -> list[psutil.Process]:
    me = psutil.Process()
    return [me, *(one for one in me.children(recursive=True) if one.is_running())]


def _cpu() -> float:
    return sum(one.cpu_times().user + one.cpu_times().system for one in _tree())


if __name__ == "__main__":
    main(*sys.argv[1:])
