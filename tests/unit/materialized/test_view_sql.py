"""Statements of materialized views and dynamic tables, as text."""

from __future__ import annotations

from datetime import timedelta

import pytest

from tidemark.errors import InvalidArgument, NotYetSupported, SqlCompilationError
from tidemark.materialized.model.definitions import Initialize, KeptKind, RefreshMode, TargetLag
from tidemark.materialized.planning.lags import lag_in_words, target_lag
from tidemark.materialized.planning.sql import parse_view_sql
from tidemark.materialized.planning.statements import (
    AlterView,
    CreateView,
    DescribeView,
    DropView,
    RefreshView,
    ResumeView,
    ShowViews,
    SuspendView,
)

MV, DT = KeptKind.MATERIALIZED_VIEW, KeptKind.DYNAMIC_TABLE
MINUTE = TargetLag(timedelta(minutes=1))
WAREHOUSE = ("WAREHOUSE was ignored: the Tidemark connection names the Spark that refreshes.",)


@pytest.mark.parametrize(
    ("text", "statement"),
    [
        ("CREATE MATERIALIZED VIEW v AS SELECT 1", CreateView(MV, "v", "SELECT 1")),
        (
            "-- first\ncreate or replace materialized view db.v (a, b COMMENT 'x') comment = 'c' cluster by (a, b)"
            " as with q as (select 1) select * from q ;",
            CreateView(
                MV,
                "db.v",
                "with q as (select 1) select * from q",
                columns=("a", "b"),
                cluster_by=("a", "b"),
                comment="c",
                or_replace=True,
            ),
        ),
        ("CREATE MATERIALIZED VIEW IF NOT EXISTS v AS SELECT 1", CreateView(MV, "v", "SELECT 1", if_not_exists=True)),
        (
            "CREATE DYNAMIC TABLE t TARGET_LAG = '1 minute' WAREHOUSE = w REFRESH_MODE = FULL INITIALIZE = ON_SCHEDULE"
            " AS SELECT 1",
            CreateView(
                DT,
                "t",
                "SELECT 1",
                target_lag=MINUTE,
                mode=RefreshMode.FULL,
                initialize=Initialize.ON_SCHEDULE,
                notices=WAREHOUSE,
            ),
        ),
        (
            "CREATE DYNAMIC TABLE t TARGET_LAG = DOWNSTREAM AS SELECT 1",
            CreateView(DT, "t", "SELECT 1", (), TargetLag()),
        ),
        ("ALTER MATERIALIZED VIEW v SUSPEND", SuspendView(MV, "v")),
        ("ALTER DYNAMIC TABLE IF EXISTS t RESUME;", ResumeView(DT, "t", if_exists=True)),
        ("ALTER DYNAMIC TABLE t REFRESH", RefreshView(DT, "t")),
        ("ALTER DYNAMIC TABLE t SET TARGET_LAG = '60 seconds'", AlterView(DT, "t", MINUTE)),
        (
            "ALTER DYNAMIC TABLE t SET WAREHOUSE = 'w', COMMENT = 'c'",
            AlterView(DT, "t", comment="c", notices=WAREHOUSE),
        ),
        ("ALTER MATERIALIZED VIEW v UNSET COMMENT", AlterView(MV, "v", unset_comment=True)),
        ("DROP DYNAMIC TABLE IF EXISTS t", DropView(DT, "t", if_exists=True)),
        ("SHOW MATERIALIZED VIEWS", ShowViews(MV)),
        (
            "SHOW DYNAMIC TABLES LIKE 'a%' IN SCHEMA d.s STARTS WITH 'b' LIMIT 3 FROM 'c'",
            ShowViews(DT, "a%", "d", "s", "b", 3, "c"),
        ),
        ("DESC DYNAMIC TABLE db.t", DescribeView(DT, "db.t")),
        ("SELECT * FROM dynamic_table", None),
        ("CREATE VIEW v AS SELECT 1", None),
        ("CREATE TABLE t (id INT)", None),
    ],
)
def test_a_statement_says_what_it_means(text: str, statement: object) -> None:
    assert parse_view_sql(text) == statement


