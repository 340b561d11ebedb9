"""Jobs of change streams: capture a batch, read partitions, expire the log."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from tidemark.change_streams.model.change_streams import CaptureBatch, CaptureResult, ChangeStream
from tidemark.change_streams.model.sinks import ChunkAnswer, ReadRequest
from tidemark.model.jobs import Job

__all__ = [
    "CAPTURE_CHANGES",
    "EXPIRE_CHANGE_LOG",
    "READ_PARTITIONS",
    "ChunkAnswers",
    "ExpireChangeLog",
    "ExpiredRows",
]


@dataclass(frozen=True)
class ChunkAnswers:
    """The outcome of each chunk that was tried."""

    chunks: tuple[ChunkAnswer, ...]


@dataclass(frozen=True)
class ExpireChangeLog:
    """Remove the records before `expired_until` from the stream's log. `only_writer`: whether nothing is captured
    while it runs.
    """

    stream: ChangeStream
    only_writer: bool = False


@dataclass(frozen=True)
class ExpiredRows:
    """`until`: data before it is gone from the log; None: nothing is old enough. `rows`: how many this run removed."""

    until: datetime | None
    rows: int = 0


CAPTURE_CHANGES = Job(
    "capture_changes", CaptureBatch, CaptureResult, "change_streams.driver.job_capture_changes:capture_changes"
)
READ_PARTITIONS = Job(
    "read_partitions", ReadRequest, ChunkAnswers, "change_streams.driver.job_read_partitions:read_partitions"
)
EXPIRE_CHANGE_LOG = Job(
    "expire_change_log", ExpireChangeLog, ExpiredRows, "change_streams.driver.job_expire_change_log:expire_change_log"
)
