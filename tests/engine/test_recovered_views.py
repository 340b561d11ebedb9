"""Streams on views that cannot be read any more, or whose store was put back: they go on, and nothing is lost unsaid.

The oracle is the full difference of the view's rows, as Spark reads them before and after.
"""

from __future__ import annotations

import shutil
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from tests.table_templates import put_table
from tidemark.client import connect
from tidemark.errors import InvalidArgument, KeyNotUnique, RebaseRefused, StoreOlderThanLake, TidemarkError
from tidemark.model.streams import ACTION, IS_UPDATE, ROW_ID
from tidemark.streams.worker.recover import Recovered, recover_stream
from tidemark.streams.worker.sources import open_table

pytestmark = pytest.mark.spark

TRACKED = "TBLPROPERTIES ('delta.enableRowTracking' = 'true')"
TABLES = {
    "orders": (
        f"CREATE TABLE {{t}} (id INT, customer INT, item STRING) USING delta {TRACKED}",
        "INSERT INTO {t} VALUES (10, 1, 'pen'), (11, 1, 'ink'), (12, 2, 'pad')",
    ),
    "customers": (
        f"CREATE TABLE {{t}} (id INT, city STRING) USING delta {TRACKED}",
        "INSERT INTO {t} VALUES (1, 'Ulm'), (2, 'Bonn'), (3, 'Kiel')",
    ),
    "sold": ("CREATE TABLE {t} (id INT, city STRING, action STRING) USING delta",),
    "mirror": ("CREATE TABLE {t} (id INT, city STRING) USING delta",),
}
JOINED = "SELECT o.id, c.city FROM {s}.orders o JOIN {s}.customers c ON o.customer = c.id"
GROUPED = "SELECT c.city, count(*) AS n FROM {s}.orders o JOIN {s}.customers c ON o.customer = c.id GROUP BY c.city"
NO_LONGER_TRACKED = "ALTER TABLE {s}.customers SET TBLPROPERTIES ('delta.enableRowTracking' = 'false')"
TRACKED_AGAIN = "ALTER TABLE {s}.customers SET TBLPROPERTIES ('delta.enableRowTracking' = 'true')"
MERGE = (
    "MERGE INTO {s}.mirror t USING (SELECT * FROM s WHERE NOT (METADATA$ACTION = 'DELETE' AND METADATA$ISUPDATE)) c"
    " ON t.id = c.id WHEN MATCHED AND c.METADATA$ACTION = 'DELETE' THEN DELETE"
    " WHEN MATCHED THEN UPDATE SET t.city = c.city WHEN NOT MATCHED THEN INSERT (id, city) VALUES (c.id, c.city)"
)
Rows = dict[tuple[Any, ...], tuple[Any, ...]]


