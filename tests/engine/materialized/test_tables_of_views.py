"""The table of a view: its clustering, and a creation that died."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.engine.half_made import EMPTY_LOG, NOT_RENAMED, WITHOUT_ROWS, half_made
from tests.engine.materialized.desk import SALES, Desk
from tests.engine.materialized.kept_world import KeptWorld
from tests.tiers import some
from tidemark.clustering.planning.keys import key_of
from tidemark.errors import InvalidArgument, KeptViewRefused
from tidemark.lake.delta_log import DeltaLog
from tidemark.materialized.model.definitions import KeptKind
from tidemark.materialized.model.jobs import KeptTable

pytestmark = pytest.mark.spark

SUMS, ROWS = "SELECT k, count(*) AS c FROM orders GROUP BY k", "SELECT k, n FROM orders WHERE n > 1"


@pytest.fixture(scope="module")
def world(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> KeptWorld:
    world = KeptWorld(spark.newSession(), tmp_path_factory.mktemp("kept"))
    world.table("orders", "k INT, n BIGINT", "(1, 10), (1, 20), (2, 5)")
    return world


def clustered(path: str) -> tuple[str, ...]:
    return key_of(DeltaLog.open(path).state())


@pytest.mark.parametrize(
    "names",
    some([EMPTY_LOG, NOT_RENAMED, WITHOUT_ROWS], now=[NOT_RENAMED]),
    ids=["an empty log", "a commit that was not renamed", "a file without rows"],
)
@pytest.mark.parametrize("text", [SUMS, ROWS], ids=["partial aggregates", "rows"])
def test_a_table_whose_creation_died_is_created_and_clustered(
    world: KeptWorld, tmp_path: Path, text: str, names: tuple[str, ...]
) -> None:
    path = f"file://{tmp_path}/kept"
    for suffix in ("", "__partials"):
        half_made(Path(f"{tmp_path}/kept{suffix}"), names)
    kind = KeptKind.MATERIALIZED_VIEW
    first = world.resolve(text, "orders", kind=kind, kept=KeptTable("v", path)).kept  # it died before its ALTER TABLE
    assert first is not None
    assert clustered(first.path) == ()
    for _ in range(2):
        assert world.resolve(text, "orders", kind=kind, kept=KeptTable("v", path, ("k",))).kept == first
        assert len(clustered(first.path)) == 1
    assert DeltaLog.open(first.path).head() == 1


def test_create_or_replace_gives_another_clustering_and_takes_it_away(desk: Desk) -> None:
    query = "SELECT id, price, note FROM db.items WHERE price > 5"
    create = "CREATE OR REPLACE DYNAMIC TABLE db.t TARGET_LAG = '1 minute'"
    seen = []
    for clause, text in (
        ("CLUSTER BY (id)", query),
        ("CLUSTER BY (price, id)", query),
        ("", query),
        ("CLUSTER BY (ID)", query),
        ("CLUSTER BY (customer)", SALES),  # the column of the old key is gone
    ):
        desk.status(f"{create} {clause} AS {text}")
        seen.append(clustered(str(desk.root / "db" / "t")))
    assert seen == [("id",), ("price", "id"), (), ("id",), ("customer",)]
    assert desk.rows("db.t") == [("bob", 2, 15), ("eve", 1, 7)]


@pytest.mark.parametrize(
    ("columns", "problem"),
    [("custmer", "it has customer, items, total"), ("customer, items, total, customer, items", "at most 4 columns")],
)
def test_a_wrong_clustering_is_refused_before_a_table_exists(desk: Desk, columns: str, problem: str) -> None:
    with pytest.raises(InvalidArgument, match=problem):
        desk.status(f"CREATE MATERIALIZED VIEW db.v CLUSTER BY ({columns}) AS {SALES}")
    assert not (desk.root / "db" / "v__partials").exists()
    assert desk.lake.show_views() == ()
    desk.status(f"CREATE MATERIALIZED VIEW db.v CLUSTER BY (customer) AS {SALES}")


def test_a_refused_replacement_leaves_the_rows_and_columns_of_the_view(desk: Desk) -> None:
    desk.status(f"CREATE DYNAMIC TABLE db.t TARGET_LAG = '1 minute' AS {SALES}")
    ranked = "SELECT id, rank() OVER (ORDER BY price) AS place FROM db.items"
    create = "CREATE OR REPLACE DYNAMIC TABLE db.t TARGET_LAG = '1 minute' REFRESH_MODE = INCREMENTAL"
    with pytest.raises(KeptViewRefused, match="INCREMENTAL is not possible"):
        desk.status(f"{create} AS {ranked}")
    assert desk.rows("db.t") == [("bob", 2, 15), ("eve", 1, 7)]
