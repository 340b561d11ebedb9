"""CREATE STREAM as text; each test names the rules that it is about."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from tidemark.errors import SqlCompilationError
from tidemark.model.streams import StreamMode
from tidemark.streams.planning.stream_sql.parse import parse_stream_sql
from tidemark.streams.planning.stream_sql.statements import CloneStream, CreateStream, ObjectKind, PointKind, SqlPoint

NOW = datetime(2026, 3, 31, 12, tzinfo=UTC)


def parsed(text):
    return parse_stream_sql(text, now=NOW)


def refused(text):
    """(line, column, the text above the caret, problem)."""
    with pytest.raises(SqlCompilationError) as caught:
        parsed(text)
    error = caught.value
    shown, carets = error.marked.strip("\n").split("\n")
    start = carets.index("^")
    return error.line, error.column, shown[start : start + carets.count("^")], error.problem


def test_R4_the_shortest_statement_has_the_defaults():
    statement = parsed("create stream s on table shop.orders")
    assert isinstance(statement, CreateStream)
    assert (statement.name.text, statement.source.text, statement.kind) == ("s", "shop.orders", ObjectKind.TABLE)
    assert (statement.mode, statement.point, statement.comment) == (StreamMode.STANDARD, None, None)
    flags = (statement.show_initial_rows, statement.or_replace, statement.or_alter, statement.if_not_exists)
    assert not any(flags)


@pytest.mark.parametrize(
    "options",
    [
        "AT (VERSION => 3) APPEND_ONLY = TRUE SHOW_INITIAL_ROWS = TRUE COMMENT = 'it''s mine'",
        "COMMENT='it''s mine' SHOW_INITIAL_ROWS=true APPEND_ONLY=true AT(VERSION=>3);",
    ],
)
def test_R4_options_come_in_any_order(options):
    statement = parsed(f"CREATE OR REPLACE STREAM s ON TABLE t {options}")
    assert isinstance(statement, CreateStream)
    assert (statement.mode, statement.show_initial_rows) == (StreamMode.APPEND_ONLY, True)
    assert (statement.comment, statement.or_replace) == ("it's mine", True)
    assert statement.point is not None
    assert (statement.point.kind, statement.point.value) == (PointKind.VERSION, 3)


def test_R12_names_have_up_to_three_parts_and_quotes_and_paths_in_backticks_or_quotes():
    statement = parsed('CREATE STREAM db.sales."my stream" ON TABLE delta.`/a b/t`')
    assert isinstance(statement, CreateStream)
    assert (statement.name.parts, statement.source.parts) == (("db", "sales", "my stream"), ("delta", "/a b/t"))
    by_path = parsed("CREATE STREAM s ON TABLE '/a b/t'")
    assert isinstance(by_path, CreateStream)
    assert by_path.source.parts == ("delta", "/a b/t")


@pytest.mark.parametrize("kind", list(ObjectKind))
def test_R6_every_kind_of_source_has_its_word(kind):
    only = "INSERT_ONLY = TRUE" if kind is ObjectKind.EXTERNAL_TABLE else ""
    statement = parsed(f"CREATE STREAM s ON {kind} x {only}")
    assert isinstance(statement, CreateStream)
    assert statement.kind is kind


def test_comments_and_lines_do_not_matter():
    text = "-- a stream\nCREATE STREAM IF NOT EXISTS s /* on */\n  ON VIEW v // the end\n;"
    statement = parsed(text)
    assert isinstance(statement, CreateStream)
    assert (statement.if_not_exists, statement.kind) == (True, ObjectKind.VIEW)


def test_R11_a_clone_takes_its_source_and_a_point_and_copy_grants_is_a_notice():
    clone = parsed("CREATE STREAM c CLONE s AT(VERSION => 4) COPY GRANTS")
    assert isinstance(clone, CloneStream)
    assert (clone.name.text, clone.source.text) == ("c", "s")
    assert isinstance(clone.point, SqlPoint)
    assert (clone.point.value, ["COPY GRANTS" in notice for notice in clone.notices]) == (4, [True])
    created = parsed("CREATE OR REPLACE STREAM s COPY GRANTS ON TABLE t")
    assert isinstance(created, CreateStream)
    assert len(created.notices) == 1


@pytest.mark.parametrize(
    ("text", "place", "problem"),
    [
        ("CREATE STREAM s ON TABEL t", (1, 20, "TABEL"), "expected TABLE or VIEW"),
        ("CREATE STREAM s\n  ON STREAM other", (2, 6, "STREAM"), "unexpected 'STREAM'"),
        ("CREATE STREAM s ON TABLE", (1, 25, ""), "unexpected the end of the text"),
        ("CREATE STREAM ON TABLE t", (1, 15, "ON"), "expected the name of the stream"),
        ("CREATE STREAM s ON TABLE t APPEND_ONLY = YES", (1, 42, "YES"), "expected TRUE or FALSE"),
        ("CREATE STREAM s ON TABLE t APPEND_ONLY TRUE", (1, 40, "TRUE"), "expected ="),
        ("CREATE STREAM s ON TABLE t COMMENT = x", (1, 38, "x"), "expected a comment in quotes"),
        ("CREATE STREAM s ON TABLE t COMMENT = 'x", (1, 38, "'"), "has no end"),
        ("CREATE STREAM s ON TABLE t COMMENT = 'a' COMMENT = 'b'", (1, 42, "COMMENT"), "given twice"),
        ("CREATE STREAM s ON TABLE t AT(VERSION => 1) BEFORE(VERSION => 2)", (1, 45, "BEFORE"), "given twice"),
        ("CREATE STREAM s ON TABLE t TAG (a = 'b')", (1, 28, "TAG"), "tags are not kept"),
        ("CREATE STREAM s ON TABLE t; DROP STREAM s", (1, 29, "DROP"), "one statement at a time"),
        ("CREATE STREAM s ON TABLE t NOSUCH = 1", (1, 28, "NOSUCH"), "unexpected 'NOSUCH'"),
        ("CREATE OR REPLACE STREAM IF NOT EXISTS s ON TABLE t", (1, 26, "IF"), "contradict"),
        ("CREATE OR ALTER STREAM s CLONE t", (1, 32, "t"), "does not clone"),
    ],
)
def test_R7_errors_point_at_the_place(text, place, problem):
    line, column, above_caret, said = refused(text)
    assert (line, column, above_caret) == place
    assert problem in said


@pytest.mark.parametrize(
    ("text", "above_caret", "problem"),
    [
        (
            "CREATE STREAM s ON TABLE t INSERT_ONLY = TRUE",
            "INSERT_ONLY",
            "Streams of type INSERT_ONLY can only be created on external tables or Iceberg tables with an external"
            " catalog integration.",
        ),
        ("CREATE STREAM s ON EXTERNAL TABLE t", "CREATE", "Streams on external tables must set INSERT_ONLY = TRUE."),
        (
            "CREATE STREAM s ON STAGE t APPEND_ONLY = TRUE",
            "APPEND_ONLY",
            "Streams on directories cannot have APPEND_ONLY set to true.",
        ),
        (
            "CREATE STREAM s ON DYNAMIC TABLE t APPEND_ONLY = TRUE",
            "APPEND_ONLY",
            "Change tracking of type APPEND_ONLY is not supported on dynamic tables.",
        ),
    ],
)
def test_R5_R6_modes_that_a_source_does_not_have_are_refused(text, above_caret, problem):
    assert refused(text)[2:] == (above_caret, problem)


def test_the_message_shows_the_line_and_a_caret():
    with pytest.raises(SqlCompilationError) as caught:
        parsed("CREATE STREAM s\n\tON TABEL t")
    assert str(caught.value).split("\n")[1:] == ["  \tON TABEL t", "  \t   ^^^^^"]
    assert str(caught.value).startswith("SQL compilation error, line 2, column 5: syntax error: unexpected 'TABEL'")
