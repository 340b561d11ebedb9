"""How a batch's rows are cut for the tasks that number and write them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from tidemark.change_streams.model.change_streams import Partition
from tidemark.change_streams.planning.churn import Load, sub_bucket_width

__all__ = ["ROWS_PER_TASK", "Block", "cut_blocks"]

ROWS_PER_TASK = 250_000


@dataclass(frozen=True)
class Block:
    """Buckets from `lo` on, up to the next block's; they belong to one partition. `task` has it, from 0."""

    lo: int
    token_no: int
    task: int


def cut_blocks(active: Sequence[Partition], load: Load, rows_per_task: int) -> tuple[Block, ...]:
    """Blocks that tile the key space, each of a partition (by its number in `active`, which is in order of ranges).

    A partition has several if it has more rows than a task should sort, and its sub-buckets can be parted. A task takes
    neighbouring blocks until it has enough rows. So small batches have one task, and a task few tokens.
    """
    blocks: list[Block] = []
    task = in_task = 0
    for token_no, partition in enumerate(active):
        for lo, rows in _cuts(partition, load.get(partition.token, {}), rows_per_task):
            if in_task and in_task + rows > rows_per_task:
                task, in_task = task + 1, 0
            blocks.append(Block(lo, token_no, task))
            in_task += rows
    return tuple(blocks)


def _cuts(partition: Partition, load: Mapping[int, int], rows_per_task: int) -> Iterator[tuple[int, int]]:
    """The beginning of every block of a partition, and how many rows it has."""
    lo, rows, width = partition.lo, 0, sub_bucket_width(partition)
    for number in sorted(load):
        if rows and rows + load[number] > rows_per_task:
            yield lo, rows
            lo, rows = partition.lo + number * width, 0
        rows += load[number]
    yield lo, rows
