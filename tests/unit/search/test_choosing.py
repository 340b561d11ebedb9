"""Files that are chosen by a search table and by the log."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.search.tables import METADATA, file_of
from tidemark.model.table_log import AddFile, DeletionVector
from tidemark.search.model.paths import SearchPath, ValueKind
from tidemark.search.planning.bounds import statistics_of
from tidemark.search.planning.choosing import Choice, Lookup, choose, entries_of
from tidemark.search.planning.columns import column_of
from tidemark.search.planning.defining import paths_added
from tidemark.search.planning.hashes import grams_of, hash_of
from tidemark.search.planning.ordering import FirstRows, choose_first
from tidemark.search.planning.predicates import term_of
from tidemark.search.planning.sql import parse_targets
from tidemark.search.planning.upkeep import planned_upkeep

PATHS, _ = paths_added("t", METADATA, (), 1, parse_targets("EQUALITY(id, tags), SUBSTRING(short)"))
FILES = {path: file_of(path, {"n": at * 10}, {"n": at * 10 + 15}) for at, path in enumerate("abcd")}
COVERED = frozenset("abc")


def _entry(path: SearchPath, value: str) -> tuple[int, int]:
    return path.id, hash_of(ValueKind.TEXT, value)


def _chosen(where: str, found: dict[tuple[int, int], frozenset[str] | None]) -> Choice:
    lookup = Lookup({path.id: COVERED for path in PATHS}, found)
    return choose(term_of(where, METADATA), FILES, statistics_of, PATHS, lookup)


def _names(choice: Choice) -> str:
    return "".join(file.path for file in choice.files)


def test_a_value_is_in_the_files_that_the_path_names_and_in_newer_ones() -> None:
    found = {_entry(PATHS[0], "x"): frozenset({"b", "gone"})}
    assert _names(_chosen("id = 'x'", found)) == "bd"
    assert _names(_chosen("id IN ('x', 'y')", found)) == "bd"
    assert _names(_chosen("id = 'y'", found)) == "d"


def test_a_value_that_is_everywhere_leaves_no_file_out() -> None:
    found: dict[Any, Any] = {_entry(PATHS[0], "x"): None}
    choice = _chosen("id = 'x'", found)
    assert _names(choice) == "abcd"
    assert "most files" in choice.steps[0].why


def test_and_takes_the_files_of_both_and_or_those_of_one() -> None:
    found = {_entry(PATHS[0], "x"): frozenset("ab"), _entry(PATHS[1], "y"): frozenset("bc")}
    assert _names(_chosen("id = 'x' AND array_contains(tags, 'y')", found)) == "bd"
    assert _names(_chosen("id = 'x' OR arrays_overlap(tags, array('y'))", found)) == "abcd"
    assert _names(_chosen("id = 'x' OR length(id) = 1", found)) == "abcd"
    assert _names(_chosen("id = 'x' AND length(id) = 1", found)) == "abd"


def test_a_part_of_a_text_is_in_files_that_have_all_of_its_grams() -> None:
    grams = sorted(grams_of("%abcdefg%"))
    assert grams == ["abcde", "bcdef", "cdefg"]
    path = PATHS[2]
    found = {_entry(path, gram): frozenset("ab" if at else "bc") for at, gram in enumerate(grams)}
    assert _names(_chosen("contains(short, 'abcdefg')", found)) == "bd"
    assert _names(_chosen("short = 'abcdefg'", found)) == "bd"
    assert _names(_chosen("short LIKE '%abcd%'", found)) == "abcd"
    assert not entries_of(term_of("short LIKE '%abcd%'", METADATA), PATHS)


def test_bounds_of_the_log_leave_files_out_too() -> None:
    choice = _chosen("n BETWEEN 16 AND 19", {})
    assert _names(choice) == "b"
    assert _names(_chosen("n > 25", {})) == "cd"
    assert _names(_chosen("n >= 25", {})) == "bcd"
    assert _names(_chosen("p = 'b'", {})) == ""
    assert _names(_chosen("p = 'a'", {})) == "abcd"


def test_truncated_texts_of_the_log_are_bounds() -> None:
    files = {"a": file_of("a", {"id": "b"}, {"id": "bc\U0010ffff"})}
    for where, is_chosen in {"id = 'bcd'": 1, "id = 'bd'": 0, "id LIKE 'bcx%'": 1, "id LIKE 'c%'": 0}.items():
        found = choose(term_of(where, METADATA), files, statistics_of, (), Lookup())
        assert len(found.files) == is_chosen, where


def test_bounds_of_decimals_that_a_writer_may_have_rounded_leave_no_file_out() -> None:
    """The row has 123456789012345678.25, and the log says a floating-point number that is less."""
    wide = replace(METADATA, schema_json=METADATA.schema_json.replace("decimal(12,2)", "decimal(20,2)"))
    rounded = replace(file_of("a", {}, {}), stats='{"minValues": {"m": 1}, "maxValues": {"m": 1.2345678901234566e17}}')
    exact = replace(rounded, stats='{"minValues": {"m": 1}, "maxValues": {"m": 123456789012345678.00}}')
    for file, left in ((rounded, 1), (exact, 0)):
        for where in ("m = 123456789012345678.25", "m > 123456789012345678.1"):
            found = choose(term_of(where, wide), {"a": file}, statistics_of, (), Lookup())
            assert len(found.files) == left, where


@pytest.mark.parametrize("said", ["NaN", '"NaN"', "Infinity", "1e999999999", '"1e999999999"', "true"])
def test_odd_statistics_leave_no_file_out(said: str) -> None:
    stats = f'{{"numRecords": {said}, "minValues": {{"n": {said}, "m": {said}}}, "maxValues": {{"n": {said}, "m": 1}}}}'
    odd = {"a": replace(file_of("a", {}, {}), stats=stats)}
    for where in ("n = 3", "m > 3"):
        assert len(choose(term_of(where, METADATA), odd, statistics_of, (), Lookup()).files) == 1
    for name in ("n", "m"):
        order = FirstRows(column_of(METADATA, name), 3, descending=False, nulls_first=True)
        assert len(choose_first(order, odd, statistics_of).files) == 1


ROWS = st.lists(st.lists(st.one_of(st.none(), st.integers(0, 9)), min_size=1, max_size=6), min_size=1, max_size=6)


@given(ROWS, st.integers(0, 8), st.booleans(), st.booleans(), st.integers(0, 1))
def test_the_first_rows_of_an_order_are_in_the_chosen_files(
    rows: list[list[int | None]], count: int, descending: bool, nulls_first: bool, deleted: int
) -> None:
    files: dict[str, AddFile] = {}
    live: dict[str, list[int | None]] = {}
    for number, values in enumerate(rows):
        known = [value for value in values if value is not None]
        stats: dict[str, Any] = {"numRecords": len(values), "nullCount": {"n": len(values) - len(known)}}
        if known:
            stats |= {"minValues": {"n": min(known)}, "maxValues": {"n": max(known)}}
        vector = DeletionVector("i", "x", 1, deleted) if deleted else None
        made = replace(file_of(str(number), {}, {}), stats=json.dumps(stats), deletion_vector=vector)
        files[made.path], live[made.path] = made, values[deleted:]

    def place(value: int | None) -> tuple[bool, int]:
        if value is None:
            return (not nulls_first, 0)
        return (nulls_first, -value if descending else value)

    def first(paths: list[str]) -> list[int | None]:
        return sorted((value for path in paths for value in live[path]), key=place)[:count]

    asked = FirstRows(column_of(METADATA, ["n"]), count, descending, nulls_first)
    choice = choose_first(asked, files, statistics_of)
    assert first([file.path for file in choice.files]) == first(list(files))


def test_an_upkeep_covers_new_files_and_builds_again_after_a_rewrite_of_most() -> None:
    covered = {path.id: COVERED for path in PATHS}
    planned = planned_upkeep(FILES, covered, [1, 2, 3, 9], PATHS, most_bytes=1000)
    assert (planned.rebuild, planned.ended) == (False, (9,))
    assert [[file.path for file in batch.files] for batch in planned.batches] == [["d"]]
    del covered[2]  # its rows are of another path
    assert planned_upkeep(FILES, covered, [1, 2, 3, 9], PATHS, most_bytes=1000).ended == (2, 9)
    left = {name: FILES[name] for name in "cd"}
    again = planned_upkeep(left, covered, [1, 2, 3, 9], PATHS, most_bytes=100)
    assert again.rebuild
    assert [[file.path for file in batch.files] for batch in again.batches] == [["c"], ["d"]]


def test_a_new_path_covers_the_files_that_the_others_cover() -> None:
    planned = planned_upkeep(FILES, {1: frozenset("abcd"), 2: COVERED}, [1, 2], PATHS[:2], most_bytes=1000)
    assert [([p.id for p in b.paths], [f.path for f in b.files]) for b in planned.batches] == [([2], ["d"])]


@pytest.mark.parametrize(
    ("kind", "value", "hashed"),
    [  # from Spark's xxhash64
        (ValueKind.TEXT, "", -7444071767201028348),
        (ValueKind.TEXT, "Spark", -4294468057691064905),
    ],
)
def test_hashes(kind: ValueKind, value: Any, hashed: int) -> None:
    assert hash_of(kind, value) == hashed
