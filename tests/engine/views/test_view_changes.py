"""What a stream on a view shows of a window (R37, R70–R78)."""

from __future__ import annotations

from datetime import timedelta

import pytest

from tests.engine.views.view_lake import NOW, ViewLake
from tidemark.changes.planning.views.plan import Way
from tidemark.errors import IncompatibleSchemaChange, SourceRecreated, VersionVacuumed
from tidemark.model.streams import ACTION, IS_UPDATE, ROW_ID, StreamMode

pytestmark = pytest.mark.spark

ORDERS = "id INT, customer INT, item STRING, note STRING"
CUSTOMERS = "id INT, name STRING, note STRING"
JOIN = "SELECT o.id, o.item, c.name FROM {db}.orders o JOIN {db}.customers c ON o.customer = c.id"


@pytest.fixture
def shop(views: ViewLake) -> ViewLake:
    """Two tables; the window begins behind their rows."""
    views.table("orders", ORDERS, "(1, 1, 'a', ''), (2, 1, 'b', ''), (3, 2, 'c', ''), (4, 3, 'd', ''), (5, 4, 'e', '')")
    views.table(
        "customers", CUSTOMERS, "(1, 'Ann', ''), (2, 'Bob', ''), (3, 'Cid', ''), (4, 'Dan', ''), (5, 'Eve', '')"
    )
    views.mark()
    return views


def test_a_join_shows_the_difference_of_its_rows_at_both_ends(shop: ViewLake) -> None:
    query = shop.view("v", JOIN)
    shop.sql(
        "UPDATE {db}.orders SET item = 'B' WHERE id = 2",  # one side updated: a pair
        "UPDATE {db}.customers SET name = 'BOB' WHERE id = 2",  # with the next, both sides updated: one pair
        "UPDATE {db}.orders SET item = 'C' WHERE id = 3",
        "DELETE FROM {db}.customers WHERE id = 3",  # a side deleted: one DELETE
        "UPDATE {db}.orders SET customer = 5 WHERE id = 5",  # the partner exchanged: no pair
        "INSERT INTO {db}.customers VALUES (1, 'Ann', 'twin')",  # multiplicity
        "INSERT INTO {db}.orders VALUES (6, 99, 'nobody', '')",  # without a partner: nothing
        "UPDATE {db}.orders SET note = 'unseen' WHERE id = 1",  # not projected: nothing
    )
    assert shop.changes(query) == sorted(
        [
            ("DELETE", True, 2, "b", "Ann"),
            ("INSERT", True, 2, "B", "Ann"),
            ("DELETE", True, 3, "c", "Bob"),
            ("INSERT", True, 3, "C", "BOB"),
            ("DELETE", False, 4, "d", "Cid"),
            ("DELETE", False, 5, "e", "Dan"),
            ("INSERT", False, 5, "e", "Eve"),
            ("INSERT", False, 1, "a", "Ann"),
            ("INSERT", False, 2, "B", "Ann"),
        ],
        key=repr,
    )
    frame = shop.frame(query)
    assert frame.columns == ["id", "item", "name", ACTION, IS_UPDATE, ROW_ID]
    assert [kind for _, kind in frame.dtypes] == ["int", "string", "string", "string", "boolean", "string"]


def test_a_row_of_a_view_keeps_its_id(shop: ViewLake) -> None:
    query = shop.view("v", JOIN)
    at_start = {(row.id, row.name): row[ROW_ID] for row in shop.rows(query).collect()}
    assert len(set(at_start.values())) == len(at_start) == 5
    shop.sql("UPDATE {db}.customers SET name = upper(name) WHERE id = 1", "OPTIMIZE {db}.orders")
    found = shop.ids(query)
    assert found["DELETE", 1, "a", "Ann"] == found["INSERT", 1, "a", "ANN"] == at_start[1, "Ann"]
    shop.mark()
    shop.sql("DELETE FROM {db}.orders WHERE id = 1")
    assert shop.ids(query) == {("DELETE", 1, "a", "ANN"): at_start[1, "Ann"]}


