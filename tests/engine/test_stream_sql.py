"""`lake.sql`: the SQL of the source system against real tables; each test names the rules that it is about."""

from __future__ import annotations

import uuid
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.table_templates import put_table
from tidemark.client import connect
from tidemark.errors import (
    InvalidArgument,
    NotYetSupported,
    SqlCompilationError,
    StatementRefused,
    StreamExists,
    StreamNotFound,
    TrackingInterrupted,
)

pytestmark = pytest.mark.spark

TRACKED = "USING delta TBLPROPERTIES ('delta.enableRowTracking' = 'true')"
ORDERS = (f"CREATE TABLE {{t}} (id BIGINT, v STRING) {TRACKED}", "INSERT INTO {t} VALUES (1, 'a'), (2, 'b')")


class Desk:
    """A client in a schema of its own; `furnish` makes a table `orders` (id, v) of rows 1 a and 2 b, and a `log`."""

    def __init__(self, spark, path):
        self.main, self.path, self.spark = spark, path, spark.newSession()
        self.schema = f"desk_{uuid.uuid4().hex[:12]}"
        self.spark.sql(f"CREATE SCHEMA {self.schema}")
        self.spark.sql(f"USE {self.schema}")
        self.lake = connect(self.spark, f"sqlite:///{path}/control.db", lake_root=str(path), who="ann")

    def furnish(self):
        self.put("orders", *ORDERS)
        self.put("log", "CREATE TABLE {t} (id BIGINT, v STRING, action STRING) USING delta")

    def put(self, name, *statements):
        """An external table of the schema, as copies are."""
        place = self.path / "put" / name
        put_table(self.main, place, *statements)
        self.spark.sql(f"CREATE TABLE {name} USING delta LOCATION '{place}'")

    def run(self, *texts):
        for text in texts:
            self.lake.sql(text)

    def rows(self, text):
        return sorted((tuple(row) for row in self.lake.sql(text).collect()), key=str)

    def one(self, text):
        (row,) = self.lake.sql(text).collect()
        return row

    def status(self, text):
        return self.one(text).status

    def refused(self, text):
        """(the text above the caret, problem)."""
        with pytest.raises(SqlCompilationError) as caught:
            self.lake.sql(text)
        shown, carets = caught.value.marked.strip("\n").split("\n")
        start = carets.index("^")
        return shown[start : start + carets.count("^")], caught.value.problem

    def offset(self, name="s"):
        return self.lake.describe_stream(name).offset_version

    def close(self):
        self.lake.close()
        self.spark.sql(f"DROP SCHEMA {self.schema} CASCADE")


@pytest.fixture
def empty_desk(spark, tmp_path):
    desk = Desk(spark, tmp_path)
    yield desk
    desk.close()


@pytest.fixture
def desk(empty_desk):
    empty_desk.furnish()
    return empty_desk


SEEN = "SELECT id, v, METADATA$ACTION, METADATA$ISUPDATE FROM s"


@pytest.mark.quick
def test_R4_R7_R12_streams_are_made_altered_replaced_and_dropped_by_sql(desk):
    assert desk.status("CREATE STREAM s ON TABLE orders COMMENT = 'first'") == "Stream s successfully created."
    desk.run("INSERT INTO orders VALUES (3, 'c')")
    with pytest.raises(StreamExists, match="Object 's' already exists"):
        desk.lake.sql("CREATE STREAM S ON TABLE orders")
    assert desk.status("CREATE STREAM IF NOT EXISTS S ON TABLE orders") == "S already exists, statement succeeded."
    assert desk.rows(SEEN) == [(3, "c", "INSERT", False)]
    desk.run("ALTER STREAM s SET COMMENT = 'second'")
    assert desk.lake.describe_stream("s").comment == "second"
    desk.run("CREATE OR ALTER STREAM s ON TABLE orders COMMENT = 'third'")
    assert (desk.lake.describe_stream("s").comment, len(desk.rows(SEEN))) == ("third", 1)
    assert desk.refused("CREATE OR ALTER STREAM s ON TABLE orders APPEND_ONLY = TRUE")[0] == "s"
    assert desk.refused("CREATE OR ALTER STREAM s ON TABLE log")[0] == "s"
    desk.run("ALTER STREAM s UNSET COMMENT", "ALTER STREAM IF EXISTS nobody SET COMMENT = 'x'")
    assert desk.lake.describe_stream("s").comment is None
    assert "COPY GRANTS was ignored" in desk.status("CREATE OR REPLACE STREAM s COPY GRANTS ON TABLE orders")
    assert desk.rows(SEEN) == []
    assert desk.status("DROP STREAM s") == "s successfully dropped."
    assert "already dropped" in desk.status("DROP STREAM IF EXISTS s")
    with pytest.raises(StreamNotFound):
        desk.lake.sql("DROP STREAM s")


