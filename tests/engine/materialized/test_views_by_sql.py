"""Views by SQL: they are created, read, refreshed, suspended, shown and dropped."""

from __future__ import annotations

import shutil

import pytest

from tests.engine.materialized.desk import SALES, Desk
from tidemark.errors import (
    InvalidArgument,
    KeptViewExists,
    KeptViewNotFound,
    KeptViewNotReady,
    KeptViewRefused,
    KeptViewSuspended,
    StatementRefused,
    StreamOfAView,
)

pytestmark = pytest.mark.spark

KEPT = [("bob", 2, 15), ("eve", 1, 7)]


@pytest.mark.quick
def test_a_materialized_view_answers_for_the_newest_versions_of_its_bases(desk: Desk) -> None:
    assert desk.status(f"CREATE MATERIALIZED VIEW db.sales AS {SALES}").endswith("successfully created.")
    assert desk.rows("db.sales") == KEPT
    desk.run("INSERT INTO {items} VALUES (2, 100, 'd')")
    desk.run("DELETE FROM {items} WHERE note = 'b'")
    now = [("bob", 1, 10), ("eve", 2, 107)]
    assert desk.rows("DB.Sales") == now  # kept rows and changes since
    assert desk.ask("SELECT customer, items, total FROM db.sales WHERE total > 50") == [("eve", 2, 107)]
    done = desk.lake.refresh_view("db.sales", refresh_mode="incremental")
    assert (done.state, done.how) == ("done", "changes")
    assert desk.rows("db.sales") == now
    last = desk.last("db.sales")
    assert (last.state, last.refresh_mode, last.action) == ("done", "incremental", "changes")
    assert last.full_bytes > 0
    assert desk.lake.refresh_view("db.sales").state == "unchanged"
    assert [row.state for row in desk.lake.view_history("db.sales").collect()] == ["unchanged", "done", "done"]


def test_a_dynamic_table_answers_as_of_its_last_refresh(desk: Desk) -> None:
    text = f"CREATE DYNAMIC TABLE db.t TARGET_LAG = '10 minutes' WAREHOUSE = wh REFRESH_MODE = INCREMENTAL AS {SALES}"
    assert "WAREHOUSE was ignored" in desk.status(text)
    desk.run("INSERT INTO {items} VALUES (2, 100, 'd')")
    assert desk.rows("db.t") == KEPT
    assert desk.status("ALTER DYNAMIC TABLE db.t REFRESH").startswith("db.t refreshed (changes)")
    assert desk.rows("db.t") == [("bob", 2, 15), ("eve", 2, 107)]
    shown = desk.one("SHOW DYNAMIC TABLES LIKE 'T'")
    assert (shown.name, shown.schema_name, shown.target_lag, shown.refresh_mode) == (
        "t",
        "db",
        "10 minutes",
        "INCREMENTAL",
    )
    assert shown.scheduling_state == "ACTIVE"
    assert [row.name for row in desk.lake.sql("DESCRIBE DYNAMIC TABLE db.t").collect()] == [
        "customer",
        "items",
        "total",
    ]
    desk.status("ALTER DYNAMIC TABLE db.t SET TARGET_LAG = DOWNSTREAM COMMENT = 'x'")
    assert desk.one("SHOW DYNAMIC TABLES").target_lag == "DOWNSTREAM"


def test_R90_views_follow_a_base_that_was_renamed_and_read_only_its_changes(desk: Desk) -> None:
    desk.status(f"CREATE MATERIALIZED VIEW db.sales AS {SALES}")
    desk.status(
        "CREATE DYNAMIC TABLE db.dear TARGET_LAG = '10 minutes' REFRESH_MODE = INCREMENTAL AS"
        " SELECT id, price FROM db.items WHERE price > 6"
    )
    renamed = shutil.move(desk.root / "db" / "items", desk.root / "db" / "items_2026")
    desk.spark.sql(f"INSERT INTO delta.`{renamed}` VALUES (2, 100, 'd')")
    assert desk.rows("db.sales") == [("bob", 2, 15), ("eve", 2, 107)]
    assert desk.lake.refresh_view("db.dear").how == "changes"
    assert desk.rows("db.dear") == [(1, 10), (2, 100), (2, 7)]
    assert desk.lake.refresh_view("db.sales", refresh_mode="incremental").how == "changes"
    desk.status("CREATE MATERIALIZED VIEW db.best AS SELECT customer FROM db.sales WHERE total > 50")
    assert desk.rows("db.best") == [("eve",)]


