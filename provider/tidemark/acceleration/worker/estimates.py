"""Estimates of query acceleration, from event logs. No Spark starts."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from tidemark.acceleration.model.estimates import Estimate
from tidemark.acceleration.planning.estimate import estimate, part_of
from tidemark.acceleration.worker.event_logs import find_event_log, read_application
from tidemark.errors import InvalidArgument

__all__ = ["estimate_acceleration"]


def estimate_acceleration(
    of: str,
    *,
    directory: str | None,
    now: datetime,
    execution: int | None = None,
    options: Mapping[str, Any] | None = None,
) -> Estimate:
    """The estimate for an application by its id in `directory`, or by the path of its event log.

    `execution`: only that SQL query of it. Raises EventLogNotFound, EventLogUnreadable, and InvalidArgument for a query
    that the application does not have.
    """
    application = read_application(find_event_log(of, directory, options))
    if execution is None:
        return estimate(application, now=now)
    part = part_of(application, execution)
    if part is None:
        known = ", ".join(str(one.id) for one in application.executions[:20]) or "none"
        problem = f"the application {application.id} has no SQL query of that number; it has {known}"
        raise InvalidArgument(argument="execution", value=execution, problem=problem)
    return estimate(part, now=now)
