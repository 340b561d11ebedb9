"""A client of a lake with two tables, and a clock that tests move."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from pyspark.sql import Row, SparkSession

from tests.control.kept_objects import drifted
from tests.table_templates import put_table
from tidemark.client import connect
from tidemark.control.store import ControlStore

__all__ = ["ITEMS", "ORDERS", "SALES", "Desk"]

ORDERS = "CREATE TABLE {t} (id INT, customer STRING) USING delta TBLPROPERTIES ('delta.enableRowTracking' = 'true')"
ITEMS = (
    "CREATE TABLE {t} (id INT, price BIGINT, note STRING) USING delta"
    " TBLPROPERTIES ('delta.enableRowTracking' = 'true', 'delta.columnMapping.mode' = 'name')"
)
SALES = (
    "SELECT o.customer, COUNT(*) AS items, SUM(i.price) AS total FROM db.orders o JOIN db.items i ON o.id = i.id"
    " GROUP BY o.customer"
)


class Desk:
    """`lake` is the client. The tables `db.orders` and `db.items` have two orders with three items."""

    def __init__(self, spark: SparkSession, path: Path) -> None:
        self.spark, self.root = spark, path / "lake"
        self.late = timedelta()
        self.url = f"sqlite:///{path}/control.db"
        self.lake = connect(spark, self.url, lake_root=str(self.root), who="ann", clock=self.now)
        put_table(spark, self.root / "db" / "orders", ORDERS)
        put_table(spark, self.root / "db" / "items", ITEMS)
        self.run("INSERT INTO {orders} VALUES (1, 'bob'), (2, 'eve')")
        self.run("INSERT INTO {items} VALUES (1, 10, 'a'), (1, 5, 'b'), (2, 7, 'c')")

    def now(self) -> datetime:
        return datetime.now(UTC) + self.late

    def run(self, text: str) -> None:
        """A statement on the tables, whose names are in braces."""
        names = {name: f"delta.`{self.root}/db/{name}`" for name in ("orders", "items")}
        self.spark.sql(text.format(**names))

    def ask(self, text: str) -> list[tuple[Any, ...]]:
        return sorted((tuple(row) for row in self.lake.sql(text).collect()), key=repr)

    def one(self, text: str) -> Row:
        (row,) = self.lake.sql(text).collect()
        return row

    def status(self, text: str) -> str:
        found: str = self.one(text).status
        return found

    def rows(self, name: str) -> list[tuple[Any, ...]]:
        return sorted((tuple(row) for row in self.lake.table(name).collect()), key=repr)

    def last(self, name: str) -> Row:
        """The newest refresh."""
        return self.lake.view_history(name).collect()[0]

    def drifted(self) -> list[Any]:
        """Differences between the table of all objects and the rows of the views."""
        store = ControlStore(self.url)
        found = drifted(store)
        store.close()
        return found
