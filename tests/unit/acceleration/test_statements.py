"""The statement of an estimate, and its answer in the form of the source system."""

from __future__ import annotations

import json

import pytest

from tidemark.acceleration.model.estimates import Estimate, Status
from tidemark.acceleration.planning.statements import EstimateCall, as_json, parse_acceleration_sql
from tidemark.errors import SqlCompilationError

CALL = "SYSTEM$ESTIMATE_QUERY_ACCELERATION('app-1')"


@pytest.mark.parametrize(
    ("text", "title"),
    [
        (f"SELECT {CALL}", CALL),
        (f"-- first\n select {CALL.lower()} ; ", CALL.lower()),
        (f"SELECT PARSE_JSON({CALL})", f"PARSE_JSON({CALL})"),
        (f"SELECT PARSE_JSON( {CALL} ) AS answer", "answer"),
        (f'SELECT {CALL} AS "The answer"', "The answer"),
    ],
)
def test_the_call_is_read_with_its_title(text: str, title: str) -> None:
    assert parse_acceleration_sql(text) == EstimateCall("app-1", title)


@pytest.mark.parametrize("text", ["SELECT 1", "SELECT SYSTEM$OTHER('x')", "SHOW TABLES"])
def test_another_statement_is_none(text: str) -> None:
    assert parse_acceleration_sql(text) is None


@pytest.mark.parametrize(
    "text",
    [
        "SELECT SYSTEM$ESTIMATE_QUERY_ACCELERATION()",
        "SELECT SYSTEM$ESTIMATE_QUERY_ACCELERATION(app)",
        f"SELECT {CALL}, 1",
        f"SELECT PARSE_JSON({CALL}",
    ],
)
def test_a_wrong_call_is_an_error_with_its_place(text: str) -> None:
    with pytest.raises(SqlCompilationError) as error:
        parse_acceleration_sql(text)
    assert error.value.facts["column"] > 1


def test_the_answer_of_an_eligible_one_is_the_documented_object() -> None:
    times = {1: 171.0, 2: 152.0, 4: 133.0, 8: 120.0, 10: 115.0}
    said = json.loads(as_json(Estimate("8cd54bf0", Status.ELIGIBLE, 300.291, times, 10)))
    assert said == {
        "estimatedQueryTimes": {"1": 171, "2": 152, "4": 133, "8": 120, "10": 115},
        "originalQueryTime": 300.291,
        "queryUUID": "8cd54bf0",
        "status": "eligible",
        "upperLimitScaleFactor": 10,
    }


@pytest.mark.parametrize("status", [Status.INELIGIBLE, Status.ACCELERATED, Status.INVALID])
def test_the_answer_of_any_other_one_has_no_times_and_a_reason(status: Status) -> None:
    said = json.loads(as_json(Estimate("app-1", status, 20.291, {1: 20.0}, 0, "because")))
    assert (said["estimatedQueryTimes"], said["upperLimitScaleFactor"]) == ({}, 0)
    assert (said["status"], said["reason"]) == (status.value, "because")
