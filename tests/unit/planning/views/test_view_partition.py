"""Beyond Snowflake: only what has the key of a changed row is looked at, at both ends."""

from __future__ import annotations

import pytest
from tests.unit.planning.views.catalogs import Catalog

from tidemark.changes.planning.views.partition import partition_keys
from tidemark.changes.planning.views.plan import Way, choose_way
from tidemark.errors import InvalidArgument
from tidemark.model.streams import StreamMode

COLUMNS = {"lake.db.t": ("a", "b", "k"), "lake.db.u": ("a", "c", "k"), "lake.db.w": ("k", "z")}


def keys(text: str, *changed: str, columns: int = 1) -> set[frozenset[str]]:
    """For each key that cuts all that changed: `scan.column` of each scan that it cuts."""
    names = [f"c{number}" for number in range(columns)]
    query = Catalog().query(text, *names, beyond=True)
    listed = [COLUMNS[base] for base in query.bases]
    bases = {query.bases.index(f"lake.db.{table}") for table in changed}
    return {
        frozenset(f"{scan}.{column}" for scan, column in key.scans.items())
        for key in partition_keys(query, bases, listed)
    }


def test_a_group_is_cut_by_its_columns_and_not_by_others() -> None:
    assert keys("SELECT a AS c0 FROM t GROUP BY a", "t") == {frozenset({"1.a"})}
    assert keys("SELECT a AS c0, k AS c1 FROM t GROUP BY a, k", "t", columns=2) == {
        frozenset({"1.a"}),
        frozenset({"1.k"}),
    }
    assert keys("SELECT a + 1 AS c0 FROM t GROUP BY a + 1", "t") == set()
    assert keys("SELECT count(*) AS c0 FROM t", "t") == set()


@pytest.mark.parametrize("group", ["GROUP BY 1", "GROUP BY ALL", "GROUP BY t.a", "GROUP BY a HAVING count(*) > 1"])
def test_a_group_is_known_however_it_is_written(group: str) -> None:
    assert keys(f"SELECT a AS c0, count(*) AS c1 FROM t {group}", "t", columns=2) == {frozenset({"1.a"})}


def test_distinct_is_cut_by_what_it_shows() -> None:
    assert keys("SELECT DISTINCT b AS c0 FROM t", "t") == {frozenset({"1.b"})}
    assert keys("SELECT DISTINCT * FROM t", "t", columns=3) == {
        frozenset({"1.a"}),
        frozenset({"1.b"}),
        frozenset({"1.k"}),
    }


@pytest.mark.parametrize("kind", ["LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "LEFT SEMI JOIN", "LEFT ANTI JOIN"])
def test_optional_partners_are_cut_by_the_key_of_the_join(kind: str) -> None:
    assert frozenset({"0.k", "1.k"}) in keys(f"SELECT 1 AS c0 FROM t {kind} u ON t.k = u.k", "t", "u")


@pytest.mark.parametrize("condition", ["t.k < u.k", "t.k = u.k + 1", "t.k = u.k OR t.a = u.a", "true"])
def test_without_an_equality_there_is_no_key(condition: str) -> None:
    assert keys(f"SELECT 1 AS c0 FROM t LEFT JOIN u ON {condition}", "t", "u") == set()


def test_a_condition_behind_an_outer_join_is_none_of_it() -> None:
    assert keys("SELECT 1 AS c0 FROM t LEFT JOIN u ON true WHERE t.k = u.k", "t", "u") == set()


def test_a_table_that_did_not_change_need_not_be_cut() -> None:
    text = "SELECT 1 AS c0 FROM t LEFT JOIN u ON t.a = u.a LEFT JOIN w ON t.k = w.k"
    assert keys(text, "t", "u", "w") == set()
    assert frozenset({"0.a", "1.a"}) in keys(text, "t", "u")
    assert frozenset({"0.k", "2.k"}) in keys(text, "t", "w")
    assert frozenset({"0.b"}) in keys(text, "t")


def test_the_whole_of_an_unchanged_table_may_not_be_left_out_of_a_full_join() -> None:
    found = keys("SELECT 1 AS c0 FROM t FULL JOIN u ON t.k = u.k", "t")
    assert found == {frozenset({"0.k", "1.k"})}


def test_behind_an_outer_join_the_optional_side_shows_no_key() -> None:
    text = "SELECT x.k AS c0 FROM (SELECT u.k FROM t LEFT JOIN u ON t.k = u.k) AS x GROUP BY x.k"
    assert keys(text, "t", "u") == set()
    text = "SELECT x.k AS c0 FROM (SELECT t.k FROM t LEFT JOIN u ON t.k = u.k) AS x GROUP BY x.k"
    assert len(keys(text, "t", "u")) == 1


def test_a_group_inside_is_kept_whole_even_if_it_did_not_change() -> None:
    text = "SELECT 1 AS c0 FROM t LEFT JOIN (SELECT k, count(*) AS n FROM u GROUP BY k) AS g ON t.a = g.n"
    assert all(not any(part.startswith("2.") for part in key) for key in keys(text, "t"))


UNFIT = {"b"}  # of a type by which no file can be left out


def choice(text: str, *changed: str) -> Way:
    query = Catalog().query(text, "c0", beyond=True)
    listed = [COLUMNS[base] for base in query.bases]
    bases = {query.bases.index(f"lake.db.{table}") for table in changed}
    return choose_way(query, bases, StreamMode.STANDARD, listed, lambda base, column: column not in UNFIT).way


def test_the_way_is_the_cheapest_that_is_right() -> None:
    assert choice("SELECT t.a AS c0 FROM t JOIN u ON t.k = u.k", "t") is Way.TERMS
    assert choice("SELECT t.a AS c0 FROM t JOIN u ON t.k = u.k") is Way.NOTHING
    assert choice("SELECT k AS c0 FROM t GROUP BY k", "t") is Way.GROUPS
    assert choice("SELECT t.a AS c0 FROM t LEFT JOIN u ON t.k = u.k", "t", "u") is Way.KEYS
    assert choice("SELECT max(a) AS c0 FROM t", "t") is Way.WHOLE
    assert choice("SELECT b AS c0 FROM t GROUP BY b", "t") is Way.WHOLE


def test_groups_have_no_append_only_stream() -> None:
    query = Catalog().query("SELECT k AS c0 FROM t GROUP BY k", "c0", beyond=True)
    with pytest.raises(InvalidArgument, match="can have a standard stream"):
        choose_way(query, {0}, StreamMode.APPEND_ONLY, [COLUMNS["lake.db.t"]], lambda base, column: True)
