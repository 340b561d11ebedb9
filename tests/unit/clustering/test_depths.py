"""Overlaps and depths against their definition, and against the examples that the source system documents."""

from __future__ import annotations

from itertools import combinations

from hypothesis import given, settings
from hypothesis import strategies as st

from tidemark.clustering.planning.depth import Depths, boxes_of, depths_of
from tidemark.clustering.planning.information import information_of
from tidemark.model.file_ranges import Boxes, FileRanges, KeyColumn

Range = tuple[int, int]
File = tuple[tuple[Range, ...], bool]  # the range in each column, whether it is constant


def overlap(one: File, other: File) -> bool:
    """The rule of the source system, as its published figures have it."""
    if one[1] and other[1]:
        return False
    if one[1] or other[1]:
        (point, _), (box, _) = (one, other) if one[1] else (other, one)
        ends = [(low, value, high) for (value, _), (low, high) in zip(point, box, strict=True)]
        inside = all(low < value < high or low == value == high for low, value, high in ends)
        return inside and any(low < high for low, _, high in ends)
    return all(a <= d and c <= b for (a, b), (c, d) in zip(one[0], other[0], strict=True))


def by_definition(files: list[File]) -> tuple[list[int], list[int]]:
    """(depths, overlaps) by trying all sets of files."""
    depths = [1] * len(files)
    for size in range(2, len(files) + 1):
        for chosen in combinations(range(len(files)), size):
            if all(overlap(files[a], files[b]) for a, b in combinations(chosen, 2)):
                for index in chosen:
                    depths[index] = size
    overlaps = [
        sum(overlap(one, other) for place, other in enumerate(files) if place != index)
        for index, one in enumerate(files)
    ]
    return depths, overlaps


@st.composite
def tables(draw: st.DrawFn) -> list[File]:
    columns = draw(st.integers(1, 3))
    end = st.integers(0, draw(st.sampled_from([2, 5, 12])))
    files = []
    for _ in range(draw(st.integers(1, 8))):
        pairs = draw(st.lists(st.tuples(end, end), min_size=columns, max_size=columns))
        ranges = tuple((min(pair), max(pair)) for pair in pairs)
        if draw(st.booleans()):
            ranges = tuple((low, low) for low, _ in ranges)
        one_value = all(low == high for low, high in ranges)
        files.append((ranges, one_value and draw(st.booleans())))  # truncated texts look like one value
    return files


@settings(max_examples=600, deadline=None)
@given(tables())
def test_depths_and_overlaps_are_those_of_the_definition(files: list[File]) -> None:
    columns = list(zip(*(ranges for ranges, _ in files), strict=True))
    found = depths_of(boxes_of(columns, [constant for _, constant in files]))
    assert (list(found.depths), list(found.overlaps)) == by_definition(files)


def test_the_documented_pictures_of_clustering_depth() -> None:
    """Five partitions over A to Z, as the source system's page draws them: all alike, apart, and constant."""
    all_alike = depths_of(boxes_of([[(1, 26)] * 5], [False] * 5))
    assert (all_alike.average_overlaps, all_alike.average_depth) == (4.0, 5.0)
    three_alike = depths_of(boxes_of([[(1, 4), (5, 20), (5, 20), (5, 20), (21, 26)]], [False] * 5))
    assert (three_alike.average_overlaps, three_alike.average_depth, three_alike.largest) == (1.2, 2.2, 3)
    apart = depths_of(boxes_of([[(1, 5), (6, 10), (11, 15), (16, 20), (21, 26)]], [False] * 5))
    assert (apart.average_overlaps, apart.average_depth) == (0.0, 1.0)
    constant = depths_of(boxes_of([[(1, 1), (13, 13), (13, 13), (13, 13), (26, 26)]], [True] * 5))
    assert (constant.average_overlaps, constant.average_depth) == (0.0, 1.0)


def test_files_that_touch_overlap_and_constant_files_only_inside_others() -> None:
    touching = depths_of(boxes_of([[(1, 5), (5, 9)]], [False, False]))
    assert (list(touching.depths), touching.average_overlaps) == ([2, 2], 1.0)
    at_the_end = depths_of(boxes_of([[(1, 5), (5, 5)]], [False, True]))
    assert (list(at_the_end.depths), at_the_end.average_overlaps) == ([1, 1], 0.0)
    inside = depths_of(boxes_of([[(1, 5), (3, 3), (3, 3)]], [False, True, True]))
    assert (list(inside.depths), list(inside.overlaps)) == ([2, 2, 2], [2, 1, 1])


def test_the_buckets_of_the_histogram_double_behind_sixteen() -> None:
    histogram = Depths([1, 2, 16, 17, 32, 33, 300], []).histogram()
    assert list(histogram)[:2] == ["00000", "00001"]
    assert list(histogram)[16:] == ["00016", "00032", "00064", "00128", "00256", "00512"]
    assert {name: count for name, count in histogram.items() if count} == {
        "00001": 1,
        "00002": 1,
        "00016": 1,
        "00032": 2,
        "00064": 1,
        "00512": 1,
    }


def test_the_json_has_the_fields_of_the_source_system() -> None:
    boxes = Boxes(([1, 2, 5], [1, 1, 1]), ([3, 4, 5], [2, 2, 1]), [False, False, True])
    columns = (KeyColumn("c1", ("c1",), "long"), KeyColumn("c2", ("c2",), "long"))
    files = FileRanges(7, columns, boxes, [10, 10, 10], [None] * 3, ("part-1.parquet",), ((None, 10),))
    assert information_of(files).to_plain() == {
        "cluster_by_keys": "LINEAR(c1, c2)",
        "notes": "1 files have no statistics of c1, c2. They are in total_partition_count alone: part-1.parquet",
        "total_partition_count": 4,
        "total_constant_partition_count": 1,
        "average_overlaps": 0.6667,
        "average_depth": 1.6667,
        "partition_depth_histogram": {f"{n:05d}": {1: 1, 2: 2}.get(n, 0) for n in range(17)},
        "clustering_errors": [],
    }
