"""The decision about a table: nothing within the goal, small results first, all files only when it pays."""

from __future__ import annotations

from collections.abc import Collection

import pytest

from tests.benchmarks.least_rewriting import least_rewriting
from tidemark.clustering.model.tables import Goal, How, Layer, Plan, Seen
from tidemark.clustering.planning.expected import expected_depth
from tidemark.clustering.planning.upkeep import allowed_bytes, bounded, plan_upkeep, smoothed_layer
from tidemark.model.file_ranges import Boxes, FileRanges, KeyColumn


def plan(layers: list[Layer], goal: Goal, *, allowed: int | None = None, unit: float | None = None) -> Plan:
    """The plan for layers that all span the range of the key."""
    depth = sum(one.depth for one in layers)
    total, files = sum(one.bytes for one in layers), sum(one.files for one in layers)
    seen = Seen(5, depth, int(depth), files, total, layer_bytes=unit)

    def depth_after(taken: Collection[str | None]) -> float:
        return 1 + sum(one.depth for one in layers if one.cube not in taken)

    return plan_upkeep(layers, seen, goal, depth_after, allowed=allowed)


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
