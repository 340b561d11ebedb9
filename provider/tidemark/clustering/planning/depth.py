"""Overlaps and depths of ranges: the health of a clustering, in the terms of the source system.

Two files overlap if their ranges touch. A constant file has one value of each column. It overlaps another one only if
it is strictly inside, and constant files never overlap. Take the sets of files that contain a file, and in which all
overlap each other. Its depth is the size of the largest of them.

For one column all depths come from one sweep over the sorted ends, O(n log n). For several columns ranges are boxes.
Boxes that pairwise overlap share a point, so the depths of boxes are exact.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from operator import sub

from tidemark.model.file_ranges import Boxes

__all__ = ["Depths", "boxes_of", "depths_of"]

_FIRST_BUCKETS = 16
_FEW = 24  # boxes whose pairs are compared faster than sorted


@dataclass(frozen=True)
class Depths:
    """The depth and the number of overlaps of each file, in the order of the files."""

    depths: Sequence[int]
    overlaps: Sequence[int]

    @property
    def average_depth(self) -> float:
        """The mean depth, rounded as the source system does; 0 without files."""
        return _mean(self.depths)

    @property
    def average_overlaps(self) -> float:
        """The mean number of overlaps, rounded as the source system does; 0 without files."""
        return _mean(self.overlaps)

    @property
    def largest(self) -> int:
        """The largest depth; 0 without files."""
        return max(self.depths, default=0)

    def histogram(self) -> dict[str, int]:
        """Files by depth, by names of five digits: up to 16 one by one, then in buckets that double."""
        bounds = list(range(_FIRST_BUCKETS + 1))
        while bounds[-1] < self.largest:
            bounds.append(bounds[-1] * 2)
        counts = [0] * len(bounds)
        for depth in self.depths:
            counts[bisect_left(bounds, depth)] += 1
        return {f"{bound:05d}": count for bound, count in zip(bounds, counts, strict=True)}


def boxes_of(columns: Sequence[Sequence[tuple[float, float]]], constant: Sequence[bool]) -> Boxes:
    """Boxes from the (least, greatest) of each file, column by column."""
    least, greatest = [], []
    for ranges in columns:
        ends = sorted({end for pair in ranges for end in pair})
        rank = {end: place for place, end in enumerate(ends, 1)}
        least.append([rank[low] for low, _ in ranges])
        greatest.append([rank[high] for _, high in ranges])
    return Boxes(tuple(least), tuple(greatest), list(constant))


def depths_of(boxes: Boxes) -> Depths:
    """The depth and the overlaps of each file."""
    if not len(boxes):
        return Depths((), ())
    if len(boxes.least) == 1:
        return _of_ranges(boxes.least[0], boxes.greatest[0], boxes.constant)
    depths, overlaps = _of_boxes(boxes)
    return Depths(depths, overlaps)


def _mean(numbers: Sequence[int]) -> float:
    return round(sum(numbers) / len(numbers), 4) if numbers else 0.0


def _smaller(ranks: Sequence[int], size: int) -> list[int]:
    """How many of the ranks are smaller than 0, 1, … size."""
    found = [0] * size
    for rank in ranks:
        found[rank] += 1
    return [0, *accumulate(found)]


def _of_ranges(least: Sequence[int], greatest: Sequence[int], constant: Sequence[bool]) -> Depths:
    """One sweep: the number of ranges that contain a point is largest where one of them begins."""
    size = max(greatest) + 1
    wide = [file for file, one in enumerate(constant) if not one]
    begun, ended = _smaller([least[file] for file in wide], size), _smaller([greatest[file] for file in wide], size)
    cover = [started - over for started, over in zip(begun[1:], ended, strict=False)]
    depths, overlaps = [1] * len(least), [0] * len(least)
    for file, depth in zip(wide, _largest(cover, [(least[f], greatest[f]) for f in wide]), strict=True):
        depths[file] = depth
        overlaps[file] = begun[greatest[file] + 1] - ended[least[file]] - 1
    if len(wide) < len(least):
        _add_constants(least, greatest, constant, wide, depths, overlaps)
    return Depths(depths, overlaps)


def _add_constants(
    least: Sequence[int],
    greatest: Sequence[int],
    constant: Sequence[bool],
    wide: Sequence[int],
    depths: list[int],
    overlaps: list[int],
) -> None:
    """Count constant files: each with the ranges that contain it strictly."""
    size = max(greatest) + 1
    open_ = [file for file in wide if least[file] < greatest[file]]
    begun, ended = _smaller([least[file] for file in open_], size), _smaller([greatest[file] for file in open_], size)
    points = [least[file] for file, one in enumerate(constant) if one]
    smaller = _smaller(points, size)
    around = [0] * size
    for rank in points:
        around[rank] = begun[rank] - ended[rank + 1] + 1
    for file, one in enumerate(constant):
        if one:
            depths[file] = around[least[file]]
            overlaps[file] = depths[file] - 1
    inside = [(least[file] + 1, greatest[file] - 1) for file in open_]
    for file, depth in zip(open_, _largest(around, inside), strict=True):
        depths[file] = max(depths[file], depth)
        overlaps[file] += smaller[greatest[file]] - smaller[least[file] + 1]


def _largest(numbers: Sequence[int], slices: Sequence[tuple[int, int]]) -> list[int]:
    """The largest number in each slice, both ends included; 0 for an empty one."""
    found = [0] * len(slices)
    order = sorted(range(len(slices)), key=lambda index: slices[index][1])
    places: list[int] = []  # of numbers that no later one exceeds
    values: list[int] = []
    reached = 0
    for index in order:
        low, high = slices[index]
        while reached <= high:
            number = numbers[reached]
            while values and values[-1] <= number:
                values.pop()
                places.pop()
            values.append(number)
            places.append(reached)
            reached += 1
        if low <= high:
            found[index] = values[bisect_left(places, low)]
    return found


def _of_boxes(boxes: Boxes) -> tuple[list[int], list[int]]:
    """Boxes in the order in which they begin in the first column. A set of boxes that overlap each other is found when
    its last one begins. All others are open then and overlap that one.
    """
    first = boxes.least[0]
    depths, overlaps = [1] * len(boxes), [0] * len(boxes)
    order = sorted((file for file, one in enumerate(boxes.constant) if not one), key=first.__getitem__)
    opened = _Open(boxes.least[1], boxes.greatest[1])
    ends: list[tuple[int, int]] = []  # (-end in the first column, file): the next to end is last
    for file in order:
        while ends and -ends[-1][0] < first[file]:
            opened.remove(ends.pop()[1])
        near = _near(boxes, file, opened)
        for other in near:
            overlaps[other] += 1
        overlaps[file] += len(near)
        if near:
            _deepen(boxes, file, near, depths)
        opened.add(file)
        insort(ends, (-boxes.greatest[0][file], file))
    _add_points(boxes, order, depths, overlaps)
    return depths, overlaps


class _Open:
    """Open boxes by their begin in one column. Few wide ones are kept apart, so that those near a range are a short
    slice of the others.
    """

    def __init__(self, least: Sequence[int], greatest: Sequence[int]) -> None:
        self.least, self.greatest = least, greatest
        widths = sorted(map(sub, greatest, least))
        self.width = 2 * widths[len(widths) * 9 // 10]
        self.narrow: list[tuple[int, int]] = []
        self.wide: list[tuple[int, int]] = []

    def add(self, file: int) -> None:
        insort(self._list_of(file), (self.least[file], file))

    def remove(self, file: int) -> None:
        found = self._list_of(file)
        del found[bisect_left(found, (self.least[file], file))]

    def overlapping(self, low: int, high: int) -> list[int]:
        """The boxes whose range in the column touches the given one."""
        greatest, behind = self.greatest, (high, len(self.least))
        start = bisect_left(self.narrow, (low - self.width, 0))
        coming = self.narrow[start : bisect_right(self.narrow, behind)]
        if self.wide:
            coming += self.wide[: bisect_right(self.wide, behind)]
        return [file for _, file in coming if greatest[file] >= low]

    def _list_of(self, file: int) -> list[tuple[int, int]]:
        return self.narrow if self.greatest[file] - self.least[file] <= self.width else self.wide


def _near(boxes: Boxes, file: int, opened: _Open) -> list[int]:
    """Open boxes that overlap the box in all columns but the first, in which all open ones do."""
    found = opened.overlapping(boxes.least[1][file], boxes.greatest[1][file])
    for least, greatest in zip(boxes.least[2:], boxes.greatest[2:], strict=True):
        low, high = least[file], greatest[file]
        found = [other for other in found if least[other] <= high and greatest[other] >= low]
    return found


def _deepen(boxes: Boxes, last: int, near: Sequence[int], depths: list[int]) -> None:
    """Raise the depths of the boxes by the sets that the box `last` completes, within its own range."""
    if len(near) == 1:
        depths[near[0]], depths[last] = max(2, depths[near[0]]), max(2, depths[last])
        return
    least, greatest = [], []
    for low, high in zip(boxes.least[1:], boxes.greatest[1:], strict=True):
        start, end = low[last], high[last]
        least.append([max(low[other], start) for other in near])
        greatest.append([min(high[other], end) for other in near])
    found = _cliques(least, greatest)
    for other, depth in zip(near, found, strict=True):
        if depths[other] <= depth:
            depths[other] = depth + 1
    depths[last] = max(depths[last], max(found) + 1)


def _cliques(least: Sequence[list[int]], greatest: Sequence[list[int]]) -> Sequence[int]:
    """For each box the size of the largest set around it, without constant files."""
    count = len(least[0])
    if count == 1:
        return (1,)
    if len(least) > 1:
        return _of_boxes(Boxes(tuple(least), tuple(greatest), [False] * count))[0]
    ranges = list(zip(least[0], greatest[0], strict=True))
    if count > _FEW:
        return depths_of(boxes_of([ranges], [False] * count)).depths
    found = [1] * count
    for point in set(least[0]):
        around = [index for index, (low, high) in enumerate(ranges) if low <= point <= high]
        for index in around:
            if found[index] < len(around):
                found[index] = len(around)
    return found


def _add_points(boxes: Boxes, order: Sequence[int], depths: list[int], overlaps: list[int]) -> None:
    """Count constant files: each with the boxes that contain it strictly. A box that has one value in some of the
    columns contains that value.
    """
    least, greatest = boxes.least[0], boxes.greatest[0]
    points = sorted((file for file, one in enumerate(boxes.constant) if one), key=least.__getitem__)
    opened: list[int] = []
    coming = 0
    for file in points:
        while coming < len(order) and least[order[coming]] <= least[file]:
            opened.append(order[coming])
            coming += 1
        opened = [other for other in opened if greatest[other] >= least[file]]
        around = [other for other in opened if _contains(boxes, other, file)]
        depths[file], overlaps[file] = len(around) + 1, len(around)
        for other in around:
            overlaps[other] += 1
            depths[other] = max(depths[other], len(around) + 1)


def _contains(boxes: Boxes, box: int, point: int) -> bool:
    strictly = False
    for least, greatest in zip(boxes.least, boxes.greatest, strict=True):
        low, value, high = least[box], least[point], greatest[box]
        if low < value < high:
            strictly = True
        elif not low == value == high:
            return False
    return strictly
