"""The tables of the control store, once. Migrations lead to exactly this (tests/control/test_migrations.py)."""

from __future__ import annotations

from tidemark.control.schema.base import PositionText, UtcDateTime, metadata
from tidemark.control.schema.change_streams import (
    backfills,
    capture_batches,
    change_streams,
    chunks,
    consumer_groups,
    group_partitions,
    group_sinks,
    partition_load,
    partitions,
    watched_tables,
)
from tidemark.control.schema.replication import object_writes, replicated_objects, replication_moves, replications
from tidemark.control.schema.streams import (
    job_targets,
    jobs,
    offset_moves,
    statements,
    stores,
    stream_health,
    streams,
    target_numbers,
    transactions,
    windows,
)

__all__ = [
    "PositionText",
    "UtcDateTime",
    "backfills",
    "capture_batches",
    "change_streams",
    "chunks",
    "consumer_groups",
    "group_partitions",
    "group_sinks",
    "job_targets",
    "jobs",
    "metadata",
    "object_writes",
    "offset_moves",
    "partition_load",
    "partitions",
    "replicated_objects",
    "replication_moves",
    "replications",
    "statements",
    "stores",
    "stream_health",
    "streams",
    "target_numbers",
    "transactions",
    "watched_tables",
    "windows",
]
