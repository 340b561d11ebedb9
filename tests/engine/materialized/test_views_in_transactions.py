"""Views in `lake.transaction()`: read there, and never made, refreshed or written there."""

from __future__ import annotations

import pytest

from tests.engine.materialized.desk import SALES, Desk
from tidemark.errors import KeptViewNotReady, SqlCompilationError, StatementRefused, TargetIsKept

pytestmark = pytest.mark.spark
TABLE = "CREATE DYNAMIC TABLE db.t TARGET_LAG = '1 minute'"
LARGE = "SELECT id, price FROM db.items WHERE price > 5"


@pytest.fixture
def wide(desk: Desk) -> Desk:
    """A stream on the orders with one unread row, a target, a dynamic table and a materialized view."""
    desk.lake.create_stream("orders_s", on="db.orders")
    desk.spark.sql(f"CREATE TABLE delta.`{desk.root}/db/out` (id INT, price BIGINT) USING delta")
    desk.status(f"{TABLE} AS {LARGE}")
    desk.status(f"CREATE MATERIALIZED VIEW db.sales AS {SALES}")
    desk.run("INSERT INTO {orders} VALUES (2, 'ann')")
    desk.run("INSERT INTO {items} VALUES (2, 100, 'd')")
    return desk


def test_a_query_reads_views_beside_streams_as_readers_see_them(wide: Desk) -> None:
    with wide.lake.transaction() as tx:
        both = tx.sql("SELECT s.id, t.price FROM orders_s s JOIN DB.t t ON s.id = t.id")
        assert both is not None
        assert [tuple(row) for row in both.collect()] == [(2, 7)]  # as of its last refresh
        everything = tx.sql("SELECT * FROM db.t")
        assert everything is not None
        assert everything.columns == ["id", "price"]
        fresh = tx.sql("SELECT customer, total FROM db.sales WHERE customer <> 'bob'")
        assert fresh is not None
        assert sorted(map(tuple, fresh.collect())) == [("ann", 107), ("eve", 107)]  # the newest versions
    assert wide.lake.has_data("orders_s")  # reading moves nothing


def test_a_write_reads_the_rows_of_a_dynamic_table_once(wide: Desk) -> None:
    with wide.lake.transaction() as tx:
        tx.sql("INSERT INTO db.out SELECT t.* FROM orders_s s JOIN db.t ON s.id = t.id")
        tx.sql("MERGE INTO db.out USING db.t ON out.id = t.id WHEN MATCHED THEN UPDATE SET price = t.price + 1")
    assert wide.rows("db.out") == [(2, 8)]
    assert not wide.lake.has_data("orders_s")
    wide.run("INSERT INTO {orders} VALUES (1, 'ann')")
    wide.lake.sql("INSERT INTO db.out SELECT s.id, t.price FROM orders_s AS s, db.t AS t WHERE s.id = t.id")
    assert wide.rows("db.out") == [(1, 10), (2, 8)]


REFUSED = [
    (f"CREATE DYNAMIC TABLE db.u TARGET_LAG = DOWNSTREAM AS {LARGE}", "use lake.sql around it"),
    ("ALTER DYNAMIC TABLE db.t REFRESH", "use lake.sql around it"),
    ("DROP MATERIALIZED VIEW db.sales", "use lake.sql around it"),
    ("SHOW DYNAMIC TABLES", "use lake.sql around it"),
    ("INSERT INTO db.t SELECT id, 1 FROM orders_s", "refreshed from its query alone"),
    ("MERGE INTO DB.T AS t USING orders_s AS s ON t.id = s.id WHEN MATCHED THEN DELETE", "from its query alone"),
    ("INSERT INTO db.out SELECT s.id, v.total FROM orders_s s, db.sales v", "cannot read the materialized view"),
]


def test_a_statement_that_cannot_be_in_a_transaction_is_refused_and_leaves_no_trace(wide: Desk) -> None:
    for text, words in REFUSED:
        with wide.lake.transaction() as tx, pytest.raises(StatementRefused, match=words):
            tx.sql(text)
    assert wide.rows("db.t") == [(1, 10), (2, 7)]
    assert [view.name for view in wide.lake.show_views()] == ["db.sales", "db.t"]
    assert wide.lake.has_data("orders_s")


def test_no_write_of_a_transaction_reaches_a_view(wide: Desk) -> None:
    with wide.lake.transaction() as tx:
        with pytest.raises(StatementRefused, match="from its query alone"):
            tx.append("orders_s", "db.t")
        with pytest.raises(StatementRefused, match="from its query alone"):
            tx.merge("orders_s", "db.sales", ["id"])
        with pytest.raises(SqlCompilationError):
            tx.sql("ALTER DYNAMIC TABLE db.t REFRESH NOW")
    kept = f"{wide.root}/db/t"  # the table of db.t, by its path
    with pytest.raises(TargetIsKept, match=r"has the rows of db\.t, a dynamic table"), wide.lake.transaction() as tx:
        tx.append("orders_s", kept, schema_evolution="add")
    with pytest.raises(TargetIsKept):
        wide.lake.sql(f"COPY INTO db.t FROM '{wide.root}/files' FILE_FORMAT = (TYPE = JSON)")
    assert wide.lake.has_data("orders_s")
    wide.status(f"{TABLE.replace('db.t', 'db.late')} INITIALIZE = ON_SCHEDULE AS {LARGE}")
    with wide.lake.transaction() as tx:
        with pytest.raises(KeptViewNotReady):
            tx.sql("SELECT * FROM db.late")
        with pytest.raises(KeptViewNotReady):
            tx.sql("INSERT INTO db.out SELECT t.* FROM orders_s s JOIN db.late t ON s.id = t.id")