def test_R3_R8g_R114_create_stream_turns_row_tracking_on_but_cannot_look_behind_that(desk):
    desk.run("CREATE TABLE plain USING delta AS SELECT 1 AS id", "INSERT INTO plain VALUES (2)")
    place, problem = desk.refused("SELECT * FROM plain CHANGES(INFORMATION => DEFAULT) AT(VERSION => 0)")
    assert (place, problem.startswith("Change tracking is not enabled or has been missing")) == ("plain", True)
    with pytest.raises(TrackingInterrupted, match="Change tracking is not enabled or has been missing"):
        desk.lake.sql("CREATE STREAM s ON TABLE plain AT(VERSION => 0)")
    desk.run("CREATE STREAM s ON TABLE plain", "INSERT INTO plain VALUES (3)")
    assert desk.rows("SELECT id FROM s") == [(3,)]


def test_R5_R9_what_a_stream_cannot_be_on_is_refused_where_it_stands(desk, tmp_path):
    desk.run("CREATE STREAM s ON TABLE orders", "CREATE VIEW v AS SELECT id FROM orders")
    assert desk.refused("CREATE STREAM x ON TABLE nowhere") == (
        "nowhere",
        "Object 'nowhere' does not exist or not authorized.",
    )
    wrong_kind = "Object found is of type '{}', not specified type '{}'."
    assert desk.refused("CREATE STREAM x ON TABLE v") == ("v", wrong_kind.format("VIEW", "TABLE"))
    assert desk.refused("CREATE STREAM x ON VIEW orders") == ("orders", wrong_kind.format("TABLE", "VIEW"))
    assert desk.refused("CREATE STREAM x ON TABLE s") == ("s", wrong_kind.format("STREAM", "TABLE"))
    assert desk.refused("CREATE STREAM x ON DYNAMIC TABLE orders")[1] == wrong_kind.format("TABLE", "DYNAMIC TABLE")
    (tmp_path / "files").mkdir()
    desk.lake.external_tables.create(f"{tmp_path}/files", file_format="json", schema="id INT")
    assert desk.refused(f"CREATE STREAM x ON TABLE '{tmp_path}/files'")[1] == wrong_kind.format(
        "EXTERNAL TABLE", "TABLE"
    )
    with pytest.raises(NotYetSupported, match="ON EXTERNAL TABLE"):
        desk.lake.sql(f"CREATE STREAM x ON STAGE '{tmp_path}/files'")


def test_R8_points_of_every_kind_set_the_offset(desk):
    desk.spark.conf.set("spark.databricks.delta.commitInfo.userMetadata", "third")
    desk.run("INSERT INTO orders VALUES (3, 'c')")
    desk.spark.conf.unset("spark.databricks.delta.commitInfo.userMetadata")
    desk.run("INSERT INTO orders VALUES (4, 'd')")
    now = datetime.now(UTC).isoformat()
    points = {
        "AT(VERSION => 1)": [3, 4],
        "BEFORE(VERSION => 1)": [1, 2, 3, 4],
        "AT(STATEMENT => 'third')": [4],
        "BEFORE(STATEMENT => 'third')": [3, 4],
        f"AT(TIMESTAMP => '{now}'::timestamp_tz)": [],
        "AT(OFFSET => 0)": [],
    }
    for point, ids in points.items():
        desk.run(f"CREATE OR REPLACE STREAM s ON TABLE orders {point}")
        assert (point, [id for (id,) in desk.rows("SELECT id FROM s")]) == (point, ids)
    desk.run("CREATE OR REPLACE STREAM s ON TABLE orders AT(VERSION => 2)", "CREATE STREAM t CLONE s")
    desk.run("CREATE OR REPLACE STREAM s ON TABLE orders AT(STREAM => 'S')")
    assert desk.rows("SELECT id FROM s") == desk.rows("SELECT id FROM t") == [(4,)]


