"""ALTER, DROP, SHOW, DESCRIBE, and the words of transactions."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from tidemark.errors import SqlCompilationError
from tidemark.streams.planning.stream_sql.parse import parse_stream_sql
from tidemark.streams.planning.stream_sql.statements import AlterStream, DescribeStream, DropStream, ShowStreams


def parsed(text):
    return parse_stream_sql(text, now=datetime(2026, 3, 31, tzinfo=UTC))


def test_R4_alter_sets_and_unsets_the_comment():
    found = parsed("ALTER STREAM IF EXISTS a.s SET COMMENT = 'new'")
    assert isinstance(found, AlterStream)
    assert (found.name.text, found.comment, found.if_exists) == ("a.s", "new", True)
    found = parsed("alter stream s unset comment")
    assert isinstance(found, AlterStream)
    assert (found.comment, found.if_exists) == (None, False)


def test_drop_and_describe_name_a_stream():
    dropped, described = parsed("DROP STREAM IF EXISTS s;"), parsed("DESC STREAM `s`")
    assert isinstance(dropped, DropStream)
    assert isinstance(described, DescribeStream)
    assert (dropped.name.text, dropped.if_exists, described.name.text) == ("s", True, "s")
    assert isinstance(parsed("DESCRIBE STREAM s"), DescribeStream)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("SHOW STREAMS", ShowStreams()),
        ("SHOW TERSE STREAMS LIKE '%a_'", ShowStreams(terse=True, like="%a_")),
        ("SHOW STREAMS IN ACCOUNT LIMIT 3 FROM 'b'", ShowStreams(limit=3, from_name="b")),
        ("SHOW STREAMS IN SCHEMA d.s STARTS WITH 'x'", ShowStreams(database="d", schema="s", starts_with="x")),
        ("SHOW STREAMS IN s", ShowStreams(schema="s")),
        ("SHOW STREAMS IN DATABASE d", ShowStreams(database="d")),
        ("SHOW STREAMS IN SCHEMA LIMIT 1", ShowStreams(limit=1)),
    ],
)
def test_R131_show_has_filters(text, shown):
    assert parsed(text) == shown


@pytest.mark.parametrize(
    ("text", "column", "problem"),
    [
        ("ALTER STREAM s SET TAG a = 'b'", 20, "tags are not kept"),
        ("ALTER STREAM s UNSET TAG a", 22, "tags are not kept"),
        ("ALTER STREAM s SET APPEND_ONLY = TRUE", 20, "cannot be changed"),
        ("ALTER STREAM s RENAME TO t", 16, "expected SET or UNSET"),
        ("UNDROP STREAM s", 1, "cannot be brought back"),
        ("DROP STREAM", 12, "expected the name of the stream"),
        ("DROP STREAM a.b.c.d", 18, "unexpected '.'"),
        ("SHOW STREAMS LIKE x", 19, "expected a pattern in quotes"),
        ("SHOW STREAMS LIMIT 0", 20, "LIMIT goes from 1 to 10000"),
        ("CREATE TASK t WHEN SYSTEM$STREAM_HAS_DATA('s') AS INSERT INTO t SELECT * FROM s", 1, "tasks are DAGs here"),
        ("BEGIN", 1, "with lake.transaction() as tx"),
        ("begin transaction;", 1, "with lake.transaction() as tx"),
        ("COMMIT", 1, "with lake.transaction() as tx"),
        ("ROLLBACK WORK", 1, "with lake.transaction() as tx"),
    ],
)
def test_what_is_refused_is_refused_where_it_stands(text, column, problem):
    with pytest.raises(SqlCompilationError) as caught:
        parsed(text)
    assert caught.value.column == column
    assert problem in caught.value.problem
