"""Points in time as SQL writes them (R8, R8a to R8e)."""

from __future__ import annotations

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest

from tidemark.errors import SqlCompilationError
from tidemark.streams.planning.stream_sql.parse import parse_stream_sql
from tidemark.streams.planning.stream_sql.statements import CreateStream, PointKind, SqlPoint

NOW = datetime(2026, 3, 31, 12, tzinfo=UTC)
SEOUL = ZoneInfo("Asia/Seoul")  # UTC+9


def point(text: str) -> SqlPoint:
    statement = parse_stream_sql(f"CREATE STREAM s ON TABLE t {text}", now=NOW, zone=SEOUL)
    assert isinstance(statement, CreateStream)
    assert statement.point is not None
    return statement.point


@pytest.mark.parametrize(
    ("expression", "moment"),
    [
        ("'2026-01-02 03:04:05'::timestamp", datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)),
        ("'2026-01-02 03:04:05'::timestamp_ntz", datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)),
        ("'2026-01-02 03:04:05'::timestamp_ltz", datetime(2026, 1, 1, 18, 4, 5, tzinfo=UTC)),
        ("'2026-01-02 03:04:05 +0200'::timestamp_tz", datetime(2026, 1, 2, 1, 4, 5, tzinfo=UTC)),
        ("'2026-01-02T03:04:05Z'", datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)),
        ("'Fri, 01 May 2015 16:20:00 -0700'::timestamp", datetime(2015, 5, 1, 23, 20, tzinfo=UTC)),
        ("TO_TIMESTAMP_TZ('2026-01-02 03:04:05.25 -0100')", datetime(2026, 1, 2, 4, 4, 5, 250000, tzinfo=UTC)),
        (
            "TO_TIMESTAMP_LTZ('01/02/2026 03:04:05', 'mm/dd/yyyy hh24:mi:ss')",
            datetime(2026, 1, 1, 18, 4, 5, tzinfo=UTC),
        ),
        ("TO_TIMESTAMP(1767225600)", datetime(2026, 1, 1, tzinfo=UTC)),
        ("TO_TIMESTAMP('1767225600123')", datetime(2026, 1, 1, 0, 0, 0, 123000, tzinfo=UTC)),
        ("'2026-01-02'::date", datetime(2026, 1, 2, tzinfo=UTC)),
        ("CURRENT_TIMESTAMP", NOW),
        ("CURRENT_TIMESTAMP()::timestamp_tz", NOW),
        ("SYSDATE()", NOW),
        ("DATEADD('day', -1, CURRENT_TIMESTAMP())", datetime(2026, 3, 30, 12, tzinfo=UTC)),
        ("DATEADD(minutes, -5 * 2, CURRENT_TIMESTAMP)", datetime(2026, 3, 31, 11, 50, tzinfo=UTC)),
        ("TIMESTAMPADD(month, -1, CURRENT_TIMESTAMP)", datetime(2026, 2, 28, 12, tzinfo=UTC)),
        ("CURRENT_TIMESTAMP - INTERVAL '90 seconds'", datetime(2026, 3, 31, 11, 58, 30, tzinfo=UTC)),
    ],
)
def test_R8_timestamps_are_constants_of_many_forms(expression, moment):
    found = point(f"AT(TIMESTAMP => {expression})")
    assert (found.kind, found.value, found.before) == (PointKind.TIMESTAMP, moment, False)


@pytest.mark.parametrize(("expression", "seconds"), [("-60*5", -300.0), ("-(60 + 30) / 2", -45.0), ("0", 0.0)])
def test_R8a_offsets_are_seconds_not_above_zero(expression, seconds):
    found = point(f"BEFORE(OFFSET => {expression})")
    assert (found.kind, found.value, found.before) == (PointKind.OFFSET, seconds, True)


def test_R8_streams_statements_and_versions_are_points():
    assert (point("AT(STREAM => 'a.\"b c\"')").value, point("AT(STATEMENT => '8e5d-1')").value) == ("a.b c", "8e5d-1")
    assert point("AT(VERSION => 12)").value == 12


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("AT(OFFSET => 60)", "Invalid data type [60] in AT(OFFSET => 60)"),
        ("AT(OFFSET => '-60')", "Invalid data type [-60] in AT(OFFSET => '-60')"),
        ("AT(TIMESTAMP => 12)", "Invalid data type [12] in AT(TIMESTAMP => 12)"),
        ("BEFORE(TIMESTAMP => 'yesterday')", "Invalid data type [yesterday] in BEFORE(TIMESTAMP => 'yesterday')"),
        ("AT(VERSION => -1)", "Invalid data type [-1] in AT(VERSION => -1)"),
        ("AT(STREAM => 3)", "Invalid data type [3] in AT(STREAM => 3)"),
        ("AT(STATEMENT => 1.50)", "Invalid data type [1.5] in AT(STATEMENT => 1.50)"),
        ("AT(TIMESTAMP => NULL)", "NULL is no timestamp: AT(TIMESTAMP => NULL)"),
        ("AT(TIMESTAMP => NULL::timestamp)", "NULL is no timestamp: AT(TIMESTAMP => NULL::timestamp)"),
        ("AT(OFFSET => NULL)", "NULL is no offset: AT(OFFSET => NULL)"),
        ("AT(STREAM => NULL)", "NULL is no stream: AT(STREAM => NULL)"),
        ("AT(STATEMENT => NULL)", "NULL is no statement: AT(STATEMENT => NULL)"),
    ],
)
def test_R8a_R8d_values_of_another_kind_and_NULL_are_refused(text, problem):
    with pytest.raises(SqlCompilationError) as caught:
        point(text)
    assert caught.value.problem == problem


@pytest.mark.parametrize(
    "expression",
    ["(SELECT max(at) FROM t)", "at", "$when", "RANDOM()", "DATEADD(fortnight, 1, CURRENT_TIMESTAMP)", "1 +", "1/0"],
)
def test_R8e_a_point_that_is_no_constant_is_refused_where_it_stands(expression):
    with pytest.raises(SqlCompilationError, match="must be a constant") as caught:
        point(f"AT(TIMESTAMP => {expression})")
    assert caught.value.column == len("CREATE STREAM s ON TABLE t AT(TIMESTAMP => ") + 1


def test_a_point_without_an_end_or_of_an_unknown_kind_is_a_syntax_error():
    for text in ("AT(OFFSET => -60", "AT(LSN => 3)", "AT(OFFSET = -60)", "AT(STREAM => 'a b c')"):
        with pytest.raises(SqlCompilationError, match=r"syntax error|not the name of a stream"):
            point(text)
