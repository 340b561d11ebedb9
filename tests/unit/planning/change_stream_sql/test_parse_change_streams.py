"""CREATE, ALTER and DROP CHANGE STREAM as values, and syntax errors with their place."""

from __future__ import annotations

from typing import Any

import pytest

from tidemark.change_streams.planning.definition import TableRequest, WatchRequest
from tidemark.change_streams.planning.sql.parse import parse_change_stream_sql
from tidemark.change_streams.planning.sql.statements import (
    CreateChangeStream,
    DropChangeStream,
    SetChangeStreamFor,
    SetChangeStreamOptions,
    SuspendChangeStream,
)
from tidemark.errors import SqlCompilationError

ALL = WatchRequest(everything=True)


def tables(*asked: TableRequest) -> WatchRequest:
    return WatchRequest(tables=asked)


@pytest.mark.parametrize(
    ("text", "watch"),
    [
        ("CREATE CHANGE STREAM s", WatchRequest()),
        ("CREATE CHANGE STREAM s FOR ALL", ALL),
        ("create change stream s for all;", ALL),
        ("CREATE CHANGE STREAM s FOR `ALL`", tables(TableRequest("ALL"))),
        ('CREATE CHANGE STREAM s FOR "ALL"', tables(TableRequest("ALL"))),
        ("CREATE CHANGE STREAM s FOR Singers", tables(TableRequest("Singers"))),
        ("CREATE CHANGE STREAM s FOR db.Singers()", tables(TableRequest("db.Singers", ()))),
        ("CREATE CHANGE STREAM s FOR t(a, `b c`)", tables(TableRequest("t", ("a", "b c")))),
        (
            "CREATE CHANGE STREAM s FOR a, b(), c(x)",
            tables(TableRequest("a"), TableRequest("b", ()), TableRequest("c", ("x",))),
        ),
        ("CREATE CHANGE STREAM s FOR delta.`/lake/t`(x)", tables(TableRequest("delta.`/lake/t`", ("x",)))),
        ("-- names\n/* of\nsingers */ CREATE CHANGE STREAM s FOR -- all\n ALL", ALL),
    ],
)
def test_create_says_what_is_watched(text: str, watch: WatchRequest) -> None:
    read = parse_change_stream_sql(text)
    assert isinstance(read, CreateChangeStream)
    assert (read.name.text, read.watch, read.options, read.if_not_exists) == ("s", watch, {}, False)


@pytest.mark.parametrize(
    ("options", "wanted"),
    [
        ("retention_period = '36h'", {"retention_period": "36h"}),
        (
            "retention_period = \"7d\", VALUE_CAPTURE_TYPE='NEW_ROW'",
            {"retention_period": "7d", "value_capture_type": "NEW_ROW"},
        ),
        (
            "exclude_insert = true, exclude_update = FALSE, exclude_delete = NULL",
            {"exclude_insert": True, "exclude_update": False, "exclude_delete": None},
        ),
        ("retention_period = 'x', exclude_delete = NULL", {"retention_period": "x", "exclude_delete": None}),
    ],
)  # fmt: skip
def test_options_are_read_as_they_are_written_and_their_values_judged_later(
    options: str, wanted: dict[str, Any]
) -> None:
    created = parse_change_stream_sql(f"CREATE CHANGE STREAM s FOR t OPTIONS ({options})")
    suspended = parse_change_stream_sql(f"CREATE CHANGE STREAM IF NOT EXISTS s OPTIONS ({options})")
    altered = parse_change_stream_sql(f"ALTER CHANGE STREAM s SET OPTIONS ({options})")
    assert isinstance(created, CreateChangeStream)
    assert created.options == wanted
    assert isinstance(suspended, CreateChangeStream)
    assert suspended.options == wanted
    assert suspended.if_not_exists
    assert isinstance(altered, SetChangeStreamOptions)
    assert altered.options == wanted


def test_alter_and_drop() -> None:
    set_for = parse_change_stream_sql("ALTER CHANGE STREAM s SET FOR t(a), u")
    assert isinstance(set_for, SetChangeStreamFor)
    assert set_for.watch == tables(TableRequest("t", ("a",)), TableRequest("u"))
    assert isinstance(parse_change_stream_sql("ALTER CHANGE STREAM s DROP FOR ALL"), SuspendChangeStream)
    dropped = parse_change_stream_sql("DROP CHANGE STREAM `s`")
    assert isinstance(dropped, DropChangeStream)
    assert (dropped.name.text, dropped.if_exists) == ("s", False)
    assert parse_change_stream_sql("DROP CHANGE STREAM IF EXISTS s") == DropChangeStream(
        parse_change_stream_sql("DROP CHANGE STREAM IF EXISTS s").name,  # type: ignore[union-attr]
        if_exists=True,
    )


