"""How each partition of a change stream is, for the stream itself or for one consumer group."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

from tidemark.change_streams.model.change_streams import GroupPartition, Partition
from tidemark.change_streams.model.partition_table import PartitionStatus, PartitionTable

__all__ = ["captured_partitions", "partitions_of_group"]


def captured_partitions(found: Sequence[Partition], published_until: datetime) -> PartitionTable:
    """All of them, `active` or `ended`; the watermark is the time before which all records are captured."""
    children = _children(found)
    return _table(
        _status(
            one,
            children,
            "active" if one.end is None else "ended",
            published_until if one.end is None else min(one.end, published_until),
        )
        for one in found
    )


def partitions_of_group(
    found: Sequence[Partition], group: Mapping[str, GroupPartition], start: datetime
) -> PartitionTable:
    """The partitions that the group has, or will have, as it begins at `start`; later ones wait until a parent is
    finished.
    """
    children = _children(found)
    rows = []
    for one in found:
        seen = group.get(one.token)
        if seen is not None:
            rows.append(_status(one, children, seen.state.value, seen.watermark.at, seen.error))
        elif one.end is None or one.end > start:
            rows.append(_status(one, children, "waiting", None))
    return _table(rows)


def _children(found: Iterable[Partition]) -> Mapping[str, list[str]]:
    children: dict[str, list[str]] = {}
    for one in sorted(found, key=lambda one: one.token):
        for parent in one.parents:
            children.setdefault(parent, []).append(one.token)
    return children


def _status(
    one: Partition,
    children: Mapping[str, Sequence[str]],
    state: str,
    watermark: datetime | None,
    error: str | None = None,
) -> PartitionStatus:
    return PartitionStatus(
        partition_token=one.token,
        lo=one.lo,
        hi=one.hi,
        parent_tokens=one.parents,
        child_tokens=tuple(children.get(one.token, ())),
        state=state,
        start_timestamp=one.start,
        end_timestamp=one.end,
        watermark=watermark,
        error=error,
    )


def _table(rows: Iterable[PartitionStatus]) -> PartitionTable:
    return PartitionTable(sorted(rows, key=lambda one: (one.start_timestamp, one.lo, one.partition_token)))
