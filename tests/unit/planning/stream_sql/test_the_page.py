"""The page for those who come from Snowflake promises statements; here they are read as they stand."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tidemark.errors import SqlCompilationError
from tidemark.streams.planning.stream_sql.parse import parse_stream_sql

PAGE = (Path(__file__).parents[4] / "provider" / "docs" / "how-to" / "coming-from-snowflake.md").read_text("utf-8")
VERBS = ("CREATE STREAM", "CREATE OR REPLACE STREAM", "ALTER STREAM", "SHOW ", "SELECT ", "SET ")
ALSO_BY_PARSING = ("BEGIN", "COMMIT", "ROLLBACK", "CREATE TASK", "UNDROP STREAM s", "ALTER STREAM s SET TAG a = 'b'")


def cells(heading, column):
    rows = PAGE.partition(f"## {heading}\n")[2].partition("\n## ")[0].splitlines()
    lines = [re.split(r"(?<!\\)\|", row) for row in rows if row.startswith("|")][2:]
    return [code for line in lines for code in re.findall(r"(?<!`)`([^`]+)`(?!`)", line[column])]


def parsed(text):
    return parse_stream_sql(text, now=datetime(2026, 3, 31, tzinfo=UTC))


PROMISED = [text for heading in ("Streams", "Reading and consuming") for text in cells(heading, 2)]


@pytest.mark.parametrize("text", [text for text in PROMISED if text.startswith(VERBS)])
def test_a_statement_that_the_page_promises_is_understood(text):
    assert parsed(text) is not None


def test_the_page_promises_many():
    assert len([text for text in PROMISED if text.startswith(VERBS)]) > 15


@pytest.mark.parametrize("text", [*ALSO_BY_PARSING, "CREATE STREAM s ON STREAM s0"])
def test_a_statement_that_the_page_says_is_refused_is_refused(text):
    assert text in cells("Refused, and why", 1)
    with pytest.raises(SqlCompilationError):
        parsed(text)