def test_a_suspended_view_is_not_refreshed_until_it_is_resumed(desk: Desk) -> None:
    desk.status(f"CREATE DYNAMIC TABLE db.t TARGET_LAG = '1 minute' AS {SALES}")
    desk.status("ALTER DYNAMIC TABLE db.t SUSPEND")
    desk.run("DELETE FROM {items} WHERE id = 2")
    with pytest.raises(KeptViewSuspended, match=r"ALTER DYNAMIC TABLE db\.t RESUME"):
        desk.lake.refresh_view("db.t")
    assert desk.lake.refresh_due_views() == ()
    assert desk.rows("db.t") == KEPT
    desk.status("ALTER DYNAMIC TABLE db.t RESUME")
    desk.lake.refresh_view("db.t")
    assert desk.rows("db.t") == KEPT[:1]


def test_names_are_taken_replaced_kept_and_free_after_a_drop(desk: Desk) -> None:
    create = f"MATERIALIZED VIEW db.v AS {SALES}"
    desk.status(f"CREATE {create}")
    with pytest.raises(KeptViewExists):
        desk.status(f"CREATE {create}")
    assert "already exists" in desk.status(f"CREATE MATERIALIZED VIEW IF NOT EXISTS db.V AS {SALES}")
    desk.status("CREATE OR REPLACE MATERIALIZED VIEW db.v AS SELECT id, price FROM db.items WHERE price > 6")
    assert desk.rows("db.v") == [(1, 10), (2, 7)]
    assert "Its rows stay" in desk.status("DROP MATERIALIZED VIEW db.v")
    assert "already dropped" in desk.status("DROP MATERIALIZED VIEW IF EXISTS db.v")
    with pytest.raises(KeptViewNotFound):
        desk.lake.refresh_view("db.v")
    desk.status("CREATE MATERIALIZED VIEW db.v AS SELECT id, price FROM db.items WHERE price > 6")
    assert desk.rows("db.v") == [(1, 10), (2, 7)]


def test_a_query_whose_changes_cannot_be_computed_is_refreshed_in_full_and_says_why(desk: Desk) -> None:
    query = "SELECT id, ROW_NUMBER() OVER (ORDER BY price) AS place FROM db.items"
    assert "It is refreshed in full: " in desk.status(f"CREATE DYNAMIC TABLE db.t TARGET_LAG = '1 minute' AS {query}")
    desk.run("DELETE FROM {items} WHERE price = 5")
    assert desk.lake.refresh_view("db.t").how == "whole"
    assert desk.rows("db.t") == [(1, 2), (2, 1)]
    shown = desk.one("SHOW DYNAMIC TABLES")
    assert shown.refresh_mode == "FULL"
    assert "line 1" in shown.refresh_mode_reason
    assert desk.last("db.t").reason == shown.refresh_mode_reason
    with pytest.raises(KeptViewRefused, match="INCREMENTAL is not possible"):
        desk.status(f"CREATE DYNAMIC TABLE db.u TARGET_LAG = '1 minute' REFRESH_MODE = INCREMENTAL AS {query}")


def test_a_table_that_waits_for_its_schedule_has_no_rows_before(desk: Desk) -> None:
    desk.status(f"CREATE DYNAMIC TABLE db.t TARGET_LAG = '1 minute' INITIALIZE = ON_SCHEDULE AS {SALES}")
    with pytest.raises(KeptViewNotReady):
        desk.rows("db.t")
    desk.run("DELETE FROM {items} WHERE id = 2")
    desk.lake.refresh_due_views()
    assert desk.rows("db.t") == KEPT[:1]