class Shop:
    """Orders of customers, a view that joins them, and a mirror of the view."""

    def __init__(self, spark: SparkSession, path: Path) -> None:
        self.spark, self.path = spark, path
        self.schema = f"shop_{uuid.uuid4().hex[:8]}"
        self.run("CREATE DATABASE {s}")
        for name, statements in TABLES.items():
            put_table(spark, path / "shop" / name, *statements)
            self.run(f"CREATE TABLE {{s}}.{name} USING delta LOCATION '{path}/shop/{name}'")
        self.run(f"CREATE VIEW {{s}}.sales AS {JOINED}", f"CREATE VIEW {{s}}.totals AS {GROUPED}")
        self.open()

    def open(self) -> None:
        self.lake = connect(self.spark, f"sqlite:///{self.path}/control.db", lake_root=str(self.path), who="ann")

    def run(self, *statements: str) -> None:
        for statement in statements:
            self.spark.sql(statement.format(s=self.schema))

    def create(self, view: str = "sales", **how: Any) -> None:
        self.lake.create_stream("s", on=f"{self.schema}.{view}", **how)

    def rebase(self, **how: Any) -> Any:
        return self.lake.rebase_stream("s", why="test", **how)

    def view(self, name: str = "sales", keys: int = 1) -> Rows:
        """Key → row, as Spark reads the view now."""
        rows = [tuple(row) for row in self.spark.table(f"{self.schema}.{name}").collect()]
        assert len({row[:keys] for row in rows}) == len(rows)
        return {row[:keys]: row for row in rows}

    def seen(self, frame: DataFrame | None = None) -> list[tuple[Any, ...]]:
        """(action, is update, *columns), sorted."""
        rows = (self.lake.stream("s") if frame is None else frame).drop(ROW_ID).collect()
        return sorted((row[ACTION], row[IS_UPDATE], *tuple(row)[:-2]) for row in rows)

    def merge(self) -> None:
        with self.lake.transaction() as tx:
            tx.sql(MERGE.format(s=self.schema))

    def append(self) -> None:
        with self.lake.transaction() as tx:
            tx.sql(f"INSERT INTO {self.schema}.sold SELECT id, city, METADATA$ACTION FROM s")

    def mirrored(self) -> Rows:
        return {(row[0],): tuple(row) for row in self.spark.table(f"{self.schema}.mirror").collect()}

    def sold(self) -> dict[tuple[Any, ...], int]:
        """Row → inserts without deletes of it."""
        found: dict[tuple[Any, ...], int] = {}
        for number, city, action in self.spark.table(f"{self.schema}.sold").collect():
            found[number, city] = found.get((number, city), 0) + (1 if action == "INSERT" else -1)
        return {row: count for row, count in found.items() if count}

    @property
    def offset(self) -> int:
        return int(self.lake.describe_stream("s").offset_version)

    def back_up(self) -> None:
        self.lake.close()
        shutil.copy(self.path / "control.db", self.path / "backup.db")
        self.open()

    def put_back(self) -> None:
        self.lake.close()
        for left in self.path.glob("control.db*"):
            left.unlink()
        shutil.copy(self.path / "backup.db", self.path / "control.db")
        self.open()

    def recover(self, **how: Any) -> Recovered:
        return recover_stream(self.lake._context.store, "s", who="ann", tables=open_table, **how)


@pytest.fixture
def shop(spark: SparkSession, tmp_path: Path) -> Iterator[Shop]:
    made = Shop(spark, tmp_path)
    yield made
    made.lake.close()
    made.run("DROP DATABASE {s} CASCADE")


def difference(old: Rows, new: Rows) -> list[tuple[Any, ...]]:
    found = [("DELETE", key in new, *row) for key, row in old.items() if new.get(key) != row]
    found += [("INSERT", key in old, *row) for key, row in new.items() if old.get(key) != row]
    return sorted(found)


def replaced(shop: Shop) -> None:
    """Another table in the log of the old one, with a row less, one more and one changed."""
    shop.run(
        f"CREATE OR REPLACE TABLE {{s}}.customers (id INT, city STRING) USING delta"
        f" LOCATION '{shop.path}/shop/customers' {TRACKED}",
        "INSERT INTO {s}.customers VALUES (1, 'Ulm'), (3, 'Bremen'), (4, 'Trier')",
    )


def untracked_for_a_while(shop: Shop) -> None:
    shop.run(NO_LONGER_TRACKED, "UPDATE {s}.customers SET city = 'Köln' WHERE id = 2", TRACKED_AGAIN)


def untracked(shop: Shop) -> None:
    shop.run(NO_LONGER_TRACKED, "DELETE FROM {s}.customers WHERE id = 1")


LOSSES = {"replaced": replaced, "untracked for a while": untracked_for_a_while, "untracked": untracked}
LATER = (
    "INSERT INTO {s}.orders VALUES (13, 3, 'cap'), (14, 4, 'bag')",
    "UPDATE {s}.orders SET customer = 3 WHERE id = 11",
)


@pytest.mark.parametrize("loss", LOSSES)
def test_R82_R85_by_key_the_first_window_is_the_difference_of_the_views_rows(shop: Shop, loss: str) -> None:
    shop.create(show_initial_rows=True)
    shop.merge()
    before = shop.view()
    LOSSES[loss](shop)
    shop.run(*LATER)
    with pytest.raises(TidemarkError):
        shop.merge()
    assert shop.mirrored() == before
    shop.rebase(keys=["ID"])
    assert shop.seen() == difference(before, shop.view())
    shop.merge()
    assert shop.mirrored() == shop.view() != before
    before = shop.view()
    shop.run("DELETE FROM {s}.orders WHERE id = 10", "INSERT INTO {s}.orders VALUES (15, 3, 'box')")
    assert shop.seen() == difference(before, shop.view())
    shop.merge()
    assert shop.mirrored() == shop.view()