def test_append_only_joins_what_was_inserted_with_what_stood_at_the_offset(shop: ViewLake) -> None:
    query = shop.view("v", JOIN)
    shop.sql(
        "INSERT INTO {db}.orders VALUES (6, 1, 'f', ''), (7, 7, 'g', '')",
        "UPDATE {db}.orders SET item = 'later' WHERE id >= 6",
        "UPDATE {db}.customers SET name = 'later' WHERE id = 1",
        "INSERT INTO {db}.customers VALUES (7, 'Gus', ''), (2, 'Bob too', '')",
        "DELETE FROM {db}.customers WHERE id = 7",
    )
    assert shop.appended(query) == [
        ("INSERT", False, 3, "c", "Bob too"),
        ("INSERT", False, 6, "f", "Ann"),
        ("INSERT", False, 7, "g", "Gus"),
    ]


def test_a_filter_shows_moves_in_and_out_as_halves(shop: ViewLake) -> None:
    query = shop.view("v", "SELECT id, upper(item) AS item FROM {db}.orders WHERE customer < 3")
    shop.sql(
        "UPDATE {db}.orders SET customer = 9 WHERE id = 1",
        "UPDATE {db}.orders SET customer = 0 WHERE id = 4",
        "UPDATE {db}.orders SET item = 'B' WHERE id = 2",  # hidden by the expression
        "UPDATE {db}.orders SET item = 'x' WHERE id = 5",  # passes at neither end
        "INSERT INTO {db}.orders VALUES (6, 1, 'f', ''), (7, 9, 'g', '')",
    )
    assert shop.changes(query) == [
        ("DELETE", False, 1, "A"),
        ("INSERT", False, 4, "D"),
        ("INSERT", False, 6, "F"),
    ]
    assert shop.appended(query) == [("INSERT", False, 6, "F")]


def test_equal_rows_of_two_arms_are_two_rows_and_the_same_table_twice_is_two_tables(shop: ViewLake) -> None:
    shop.view("once", "SELECT item AS x FROM {db}.orders")
    query = shop.view(
        "v", "SELECT x FROM {db}.once UNION ALL SELECT item FROM {db}.orders UNION ALL SELECT name FROM {db}.customers"
    )
    shop.sql("INSERT INTO {db}.orders VALUES (6, 1, 'same', '')", "INSERT INTO {db}.customers VALUES (6, 'same', '')")
    shop.sql("UPDATE {db}.orders SET item = 'A' WHERE id = 1")
    same = ("INSERT", False, "same")
    pair = [("DELETE", True, "a"), ("INSERT", True, "A")]
    assert shop.changes(query) == sorted([same, same, same, *pair, *pair], key=repr)
    assert shop.appended(query) == [same, same, same]


def test_a_table_joined_with_itself(views: ViewLake) -> None:
    views.table(
        "staff", "id INT, boss INT, name STRING", "(1, NULL, 'Ann'), (2, 1, 'Bob'), (3, 1, 'Cid'), (4, 2, 'Dan')"
    )
    query = views.view("v", "SELECT a.name, b.name AS boss FROM {db}.staff a JOIN {db}.staff b ON a.boss = b.id")
    views.mark()
    views.sql("UPDATE {db}.staff SET name = 'ANN' WHERE id = 1", "UPDATE {db}.staff SET boss = 3 WHERE id = 4")
    assert views.changes(query) == sorted(
        [
            ("DELETE", True, "Bob", "Ann"),
            ("INSERT", True, "Bob", "ANN"),
            ("DELETE", True, "Cid", "Ann"),
            ("INSERT", True, "Cid", "ANN"),
            ("DELETE", False, "Dan", "Bob"),
            ("INSERT", False, "Dan", "Cid"),
        ],
        key=repr,
    )


