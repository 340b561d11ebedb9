"""What a constraint or a default says at one time."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from tidemark.delivery.planning.constraints import text_at

AT = datetime(2026, 3, 4, 5, 6, 7, 8, tzinfo=UTC)
MOMENT = f"TIMESTAMP_MICROS({int(AT.timestamp())}000008)"


@pytest.mark.parametrize(
    ("sql", "pinned"),
    [
        ("current_timestamp()", MOMENT),
        ("t < TIMESTAMP'now'", f"t < CAST({MOMENT} AS TIMESTAMP)"),
        ("t < TIMESTAMP_NTZ ' NOW '", f"t < CAST({MOMENT} AS TIMESTAMP_NTZ)"),
        ("d <= DATE'now'", f"d <= CAST({MOMENT} AS DATE)"),
        ("d <= DATE'today'", f"d <= CAST(CAST({MOMENT} AS DATE) AS DATE)"),
        ("t < CAST('today' AS TIMESTAMP)", f"t < CAST(CAST({MOMENT} AS DATE) AS TIMESTAMP)"),
        ("d < try_cast('tomorrow' AS DATE)", f"d < CAST(DATE_ADD(CAST({MOMENT} AS DATE), 1) AS DATE)"),
        ("d < CAST('yesterday' AS DATE)", f"d < CAST(DATE_ADD(CAST({MOMENT} AS DATE), -1) AS DATE)"),
    ],
)
def test_the_present_is_the_time_that_is_given(sql: str, pinned: str) -> None:
    found = text_at(sql, AT)
    assert found is not None
    assert found[0].upper() == pinned.upper()


@pytest.mark.parametrize(
    "sql",
    [
        "rand() < 0.5",
        "uuid()",
        "who = current_user()",
        "who = user()",
        "t < 'now'",
        "d IN ('2026-01-01', ' Today')",
        "t < TIMESTAMP'today Europe/Paris'",
        "d < CAST('tomorrow+01:00' AS DATE)",
        "date_add('today', 1) > d",
        "d < to_date('yesterday')",
        "t > TIMESTAMP'10:00'",
        "this is (( no SQL that asks now()",
    ],
)
def test_what_cannot_be_said_of_one_time_is_unknown(sql: str) -> None:
    assert text_at(sql, AT) is None


@pytest.mark.parametrize(
    "sql", ["v > 0", "s <> 'nowhere'", "s = 'today is fine'", "t > DATE'epoch'", "d > DATE'2020-01-01'"]
)
def test_what_asks_for_no_time_stays_as_it_was_written(sql: str) -> None:
    found = text_at(sql, AT)
    assert found is not None
    assert found[0] == sql
