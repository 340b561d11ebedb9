"""SELECT SYSTEM$ESTIMATE_QUERY_ACCELERATION(…), and the JSON of its answer."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

from tidemark.acceleration.model.estimates import Estimate, Status
from tidemark.sql.text import BLANK, Cursor

__all__ = ["ESTIMATE", "EstimateCall", "as_json", "parse_acceleration_sql"]

ESTIMATE = "SYSTEM$ESTIMATE_QUERY_ACCELERATION"
_NAME = re.escape(ESTIMATE)
_CALL = re.compile(rf"{BLANK}SELECT\s+(PARSE_JSON\s*\(\s*)?{_NAME}\s*\(", re.DOTALL | re.IGNORECASE)
_DIGITS = 3


@dataclass(frozen=True)
class EstimateCall:
    """SELECT SYSTEM$ESTIMATE_QUERY_ACCELERATION('application id or path'), perhaps in PARSE_JSON and with a title."""

    of: str
    title: str


def parse_acceleration_sql(text: str) -> EstimateCall | None:
    """The statement, if it asks for an estimate. Raises SqlCompilationError with the place in the text."""
    call = _CALL.match(text)
    if call is None:
        return None
    cursor = Cursor(text)
    cursor.needs("SELECT")
    start = cursor.span.start
    if call[1]:
        cursor.needs("PARSE_JSON", "(")
    cursor.needs(ESTIMATE, "(")
    of = cursor.string("the id of an application, or the path of its event log, in quotes")
    end = cursor.span.end
    cursor.needs(")")
    if call[1]:
        end = cursor.span.end
        cursor.needs(")")
    title = text[start:end]
    if cursor.takes("AS"):
        title = cursor.name("a title").parts[-1].strip('"`')
    cursor.end()
    return EstimateCall(of, title)


def as_json(estimate: Estimate) -> str:
    """The answer in the form of the source system, with `reason` unless it is eligible. Times are seconds."""
    eligible = estimate.status is Status.ELIGIBLE
    times = {str(factor): round(seconds, _DIGITS) for factor, seconds in estimate.times.items()} if eligible else {}
    said: dict[str, Any] = {
        "estimatedQueryTimes": times,
        "originalQueryTime": round(estimate.seconds, _DIGITS),
        "queryUUID": estimate.query,
        "status": estimate.status.value,
        "upperLimitScaleFactor": estimate.upper_limit,
    }
    return json.dumps(said if eligible else {**said, "reason": estimate.reason})