@pytest.mark.parametrize(
    ("text", "column", "problem"),
    [
        ("CREATE DYNAMIC TABLE t AS SELECT 1", 24, "a dynamic table needs TARGET_LAG"),
        ("CREATE DYNAMIC TABLE t TARGET_LAG = 'soon' AS SELECT 1", 37, "a target lag is DOWNSTREAM, or a number"),
        ("CREATE DYNAMIC TABLE t TARGET_LAG = '0 minutes' AS SELECT 1", 37, "a target lag is DOWNSTREAM, or a number"),
        ("CREATE DYNAMIC TABLE t TARGET_LAG = DOWNSTREAM REFRESH_MODE = LAZY AS SELECT 1", 63, "expected AUTO or FULL"),
        ("CREATE MATERIALIZED VIEW v TARGET_LAG = '1 day' AS SELECT 1", 28, "unexpected 'TARGET_LAG'"),
        ("CREATE MATERIALIZED VIEW v", 27, "expected COMMENT"),
        ("CREATE MATERIALIZED VIEW v AS DELETE FROM t", 31, "expected SELECT"),
        ("CREATE MATERIALIZED VIEW v CLUSTER BY (date(a)) AS SELECT 1", 40, "clustered by columns, not by expressions"),
        ("CREATE MATERIALIZED VIEW v COMMENT = 'a' COMMENT = 'b' AS SELECT 1", 42, "COMMENT is given twice"),
        ("CREATE MATERIALIZED VIEW v (a, A) AS SELECT 1, 2", 32, "the column A is given twice"),
        ("CREATE MATERIALIZED VIEW v (a INT) AS SELECT 1", 31, "its type and its rules are those of the query"),
        ("CREATE OR REPLACE DYNAMIC TABLE IF NOT EXISTS t TARGET_LAG = DOWNSTREAM AS SELECT 1", 47, "excludes"),
        ("ALTER MATERIALIZED VIEW v SET TARGET_LAG = '1 day'", 31, "expected COMMENT"),
        ("ALTER DYNAMIC TABLE t SET", 26, "expected COMMENT or TARGET_LAG or WAREHOUSE"),
        ("DROP MATERIALIZED VIEW", 23, "expected the name of a materialized view"),
        ("UNDROP DYNAMIC TABLE t", 1, "cannot be brought back"),
        ("SHOW DYNAMIC TABLES LIMIT 0", 27, "LIMIT goes from 1 to 10000"),
        ("CREATE MATERIALIZED VIEW spark_catalog.db.v AS SELECT 1", 26, "in no catalog"),
        ('DROP DYNAMIC TABLE IF EXISTS "a.b".c', 30, "in no catalog"),
        ("ALTER DYNAMIC TABLE delta.`/lake/t` REFRESH", 21, "below the lake root"),
    ],
)
def test_a_wrong_statement_is_refused_with_its_place(text: str, column: int, problem: str) -> None:
    with pytest.raises(SqlCompilationError) as refused:
        parse_view_sql(text)
    assert problem in refused.value.facts["problem"]
    assert refused.value.facts["column"] == column


@pytest.mark.parametrize(
    ("text", "feature"),
    [
        ("CREATE SECURE MATERIALIZED VIEW v AS SELECT 1", "SECURE of a materialized view"),
        ("CREATE OR REPLACE DYNAMIC ICEBERG TABLE t TARGET_LAG = DOWNSTREAM AS SELECT 1", "A dynamic Iceberg table"),
        ("CREATE DYNAMIC TABLE t CLONE u", "CLONE of a dynamic table"),
        (
            "CREATE DYNAMIC TABLE t DATA_RETENTION_TIME_IN_DAYS = 1 TARGET_LAG = DOWNSTREAM AS SELECT 1",
            "DATA_RETENTION",
        ),
        ("CREATE MATERIALIZED VIEW v ROW ACCESS POLICY p ON (a) AS SELECT 1", "ROW ACCESS POLICY"),
        ("ALTER DYNAMIC TABLE t RENAME TO u", "RENAME of a dynamic table"),
        ("ALTER DYNAMIC TABLE t SWAP WITH u", "SWAP of a dynamic table"),
        ("ALTER MATERIALIZED VIEW v CLUSTER BY (a)", "CLUSTER BY of a materialized view"),
        ("ALTER MATERIALIZED VIEW v SUSPEND RECLUSTER", "SUSPEND RECLUSTER"),
        ("ALTER DYNAMIC TABLE t REFRESH COPY SESSION", "REFRESH … COPY SESSION"),
    ],
)
def test_a_part_without_a_counterpart_is_refused_by_its_name(text: str, feature: str) -> None:
    with pytest.raises(NotYetSupported) as refused:
        parse_view_sql(text)
    assert refused.value.facts["feature"].startswith(feature)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ("10 minutes", "10 minutes"),
        ("60 SECONDS", "1 minute"),
        ("90 seconds", "90 seconds"),
        ("24 hours", "1 day"),
        (timedelta(hours=2), "2 hours"),
        ("downstream", "DOWNSTREAM"),
    ],
)
def test_a_lag_is_said_in_the_largest_unit_that_divides_it(given: object, words: str) -> None:
    assert lag_in_words(target_lag(given)) == words


@pytest.mark.parametrize("given", ["", "10", "minutes", "-1 minutes", "1.5 hours", timedelta(), None, 7])
def test_what_is_no_lag_is_refused(given: object) -> None:
    with pytest.raises(InvalidArgument, match="a target lag is"):
        target_lag(given)