def test_groups_are_compared_by_their_key_and_the_row_id_names_it(shop: Shop) -> None:
    shop.create("totals", beyond_snowflake=True)
    before = shop.view("totals")
    replaced(shop)
    shop.run(*LATER)
    shop.rebase(keys=["city"])
    assert shop.seen() == difference(before, shop.view("totals"))
    digest = shop.lake._context.store.read(
        lambda c: c.exec_driver_sql("SELECT source_table_id FROM tidemark_stream WHERE dropped_at IS NULL").scalar_one()
    )
    ids = {row[ROW_ID] for row in shop.lake.stream("s").where("city = 'Bremen'").collect()}
    assert ids == {f'{digest}:{{"city":"Bremen"}}'}


def test_a_key_of_several_rows_fails_by_name_and_nothing_moves(shop: Shop) -> None:
    shop.create(show_initial_rows=True)
    shop.merge()
    untracked(shop)
    shop.rebase(keys=["id"])
    moved, had = shop.offset, shop.mirrored()
    shop.run("INSERT INTO {s}.customers VALUES (2, 'Bonn again')")
    with pytest.raises(KeyNotUnique, match=r"sales.*id|id.*sales"):
        shop.merge()
    assert (shop.offset, shop.mirrored()) == (moved, had)


def test_without_keys_it_follows_row_ids_again(shop: Shop) -> None:
    shop.create(show_initial_rows=True)
    shop.merge()
    untracked(shop)
    shop.rebase(keys=["id"])
    shop.merge()
    shop.run(TRACKED_AGAIN)
    shop.rebase(force=True)
    before = shop.view()
    shop.run(*LATER)
    assert shop.seen() == difference(before, shop.view())
    assert not any('"id"' in row[ROW_ID] for row in shop.lake.stream("s").collect())


def test_what_cannot_be_compared_is_refused_and_the_rows_can_come_first(shop: Shop) -> None:
    shop.create()
    shop.run("UPDATE {s}.customers SET city = 'Köln' WHERE id = 2", "DELETE FROM {s}.orders WHERE id = 10")
    with pytest.raises(RebaseRefused, match="consume it first"):
        shop.rebase(keys=["id"])
    shop.run("SET spark.databricks.delta.retentionDurationCheck.enabled = false", "VACUUM {s}.customers RETAIN 0 HOURS")
    offset = shop.offset
    with pytest.raises(RebaseRefused, match=r"as it was cannot be read .*show_initial_rows"):
        shop.rebase(keys=["id"])
    with pytest.raises(InvalidArgument, match="no column 'nope'"):
        shop.rebase(keys=["nope"])
    assert shop.offset == offset
    shop.rebase(show_initial_rows=True)
    assert shop.seen() == sorted(("INSERT", False, *row) for row in shop.view().values())


def test_another_text_of_the_view_is_no_state_to_compare_with(shop: Shop) -> None:
    shop.create()
    shop.run("CREATE OR REPLACE VIEW {s}.sales AS SELECT id, item AS city FROM {s}.orders")
    with pytest.raises(RebaseRefused, match="another view"):
        shop.rebase(keys=["id"])
    shop.rebase()
    shop.run("INSERT INTO {s}.orders VALUES (13, 3, 'cap')")
    assert shop.seen() == [("INSERT", False, 13, "cap")]


def test_a_store_that_was_put_back_goes_on_where_the_target_is_and_delivers_each_change_once(shop: Shop) -> None:
    shop.create(show_initial_rows=True)
    shop.append()
    shop.back_up()
    shop.run(*LATER)
    shop.append()
    shop.run("UPDATE {s}.customers SET city = 'Köln' WHERE id = 2")
    shop.append()
    stood, bases = shop.offset, shop.lake._context.store.read(_bases)
    shop.put_back()
    shop.run("INSERT INTO {s}.orders VALUES (16, 2, 'nib')")
    with pytest.raises(StoreOlderThanLake):
        shop.append()
    assert shop.recover(dry_run=True).after.offset.version == stood
    done = shop.recover()
    assert (done.before.uid != done.after.uid, shop.offset) == (True, stood)
    assert shop.lake._context.store.read(_bases) == bases
    shop.append()
    assert shop.sold() == {row: 1 for row in shop.view().values()}


def _bases(connection: Any) -> Any:
    query = "SELECT view_bases FROM tidemark_stream WHERE dropped_at IS NULL"
    return connection.exec_driver_sql(query).scalar_one()
