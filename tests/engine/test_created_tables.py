"""CREATE TABLE … AS SELECT … FROM a stream takes the window once, like an INSERT."""

from __future__ import annotations

from datetime import timedelta
from functools import partial

import pytest

from tests.engine.test_stream_sql import TRACKED, Desk
from tidemark.client.created_tables import create_and_fill, fill_once
from tidemark.client.transaction import LakeTransaction
from tidemark.control.store import utc_now
from tidemark.errors import SqlCompilationError, StreamLocked
from tidemark.model.statements import TransactionKey
from tidemark.streams.planning.stream_sql.tables import CREATED_FOR, created_table
from tidemark.streams.worker.begin import get_transaction
from tidemark.streams.worker.submit import submit

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


def left_behind(desk, *, written, create=CREATE):
    """A run of `create` that died once its INSERT was stored, or was `written`; its lease is over."""
    with desk.lake.transaction() as other:
        desk.spark.sql("CREATE TABLE log (id BIGINT, v STRING) USING delta")
        other.sql("INSERT INTO log SELECT id, v FROM s")
        with pytest.raises(StreamLocked):
            desk.lake.sql(create)
        other.rollback()
    context, key = desk.lake._context, TransactionKey("client", "died", "transaction")
    LakeTransaction(context, key).sql(f"INSERT INTO kept {created_table(CREATE).query}")
    if written:
        submit(context.runtime, get_transaction(context.store, key))
    desk.run("INSERT INTO orders VALUES (4, 'd')")
    with pytest.raises(StreamLocked):
        desk.lake.sql(create)
    context.store.clock = lambda: utc_now() + timedelta(days=1)


@pytest.mark.parametrize("words", ["TABLE", "TABLE IF NOT EXISTS"])
def test_a_run_that_died_behind_its_insert_is_finished_by_the_next(desk, words):
    statement = CREATE.replace("TABLE", words)
    left_behind(desk, written=True, create=statement)
    assert (desk.rows("SELECT id FROM kept"), desk.offset()) == ([(2,), (3,)], 0)
    assert desk.status(statement) == "Table kept successfully created."
    assert (desk.rows("SELECT id FROM kept"), desk.offset()) == ([(2,), (3,)], 1)
    assert desk.rows("SELECT id FROM s") == [(4,)]


def test_a_run_that_died_before_its_insert_was_written_gives_its_window_back_whole(desk):
    left_behind(desk, written=False)
    assert desk.status(CREATE) == "Table kept successfully created."
    assert (desk.rows("SELECT id FROM kept"), desk.offset()) == ([(2,), (3,), (4,)], 2)


def test_of_two_runs_at_once_only_one_fills_the_table(desk):
    create = "CREATE TABLE kept AS SELECT id FROM s WHERE id > 1"
    context, table = desk.lake._context, created_table(create)

    def late(insert, still):
        assert desk.status(create) == "Table kept successfully created."
        desk.run("INSERT INTO orders VALUES (4, 'd')")
        return fill_once(context, insert, still)

    read = partial(desk.spark.sql, "SELECT 1L AS id")
    with pytest.raises(SqlCompilationError, match="already exists"):
        create_and_fill(context, create, table, ("s",), read=read, fill=late)
    assert (desk.rows("SELECT id FROM kept"), desk.offset()) == ([(2,), (3,)], 1)
    assert desk.rows("SELECT id FROM s") == [(4,)]


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
