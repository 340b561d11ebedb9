"""Mentions of the histories of loads in queries."""

from __future__ import annotations

import pytest

from tidemark.errors import NotYetSupported, SqlCompilationError
from tidemark.pipes.planning.sql_views import find_load_histories

AN_HOUR_AGO = "DATEADD(HOUR, -1, CURRENT_TIMESTAMP())"


@pytest.mark.parametrize(
    ("mention", "found"),
    [
        (
            "TABLE(information_schema.copy_history(TABLE_NAME=>'db.T',"
            " START_TIME=> DATEADD(hours, -1, CURRENT_TIMESTAMP())))",
            ("db.T", AN_HOUR_AGO, None, None),
        ),
        (
            "TABLE(d.INFORMATION_SCHEMA.COPY_HISTORY(START_TIME => '2024-01-01'::timestamp_ltz, TABLE_NAME => 'T',"
            " END_TIME => CURRENT_TIMESTAMP(), RESULT_LIMIT => 10))",
            ("T", "CAST('2024-01-01' AS TIMESTAMP_LTZ)", "CURRENT_TIMESTAMP()", 10),
        ),
        ("TABLE(COPY_HISTORY(TABLE_NAME => 'T', START_TIME => '2024-01-01'))", ("T", "'2024-01-01'", None, None)),
    ],
)
def test_a_mention_has_its_place_and_times_in_the_words_of_spark(mention: str, found: tuple[object, ...]) -> None:
    text = f"SELECT * FROM {mention} h, {mention}"
    histories = find_load_histories(text)
    assert [(one.table, one.start_time, one.end_time, one.result_limit) for one in histories] == [found, found]
    assert [text[one.span.start : one.span.end] for one in histories] == [mention, mention]


@pytest.mark.parametrize(
    "text",
    [
        "SELECT copy_history FROM t",
        "SELECT 'TABLE(COPY_HISTORY(' FROM t",
        "SELECT * FROM t -- copy_history",
        "it's copy_history",
    ],
)
def test_other_texts_mention_none(text: str) -> None:
    assert find_load_histories(text) == ()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ("TABLE_NAME => 'T'", "needs START_TIME"),
        ("START_TIME => CURRENT_DATE", "needs TABLE_NAME"),
        ("TABLE_NAME => T, START_TIME => CURRENT_DATE", "in quotes"),
        ("TABLE_NAME => 'T', TABLE_NAME => 'T'", "twice"),
        ("TABLES => 'T'", "expected TABLE_NAME"),
        ("TABLE_NAME => 'T', START_TIME => (", r"expected|not an expression"),
        ("TABLE_NAME => 'T', START_TIME => , END_TIME => 1", "a value"),
        ("PIPE_NAME => 'p', TABLE_NAME => 'T', START_TIME => 1", "TABLE_NAME => "),
    ],
)
def test_a_wrong_argument_has_its_place(arguments: str, said: str) -> None:
    with pytest.raises(SqlCompilationError, match=said):
        find_load_histories(f"SELECT * FROM TABLE(INFORMATION_SCHEMA.COPY_HISTORY({arguments}))")


@pytest.mark.parametrize("name", ["LOAD_HISTORY", "PIPE_USAGE_HISTORY"])
def test_histories_that_are_not_kept_are_refused_by_name(name: str) -> None:
    with pytest.raises(NotYetSupported, match=name):
        find_load_histories(f"SELECT * FROM TABLE(INFORMATION_SCHEMA.{name}(x => 1))")
