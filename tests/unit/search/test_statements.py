"""Statements on search optimization: what they mean, and where they are refused."""

from __future__ import annotations

import pytest

from tests.unit.search.tables import METADATA
from tidemark.errors import NotYetSupported, SearchNotFound, SearchRefused, SqlCompilationError
from tidemark.search.model.paths import Method
from tidemark.search.model.requests import Target
from tidemark.search.planning.defining import paths_added, paths_left
from tidemark.search.planning.sql import parse_search_sql, parse_targets
from tidemark.search.planning.statements import AddSearch, DescribeSearch, DropSearch, EstimateSearch


def test_a_path_stays_a_path_and_odd_names_stay_quoted() -> None:
    path = parse_search_sql("ALTER TABLE delta.`/lake/a b` ADD SEARCH OPTIMIZATION ON EQUALITY(a)")
    assert isinstance(path, AddSearch)
    assert path.table == "delta.`/lake/a b`"
    assert parse_search_sql("DESCRIBE SEARCH OPTIMIZATION ON s.`odd name`") == DescribeSearch("s.`odd name`")


def test_equality_of_several_columns_is_a_path_for_each() -> None:
    found = parse_search_sql("ALTER TABLE s.t ADD SEARCH OPTIMIZATION ON EQUALITY(a, b.c), SUBSTRING(d);")
    equal = (Target(Method.EQUALITY, ("a",)), Target(Method.EQUALITY, ("b", "c")))
    assert found == AddSearch("s.t", (*equal, Target(Method.SUBSTRING, ("d",))))


@pytest.mark.parametrize(
    ("text", "statement"),
    [
        ("alter table t add search optimization", AddSearch("t", ())),
        ("ALTER TABLE IF EXISTS t DROP SEARCH OPTIMIZATION", DropSearch("t", (), if_exists=True)),
        (
            "ALTER TABLE t DROP SEARCH OPTIMIZATION ON EQUALITY(a), b, 3",
            DropSearch("t", (Target(Method.EQUALITY, ("a",)), Target(None, ("b",)), Target(None, (), 3))),
        ),
        ("DESC SEARCH OPTIMIZATION ON db.s.t", DescribeSearch("db.s.t")),
        ("ALTER TABLE t ADD SEARCH OPTIMIZATION ON EQUALITY(*)", AddSearch("t", (Target(Method.EQUALITY),))),
        ("ALTER TABLE t ADD COLUMN search INT", None),
        ("ALTER TABLE t ADD COLUMN c INT COMMENT 'see DROP SEARCH OPTIMIZATION'", None),
        ("ALTER TABLE `s 1`.t ADD SEARCH OPTIMIZATION", AddSearch("`s 1`.t", ())),
        ("SELECT * FROM t", None),
    ],
)
def test_statements(text: str, statement: object) -> None:
    assert parse_search_sql(text) == statement


def test_an_estimate_has_the_title_of_its_call() -> None:
    call = "SYSTEM$ESTIMATE_SEARCH_OPTIMIZATION_COSTS('s.t', 'EQUALITY(id)')"
    assert parse_search_sql(f"select {call};") == EstimateSearch("s.t", (Target(Method.EQUALITY, ("id",)),), call)


@pytest.mark.parametrize("method", ["GEO", "FULL_TEXT"])
def test_methods_without_a_counterpart_are_refused_by_name(method: str) -> None:
    with pytest.raises(NotYetSupported, match=method):
        parse_targets(f"{method}(a)")


@pytest.mark.parametrize("text", ["EQUALITY", "EQUALITY()", "EQUALITY(a", "HASH(a)", "a"])
def test_other_targets_are_errors_with_a_place(text: str) -> None:
    with pytest.raises(SqlCompilationError):
        parse_targets(text)


def test_a_path_has_an_id_that_no_other_one_had() -> None:
    first, next_id = paths_added("t", METADATA, (), 1, parse_targets("EQUALITY(id, N), RANGE(n)"))
    assert [(path.id, path.said) for path in first] == [(1, "EQUALITY(id)"), (2, "EQUALITY(n)"), (3, "RANGE(n)")]
    left = paths_left("t", first, (Target(None, ("n",)),))
    again, _ = paths_added("t", METADATA, left, next_id, parse_targets("EQUALITY(id, n)"))
    assert [(path.id, path.said) for path in again] == [(1, "EQUALITY(id)"), (4, "EQUALITY(n)")]


def test_without_targets_every_column_that_can_be_searched_has_a_path() -> None:
    found, _ = paths_added("t", METADATA, (), 1, ())
    assert [path.column.name for path in found] == ["id", "n", "d", "m", "t", "short", "tags", "p"]


@pytest.mark.parametrize(
    ("on", "problem"),
    [
        ("EQUALITY(x)", "floating point"),
        ("EQUALITY(padded)", "pads"),
        ("EQUALITY(s)", "field of the struct"),
        ("EQUALITY(nothing)", "not a column"),
        ("SUBSTRING(n)", "parts are searched in texts"),
        ("ORDER(t)", "no exact least and greatest"),
        ("SUBSTRING(tags)", "elements"),
    ],
)
def test_columns_that_cannot_be_searched_are_refused_with_the_reason(on: str, problem: str) -> None:
    with pytest.raises(SearchRefused, match=problem):
        paths_added("t", METADATA, (), 1, parse_targets(on))


def test_a_path_that_is_not_there_cannot_be_dropped() -> None:
    paths, _ = paths_added("t", METADATA, (), 1, parse_targets("EQUALITY(id)"))
    with pytest.raises(SearchNotFound, match=r"SUBSTRING\(id\)"):
        paths_left("t", paths, parse_targets("SUBSTRING(id)"))
