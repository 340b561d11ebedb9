"""The ranges of columns in a table's files: from commits and checkpoints, of every type, and without statistics."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.unit.lake.delta_directories import add, born, commit, metadata, remove
from tidemark.errors import InvalidArgument
from tidemark.lake.delta_log import DeltaLog
from tidemark.lake.file_ranges import added_ranges, file_ranges
from tidemark.lake.file_values import extremes_of
from tidemark.model.file_ranges import Bound, FileRanges, KeyColumn

K = KeyColumn("k", ("k",), "long")
LONG_NAME = "x" * 32


def stats(low: Any, high: Any, *, rows: int = 10, nulls: int = 0, column: str = "k") -> dict[str, str]:
    said: dict[str, Any] = {"numRecords": rows, "nullCount": {column: nulls}, "minValues": {}, "maxValues": {}}
    if low is not None:
        said |= {"minValues": {column: low}, "maxValues": {column: high}}
    return {"stats": json.dumps(said)}


def ends(files: FileRanges) -> list[tuple[int, int, bool]]:
    return list(zip(files.boxes.least[0], files.boxes.greatest[0], files.boxes.constant, strict=True))


@pytest.mark.quick
def test_live_files_with_ranges_sizes_and_results_of_clustering(tmp_path: Path) -> None:
    tags = {"tags": {"ZCUBE_ID": "cube-1", "ZCUBE_ZORDER_BY": '["k"]'}}
    log = born(tmp_path, add("a", **stats(1, 9)), add("b", **stats(5, 5)))
    commit(tmp_path, 1, add("c", **stats(9, 12), **tags), remove("a"), add("d", size=7))
    found = file_ranges(log, 1, [K])
    assert (found.without, found.without_sizes, found.version) == (("d",), ((None, 7),), 1)
    assert ends(found) == [(1, 1, True), (2, 3, False)]
    assert list(found.cubes) == [None, ("cube-1", '["k"]')]


def test_added_files_are_known_by_their_commits_unless_these_removed_earlier_ones(tmp_path: Path) -> None:
    log = born(tmp_path, add("a", **stats(1, 9)))
    commit(tmp_path, 1, add("b", **stats(5, 5)), add("c", **stats(7, 8)))
    commit(tmp_path, 2, remove("b"))
    added = added_ranges(log, 0, 2, [K])
    assert added is not None
    assert ends(added) == [(1, 2, False)]
    commit(tmp_path, 3, remove("a"))
    assert added_ranges(log, 0, 3, [K]) is None


def test_deleted_rows_make_a_file_smaller_and_another_vector_leaves_it_in_the_table(tmp_path: Path) -> None:
    vector = {"storageType": "i", "pathOrInlineDv": "x", "sizeInBytes": 4, "cardinality": 5}
    log = born(tmp_path, add("a", size=1000, **stats(1, 9)))
    commit(tmp_path, 1, add("a", size=1000, deletionVector=vector, **stats(1, 9)), remove("a"))
    assert list(file_ranges(log, 1, [K]).sizes) == [500]


def test_an_earlier_file_with_another_vector_is_not_an_added_one(tmp_path: Path) -> None:
    vector = {"storageType": "i", "pathOrInlineDv": "x", "sizeInBytes": 4, "cardinality": 5}
    log = born(tmp_path, add("a", **stats(1, 9)))
    for version in (1, 2):
        commit(tmp_path, version, add("a", deletionVector=vector, **stats(1, 9)), remove("a"))
    commit(tmp_path, 3, add("b", **stats(5, 5)))
    added = added_ranges(log, 0, 3, [K])
    assert added is not None
    assert ends(added) == [(1, 1, True)]
    commit(tmp_path, 4, remove("a"))
    assert added_ranges(log, 0, 4, [K]) is None


def test_a_checkpoint_and_the_commits_behind_it(tmp_path: Path) -> None:
    log = born(tmp_path, add("a", **stats(1, 9)), add("b", **stats(2, 3)))
    kept = {
        "path": "b",
        "size": 7,
        "stats": stats(2, 3)["stats"],
        "tags": [("ZCUBE_ID", "c"), ("ZCUBE_ZORDER_BY", "k")],
    }
    write_checkpoint(tmp_path, 1, [{"path": "a", "size": 9, "stats": stats(1, 9)["stats"], "tags": None}, kept])
    commit(tmp_path, 1, add("z", **stats(1, 1)))
    commit(tmp_path, 2, remove("a"))
    found = file_ranges(log, 2, [K])
    assert (list(found.sizes), list(found.cubes), ends(found)) == ([7], [("c", "k")], [(1, 2, False)])


def write_checkpoint(table: Path, version: int, adds: list[dict[str, Any]]) -> None:
    kind = pa.struct(
        [
            ("path", pa.string()),
            ("size", pa.int64()),
            ("stats", pa.string()),
            ("tags", pa.map_(pa.string(), pa.string())),
        ]
    )
    rows = pa.table({"add": pa.array([*adds, None], kind)})
    pq.write_table(rows, table / "_delta_log" / f"{version:020d}.checkpoint.parquet")


@pytest.mark.parametrize(
    ("kind", "values", "expected"),
    [
        ("long", [(1, 5), (5, 5), (-3, 1)], [(2, 3, False), (3, 3, True), (1, 2, False)]),
        ("double", [(1.5, 2), (-0.5, 1.5)], [(2, 3, False), (1, 2, False)]),
        ("double", [("-Infinity", 1.5), (1.5, 1.5)], [(1, 2, False), (2, 2, True)]),
        ("decimal(20,2)", [(12345678901234567.12, 12345678901234567.13), (1, 2)], None),
        ("string", [("a", "b"), ("b", "b")], [(1, 2, False), (2, 2, True)]),
        ("string", [(LONG_NAME, LONG_NAME), (LONG_NAME[1:], LONG_NAME[1:])], [(2, 2, False), (1, 1, True)]),
        ("date", [("2026-01-01", "2026-01-31"), ("2025-12-31", "2026-01-01")], [(2, 3, False), (1, 2, False)]),
        (
            "timestamp",
            [("2026-01-01T00:00:00.000Z", "2026-01-01T00:00:00.123456Z"), ("2026-01-01T00:00:00.123Z",) * 2],
            [(1, 3, False), (2, 2, True)],
        ),
        (
            "timestamp",
            [("2026-01-01T00:00:00.000+01:00", "2026-01-01T00:00:00.000Z"), ("2025-12-31T23:00:00.000Z",) * 2],
            [(1, 2, False), (1, 1, True)],
        ),
    ],
)
def test_values_of_each_type_compare_as_values(
    kind: str, values: list[tuple[Any, Any]], expected: list[tuple[int, int, bool]] | None
) -> None:
    texts = [stats(low, high)["stats"] for low, high in values]
    _, (found,) = extremes_of(texts, [{}] * len(texts), [KeyColumn("k", ("k",), kind)])
    assert all(found.known)
    if expected is not None:
        assert list(zip(found.least, found.greatest, found.one_value, strict=True)) == expected


def test_decimals_are_compared_exactly() -> None:
    texts = [
        f'{{"numRecords": 2, "minValues": {{"k": {low}}}, "maxValues": {{"k": {high}}}}}' for low, high in DECIMALS
    ]
    _, (found,) = extremes_of(texts, [{}] * 2, [KeyColumn("k", ("k",), "decimal(20,2)")])
    assert list(zip(found.least, found.greatest, strict=True)) == [(1, 2), (2, 3)]


DECIMALS = [
    ("123456789012345678.11", "123456789012345678.12"),
    ("123456789012345678.12", "123456789012345678.13"),
]


def test_only_null_is_constant_and_missing_or_broken_statistics_are_unknown() -> None:
    texts = [stats(None, None, nulls=10)["stats"], stats(None, None, nulls=9)["stats"], None, "{", '{"minValues": 5}']
    _, (found,) = extremes_of(texts, [{}] * 5, [K])
    assert list(found.known) == [True, False, False, False, False]
    assert (found.least[0], found.one_value[0]) == (0, True)


def test_columns_within_structs_and_columns_of_partitions() -> None:
    inner, part = KeyColumn("s.a", ("s", "a"), "long"), KeyColumn("p", ("p",), "integer", partition=True)
    texts = [
        '{"numRecords": 1, "minValues": {"s": {"a": 1}}, "maxValues": {"s": {"a": 2}}, "nullCount": {"s": {"a": 0}}}'
    ]
    _, (of_inner, of_part) = extremes_of(texts * 2, [{"p": "10"}, {"p": "9"}], [inner, part])
    assert list(of_inner.least) == [1, 1]
    assert list(of_part.least) == [2, 1]
    _, (alone,) = extremes_of([None], [{"p": None}], [part])
    assert (list(alone.least), list(alone.known), list(alone.one_value)) == ([0], [True], [True])


def test_a_table_without_files_has_no_ranges(tmp_path: Path) -> None:
    born(tmp_path)
    commit(tmp_path, 1, metadata())
    found = file_ranges(DeltaLog.open(str(tmp_path)), 1, [K])
    assert (len(found.boxes), found.bytes) == (0, 0)


def test_bounds_leave_the_files_that_touch_them(tmp_path: Path) -> None:
    only_null = add("c", size=4, **stats(None, None, nulls=10))
    log = born(tmp_path, add("a", size=1, **stats(1, 5)), add("b", size=2, **stats(5, 9)), only_null)

    def inside(*bounds: Bound) -> tuple[list[int], int]:
        found = file_ranges(log, 0, [K], bounds)
        return list(found.sizes), found.bytes

    assert inside(Bound("k", 5, 5)) == ([1, 2], 7)
    assert inside(Bound("k", 6, None)) == ([2], 7)
    assert inside(Bound("k", None, 4)) == ([1], 7)
    assert inside(Bound("k", 4.5, 4.75)) == ([1], 7)
    with pytest.raises(InvalidArgument, match="another type"):
        inside(Bound("k", "x", None))


def test_a_text_that_was_cut_within_a_character_has_a_range() -> None:
    text = KeyColumn("k", ("k",), "string")
    said = [json.dumps({"numRecords": 1, "minValues": {"k": one}, "maxValues": {"k": one}, "nullCount": {"k": 0}},
                       ensure_ascii=False) for one in ("a\ud83d", "b")]  # fmt: skip
    (found,) = extremes_of(said, [{}, {}], [text])[1]
    assert (found.least, found.known) == ([1, 2], [True, True])
