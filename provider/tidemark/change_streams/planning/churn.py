"""Which partitions split and which merge at the end of a capture batch, decided from their load."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import pairwise

from tidemark.change_streams.model.change_streams import CaptureBatch, Partition
from tidemark.change_streams.planning.tokens import make_token

__all__ = ["SUB_BUCKETS", "Churn", "Load", "decide_churn", "sub_bucket_width"]

SUB_BUCKETS = 256  # at most this many parts of a partition are counted
HOT_BATCHES = 2
QUIET_BATCHES = 5

Load = Mapping[str, Mapping[int, int]]  # token → number of the sub-bucket, from 0 → rows


@dataclass(frozen=True)
class Churn:
    """Closed partitions have their end, opened ones their parents, kept ones their counters moved on. Those kept and
    opened tile the key space, in the order of their ranges.

    `unsplittable`: tokens that were due for a split, but all their load is in one bucket.
    """

    closed: tuple[Partition, ...]
    opened: tuple[Partition, ...]
    kept: tuple[Partition, ...]
    unsplittable: tuple[str, ...]


def sub_bucket_width(partition: Partition) -> int:
    """Buckets in each sub-bucket of a partition; the last may have fewer."""
    return -(-(partition.hi - partition.lo) // SUB_BUCKETS)


def decide_churn(batch: CaptureBatch, load: Load, boundary: datetime) -> Churn:
    """The churn of `batch.active`; every change happens at `boundary`.

    A partition splits at the weighted median when more than `split_rows` rows came in each of 2 batches. Two neighbours
    merge when fewer than `merge_rows` came for both together in each of 5 batches in which they were neighbours. So
    none lives shorter than 2 batches, and each takes part in one step at most.
    """
    active = sorted(batch.active, key=lambda partition: partition.lo)
    rows = [sum(load.get(partition.token, {}).values()) for partition in active]
    counted = _counted(batch, active, rows)
    splits: dict[str, int] = {}
    unsplittable = []
    for partition in counted:
        if partition.hot >= HOT_BATCHES:
            at = _median(partition, load[partition.token])
            if at is None:
                unsplittable.append(partition.token)
            else:
                splits[partition.token] = at
    merges = _merges(counted, splits)
    return _carried_out(batch, counted, splits, merges, boundary, tuple(unsplittable))


def _counted(batch: CaptureBatch, active: list[Partition], rows: list[int]) -> list[Partition]:
    """Counters moved on. `quiet` is of a partition with its right neighbour; the last has none."""
    together = [left + right for left, right in pairwise(rows)]
    return [
        replace(
            partition,
            hot=partition.hot + 1 if count > batch.split_rows else 0,
            quiet=partition.quiet + 1 if place < len(together) and together[place] < batch.merge_rows else 0,
        )
        for place, (partition, count) in enumerate(zip(active, rows, strict=True))
    ]


def _median(partition: Partition, load: Mapping[int, int]) -> int | None:
    """The bucket at which the load is parted best; None if one bucket has it all.

    Load that is all in one sub-bucket is parted in the middle of that.
    """
    width, total = sub_bucket_width(partition), sum(load.values())
    loaded = [number for number in sorted(load) if load[number]]
    best, before = (total + 1, 0), 0
    for number in loaded[:-1]:
        before += load[number]
        best = min(best, (abs(total - 2 * before), partition.lo + (number + 1) * width))
    if best[0] <= total:
        return best[1]
    lo = partition.lo + loaded[0] * width
    middle = (lo + min(lo + width, partition.hi)) // 2
    return middle if middle > lo else None


def _merges(counted: list[Partition], splits: Mapping[str, int]) -> set[int]:
    """Places of the left ones of the pairs that merge."""
    found: set[int] = set()
    for place, (left, right) in enumerate(pairwise(counted)):
        is_free = place - 1 not in found and left.token not in splits and right.token not in splits
        if left.quiet >= QUIET_BATCHES and is_free:
            found.add(place)
    return found


def _carried_out(
    batch: CaptureBatch,
    counted: list[Partition],
    splits: Mapping[str, int],
    merges: set[int],
    boundary: datetime,
    unsplittable: tuple[str, ...],
) -> Churn:
    def opened(lo: int, hi: int, *parents: Partition) -> Partition:
        token = make_token(batch.stream.uid, lo, hi, batch.number)
        return Partition(token, lo, hi, tuple(parent.token for parent in parents), boundary, batch=batch.number)

    closed: list[Partition] = []
    children: list[Partition] = []
    kept: list[Partition] = []
    for place, partition in enumerate(counted):
        if partition.token in splits:
            at = splits[partition.token]
            children += [opened(partition.lo, at, partition), opened(at, partition.hi, partition)]
        elif place in merges:
            right = counted[place + 1]
            children.append(opened(partition.lo, right.hi, partition, right))
        elif place - 1 not in merges:
            is_before_new = place + 1 < len(counted) and (counted[place + 1].token in splits or place + 1 in merges)
            kept.append(replace(partition, quiet=0) if is_before_new else partition)
            continue
        closed.append(replace(partition, end=boundary))
    return Churn(tuple(closed), tuple(children), tuple(kept), unsplittable)
