"""A view as Spark's catalog keeps it: its stored text, namespace and settings; and what cannot be a source."""

from __future__ import annotations

import pytest

from tests.engine.views.view_lake import ViewLake
from tidemark.errors import TableNotFound, ViewNotUnderstood, ViewRefused, ViewTextMissing
from tidemark.model.codec import from_json, to_json
from tidemark.model.views import ViewQuery

pytestmark = pytest.mark.spark


@pytest.fixture
def shop(views: ViewLake) -> ViewLake:
    views.table("t", "id INT, v STRING, s STRUCT<x: INT>", "(1, 'a', struct(1))")
    views.table("u", "id INT, w STRING", "(1, 'b')")
    views.mark()
    return views


def test_names_mean_what_they_meant_where_the_view_was_made(shop: ViewLake) -> None:
    shop.sql("USE {db}")
    shop.sql(
        "CREATE VIEW inside AS SELECT t.id, t.v FROM t", "CREATE VIEW v (a COMMENT 'x', b) AS SELECT * FROM inside"
    )
    shop.sql("USE default", "CREATE TEMPORARY VIEW t AS SELECT 0 AS id, 'wrong' AS v")
    try:
        query = shop.resolved("v")
        assert query.name == f"spark_catalog.{shop.db}.v"
        assert query.bases == (f"spark_catalog.{shop.db}.t",)
        shop.sql("INSERT INTO {db}.t VALUES (2, 'c', NULL)")
        assert shop.changes(query) == [("INSERT", False, 2, "c")]
    finally:
        shop.sql("DROP VIEW t")
    assert from_json(ViewQuery, to_json(query)) == query


def test_a_star_shows_the_columns_that_the_view_has(shop: ViewLake) -> None:
    query = shop.view("v", "SELECT * FROM {db}.u")
    shop.sql("ALTER TABLE {db}.u ADD COLUMNS (more INT)", "INSERT INTO {db}.u VALUES (2, 'c', 9)")
    assert shop.resolved("v").digest == query.digest
    assert shop.changes(query) == [("INSERT", False, 2, "c")]


def test_another_text_is_another_view_however_deep(shop: ViewLake) -> None:
    shop.view("inside", "SELECT id FROM {db}.t")
    first = shop.view("v", "SELECT id FROM {db}.inside")
    assert shop.view("v", "SELECT id FROM {db}.inside").digest == first.digest
    shop.view("inside", "SELECT id FROM {db}.t WHERE id > 0")
    assert shop.resolved("v").digest != first.digest


def test_odd_names_and_a_table_by_its_path(views: ViewLake) -> None:
    views.table(
        "odd",
        "`a b` INT, `c.d` STRING",
        "(1, 'x')",
        properties="'delta.enableRowTracking' = 'true', 'delta.columnMapping.mode' = 'name'",
    )
    views.mark()
    path = views.home / "odd"
    query = views.view(
        "v", f"SELECT o.`a b` AS `x y`, `c.d`, '{{}} `' AS q FROM delta.`{path}` AS o WHERE `c.d` <> '{{0}}'"
    )
    assert query.bases == (f"delta.`{path}`",)
    views.sql("INSERT INTO {db}.odd VALUES (2, 'y')")
    frame = views.frame(query.__class__(**{**query.__dict__, "bases": ("odd",)}))
    assert [tuple(row)[:3] for row in frame.collect()] == [(2, "y", "{} `")]
    assert frame.columns[:3] == ["x y", "c.d", "q"]


def test_expressions_of_all_kinds_keep_their_meaning(shop: ViewLake) -> None:
    query = shop.view(
        "v",
        r"""SELECT id DIV 2 AS a, id / 2 AS b, v <=> NULL AS c, v RLIKE '^\\w+$' AS d, DATE'2026-01-01' + id AS e,
        s.x AS f, named_struct('k', id).k AS g, CASE v WHEN 'a' THEN 1 ELSE 2 END AS h, v || '!' AS i, 1L + 2S AS j,
        date_add(DATE'2026-01-01', id) AS k, months_between(DATE'2026-03-01', DATE'2026-01-01') AS l,
        regexp_replace(v, 'a', 'b') AS m, transform(array(id, 2), x -> x + 1)[0] AS n, try_cast(v AS INT) AS o,
        extract(YEAR FROM DATE'2026-01-01') AS p, v LIKE 'a%' AS q, id IN (1, 2) AS r, if(id > 1, 'x', v) AS t,
        date_format(TIMESTAMP'2026-01-01 00:00:00', 'yyyy') AS u, INTERVAL 3 DAYS AS w,
        from_json('{"a":1}', 'a INT').a AS y
        FROM {db}.t""",
    )
    shop.sql("INSERT INTO {db}.t VALUES (3, 'abc', struct(7))")
    shown = shop.frame(query).drop("METADATA$ACTION", "METADATA$ISUPDATE", "METADATA$ROW_ID")
    direct = shop.spark.sql(f"SELECT * FROM {shop.db}.v WHERE f = 7")
    assert shown.collect() == direct.collect()
    assert shown.dtypes == direct.dtypes


def test_a_temporary_view_has_no_stored_text(shop: ViewLake) -> None:
    shop.spark.sql(f"CREATE OR REPLACE TEMPORARY VIEW only_here AS SELECT * FROM {shop.db}.t")
    from tidemark.changes.driver.views.catalog import resolve_view

    try:
        with pytest.raises(ViewTextMissing, match="temporary"):
            resolve_view(shop.spark, "only_here")
    finally:
        shop.spark.sql("DROP VIEW only_here")


def test_what_is_no_view_or_not_there_is_said(shop: ViewLake) -> None:
    with pytest.raises(ViewNotUnderstood, match="not a view"):
        shop.resolved("t")
    with pytest.raises(TableNotFound, match="nothing_here"):
        shop.resolved("nothing_here")


def test_a_base_table_of_another_format_is_refused_where_it_stands(shop: ViewLake) -> None:
    shop.sql("CREATE TABLE {db}.plain (id INT) USING parquet")
    with pytest.raises(ViewRefused, match=r"'parquet table'.*line 1, column 16"):
        shop.view("v", "SELECT id FROM {db}.plain")


def test_functions_of_users_are_refused_by_name(shop: ViewLake) -> None:
    shop.sql("CREATE FUNCTION {db}.twice(x INT) RETURNS INT RETURN x * 2")
    with pytest.raises(ViewRefused, match="the user function 'twice'"):
        shop.view("v", "SELECT {db}.twice(id) AS x FROM {db}.t")


def test_an_aggregate_that_only_spark_knows_is_seen_in_its_plan(shop: ViewLake) -> None:
    with pytest.raises(ViewRefused, match="'Aggregate'"):
        shop.view("v", "SELECT histogram_numeric(id, 2) AS x FROM {db}.t")
