"""The changes of a view are a sum of terms, each a query over scans (R74, R76, R77)."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
import sqlglot
from tests.unit.planning.views.catalogs import Catalog, golden

from tidemark.changes.planning.views.parts import is_linear, numbered
from tidemark.changes.planning.views.terms import Role, Term, terms, whole
from tidemark.model.views import ViewQuery

NOW = datetime(2026, 3, 29, 1, 30, 0, 5, tzinfo=UTC)


def parsed(given: list[str], *, beyond: bool) -> tuple[ViewQuery, set[int]]:
    """Lines `name(columns): text` are views, the last is the one; `changed: t` names the tables that changed."""
    catalog = Catalog()
    *lines, changed = "\n".join(given).split("\n")
    for line in lines:
        head, _, text = line.partition("): ")
        name, _, columns = head.partition("(")
        catalog.put(name, text, *columns.split(", "))
        query = catalog.query(text, *columns.split(", "), beyond=beyond)
    names = changed.removeprefix("changed: ").split(", ")
    return query, {query.bases.index(f"lake.db.{table}") for table in names}


def written(term: Term) -> str:
    roles = ", ".join(f"{scan.number} {scan.role.value}" for scan in term.scans)
    return f"-- {roles}\n{sqlglot.parse_one(term.text, dialect='databricks').sql('databricks', pretty=True)}"


@pytest.mark.parametrize(("given", "expected"), [pytest.param(g, e, id=t) for t, g, e in golden("terms.sql")])
def test_a_query_has_one_term_for_each_scan_that_changed(given: list[str], expected: str) -> None:
    query, changed = parsed(given, beyond=False)
    assert is_linear(numbered(query).tree)
    assert "\n\n".join(written(term) for term in terms(query, changed, NOW)) == expected


@pytest.mark.parametrize(("given", "expected"), [pytest.param(g, e, id=t) for t, g, e in golden("whole.sql")])
def test_groups_and_optional_partners_are_read_whole_with_a_key_for_each_row(given: list[str], expected: str) -> None:
    query, _ = parsed(given, beyond=True)
    assert not is_linear(numbered(query).tree)
    assert written(whole(query, Role.OLD, NOW)) == expected


def test_a_table_that_did_not_change_gives_no_term() -> None:
    query = Catalog().query("SELECT t.a FROM t JOIN u USING (a) JOIN t AS again USING (a)", "a")
    assert [term.delta for term in terms(query, {0}, NOW)] == [0, 2]
    assert [term.delta for term in terms(query, {1}, NOW)] == [1]
    assert terms(query, set(), NOW) == ()


def test_arms_without_the_change_are_silent_and_those_beside_it_are_not() -> None:
    text = "SELECT x.a FROM (SELECT a FROM t UNION ALL SELECT a FROM u) AS x JOIN (SELECT a FROM w) AS y USING (a)"
    query = Catalog().query(text, "a")
    roles = {term.delta: [scan.role for scan in term.scans] for term in terms(query, {0, 1, 2}, NOW)}
    assert roles == {
        0: [Role.CHANGED, Role.NOTHING, Role.OLD],
        1: [Role.NOTHING, Role.CHANGED, Role.OLD],
        2: [Role.NEW, Role.NEW, Role.CHANGED],
    }


@pytest.mark.parametrize(
    ("call", "value"),
    [
        ("now()", "TIMESTAMP_MICROS(1774747800000005)"),
        ("current_timestamp", "TIMESTAMP_MICROS(1774747800000005)"),
        ("current_date()", "CAST(TIMESTAMP_MICROS(1774747800000005) AS DATE)"),
        ("localtimestamp()", "CAST(TIMESTAMP_MICROS(1774747800000005) AS TIMESTAMP_NTZ)"),
        ("unix_timestamp()", "UNIX_TIMESTAMP(TIMESTAMP_MICROS(1774747800000005))"),
    ],
)
def test_the_time_is_one_value_in_all_terms(call: str, value: str) -> None:
    query = Catalog().query(f"SELECT a FROM t JOIN u USING (a) WHERE b < {call}", "a")
    for term in terms(query, {0, 1}, NOW):
        assert f"b < {value}" in term.text
