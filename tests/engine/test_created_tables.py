"""CREATE TABLE … AS SELECT … FROM a stream takes the window once, like an INSERT."""

from __future__ import annotations

import pytest

from tests.engine.test_stream_sql import TRACKED, Desk
from tidemark.errors import SqlCompilationError, StreamLocked
from tidemark.streams.planning.stream_sql.tables import CREATED_FOR

pytestmark = pytest.mark.spark

CREATE = "CREATE TABLE kept AS SELECT id, v, METADATA$ACTION AS act FROM s WHERE id > 1"


@pytest.fixture
def desk(spark, tmp_path):
    desk = Desk(spark, tmp_path)
    rows = "INSERT INTO {t} VALUES (1, 'a'), (2, 'b'), (3, 'c')"
    desk.put("orders", f"CREATE TABLE {{t}} (id BIGINT, v STRING) {TRACKED}", rows)
    desk.run("CREATE STREAM s ON TABLE orders AT(VERSION => 0)")
    yield desk
    desk.close()


def test_the_table_has_the_window_and_the_stream_moves(desk):
    assert desk.status(CREATE) == "Table kept successfully created."
    assert desk.rows("SELECT * FROM kept") == [(2, "b", "INSERT"), (3, "c", "INSERT")]
    assert desk.offset() == 1
    assert desk.rows("SELECT * FROM s") == []
    assert desk.one("SHOW TBLPROPERTIES kept ('delta.enableRowTracking')").value == "true"


def test_all_columns_of_the_stream_can_be_kept(desk):
    desk.run("CREATE TABLE kept AS SELECT * FROM s")
    assert {"METADATA$ACTION", "METADATA$ISUPDATE", "METADATA$ROW_ID"} < set(desk.spark.table("kept").columns)
    assert desk.one("SELECT count(*) AS n FROM kept").n == 3


def test_a_table_that_exists_is_refused_and_the_stream_stays(desk):
    desk.run("CREATE TABLE kept (id BIGINT) USING delta")
    assert desk.refused(CREATE) == ("kept", "Object 'kept' already exists.")
    assert (
        desk.status(CREATE.replace("TABLE", "TABLE IF NOT EXISTS")) == "Table kept already exists, statement succeeded."
    )
    assert desk.offset() == 0


def test_a_second_run_of_a_statement_that_was_done_is_refused(desk):
    desk.run(CREATE)
    desk.run("INSERT INTO orders VALUES (4, 'd')")
    with pytest.raises(SqlCompilationError, match="already exists"):
        desk.lake.sql(CREATE)
    assert desk.one("SELECT count(*) AS n FROM kept").n == 2


def test_a_run_that_failed_behind_the_creation_is_finished_by_the_next(desk):
    with desk.lake.transaction() as other:
        desk.spark.sql("CREATE TABLE log (id BIGINT, v STRING) USING delta")
        other.sql("INSERT INTO log SELECT id, v FROM s")
        with pytest.raises(StreamLocked):
            desk.lake.sql(CREATE)
        other.rollback()
    assert desk.rows("SELECT * FROM kept") == []
    desk.run(CREATE)
    assert desk.rows("SELECT * FROM kept") == [(2, "b", "INSERT"), (3, "c", "INSERT")]


def test_an_empty_table_of_another_statement_is_not_taken(desk):
    desk.run(f"CREATE TABLE kept (id BIGINT) USING delta TBLPROPERTIES ('{CREATED_FOR}' = 'another')")
    with pytest.raises(SqlCompilationError, match="already exists"):
        desk.lake.sql(CREATE)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("CREATE OR REPLACE TABLE kept AS SELECT * FROM s", "OR REPLACE cannot read a stream"),
        ("CREATE TABLE kept (a, b) AS SELECT id, v FROM s", "a list of columns is not allowed here"),
    ],
)
def test_forms_that_cannot_be_repeated_are_refused(desk, text, problem):
    with pytest.raises(SqlCompilationError, match=problem):
        desk.lake.sql(text)
    assert desk.offset() == 0


def test_properties_and_formats_of_the_text_are_kept(desk):
    desk.run("CREATE TABLE kept USING delta PARTITIONED BY (id) COMMENT 'what came' AS SELECT id, v FROM s")
    (row,) = desk.spark.sql("DESCRIBE DETAIL kept").collect()
    assert (row.partitionColumns, row.description) == (["id"], "what came")
    assert desk.one("SELECT count(*) AS n FROM kept").n == 3
