"""Views over external tables: new files are added to sums, and other changes of files write all rows."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.engine.materialized.desk import Desk
from tidemark.errors import DataFileChanged, KeptViewRefused

pytestmark = pytest.mark.spark

SUMS = "SELECT customer, COUNT(*) AS n, SUM(price) AS total, AVG(price) AS mean FROM arrivals GROUP BY customer"


class Landing(Desk):
    """A desk with the external table `arrivals` on a directory of JSON lines."""

    def __init__(self, spark: SparkSession, path: Path) -> None:
        super().__init__(spark, path)
        self.room = path / "landing"
        self.room.mkdir()
        self.put("a.json", ("bob", 10), ("eve", 7))
        schema = "customer STRING, price INT"
        self.lake.external_tables.create("arrivals", location=str(self.room), file_format="json", schema=schema)

    def put(self, name: str, *rows: tuple[str, int]) -> None:
        lines = (json.dumps({"customer": customer, "price": price}) for customer, price in rows)
        (self.room / name).write_text("".join(f"{line}\n" for line in lines))

    def listed(self) -> None:
        self.lake.external_tables.refresh("arrivals")

    def refreshed(self, view: str) -> tuple[Any, ...]:
        done = self.lake.refresh_view(view)
        return done.state, done.how, self.last(view).reason


@pytest.fixture
def landing(spark: SparkSession, tmp_path: Path) -> Iterator[Landing]:
    made = Landing(spark, tmp_path)
    yield made
    made.lake.close()


def test_new_files_are_added_to_sums_and_lost_files_write_all_rows(landing: Landing) -> None:
    landing.status(f"CREATE MATERIALIZED VIEW db.sums AS {SUMS}")
    assert landing.rows("db.sums") == [("bob", 1, 10, 10.0), ("eve", 1, 7, 7.0)]
    landing.put("b.json", ("bob", 20), ("kim", 1))
    assert landing.refreshed("db.sums")[0] == "unchanged"  # nobody has listed the file yet
    landing.listed()
    now = [("bob", 2, 30, 15.0), ("eve", 1, 7, 7.0), ("kim", 1, 1, 1.0)]
    assert landing.rows("db.sums") == now
    assert landing.refreshed("db.sums") == ("done", "changes", "files were added, and none was removed")
    assert landing.rows("db.sums") == now
    landing.put("a.json", ("eve", 8))
    (landing.room / "b.json").unlink()
    landing.listed()
    assert landing.rows("db.sums") == [("eve", 1, 8, 8.0)]
    assert landing.refreshed("db.sums") == ("done", "whole", "files of arrivals were overwritten or removed")
    assert landing.rows("db.sums") == [("eve", 1, 8, 8.0)]


def test_other_queries_over_files_are_refreshed_in_full_and_say_why(landing: Landing) -> None:
    query = "SELECT a.customer, a.price, o.id FROM arrivals a JOIN db.orders o ON a.customer = o.customer"
    created = landing.status(f"CREATE DYNAMIC TABLE db.paid TARGET_LAG = '1 minute' AS {query}")
    assert "arrivals have no ids" in created
    assert landing.rows("db.paid") == [("bob", 10, 1), ("eve", 7, 2)]
    landing.put("b.json", ("eve", 70))
    landing.listed()
    landing.run("INSERT INTO {orders} VALUES (3, 'bob')")
    assert landing.refreshed("db.paid")[:2] == ("done", "whole")
    assert landing.rows("db.paid") == [("bob", 10, 1), ("bob", 10, 3), ("eve", 7, 2), ("eve", 70, 2)]
    landing.status("CREATE DYNAMIC TABLE db.top TARGET_LAG = '1 minute' AS SELECT max(price) AS m FROM db.paid")
    assert landing.rows("db.top") == [(70,)]


def test_a_file_that_changes_behind_its_list_fails_the_refresh_until_it_is_listed(landing: Landing) -> None:
    landing.status(f"CREATE MATERIALIZED VIEW db.sums AS {SUMS}")
    landing.put("b.json", ("bob", 20))
    landing.listed()
    landing.put("b.json", ("bob", 20), ("bob", 21))
    with pytest.raises(DataFileChanged, match="arrivals"):
        landing.lake.refresh_view("db.sums")
    landing.listed()
    landing.lake.refresh_view("db.sums")
    assert landing.rows("db.sums") == [("bob", 3, 51, 17.0), ("eve", 1, 7, 7.0)]


def test_a_query_over_a_materialized_view_of_files_is_refused(landing: Landing) -> None:
    landing.status(f"CREATE MATERIALIZED VIEW db.sums AS {SUMS}")
    with pytest.raises(KeptViewRefused, match="materialized view of files"):
        landing.status("CREATE MATERIALIZED VIEW db.more AS SELECT sum(n) AS n FROM db.sums")
    assert landing.lake.sql("SHOW MATERIALIZED VIEWS LIKE 'more'").count() == 0
