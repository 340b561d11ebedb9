"""Failpoints: named lines at which a test can end the process as a power cut would.

Nothing happens unless `TIDEMARK_KILL_AT` names the point. The first kill creates the file `TIDEMARK_KILL_ONCE`. While
it exists no further kill happens, so a retry runs through.
"""

from __future__ import annotations

import os
import signal

__all__ = [
    "APPLY_POINTS",
    "BACKFILL_OBJECT_POINTS",
    "CAPTURE_EVENTS_POINTS",
    "CHANGE_STREAM_POINTS",
    "CHANNEL_POINTS",
    "CLUSTER_POINTS",
    "EVENT_FILES_POINTS",
    "KILL_AT",
    "KILL_ONCE",
    "LOAD_POINTS",
    "NOTIFIED_POINTS",
    "PARTITION_POINTS",
    "POINTS",
    "RECLUSTER_POINTS",
    "REPLICATION_POINTS",
    "RESULT_POINTS",
    "SEARCH_POINTS",
    "failpoint",
]

KILL_AT = "TIDEMARK_KILL_AT"
KILL_ONCE = "TIDEMARK_KILL_ONCE"

CLUSTER_POINTS = ("cluster.submitted",)
"""Of a worker whose driver runs in a cluster."""

POINTS = (
    "begin.before",
    "begin.stored",
    "submit.stored",
    "write1.before",
    "write1.after",
    "write2.before",
    "write2.after",
    "result.written",
    "commit.before",
    "commit.stored",
    "event.before",
    "event.after",
)


CHANGE_STREAM_POINTS = (
    "capture.before",
    "capture.written",
    "expire.marked",
)

SEARCH_POINTS = ("upkeep.begun", "upkeep.committed", "upkeep.kept")

RESULT_POINTS = (
    "answer.written",
    "answer.indexed.before",
    "answer.indexed",
)

RECLUSTER_POINTS = (
    "recluster.planned",
    "recluster.committed",
    "recluster.kept",
)

LOAD_POINTS = (
    "load.planned",
    "load.results",
    "load.appended",
)

NOTIFIED_POINTS = (
    "notified.found",
    "notified.queued",
)

CAPTURE_EVENTS_POINTS = (
    "events.staged",
    "events.before",
    "events.written",
    "slot.before",
    "slot.moved",
)

BACKFILL_OBJECT_POINTS = (
    "backfill.before",
    "backfill.written",
    "backfill.copied",
)

APPLY_POINTS = (  # of the first two segments; later ones have their numbers
    "segment1.before",
    "segment1.written",
    "segment2.before",
    "segment2.written",
)

EVENT_FILES_POINTS = (
    "files.begun",
    "files.first",
    "files.before",
    "files.stored",
)

REPLICATION_POINTS = (
    "prepare.published",
    "prepare.slot",
    *CAPTURE_EVENTS_POINTS,
    *BACKFILL_OBJECT_POINTS,
    *APPLY_POINTS,
)

CHANNEL_POINTS = (
    "channel.opened",
    "channel.written",
    "channel.committed",
    "channel.settled",
    "channel.quarantined",
)

PARTITION_POINTS = (
    "plan.before",
    "plan.stored",
    "read.begun",
    "write1.before",
    "write1.after",
    "result.written",
    "read.answered",
    "read.stored",
    "commit_wave.before",
    "commit_wave.stored",
)


def failpoint(point: str) -> None:
    """SIGKILL to the own process group (worker, driver and JVM) if the environment asks for it at `point`."""
    if os.environ.get(KILL_AT) == point and _first_time():
        os.killpg(os.getpgrp(), signal.SIGKILL)


def _first_time() -> bool:
    once = os.environ.get(KILL_ONCE)
    if once is None:
        return True
    try:
        os.close(os.open(once, os.O_CREAT | os.O_EXCL | os.O_WRONLY))
    except FileExistsError:
        return False
    return True