def test_content_is_equal_as_for_tables(views: ViewLake) -> None:
    columns = "id INT, d DOUBLE, m MAP<STRING, INT>, w VARIANT, t TIMESTAMP, n DECIMAL(10, 2), b BINARY"
    parts = (
        "double('NaN')",
        "map('a', 1, 'b', 2)",
        "parse_json('{\"a\": 1}')",
        "TIMESTAMP'2026-01-01'",
        "1.50",
        "X'00FF'",
    )
    row = ", ".join(parts)
    views.table("t", columns, f"(1, {row}), (2, {row})")
    views.table("u", "id INT, x INT", "(1, 1), (2, 2)")
    query = views.view("v", "SELECT t.*, u.x FROM {db}.t JOIN {db}.u USING (id)")
    views.mark()
    views.sql("UPDATE {db}.t SET m = map('b', 2, 'a', 1), d = double('NaN')", "UPDATE {db}.u SET x = x + 0")
    assert views.changes(query) == []
    views.sql("UPDATE {db}.u SET x = 3 WHERE id = 2")
    (old, new) = views.frame(query).orderBy(ACTION).collect()
    assert (old.x, new.x, new.m, str(new.n), bytes(new.b)) == (2, 3, {"a": 1, "b": 2}, "1.50", b"\x00\xff")
    assert dict(views.frame(query).dtypes)["w"] == "variant"


def test_the_time_is_one_for_both_ends_and_for_every_read(shop: ViewLake) -> None:
    query = shop.view(
        "v", "SELECT id, now() AS seen FROM {db}.orders WHERE item < 'z' AND current_date() > '2026-03-28'"
    )
    shop.sql("UPDATE {db}.orders SET note = 'unseen' WHERE id = 1", "INSERT INTO {db}.orders VALUES (6, 1, 'f', '')")
    ((action, _, row, seen),) = shop.changes(query)
    assert (action, row) == ("INSERT", 6)
    assert shop.changes(query)[0][3] == seen
    earlier = shop.frame(query, now=NOW - timedelta(days=1)).collect()
    assert earlier == [], "the rows of a day before pass the filter at neither end"


def test_a_view_means_what_its_stored_settings_say(shop: ViewLake) -> None:
    shop.spark.conf.set("spark.sql.ansi.enabled", "false")
    try:
        query = shop.view("v", "SELECT id, CAST(item AS INT) AS number FROM {db}.orders")
    finally:
        shop.spark.conf.set("spark.sql.ansi.enabled", "true")
    shop.sql("INSERT INTO {db}.orders VALUES (6, 1, 'no number', '')")
    assert shop.changes(query) == [("INSERT", False, 6, None)]
    assert shop.spark.conf.get("spark.sql.ansi.enabled") == "true"
    shop.spark.conf.unset("spark.sql.ansi.enabled")


def test_both_ends_show_the_columns_of_the_end(views: ViewLake) -> None:
    mapped = (
        "'delta.enableRowTracking' = 'true', 'delta.columnMapping.mode' = 'name', 'delta.enableTypeWidening' = 'true'"
    )
    views.table("t", "id INT, a INT, n INT", "(1, 1, 1), (2, 2, 2)", properties=mapped)
    views.table("u", "id INT, x STRING", "(1, 'one'), (2, 'two')")
    views.mark()
    views.sql(
        "ALTER TABLE {db}.t RENAME COLUMN a TO b",
        "ALTER TABLE {db}.t ADD COLUMNS (c INT)",
        "ALTER TABLE {db}.t ALTER COLUMN n TYPE BIGINT",
        "UPDATE {db}.t SET c = 5 WHERE id = 1",
        "UPDATE {db}.u SET x = 'TWO' WHERE id = 2",
    )
    query = views.view("v", "SELECT t.id, b, c, n, x FROM {db}.t JOIN {db}.u USING (id)")
    assert views.changes(query) == sorted(
        [
            ("DELETE", True, 1, 1, None, 1, "one"),
            ("INSERT", True, 1, 1, 5, 1, "one"),
            ("DELETE", True, 2, 2, None, 2, "two"),
            ("INSERT", True, 2, 2, None, 2, "TWO"),
        ],
        key=repr,
    )


