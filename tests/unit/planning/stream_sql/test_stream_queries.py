"""What a query holds that Spark does not know, and what becomes of it."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from tidemark.errors import SqlCompilationError
from tidemark.model.streams import StreamMode
from tidemark.streams.planning.stream_sql.parse import parse_stream_sql
from tidemark.streams.planning.stream_sql.queries import spliced
from tidemark.streams.planning.stream_sql.statements import (
    BacklogCall,
    ChangesClause,
    HasDataCall,
    StreamQuery,
    TableTimestampCall,
    TimeTravel,
)

NOW = datetime(2026, 3, 31, 12, tzinfo=UTC)


def parts(text):
    query = parse_stream_sql(text, now=NOW)
    assert isinstance(query, StreamQuery)
    return query.parts


def exchanged(text, *replacements):
    query = parse_stream_sql(text, now=NOW)
    assert isinstance(query, StreamQuery)
    return spliced(query, replacements)


def test_R110_changes_has_information_a_start_and_perhaps_an_end():
    (found,) = parts(
        "SELECT c1 FROM a.t CHANGES(INFORMATION => APPEND_ONLY) AT(OFFSET => -60) END(OFFSET => -1) WHERE x"
    )
    assert isinstance(found, ChangesClause)
    assert (found.source.text, found.mode, found.alias) == ("a.t", StreamMode.APPEND_ONLY, "t")
    assert (found.start.value, found.start.before) == (-60.0, False)
    assert found.end is not None
    assert found.end.value == -1.0
    (found,) = parts("SELECT * FROM t CHANGES (INFORMATION => DEFAULT) BEFORE (STATEMENT => 'x')")
    assert isinstance(found, ChangesClause)
    assert (found.mode, found.start.before, found.end) == (StreamMode.STANDARD, True, None)


@pytest.mark.parametrize(
    ("text", "result"),
    [
        ("FROM a.t CHANGES(INFORMATION => DEFAULT) AT(VERSION => 1) AS c WHERE c.x", "FROM V AS c WHERE c.x"),
        ("FROM t CHANGES(INFORMATION => DEFAULT) AT(VERSION => 1) c", "FROM V c"),
        ("FROM (SELECT * FROM t CHANGES(INFORMATION => DEFAULT) AT(VERSION => 1))", "FROM (SELECT * FROM V)"),
        ("SELECT 'CHANGES(INFORMATION => x)' FROM t AT(VERSION => 2)", "SELECT 'CHANGES(INFORMATION => x)' FROM V"),
        ("SELECT * FROM TABLE(SYSTEM$STREAM_BACKLOG('s')) b", "SELECT * FROM V b"),
        ("IF SYSTEM$STREAM_HAS_DATA('s')", "IF V"),
    ],
)
def test_a_part_is_exchanged_and_the_rest_stays_as_it_was_written(text, result):
    assert exchanged(text, "V") == result


def test_several_parts_in_one_query_stand_in_text_order():
    text = (
        "SELECT SYSTEM$STREAM_GET_TABLE_TIMESTAMP('s'), system$stream_has_data('a.\"b c\"') AND true"
        " FROM t BEFORE(TIMESTAMP => '2026-01-01'::timestamp) x"
        " JOIN u CHANGES(INFORMATION => DEFAULT) AT(STREAM => 's')"
    )
    time, has, then, changes = parts(text)
    assert isinstance(time, TableTimestampCall)
    assert isinstance(has, HasDataCall)
    assert isinstance(then, TimeTravel)
    assert isinstance(changes, ChangesClause)
    assert (time.title, has.title, has.stream.text) == ("SYSTEM$STREAM_GET_TABLE_TIMESTAMP('s')", None, "a.b c")
    assert (then.source.text, then.alias, changes.alias) == ("t", None, "u")
    assert exchanged(text, "1", "2", "3", "4") == "SELECT 1, 2 AND true FROM 3 x JOIN 4"


@pytest.mark.parametrize(
    "text",
    [
        "SELECT 1",
        "INSERT INTO t SELECT at, before FROM u",
        "SELECT count(*) FROM changes",
        "SELECT date_add(at (3), 1)",
        "MERGE INTO t USING s ON t.id = s.id WHEN MATCHED THEN UPDATE SET *",
        "CREATE TABLE stream (a INT)",
        "DROP TABLE stream",
        'SELECT "it\'s"',
        "SELECT 'open",
        "BEGIN SELECT 1; END",
    ],
)
def test_what_has_nothing_of_it_is_left_to_spark(text):
    assert parse_stream_sql(text, now=NOW) is None


@pytest.mark.parametrize(
    ("text", "column", "problem"),
    [
        ("SELECT * FROM t CHANGES(INFORMATION => ALL) AT(VERSION => 1)", 40, "expected DEFAULT or APPEND_ONLY"),
        ("SELECT * FROM t CHANGES(INFORMATION => DEFAULT)", 48, "CHANGES needs its start"),
        ("SELECT * FROM t CHANGES(INFORMATION => DEFAULT) WHERE x", 49, "CHANGES needs its start"),
        ("SELECT * FROM CHANGES(INFORMATION => DEFAULT) AT(VERSION => 1)", 15, "a table's name must precede"),
        ("SELECT SYSTEM$STREAM_HAS_DATA(s)", 31, "as a constant in quotes"),
        ("SELECT SYSTEM$STREAM_HAS_DATA('a b')", 31, "'a b' is not the name of a stream"),
        ("SELECT SYSTEM$STREAM_BACKLOG('s')", 8, "is a table function: SELECT * FROM TABLE("),
    ],
)
def test_errors_in_a_query_point_at_the_place(text, column, problem):
    with pytest.raises(SqlCompilationError) as caught:
        parse_stream_sql(text, now=NOW)
    assert (caught.value.line, caught.value.column) == (1, column)
    assert problem in caught.value.problem


def test_R125_the_backlog_takes_the_whole_table_call():
    (found,) = parts("SELECT * FROM TABLE(SYSTEM$STREAM_BACKLOG('a.b.c'))")
    assert isinstance(found, BacklogCall)
    assert found.stream.parts == ("a", "b", "c")