def test_nobody_writes_a_view_or_moves_the_stream_that_pins_its_bases(desk: Desk) -> None:
    desk.status(f"CREATE DYNAMIC TABLE db.t TARGET_LAG = '1 minute' AS {SALES}")
    with pytest.raises(StatementRefused, match="refreshed from its query alone"):
        desk.lake.sql("INSERT INTO db.t VALUES ('x', 1, 1)")
    assert desk.lake.show_streams() == ()
    (uid,) = [view.uid for view in desk.lake.show_views()]
    with pytest.raises(StreamOfAView):
        desk.lake.drop_stream(f"tidemark$view${uid}")
    assert [one.kind for one in desk.lake.show_objects()] == ["dynamic_table"]


def test_a_list_of_columns_names_those_of_the_query(desk: Desk) -> None:
    desk.status(f"CREATE MATERIALIZED VIEW db.v (Who, n, `in all`) CLUSTER BY (who) AS {SALES}")
    desk.run("INSERT INTO {items} VALUES (2, 100, 'd')")
    assert desk.ask("SELECT who, n, `in all` FROM db.v WHERE `in all` > 20") == [("eve", 2, 107)]
    (view,) = desk.lake.show_views()
    assert (view.shape.shape, view.shape.why) == ("sums", None)
    desk.status(
        "CREATE DYNAMIC TABLE db.t (a, b) TARGET_LAG = DOWNSTREAM AS"
        " SELECT id, ROW_NUMBER() OVER (ORDER BY price) FROM db.items"
    )
    assert sorted(desk.lake.table("db.t").columns) == ["a", "b"]
    with pytest.raises(InvalidArgument, match="the query has 3 columns, and the list names 1"):
        desk.status(f"CREATE MATERIALIZED VIEW db.w (a) AS {SALES}")


def test_a_star_under_a_list_of_columns_has_those_that_it_had_at_the_creation(desk: Desk) -> None:
    wide = f"delta.`{desk.root}/db/wide`"
    mapped = "TBLPROPERTIES ('delta.columnMapping.mode' = 'name', 'delta.enableRowTracking' = 'true')"
    desk.run(f"CREATE TABLE {wide} (k INT, n INT, m INT) USING delta {mapped}")
    desk.run(f"INSERT INTO {wide} VALUES (1, 2, 3)")
    query = "SELECT * FROM db.wide WHERE k >= (SELECT min(k) FROM db.wide)"
    desk.status(f"CREATE DYNAMIC TABLE db.s (a, b, c) TARGET_LAG = DOWNSTREAM AS {query}")
    desk.run(f"ALTER TABLE {wide} ADD COLUMN later INT")
    desk.run(f"INSERT INTO {wide} VALUES (4, 5, 6, 7)")
    desk.status("ALTER DYNAMIC TABLE db.s REFRESH")
    assert desk.rows("db.s") == [(1, 2, 3), (4, 5, 6)]
    desk.run(f"ALTER TABLE {wide} DROP COLUMN m")
    with pytest.raises(KeptViewSuspended, match="its column m is gone"):
        desk.status("ALTER DYNAMIC TABLE db.s REFRESH")


def test_a_stream_on_a_view_nets_its_groups(desk: Desk) -> None:
    desk.status(f"CREATE MATERIALIZED VIEW db.v AS {SALES}")
    desk.status(f"CREATE DYNAMIC TABLE db.t TARGET_LAG = '1 minute' REFRESH_MODE = INCREMENTAL AS {SALES}")
    desk.lake.create_stream("of_v", on="db.v")
    desk.status("CREATE STREAM of_t ON DYNAMIC TABLE db.t")
    desk.run("INSERT INTO {items} VALUES (2, 100, 'd')")
    changed = [("eve", 1, 7, "DELETE"), ("eve", 2, 107, "INSERT")]
    columns = "customer, items, total, METADATA$ACTION"
    assert desk.ask(f"SELECT {columns} FROM of_v") == changed
    assert desk.ask(f"SELECT {columns} FROM of_t") == []
    desk.lake.refresh_view("db.t")
    assert desk.ask(f"SELECT {columns} FROM of_t") == changed