def test_fields_added_inside_a_column_are_refused_by_name_where_old_rows_are_needed(views: ViewLake) -> None:
    views.table("t", "id INT, s STRUCT<x: INT>", "(1, struct(1))")
    views.table("u", "id INT", "(1)")
    views.mark()
    views.sql("ALTER TABLE {db}.t ADD COLUMNS (s.y INT)", "INSERT INTO {db}.t VALUES (2, struct(2, 2))")
    views.sql("INSERT INTO {db}.u VALUES (2)", "UPDATE {db}.u SET id = 1")
    query = views.view("v", "SELECT u.id, t.s.x AS x FROM {db}.u JOIN {db}.t USING (id)")
    with pytest.raises(IncompatibleSchemaChange, match="fields inside a column"):
        views.frame(query)


@pytest.mark.quick
def test_a_base_table_made_anew_ends_the_stream(shop: ViewLake) -> None:
    query = shop.view("v", JOIN)
    windows = shop.windows(query)
    path = shop.home / "customers"
    shop.sql(f"CREATE OR REPLACE TABLE {{db}}.customers ({CUSTOMERS}) USING delta LOCATION '{path}'")
    from tidemark.changes.driver.views.read import read_view_changes

    with pytest.raises(SourceRecreated, match="Base table 'customers' dropped, cannot read from stream 's'"):
        read_view_changes(shop.spark, query, windows, StreamMode.STANDARD, NOW, shop.workspace, reader="s")


def test_without_a_changed_row_nothing_is_read(shop: ViewLake) -> None:
    query = shop.view("v", JOIN)
    shop.sql("OPTIMIZE {db}.orders", "ALTER TABLE {db}.customers SET TBLPROPERTIES ('x' = 'y')")
    assert shop.plan(query).way is Way.NOTHING
    found = shop.frame(query)
    assert found.collect() == []
    assert found.columns == ["id", "item", "name", ACTION, IS_UPDATE, ROW_ID]


def test_rows_at_the_offset_that_vacuum_took_are_told_by_name(shop: ViewLake) -> None:
    query = shop.view("v", JOIN)
    shop.sql("DELETE FROM {db}.customers WHERE id = 5", "UPDATE {db}.orders SET item = 'A' WHERE id = 1")
    for file in (shop.home / "customers").glob("*.parquet"):
        file.unlink()
    with pytest.raises(VersionVacuumed):
        shop.frame(query)


def test_padded_texts_are_compared_as_in_the_view_itself(views: ViewLake) -> None:
    views.table("orders", "id INT, status CHAR(10), code CHAR(5)", "(1, 'open', 'a'), (2, 'done', 'b')")
    views.table("codes", "code CHAR(8), name STRING", "('a', 'Ann'), ('b', 'Bob')")
    views.mark()
    opened = views.view("opened", "SELECT id, name FROM {db}.orders o JOIN {db}.codes c ON o.code = c.code"
                        " WHERE status = 'open'")  # fmt: skip
    assert [tuple(row) for row in views.rows(opened).select("id", "name").collect()] == [(1, "Ann")]
    views.sql("INSERT INTO {db}.orders VALUES (3, 'open', 'b')", "DELETE FROM {db}.codes WHERE name = 'Ann'")
    assert views.changes(opened) == [("DELETE", False, 1, "Ann"), ("INSERT", False, 3, "Bob")]


def test_keys_that_python_cannot_hold_are_changes_as_others(views: ViewLake) -> None:
    views.table("events", "day DATE, n INT", "(DATE'2026-01-01', 1)")
    views.table("days", "day DATE, name STRING", "(DATE'+12026-01-01', 'far'), (DATE'2026-01-01', 'near')")
    views.mark()
    query = views.view("v", "SELECT e.n, d.name FROM {db}.events e JOIN {db}.days d ON e.day = d.day")
    views.sql("INSERT INTO {db}.events VALUES (DATE'+12026-01-01', 2)")
    assert views.changes(query) == [("INSERT", False, 2, "far")]
