"""A view becomes one query over base tables, and keeps an identity (R70, R75, R83)."""

from __future__ import annotations

import pytest
from tests.unit.planning.views.catalogs import Catalog

from tidemark.model.codec import from_json, to_json
from tidemark.model.views import ViewQuery


def test_base_tables_are_named_once_in_the_order_of_the_text() -> None:
    query = Catalog().query("SELECT u.a FROM u JOIN other.t USING (a) JOIN lake.db.u AS again USING (a)")
    assert query.bases == ("lake.db.u", "lake.other.t")
    assert (
        "FROM tidemark_base_0 AS `u` JOIN tidemark_base_1 AS `t` USING (a) JOIN tidemark_base_0 AS again" in query.text
    )


def test_the_names_of_a_view_inside_mean_what_they_mean_there() -> None:
    catalog = Catalog()
    catalog.put("known", "SELECT a FROM t", "a:x")
    catalog.views["lake.other.outer_one"] = catalog.views.pop("lake.db.known")
    query = catalog.query("SELECT x FROM other.outer_one JOIN t ON t.a = outer_one.x", "x")
    assert query.bases == ("lake.db.t",)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SELECT db.t.a FROM db.t", "SELECT t.a FROM"),
        ("SELECT lake.db.t.a FROM t", "SELECT t.a FROM"),
        ("SELECT lake.db.t.s.a FROM db.t", "SELECT t.s.a"),
        ("SELECT t.s.a FROM db.t", "SELECT t.s.a"),
        ("SELECT db.t.* FROM db.t", "SELECT t.* FROM"),
        ("SELECT x.a FROM db.t AS x", "SELECT x.a FROM tidemark_base_0 AS x"),
    ],
)
def test_qualifiers_of_several_parts_become_the_alias(text: str, expected: str) -> None:
    assert expected in Catalog().query(text).text


def test_columns_come_under_the_names_of_the_view_by_place_or_by_name() -> None:
    assert (
        Catalog()
        .query("SELECT t.a, u.a FROM t JOIN u", "a:one", "a:two")
        .text.startswith("SELECT `c0` AS `one`, `c1` AS `two` FROM (SELECT t.a, u.a FROM")
    )
    assert (
        Catalog()
        .query("SELECT * FROM t", "b:one", "a:two")
        .text.startswith("SELECT `b` AS `one`, `a` AS `two` FROM (SELECT * FROM")
    )


def test_a_column_without_a_name_keeps_the_one_that_spark_gave_it() -> None:
    assert "a + 1 AS `(a + 1)`" in Catalog().query("SELECT a + 1 FROM t", "(a + 1)").text


def test_a_query_survives_the_way_to_another_process() -> None:
    query = Catalog().query("SELECT 'ä' AS a FROM t")
    assert from_json(ViewQuery, to_json(query)) == query


def test_another_text_anywhere_inside_is_another_view_and_the_same_texts_are_the_same() -> None:
    def digest(inside: str, **settings: str) -> str:
        catalog = Catalog()
        catalog.put("known", inside, "a")
        return catalog.query("SELECT a FROM known").digest

    assert digest("SELECT a FROM t") == digest("SELECT a FROM t")
    assert digest("SELECT a FROM t") != digest("SELECT a FROM t WHERE true")


def test_an_order_is_dropped_for_rows_have_none() -> None:
    assert "ORDER" not in Catalog().query("SELECT a FROM (SELECT a FROM t ORDER BY b) AS s ORDER BY a").text


def test_settings_that_choose_among_ways_to_the_same_rows_are_no_part_of_the_meaning() -> None:
    from tidemark.changes.planning.views.settings import settings_of

    found = settings_of({"spark.sql.ansi.enabled": "false", "spark.sql.cbo.enabled": "true"})
    assert found["spark.sql.ansi.enabled"] == "false"
    assert found["spark.sql.session.timeZone"] is None
    assert "spark.sql.cbo.enabled" not in found