def test_R8b_R8c_R8f_points_that_are_not_there_are_said_in_the_words_of_the_source_system(desk):
    create = "CREATE STREAM s ON TABLE orders "
    beyond = "Time travel data is not available for table orders. The requested time is either beyond the allowed time"
    assert desk.refused(create + "AT(STREAM => 'x')") == ("AT(STREAM => 'x')", "Stream 'x' not found.")
    assert desk.refused(create + "AT(STATEMENT => '8e')") == ("AT(STATEMENT => '8e')", "Statement 8e not found")
    for point in ("AT(TIMESTAMP => '2001-01-01'::timestamp)", "AT(OFFSET => -99999999)", "AT(VERSION => 99)"):
        place, problem = desk.refused(create + point)
        assert (place, beyond in problem) == (point, True)


def test_R13_R14_R15_R16_a_query_reads_and_a_write_advances(desk):
    desk.run("CREATE STREAM s ON TABLE orders", "INSERT INTO orders VALUES (3, 'c'), (4, 'd')")
    desk.run("SELECT * FROM s", "SELECT count(*) FROM s JOIN orders USING (id)")
    assert desk.offset() == 1
    counted = desk.one("INSERT INTO log SELECT id, v, METADATA$ACTION FROM s WHERE id = 4")
    assert counted.asDict() == {
        "number of rows inserted": 1,
        "number of rows updated": 0,
        "number of rows deleted": 0,
    }
    assert (desk.offset(), desk.rows(SEEN)) == (2, [])
    desk.run("INSERT INTO log VALUES (9, 'own', 'INSERT')", "DELETE FROM orders WHERE id = 1")
    desk.run(
        "MERGE INTO log USING (SELECT id FROM s WHERE METADATA$ACTION = 'DELETE') gone ON log.id <> gone.id"
        " WHEN MATCHED THEN DELETE"
    )
    assert (desk.rows("SELECT * FROM log"), desk.offset()) == ([], 3)
    with desk.lake.transaction() as tx, pytest.raises(StatementRefused, match="create the target first"):
        tx.sql("CREATE TABLE copied USING delta AS SELECT id FROM s")


def test_R110_R111_R112_R114_changes_is_a_query_without_an_offset(desk):
    desk.run("UPDATE orders SET v = 'z' WHERE id = 1", "INSERT INTO orders VALUES (3, 'c')")
    changes = "SELECT id, v, METADATA$ACTION, orders.METADATA$ISUPDATE FROM orders CHANGES(INFORMATION => {}) {}"
    pair = [(1, "a", "DELETE", True), (1, "z", "INSERT", True)]
    assert desk.rows(changes.format("DEFAULT", "AT(VERSION => 1)")) == [*pair, (3, "c", "INSERT", False)]
    assert desk.rows(changes.format("DEFAULT", "AT(VERSION => 1) END(VERSION => 2)")) == pair
    assert desk.rows(changes.format("APPEND_ONLY", "AT(VERSION => 1)")) == [(3, "c", "INSERT", False)]
    assert desk.rows(changes.format("DEFAULT", "AT(VERSION => 3)")) == []
    desk.run("CREATE STREAM s ON TABLE orders AT(VERSION => 2)")
    assert desk.rows(changes.format("DEFAULT", "AT(STREAM => 's')")) == [(3, "c", "INSERT", False)]
    assert desk.offset() == 2
    desk.run(
        f"CREATE TABLE found AS {changes.format('DEFAULT', 'AT(VERSION => 2)').replace('v, METADATA$ACTION,', '')}"
    )
    assert desk.rows("SELECT id FROM found") == [(3,)]


