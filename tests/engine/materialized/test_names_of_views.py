"""Names of views: in no catalog, and not those of a catalog's tables and views."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.errors import AnalysisException

from tests.engine.materialized.desk import Desk
from tidemark.errors import InvalidArgument, KeptViewNotFound, KeptViewRefused, SqlCompilationError, TableNotFound

pytestmark = pytest.mark.spark
QUERY = "SELECT id, price FROM db.items WHERE price > 5"
CREATE = f"CREATE DYNAMIC TABLE {{name}} TARGET_LAG = '1 minute' AS {QUERY}"
KEPT = [(1, 10), (2, 7)]


@pytest.fixture
def catalog(desk: Desk) -> Iterator[Desk]:
    """The database `db` of Spark's catalog, with a table, a view, and a table at the place of the view `db.own`."""
    desk.spark.sql("CREATE DATABASE db")
    desk.spark.sql("CREATE TABLE db.taken (id INT) USING delta")
    desk.spark.sql("CREATE VIEW db.seen AS SELECT 1 AS id")
    desk.spark.range(1).createOrReplaceTempView("passing")
    yield desk
    desk.spark.catalog.dropTempView("passing")
    desk.spark.sql("DROP DATABASE db CASCADE")


def test_a_name_that_the_catalog_has_is_refused_before_anything_is_made(catalog: Desk) -> None:
    for name in ("db.taken", "DB.Seen", "passing", "`db`.`taken`"):
        with pytest.raises(KeptViewRefused, match="a query could mean either"):
            catalog.status(CREATE.format(name=name))
    with pytest.raises(KeptViewRefused, match="a query could mean either"):
        catalog.lake.create_materialized_view("db.taken", QUERY)
    assert catalog.lake.show_views() == ()
    assert not (catalog.root / "db" / "taken").exists()


def test_the_kept_table_may_have_the_name_in_the_catalog_too(catalog: Desk) -> None:
    catalog.status(CREATE.format(name="db.own"))
    (view,) = catalog.lake.show_views()
    catalog.spark.sql(f"CREATE TABLE db.own USING delta LOCATION '{view.kept.path}'")
    catalog.status(CREATE.format(name="db.own").replace("CREATE", "CREATE OR REPLACE"))
    catalog.status("DROP DYNAMIC TABLE db.own")
    catalog.status(CREATE.format(name="db.own"))
    assert catalog.rows("db.own") == KEPT


def test_no_catalog_is_part_of_a_views_name(catalog: Desk) -> None:
    with pytest.raises(SqlCompilationError, match=r"its name is schema\.name"):
        catalog.status(CREATE.format(name="spark_catalog.db.v"))
    with pytest.raises(InvalidArgument, match="in no catalog"):
        catalog.lake.create_dynamic_table("spark_catalog.db.v", QUERY, target_lag="1 minute")
    catalog.status(CREATE.format(name="db.v"))
    with pytest.raises(KeptViewNotFound, match="No catalog is part of a view's name"):
        catalog.lake.refresh_view("spark_catalog.db.v")
    with pytest.raises(TableNotFound, match=r"db\.v is a view of the lake"):
        catalog.lake.sql("SELECT * FROM spark_catalog.db.v")
    with pytest.raises(TableNotFound):
        catalog.lake.table("spark_catalog.db.v")
    catalog.spark.sql("CREATE VIEW db.v AS SELECT 5 AS id")  # of the catalog, made later
    assert catalog.ask("SELECT * FROM spark_catalog.db.v") == [(5,)]
    assert catalog.ask("SELECT * FROM db.v") == KEPT
    with pytest.raises(AnalysisException):
        catalog.lake.sql("SELECT * FROM spark_catalog.db.nobody")


def test_odd_names_are_those_of_their_parts(catalog: Desk) -> None:
    catalog.status(CREATE.format(name='"it\'s 100% ü".`a b`'))
    assert catalog.ask("SELECT * FROM `IT'S 100% Ü`.`A B`") == KEPT
    catalog.run("INSERT INTO {items} VALUES (9, 9, 'x')")
    catalog.status('ALTER DYNAMIC TABLE "it\'s 100% ü"."a b" REFRESH')
    assert catalog.ask("SELECT * FROM `it's 100% ü`.`a b` WHERE id > 1") == [(2, 7), (9, 9)]
