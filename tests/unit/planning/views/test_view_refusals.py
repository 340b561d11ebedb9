"""What cannot be followed is refused with Snowflake's words and the place in the text (R70)."""

from __future__ import annotations

import pytest
from tests.unit.planning.views.catalogs import Catalog, golden

from tidemark.errors import ViewNotUnderstood, ViewRefused


def refusal(text: str, *, beyond: bool = False, catalog: Catalog | None = None) -> ViewRefused:
    with pytest.raises(ViewRefused) as caught:
        (catalog or Catalog()).query(text, beyond=beyond)
    return caught.value


@pytest.mark.parametrize(("given", "expected"), [pytest.param(g, e, id=t) for t, g, e in golden("refused.sql")])
def test_a_query_is_refused_with_its_construct_and_its_place(given: list[str], expected: str) -> None:
    error = refusal(given[0])
    assert f"{error.construct} @ {error.line}:{error.column} {error.fragment}" == expected  # type: ignore[attr-defined]
    assert str(error).startswith(f"Change tracking is not supported on queries with {error.construct}. View lake.db.v")  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "text",
    [
        "SELECT a, count(*), count(DISTINCT b), sum(b), avg(b), min(b), max(b) FROM t GROUP BY a HAVING sum(b) > 1",
        "SELECT a, b FROM t GROUP BY ALL",
        "SELECT DISTINCT a FROM t",
        "SELECT a FROM t UNION SELECT a FROM u",
        "SELECT t.a FROM t LEFT JOIN u ON t.a = u.a RIGHT JOIN w ON t.a = w.a FULL OUTER JOIN x ON t.a = x.a",
        "SELECT a FROM t LEFT SEMI JOIN u USING (a)",
        "SELECT a FROM t ANTI JOIN u USING (a)",
        "SELECT t.a FROM t, u LEFT JOIN w ON u.a = w.a",
        "SELECT t.a FROM t, (u RIGHT JOIN w ON u.a = w.a)",
        "SELECT t.a FROM t CROSS JOIN u RIGHT JOIN w ON u.a = w.a",
    ],
)
def test_beyond_snowflake_groups_and_optional_partners_are_allowed(text: str) -> None:
    assert "beyond_snowflake=True" in str(refusal(text))
    assert Catalog().query(
        text, *["a", "b", "c", "d", "e", "f", "g"][: text.count(",") + 1 if "count" in text else 1], beyond=True
    )


@pytest.mark.parametrize(
    ("text", "construct"),
    [
        ("SELECT collect_list(a) FROM t", "the aggregate function 'collect_list'"),
        ("SELECT a FROM t GROUP BY CUBE (a)", "GROUPING SETS, CUBE or ROLLUP"),
        ("SELECT a FROM t GROUP BY a WITH ROLLUP", "GROUPING SETS, CUBE or ROLLUP"),
        ("SELECT a FROM t LIMIT 1", "LIMIT"),
        ("SELECT a FROM t INTERSECT SELECT a FROM u", "joins of type '[INTERSECT]'"),
        ("SELECT a FROM t WHERE a IN (SELECT a FROM u)", "subquery expressions"),
        ("SELECT sum(a) OVER () FROM t", "window functions"),
        ("SELECT t.a FROM t, u RIGHT JOIN w ON u.a = w.a", "joins of type '[RIGHT_OUTER_JOIN]' behind a comma"),
        ("SELECT t.a FROM t, u FULL JOIN w ON u.a = w.a", "joins of type '[FULL_OUTER_JOIN]' behind a comma"),
    ],
)
def test_beyond_snowflake_has_its_own_end(text: str, construct: str) -> None:
    assert refusal(text, beyond=True).construct == construct  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "text",
    [
        "SELECT a FROM t WHERE b > 0",
        "SELECT a FROM t INNER JOIN u USING (a) CROSS JOIN w",
        "SELECT a FROM t NATURAL JOIN u",
        "SELECT a FROM t, u WHERE t.a = u.a",
        "SELECT a FROM t UNION ALL (SELECT b FROM t)",
        "WITH q AS (SELECT * FROM t) SELECT a FROM q",
        "SELECT a FROM (SELECT * FROM t WHERE b IS NOT DISTINCT FROM 1) AS s",
        "SELECT /*+ BROADCAST(u) */ t.a FROM t JOIN u ON t.a = u.a",
        "SELECT a FROM t ORDER BY a",
        "SELECT transform(a, x -> x + 1) AS a FROM t",
    ],
)
def test_projections_filters_joins_and_unions_are_allowed(text: str) -> None:
    assert Catalog().query(text).bases


def test_a_place_in_a_view_inside_is_told_of_that_view() -> None:
    catalog = Catalog()
    catalog.put("known", "SELECT a\nFROM t\nLIMIT 5", "a")
    error = refusal("SELECT a FROM known", catalog=catalog)
    assert (error.view, error.line, error.column) == ("lake.db.known", 3, 1)  # type: ignore[attr-defined]


def test_a_materialized_view_inside_is_refused_where_its_name_stands() -> None:
    catalog = Catalog(kinds={"lake.db.m": "Materialized View"})
    error = refusal("SELECT t.a FROM t JOIN m USING (a)", catalog=catalog)
    assert str(error).startswith("Change tracking is not supported on queries with 'Materialized View'.")
    assert (error.line, error.column, error.fragment) == (1, 24, "m")  # type: ignore[attr-defined]


def test_views_made_under_different_settings_do_not_mix() -> None:
    catalog = Catalog()
    catalog.put("known", "SELECT a FROM t", "a", spark__sql__ansi__enabled="false")
    assert "other SQL settings" in str(refusal("SELECT a FROM known", catalog=catalog))


def test_what_is_not_a_query_is_not_understood() -> None:
    for text in ("SELECT FROM WHERE", "INSERT INTO t VALUES (1)", "SELECT 1; SELECT 2"):
        with pytest.raises(ViewNotUnderstood):
            Catalog().query(text)
