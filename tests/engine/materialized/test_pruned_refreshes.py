"""A refresh by changes reads of the kept rows only files that can have an old image of a changed row."""

from __future__ import annotations

import shutil
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from pyspark.sql import SparkSession

from tests.engine.materialized.kept_world import KeptWorld
from tidemark.jobs.settings import under
from tidemark.lake.delta_log import DeltaLog
from tidemark.materialized.model.definitions import KeptKind
from tidemark.materialized.model.shapes import Shape

pytestmark = pytest.mark.spark

ROWS = "SELECT o.id, o.kind, c.city, o.amount FROM orders AS o LEFT JOIN cities AS c ON o.kind = c.kind"


@pytest.fixture(scope="module")
def world(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> KeptWorld:
    """Kept rows of the orders 0 to 9, and of 10 to 19 in other files."""
    made = KeptWorld(spark.newSession(), tmp_path_factory.mktemp("kept"))
    made.table("orders", "id INT, kind STRING, amount DOUBLE", orders(range(10)))
    made.table("cities", "kind STRING, city STRING", "('a', 'Rom'), ('b', NULL)")
    found = made.create("v", ROWS, "orders", "cities", kind=KeptKind.DYNAMIC_TABLE)
    assert found.shape.shape is Shape.ROWS
    made.refresh("v", "1")
    made.sql(f"INSERT INTO {{orders}} VALUES {orders(range(10, 20))}")
    made.refresh("v", "2")
    return made


def orders(ids: range) -> str:
    return ", ".join(f"({n}, {'NULL' if n % 5 == 0 else repr('abc'[n % 3])}, {n}.5)" for n in ids)


def files_of(world: KeptWorld) -> dict[Path, list[int]]:
    """The ids of the orders in each file that refreshes wrote."""
    path = world.path("kept_v")
    root, log = Path(unquote(urlsplit(path).path)), DeltaLog.open(path)
    files = [root / file.path for commit in log.commits(-1, log.head()) for file in commit.adds]
    table = world.spark.read.format("delta").load(path)
    rows = table.select("id", table.metadataColumn("_metadata").getField("file_name")).collect()
    return {file: sorted(row[0] for row in rows if row[1] == file.name) for file in files}


def test_a_file_without_old_images_is_not_read(world: KeptWorld) -> None:
    others = [file for file, ids in files_of(world).items() if ids and max(ids) < 10]
    assert others
    world.sql("DELETE FROM {orders} WHERE id = 15")
    world.sql("UPDATE {orders} SET id = 3 WHERE id = 16")
    for file in others:
        shutil.move(file, file.with_suffix(".away"))
    world.refresh("v", "3")
    for file in others:
        shutil.move(file.with_suffix(".away"), file)
    assert world.rows("v") == answer(world)


def test_old_images_with_nulls_find_their_rows(world: KeptWorld) -> None:
    changes = (
        "UPDATE {orders} SET kind = NULL WHERE id IN (4, 14)",
        "UPDATE {orders} SET kind = 'b' WHERE kind IS NULL AND id < 10",
        "UPDATE {cities} SET city = 'Oslo' WHERE kind = 'b'",
        "DELETE FROM {cities} WHERE kind = 'a'",
        "DELETE FROM {orders} WHERE kind IS NULL OR id = 19",
    )
    for number, change in enumerate(changes):
        world.sql(change)
        world.refresh("v", f"change {number}")
        assert world.rows("v") == answer(world), change


def test_a_kept_row_that_is_no_old_image_is_replaced_once(world: KeptWorld) -> None:
    world.spark.sql(f"UPDATE delta.`{world.path('kept_v')}` SET id = id + 1000, kind = 'odd' WHERE id IN (7, 8)")
    world.sql("UPDATE {orders} SET amount = 0.25 WHERE id = 7")
    world.sql("DELETE FROM {orders} WHERE id = 8")
    world.refresh("v", "odd")
    assert world.rows("v") == answer(world)


def test_a_refresh_of_few_rows_writes_one_file_and_leaves_the_settings(world: KeptWorld) -> None:
    before = {"spark.sql.adaptive.enabled": "true", "spark.sql.shuffle.partitions": "7"}
    with under(world.spark, before):
        world.sql(f"INSERT INTO {{orders}} VALUES {orders(range(40, 60))}")
        world.refresh("v", "few")
        assert {name: world.spark.conf.get(name) for name in before} == before
    log = DeltaLog.open(world.path("kept_v"))
    (commit,) = log.commits(log.head() - 1, log.head())
    assert len(commit.adds) == 1
    assert world.rows("v") == answer(world)


def answer(world: KeptWorld) -> list[tuple[object, ...]]:
    text = ROWS
    for name in ("orders", "cities"):
        text = text.replace(f" {name} ", f" delta.`{world.path(name)}` ")
    rows = (tuple(row) for row in world.spark.sql(text).collect())
    return sorted(rows, key=lambda row: [repr(value) for value in row])
