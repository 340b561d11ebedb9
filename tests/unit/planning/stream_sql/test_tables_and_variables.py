"""Statements on tables in the words of the source system, and SET."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal

import pytest

from tidemark.errors import SqlCompilationError, StatementRefused
from tidemark.streams.planning.stream_sql.parse import parse_stream_sql
from tidemark.streams.planning.stream_sql.statements import ChangesClause, SetVariable, StreamQuery
from tidemark.streams.planning.stream_sql.tables import CREATED_FOR, created_table, head_at, table_statement

NOW = datetime(2026, 3, 31, 12, tzinfo=UTC)
TRACKED = "USING DELTA TBLPROPERTIES ('delta.enableRowTracking'='true'"


@pytest.mark.parametrize(
    ("text", "for_spark"),
    [
        (
            "create or replace table m (id number(8) NOT NULL, name varchar(9) default NULL, fee number(3) NULL);",
            f"CREATE OR REPLACE TABLE m (id DECIMAL(8) NOT NULL, name VARCHAR(9), fee DECIMAL(3)) {TRACKED})",
        ),
        (
            "CREATE TABLE t (a TIMESTAMP_NTZ(9) DEFAULT CURRENT_TIMESTAMP()) DATA_RETENTION_TIME_IN_DAYS = 3",
            "CREATE TABLE t (a TIMESTAMP_NTZ DEFAULT CURRENT_TIMESTAMP()) "
            f"{TRACKED}, 'delta.deletedFileRetentionDuration'='interval 3 days',"
            " 'delta.feature.allowColumnDefaults'='supported')",
        ),
        (
            "CREATE TRANSIENT TABLE IF NOT EXISTS a.t AS SELECT 1 AS `id`, x::string FROM u JOIN v USING (x)",
            f"CREATE TABLE IF NOT EXISTS a.t {TRACKED}) AS SELECT 1 AS `id`, x::string FROM u JOIN v USING (x)",
        ),
        (
            "CREATE TABLE delta.`/a b/t` (id INT) CHANGE_TRACKING = FALSE",
            "CREATE TABLE delta.`/a b/t` (id INT) USING DELTA TBLPROPERTIES ('delta.enableRowTracking'='false')",
        ),
        (
            "ALTER TABLE a.t1 SET CHANGE_TRACKING = TRUE",
            "ALTER TABLE a.t1 SET TBLPROPERTIES ('delta.enableRowTracking' = 'true')",
        ),
        (
            "CREATE TABLE t (id INT) PARTITIONED BY (id)",
            f"CREATE TABLE t (id INT) {TRACKED})".replace("DELTA", "DELTA PARTITIONED BY (id)"),
        ),
        ("TRUNCATE TABLE a.t", "DELETE FROM a.t"),
        ("CREATE OR REPLACE TABLE t CLONE a.u", "CREATE OR REPLACE TABLE t SHALLOW CLONE a.u"),
    ],
)
def test_R3_R55_tables_are_made_for_delta_and_tracked_from_birth(text, for_spark):
    assert table_statement(text) == for_spark


@pytest.mark.parametrize(
    "text",
    [
        "CREATE TABLE t (id INT) USING parquet",
        "CREATE TABLE t USING delta AS SELECT 1 AS id",
        "CREATE TABLE t SHALLOW CLONE u",
        "CREATE TABLE t LIKE u",
        "CREATE VIEW v AS SELECT 1",
        "ALTER TABLE t ADD COLUMNS (a INT)",
        "INSERT INTO t VALUES (1)",
        "CREATE TABLE t (a 'open",
    ],
)
def test_what_is_sparks_own_is_left_as_it_is(text):
    assert table_statement(text) is None


@pytest.mark.parametrize(
    ("text", "name", "value"),
    [
        ("SET ts1 = (SELECT CURRENT_TIMESTAMP());", "TS1", NOW),
        ("set minutes = -5 * 60", "MINUTES", Decimal(-300)),
        ("SET who = 's'", "WHO", "s"),
    ],
)
def test_SET_gives_a_constant_a_name(text, name, value):
    assert parse_stream_sql(text, now=NOW) == SetVariable(name, value)


@pytest.mark.parametrize("text", ["SET spark.sql.shuffle.partitions = 4", "SET", "SET x = (SELECT max(a) FROM t)"])
def test_settings_of_spark_are_left_to_spark(text):
    assert parse_stream_sql(text, now=NOW) is None


def test_R8e_R112_a_variable_stands_where_a_point_is_given():
    text = "SELECT * FROM t CHANGES(INFORMATION => DEFAULT) AT(TIMESTAMP => $ts1) END(OFFSET => $back)"
    query = parse_stream_sql(text, now=NOW, variables={"TS1": NOW, "BACK": Decimal(-60)})
    assert isinstance(query, StreamQuery)
    (changes,) = query.parts
    assert isinstance(changes, ChangesClause)
    assert changes.end is not None
    assert (changes.start.value, changes.end.value) == (NOW, -60.0)
    with pytest.raises(SqlCompilationError, match="must be a constant"):
        parse_stream_sql(text, now=NOW)


@pytest.mark.parametrize("form", ["USING parquet", "USING csv OPTIONS (header 'true')", "STORED AS ORC"])
def test_a_table_that_no_transaction_could_fill_is_refused_before_it_is_created(form: str) -> None:
    with pytest.raises(SqlCompilationError, match="cannot take a stream, only one of Delta"):
        created_table(f"CREATE TABLE IF NOT EXISTS t {form} AS SELECT id FROM s")


@pytest.mark.parametrize("form", ["", "USING Delta", "PARTITIONED BY (id)", "CLUSTER BY (id)", "LOCATION '/x'"])
def test_a_table_that_takes_a_stream_is_one_of_delta(form: str) -> None:
    found = created_table(f"CREATE TABLE t {form} AS SELECT id FROM s")
    assert found is not None
    assert found.head.count("USING DELTA") == 1


def test_a_table_is_created_at_a_path_in_place_of_its_name() -> None:
    found = created_table("CREATE TABLE a.kept PARTITIONED BY (id) COMMENT 'of s' AS SELECT id FROM s")
    assert found is not None
    head = head_at(found, "s3a://lake/a b/kept")
    begin = "CREATE TABLE IF NOT EXISTS delta.`s3a://lake/a b/kept` USING DELTA PARTITIONED BY (id) COMMENT 'of s'"
    assert head.startswith(begin)
    assert f"'{CREATED_FOR}'='{found.created_for}'" in head
    elsewhere = created_table("CREATE TABLE a.kept LOCATION '/x' AS SELECT id FROM s")
    assert elsewhere is not None
    with pytest.raises(StatementRefused, match="leave LOCATION out"):
        head_at(elsewhere, "/lake/a/kept")