@pytest.mark.parametrize(
    "text", ["", "SELECT 1", "CREATE STREAM s ON TABLE t", "DROP STREAM s", "CREATE TABLE change (stream INT)", "'"]
)
def test_other_statements_are_somebody_elses(text: str) -> None:
    assert parse_change_stream_sql(text) is None


@pytest.mark.parametrize(
    ("text", "line", "column", "problem"),
    [
        ("CREATE CHANGE STREAM", 1, 21, "expected the name of the change stream"),
        ("CREATE OR REPLACE CHANGE STREAM s", 1, 8, "unexpected 'OR'"),
        ("CREATE CHANGE STREAM a.b FOR ALL", 1, 22, "has one part"),
        ("CREATE CHANGE STREAM s FOR", 1, 27, "expected the name of a table"),
        ("CREATE CHANGE STREAM s FOR ALL, t", 1, 31, "unexpected ','"),
        ("CREATE CHANGE STREAM s FOR Users, ALL", 1, 35, "ALL excludes other names"),
        ("CREATE CHANGE STREAM s FOR Users, all, Albums()", 1, 35, "ALL excludes other names"),
        ("ALTER CHANGE STREAM s SET FOR Users(ALL)", 1, 37, "ALL excludes other names"),
        (
            "CREATE CHANGE STREAM s OPTIONS (invalid_option = '7d')",
            1,
            33,
            "it has no option 'invalid_option'; there are r",
        ),
        ("CREATE CHANGE STREAM s OPTIONS (retention_period = true)", 1, 52, "retention_period takes a text in quotes"),
        ("ALTER CHANGE STREAM s SET OPTIONS (retention_period = 7)", 1, 55, "retention_period takes a text in quotes"),
        ("CREATE CHANGE STREAM s OPTIONS (value_capture_type = -1)", 1, 54, "unexpected '-'"),
        (
            "CREATE CHANGE STREAM s OPTIONS (exclude_insert = 'true')",
            1,
            50,
            "exclude_insert takes TRUE or FALSE, or NULL",
        ),
        ("CREATE CHANGE STREAM s FOR t,", 1, 30, "expected the name of a table"),
        ("CREATE CHANGE STREAM s FOR t(a", 1, 31, "expected )"),
        ("CREATE CHANGE STREAM s FOR t(a,)", 1, 32, "expected the name of a column"),
        ("CREATE CHANGE STREAM s FOR t(a.b)", 1, 30, "not a part of it"),
        ("CREATE CHANGE STREAM s\nFOR t u", 2, 7, "unexpected 'u'"),
        ("CREATE CHANGE STREAM s OPTIONS", 1, 31, "expected ("),
        ("CREATE CHANGE STREAM s OPTIONS ()", 1, 33, "expected the name of an option"),
        ("CREATE CHANGE STREAM s OPTIONS (a 'x')", 1, 35, "expected ="),
        ("CREATE CHANGE STREAM s OPTIONS (a = b)", 1, 37, "expected a text in quotes, a number, TRUE, FALSE or NULL"),
        ("CREATE CHANGE STREAM s OPTIONS (a = 1, A = 2)", 1, 40, "option A is given twice"),
        ("CREATE CHANGE STREAM s OPTIONS (a = 1) FOR ALL", 1, 40, "unexpected 'FOR'"),
        ("ALTER CHANGE STREAM s", 1, 22, "expected SET FOR or SET OPTIONS or DROP FOR ALL"),
        ("ALTER CHANGE STREAM s DROP FOR t", 1, 23, "expected SET FOR or SET OPTIONS or DROP FOR ALL"),
        ("ALTER CHANGE STREAM s SET FOR ALL OPTIONS (a = 1)", 1, 35, "unexpected 'OPTIONS'"),
        ("DROP CHANGE STREAM s; DROP CHANGE STREAM t", 1, 23, "one statement at a time"),
        ("DROP CHANGE STREAM s 'x", 1, 22, "the quote or comment that begins here has no end"),
    ],
)
def test_syntax_errors_say_where(text: str, line: int, column: int, problem: str) -> None:
    with pytest.raises(SqlCompilationError) as error:
        parse_change_stream_sql(text)
    assert (error.value.facts["line"], error.value.facts["column"]) == (line, column)
    assert problem in str(error.value)
