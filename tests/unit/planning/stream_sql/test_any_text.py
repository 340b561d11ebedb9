"""Whatever the text: it is understood, left to Spark, or refused with a place that lies in it."""

from __future__ import annotations

from datetime import UTC, datetime

from hypothesis import given, settings
from hypothesis import strategies as st

from tidemark.errors import SqlCompilationError
from tidemark.streams.planning.stream_sql.mentions import tables_read
from tidemark.streams.planning.stream_sql.parse import parse_stream_sql
from tidemark.streams.planning.stream_sql.queries import spliced
from tidemark.streams.planning.stream_sql.statements import StreamQuery, StreamStatement
from tidemark.streams.planning.stream_sql.tables import table_statement

WORDS = r"""
CREATE OR REPLACE ALTER STREAM IF NOT EXISTS s "q s" `b` a.b ON TABLE VIEW EXTERNAL t AT BEFORE END ( ) => = , ; . *
TIMESTAMP OFFSET STATEMENT VERSION -60 5 'x' '2026-01-01' ::timestamp NULL TRUE APPEND_ONLY INSERT_ONLY COMMENT CLONE
SHOW TERSE STREAMS LIKE IN SCHEMA LIMIT FROM DESC DROP SET UNSET TAG SELECT CHANGES INFORMATION DEFAULT INTERVAL
SYSTEM$STREAM_HAS_DATA SYSTEM$STREAM_BACKLOG CURRENT_TIMESTAMP DATEADD day $v TO_TIMESTAMP ' " /* -- @ \ AS USING
""".split()  # noqa: SIM905 - a list of words
PIECES = st.one_of(st.sampled_from(WORDS), st.text(max_size=4))
BEGINNINGS = st.sampled_from(
    ["", "CREATE STREAM s ON TABLE t ", "SELECT * FROM t CHANGES(INFORMATION => DEFAULT) AT(", "SHOW STREAMS ",
     "CREATE TABLE t (", "CREATE STREAM s ON TABLE t AT(TIMESTAMP => ", "SELECT SYSTEM$STREAM_HAS_DATA("]
)  # fmt: skip


def understood(text: str) -> StreamStatement | SqlCompilationError | None:
    try:
        return parse_stream_sql(text, now=datetime(2026, 3, 31, tzinfo=UTC))
    except SqlCompilationError as error:
        return error


@settings(max_examples=300, deadline=None)
@given(BEGINNINGS, st.lists(PIECES, max_size=12))
def test_any_text_is_understood_left_alone_or_refused_at_a_place(beginning: str, pieces: list[str]) -> None:
    text = beginning + " ".join(pieces)
    found = understood(text)
    if isinstance(found, SqlCompilationError):
        assert 1 <= found.line <= text.count("\n") + 1
        assert 1 <= found.column <= len(text) + 1
        assert "^" in found.marked
    elif isinstance(found, StreamQuery):
        whole = [text[part.span.start : part.span.end] for part in found.parts]
        assert spliced(found, whole) == text
    table_statement(text)
    tables_read(text)