def test_a_table_is_read_as_it_was(desk):
    desk.run("CREATE TABLE twin CLONE orders", "DELETE FROM orders WHERE id = 1")
    assert desk.rows("SELECT id FROM twin") == [(1,), (2,)]
    then = "SELECT old.id FROM orders AT(VERSION => 1) old LEFT JOIN orders BEFORE(VERSION => 1) ON false"
    assert desk.rows(then) == [(1,), (2,)]
    assert desk.refused("SELECT * FROM orders AT(VERSION => 77)")[0] == "AT(VERSION => 77)"


def test_R120_R124_R125_system_functions_answer_inside_queries(desk):
    desk.run("CREATE STREAM s ON TABLE orders")
    assert desk.one("SELECT SYSTEM$STREAM_HAS_DATA('s')").asDict() == {"SYSTEM$STREAM_HAS_DATA('s')": False}
    desk.run("INSERT INTO orders VALUES (3, 'c')", "UPDATE orders SET v = 'y'", "OPTIMIZE orders")
    has_data, nanoseconds = desk.one(
        "SELECT NOT system$stream_has_data('S') AS quiet, SYSTEM$STREAM_GET_TABLE_TIMESTAMP('s') AS at"
    )
    assert has_data is False
    assert abs(nanoseconds / 1e9 - datetime.now(UTC).timestamp()) < 600
    backlog = "SELECT version, change_records, operation FROM TABLE(SYSTEM$STREAM_BACKLOG('s'))"
    assert desk.rows(backlog) == [(2, 1, "INSERT"), (3, 6, "UPDATE"), (4, 0, "OPTIMIZE")]
    with pytest.raises(StatementRefused, match="on their own"):
        desk.lake.sql("INSERT INTO log SELECT b.version, 'x', 'y' FROM s, TABLE(SYSTEM$STREAM_BACKLOG('s')) b")


def test_R130_R131_R132_show_and_describe_have_the_columns_of_the_source_system(empty_desk):
    desk = empty_desk
    desk.run(
        *(text.replace("{t}", "orders") for text in ORDERS),  # a table that is gone once it is dropped
        "CREATE STREAM s ON TABLE orders COMMENT = 'mine'",
        "CREATE STREAM sales.db2.t ON TABLE orders APPEND_ONLY = TRUE",
    )
    shown = desk.lake.sql("SHOW STREAMS").collect()
    assert shown[0].asDict().keys() == {
        "created_on", "name", "database_name", "schema_name", "owner", "comment", "table_name", "source_type",
        "base_tables", "type", "stale", "mode", "stale_after", "invalid_reason", "owner_role_type",
    }  # fmt: skip
    assert [(row.name, row.database_name, row.schema_name, row.mode) for row in shown] == [
        ("s", None, None, "DEFAULT"),
        ("t", "sales", "db2", "APPEND_ONLY"),
    ]
    described = desk.one("DESC STREAM s")
    assert (described.comment, described.table_name, described.type) == ("mine", "orders", "DELTA")
    assert (described.stale, described.invalid_reason, described.source_type) == (False, "N/A", "Table")
    (terse,) = desk.lake.sql("SHOW TERSE STREAMS LIKE 'T' IN SCHEMA sales.db2").collect()
    assert list(terse.asDict()) == ["created_on", "name", "kind", "database_name", "schema_name", "tableOn"]
    assert (terse.name, terse.kind, terse.tableOn) == ("t", "DELTA", "orders")
    assert desk.lake.sql("SHOW STREAMS STARTS WITH 'S'").collect() == []
    assert desk.rows("SELECT id FROM sales.db2.t") == []
    desk.run("DROP TABLE orders")
    gone = desk.one("DESCRIBE STREAM s")
    assert (gone.table_name, gone.stale, gone.stale_after) == ("No privilege or table dropped", True, None)


