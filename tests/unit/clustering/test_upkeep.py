"""The decision about a table: nothing within the goal, small results first, all files only when it pays."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from tests.benchmarks.least_rewriting import least_rewriting
from tidemark.clustering.model.tables import ClusteredTable, Goal, How, Layer, Plan, Seen
from tidemark.clustering.planning.depth import boxes_of, depths_of
from tidemark.clustering.planning.expected import expected_depth
from tidemark.clustering.planning.information import layers_of
from tidemark.clustering.planning.states import TableHealth, state_of
from tidemark.clustering.planning.upkeep import allowed_bytes, bounded, plan_upkeep, smoothed_layer
from tidemark.clustering.worker.looking import Look, seen_after
from tidemark.model.codec import from_json
from tidemark.model.file_ranges import Boxes, FileRanges, KeyColumn
from tidemark.model.streams import TableRef


def plan(layers: list[Layer], goal: Goal, *, allowed: int | None = None, unit: float | None = None) -> Plan:
    """The plan for layers that all span the range of the key."""
    depth = sum(one.depth for one in layers)
    total, files = sum(one.bytes for one in layers), sum(one.files for one in layers)
    seen = Seen(5, depth, int(depth), files, total, layer_bytes=unit)

    def depth_after(taken: Collection[str | None]) -> float:
        return 1 + sum(one.depth for one in layers if one.cube not in taken)

    return plan_upkeep(layers, seen, goal, depth_after, allowed=allowed)


Box = tuple[tuple[int, int], ...]
File = tuple[Box, str | None, int]
"""The range of a file in each column, the run that wrote it, and its size."""
KEY = ("a", "b")


def table_of(files: Sequence[File]) -> FileRanges:
    names = KEY[: len(files[0][0])]
    boxes = boxes_of(list(zip(*(box for box, _, _ in files), strict=True)), [False] * len(files))
    cubes = [None if cube is None else (cube, ",".join(names)) for _, cube, _ in files]
    columns = tuple(KeyColumn(name, (name,), "long") for name in names)
    return FileRanges(1, columns, boxes, [size for _, _, size in files], cubes)


def plan_of(files: Sequence[File], goal: Goal, floor: float | None) -> Plan:
    """The plan for these files, of which the last full rewrite has left `floor`."""
    ranges = table_of(files)
    depths = depths_of(ranges.boxes)
    seen = Seen(1, depths.average_depth, depths.largest, len(files), ranges.bytes, floor=floor)

    def depth_after(taken: Collection[str | None]) -> float:
        return expected_depth(ranges, taken, file_bytes=goal.file_bytes)

    return plan_upkeep(layers_of(ranges, [column.name for column in ranges.columns]), seen, goal, depth_after)


def arrived(bytes: int, depth: float) -> Layer:
    return Layer(None, bytes, int(depth), depth)


def results() -> list[Layer]:
    """Four results of clustering, none of them deep."""
    return [Layer(name, bytes, 1, 1) for name, bytes in (("a", 500), ("b", 400), ("c", 300), ("d", 200))]


def test_a_table_within_its_goal_is_left_alone() -> None:
    found = plan([arrived(400, 4)], Goal(depth=4))
    assert (found.how, found.bytes) == (How.NOTHING, 0)
    assert found.why == "depth 4 is within 4"


def test_new_files_are_rewritten_without_large_results() -> None:
    found = plan([arrived(400, 4), Layer("a", 100_000, 10, 1)], Goal(depth=4))
    assert (found.how, found.bytes, found.cube_bytes, found.depth) == (How.CUBES, 400, 0, 2)


def test_a_small_result_is_rewritten_with_them_as_often_as_the_depth_needs() -> None:
    layers = [arrived(100, 1), *results()]
    assert plan(layers, Goal(depth=4), unit=100).bytes == 1500  # all have phase 1, so the largest is taken
    layers[1] = Layer("a", 1500, 1, 1)
    assert plan(layers, Goal(depth=4), unit=100).bytes == 1000  # the first one has phase 2


def test_a_budget_bounds_the_bytes_and_says_so() -> None:
    layers = [arrived(100, 1), *results()]
    assert plan(layers, Goal(depth=4), allowed=700).bytes == 600
    none = plan(layers, Goal(depth=4), allowed=99)
    assert (none.how, none.why) == (How.NOTHING, "depth 5 needs 100 bytes, and the budget has 99")
    assert allowed_bytes(Goal(run_bytes=50, day_bytes=100), spent=80) == 20
    assert allowed_bytes(Goal(run_bytes=50), spent=80, most=60) == 50
    assert allowed_bytes(Goal(day_bytes=10), spent=80) == 0
    assert allowed_bytes(Goal(), spent=80) is None


def test_results_by_another_key_are_rewritten_with_all_files_or_stay() -> None:
    layers = [arrived(100, 1), Layer("a", 500, 5, 4, keeps=False)]
    found = plan(layers, Goal(depth=2))
    assert (found.how, found.bytes, found.depth) == (How.FULL, 600, 1)
    assert "another key" in found.why


def test_one_result_alone_is_not_rewritten() -> None:
    found = plan([Layer("a", 500, 5, 3)], Goal(depth=2))
    assert (found.how, found.why) == (How.NOTHING, "depth 3 cannot get lower: all files are one result of clustering")


def test_results_of_one_size_are_rewritten_together_since_delta_chooses_by_size() -> None:
    layers = [arrived(100, 2), Layer("a", 300, 1, 1), Layer("b", 300, 1, 1)]
    assert plan(layers, Goal(depth=2)).bytes == 700
    assert plan(layers, Goal(depth=3)).bytes in (100, 700)


def test_new_files_deepen_a_known_table_at_most_by_their_own_depth() -> None:
    seen = Seen(5, 1.5, 2, 8, 800, layer_bytes=10.0)
    found = bounded(seen, version=7, files=2, bytes=20, depth=1)
    assert found == Seen(7, 2.6, 3, 10, 820, exact=False, layer_bytes=10.0)
    assert bounded(seen, version=6, files=0, bytes=0, depth=0) == Seen(6, 1.5, 2, 8, 800, layer_bytes=10.0)


def bare(names: str, key: Sequence[str] = ("a",)) -> FileRanges:
    """A table whose files, one for each letter, have no statistics; those of "n" are as they arrived."""
    columns = tuple(KeyColumn(name, (name,), "long") for name in key)
    sizes = tuple((None if name == "n" else (name, '["a"]'), 100) for name in names)
    nothing: tuple[list[int], ...] = tuple([] for _ in key)
    return FileRanges(1, columns, Boxes(nothing, nothing, []), [], [], tuple(names), sizes)


def plan_of_bare(files: FileRanges, goal: Goal) -> Plan:
    key = [column.name for column in files.columns]
    layers = layers_of(files, key)
    without = sum(one.without for one in layers if one.cube is None or not one.keeps)
    seen = Seen(1, 0.0, 0, 0, files.bytes, without=without)
    return plan_upkeep(layers, seen, goal, lambda taken: expected_depth(files, taken))


@pytest.mark.parametrize("key", [("a",), ("a", "b")])
def test_files_without_statistics_are_rewritten_once_and_count_in_the_budget(key: tuple[str, ...]) -> None:
    goal = Goal(depth=4)
    found = plan_of_bare(bare("nnnnn", key), goal)
    assert (found.how, found.bytes) == (How.FULL, 500)
    assert found.why == "depth 0 with 5 files without statistics is above 4: rewrite all files"
    assert plan_of_bare(bare("nnnn", key), goal).why == "depth 0 with 4 files without statistics is within 4"
    assert plan_of_bare(bare("ccccc"), goal).why == "depth 0 is within 4"  # the result of a run without statistics
    assert plan_of_bare(bare("ccccc", ("b",)), goal).how is How.FULL  # a result by another key


def test_files_without_statistics_count_where_delta_rewrites_them() -> None:
    files = replace(table_of([(((1, 2),), None, 10)]), without=("w",), without_sizes=((None, 90), (("c", "a"), 5)))
    (layer, other) = layers_of(files, ["a"])
    assert (layer.bytes, layer.files, layer.without, layer.without_bytes) == (100, 1, 1, 90)
    assert (other.cube, other.bytes, other.files) == ("c", 5, 0)
    assert smoothed_layer(None, [layer]) == 10  # of the files whose depth is known


def test_a_table_that_is_kept_above_its_goal_on_purpose_is_clustered() -> None:
    table = ClusteredTable("u", TableRef("t", "/t", "id"), ("a",), datetime(2026, 1, 1, tzinfo=UTC), Goal(depth=4))
    seen = Seen(1, 9.0, 9, 9, 900, floor=8.0, without=0)
    assert state_of(replace(table, seen=seen)) is TableHealth.CLUSTERED
    assert state_of(replace(table, seen=replace(seen, depth=11.5))) is TableHealth.DEEP
    assert state_of(replace(table, seen=replace(seen, without=3))) is TableHealth.DEEP


def test_the_bytes_of_a_layer_are_averaged() -> None:
    assert smoothed_layer(None, [arrived(400, 4)]) == 100
    assert smoothed_layer(100.0, [arrived(1200, 4)]) == 150
    assert smoothed_layer(100.0, [Layer("a", 5, 1, 1)]) == 100


@pytest.mark.parametrize(("appends", "depth"), [(50, 2), (50, 3), (50, 4), (30, 5), (70, 4)])
def test_the_rule_rewrites_little_more_than_the_least_that_is_possible(appends: int, depth: int) -> None:
    cubes: dict[str, int] = {}
    new, written, unit = 0, 0, None
    for step in range(appends):
        new, written = new + 1000, written + 1000
        layers = [arrived(new, new / 1000), *(Layer(name, size, 1, 1) for name, size in cubes.items())]
        unit = smoothed_layer(unit, layers)
        found = plan(layers, Goal(depth=depth), unit=unit)
        if found.how is not How.NOTHING:
            merged = [name for name, size in cubes.items() if size < found.cube_bytes]
            size = new + sum(cubes.pop(name) for name in merged)
            assert size == found.bytes
            cubes[str(step)], new, written = size, 0, written + size
        assert new / 1000 + len(cubes) <= depth
    assert written / 1000 <= 1.3 * least_rewriting(appends, depth)


def test_the_depth_after_a_reclustering_counts_what_lies_beside_the_result() -> None:
    columns = (KeyColumn("k", ("k",), "long"),)
    boxes = Boxes(([1, 1, 1, 7],), ([9, 4, 5, 9],), [False] * 4)
    cubes = [("a", '["k"]'), None, None, ("b", '["k"]')]
    files = FileRanges(1, columns, boxes, [100, 10, 10, 50], cubes)
    assert expected_depth(files, [None]) == pytest.approx(2.0)  # a lies over all, b beside the new result
    assert expected_depth(files, [None, "a", "b"]) == 1.0
    assert expected_depth(files, []) == pytest.approx((3 + 3 + 3 + 2) / 4)


def test_a_look_after_a_full_rewrite_has_its_result_as_the_floor() -> None:
    seen = Seen(7, 6.0, 9, 9, 900, floor=2.0)
    look = Look(table_of([(((1, 2),), None, 9)]), (Layer("a", 800, 8, 5.0), arrived(100, 1)), seen)
    assert seen_after(look, How.FULL) == replace(seen, floor=5.0)
    assert seen_after(look, How.CUBES) == seen
    assert bounded(seen, version=8, files=1, bytes=9, depth=1).floor == 2.0
    assert from_json(Seen, '{"version": 1, "depth": 1.5, "largest": 2, "files": 3, "bytes": 4}').floor is None


FILE = 100  # bytes of a rewritten file
PREFIX: list[Box] = [((1, 2),)] * 8  # texts whose first 32 characters are the same
STRIPES: list[Box] = [((a, a + 5), (b, b + 5)) for a in (0, 2, 4) for b in (0, 2, 4)]  # disjoint in neither column


@pytest.mark.parametrize("layout", [PREFIX, STRIPES], ids=["texts with a shared prefix", "two columns"])
def test_a_table_that_a_full_rewrite_leaves_above_its_goal_is_not_rewritten_by_each_new_file(layout: list[Box]) -> None:
    goal, new = Goal(depth=4, file_bytes=FILE), tuple((0, 9) for _ in layout[0])
    files: list[File] = [(box, "first", FILE) for box in layout]
    floor, whole = floor_of(files), FILE * len(layout)
    assert floor > goal.depth
    found = plan_of([*files, (new, None, 10)], goal, floor)
    assert found.why.endswith(f"is within {floor + 3:g} (the goal is 4, and the last full rewrite left {floor:g})")
    assert plan_of([*files, (new, None, 10)], goal, None).bytes == whole + 10
    written = 0
    for step in range(30):
        files.append((new, None, 10))
        found = plan_of(files, goal, floor)
        if found.how is How.NOTHING:
            continue
        assert "(the goal is 4, and the last full rewrite left" in found.why
        files = rewritten(files, found, str(step), layout if found.how is How.FULL else [new])
        floor = floor_of(files) if found.how is How.FULL else floor
        written += found.bytes
    assert written < 30 * whole / 10


def floor_of(files: Sequence[File]) -> float:
    return layers_of(table_of(files), KEY[: len(files[0][0])])[0].depth


def rewritten(files: Sequence[File], plan: Plan, cube: str, layout: Sequence[Box]) -> list[File]:
    """The files after the plan, whose result has the boxes of the layout."""
    sizes = Counter[str | None]()
    for _, one, size in files:
        sizes[one] += size
    gone = {one for one, size in sizes.items() if one is None or size < plan.cube_bytes or plan.how is How.FULL}
    count = max(1, round(plan.bytes / FILE))
    assert sum(sizes[one] for one in gone) == plan.bytes
    left = [one for one in files if one[1] not in gone]
    size, more = divmod(plan.bytes, count)
    return [*left, *((layout[at % len(layout)], cube, size + (at < more)) for at in range(count))]


@pytest.mark.parametrize(
    ("tag", "key"),
    [
        ('["a"]', ["A"]),
        ('["first, last","b"]', ["first, last", "b"]),
        ('["`a.b`"]', ["a.b"]),
        ('["s.`x.y`"]', ["s.x.y"]),
        ('["gr\\u00f6sse"]', ["Grösse"]),
        ("a,b", ["a", "b"]),
    ],
)
def test_a_result_is_of_its_key_however_its_columns_are_called(tag: str, key: list[str]) -> None:
    """A result of another key would be rewritten by each run."""
    columns = tuple(KeyColumn(name, (name,), "long") for name in key)
    boxes = Boxes(tuple([1] for _ in key), tuple([2] for _ in key), [False])
    (layer,) = layers_of(FileRanges(1, columns, boxes, [1], [("cube", tag)]), key)
    assert layer.keeps
