"""Jobs of change streams: capture a batch, read partitions, trim the log."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from tidemark.change_streams.model.change_streams import CaptureBatch, CaptureResult, ChangeStream
from tidemark.change_streams.model.sinks import ChunkAnswer, ReadAsk
from tidemark.model.jobs import Job

__all__ = ["CAPTURE_CHANGES", "READ_PARTITIONS", "TRIM_CHANGE_LOG", "ChunkAnswers", "Trimmed"]


@dataclass(frozen=True)
class ChunkAnswers:
    """What became of each chunk that was tried."""

    chunks: tuple[ChunkAnswer, ...]


@dataclass(frozen=True)
class Trimmed:
    """`until`: data before it is gone from the log; None: nothing is old enough. `rows`: how many this run removed."""

    until: datetime | None
    rows: int = 0


CAPTURE_CHANGES = Job(
    "capture_changes", CaptureBatch, CaptureResult, "change_streams.driver.job_capture_changes:capture_changes"
)
READ_PARTITIONS = Job(
    "read_partitions", ReadAsk, ChunkAnswers, "change_streams.driver.job_read_partitions:read_partitions"
)
TRIM_CHANGE_LOG = Job(
    "trim_change_log", ChangeStream, Trimmed, "change_streams.driver.job_trim_change_log:trim_change_log"
)