def test_what_is_nothing_to_do_with_streams_is_sparks_and_transactions_are_blocks(desk, tmp_path):
    assert desk.rows("SELECT 'SYSTEM' AS x, 1 + 1 AS y") == [("SYSTEM", 2)]
    desk.run(f"CREATE TABLE delta.`{tmp_path}/shop/items` (id INT) USING delta", "INSERT INTO shop.items VALUES (7)")
    assert desk.rows("SELECT i.id FROM shop.items i") == [(7,)]
    assert "lake.transaction()" in desk.refused("BEGIN")[1]


SCRIPTS = sorted((Path(__file__).parent / "stream_scripts").glob("*.sql"))


def statements_of(script):
    """(statement, expected rows or None): a statement ends with its line, `-->` are the rows that it answers with."""
    statement, expected, told = "", [], False
    for line in [*script.read_text().splitlines(), ""]:
        if line.startswith("--> "):
            told = True
            expected += [line.removeprefix("--> ")] if line != "--> nothing" else []
        elif statement.endswith(";"):
            yield statement, sorted(expected) if told else None
            statement, expected, told = "", [], False
        if not line.startswith("--"):
            statement = f"{statement}\n{line}".strip()


@pytest.mark.parametrize("script", SCRIPTS, ids=[script.stem for script in SCRIPTS])
def test_scripts_of_the_source_system_can_be_pasted(empty_desk, script):
    for statement, expected in statements_of(script):
        found = sorted(" | ".join(map(str, row)) for row in empty_desk.lake.sql(statement).collect())
        assert expected is None or (statement, found) == (statement, expected)


def test_R17_R20_R21_a_transaction_sees_the_same_rows_and_its_own_writes_come_next_time(desk):
    desk.run("CREATE STREAM s ON TABLE orders", "INSERT INTO orders VALUES (3, 'c')")
    with desk.lake.transaction() as tx:
        before = tx.sql("SELECT id FROM s").collect()
        tx.sql("INSERT INTO log SELECT id, v, METADATA$ACTION FROM s")
        desk.run("INSERT INTO orders VALUES (4, 'd')")
        assert tx.sql("SELECT id FROM s").collect() == before
    assert desk.rows("SELECT id FROM log") == [(3,)]
    assert desk.rows("SELECT id FROM s") == [(4,)]


def test_R70_R79_a_view_is_a_source_by_sql_and_its_changes_can_be_asked_for(desk):
    desk.run(
        "CREATE VIEW upper_orders AS SELECT id, upper(v) AS name FROM orders WHERE id > 1",
        "CREATE STREAM s ON VIEW upper_orders",
        "UPDATE orders SET v = 'y' WHERE id = 2",
    )
    pair = [(2, "B", "DELETE", True), (2, "Y", "INSERT", True)]
    columns = "id, name, METADATA$ACTION, METADATA$ISUPDATE"
    assert desk.rows(f"SELECT {columns} FROM s") == pair
    assert desk.rows(f"SELECT {columns} FROM upper_orders CHANGES(INFORMATION => DEFAULT) AT(STREAM => 's')") == pair
    shown = desk.one("DESC STREAM s")
    base = f"spark_catalog.{desk.schema}.orders"
    assert (shown.source_type, shown.table_name, shown.base_tables) == ("View", "upper_orders", base)
    backlog = "SELECT table_name, version, operation FROM TABLE(SYSTEM$STREAM_BACKLOG('s'))"
    assert desk.rows(backlog) == [(base, 2, "UPDATE")]
    with pytest.raises(InvalidArgument, match="reads a view"):
        desk.lake.sql("SELECT SYSTEM$STREAM_GET_TABLE_TIMESTAMP('s')")
    desk.run("CREATE STREAM twin CLONE s", "INSERT INTO log SELECT id, name, METADATA$ACTION FROM s")
    assert (desk.rows("SELECT * FROM s"), desk.rows(f"SELECT {columns} FROM twin")) == ([], pair)
