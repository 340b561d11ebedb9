"""Estimates of query acceleration from a notebook, and their statement."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidemark.acceleration.planning.statements import as_json, parse_acceleration_sql
from tidemark.acceleration.worker.estimates import estimate_acceleration
from tidemark.client.context import ClientContext
from tidemark.jobs.remote import is_remote

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from tidemark.acceleration.model.estimates import Estimate

__all__ = ["AccelerationOfALake", "run_acceleration_sql"]

_DIRECTORY = "spark.eventLog.dir"


class AccelerationOfALake:
    """The part of `Lake` that says what more executors would save."""

    _context: ClientContext

    def estimate_acceleration(
        self, application_id_or_path: str, *, execution: int | None = None, event_logs: str | None = None
    ) -> Estimate:
        """The seconds that an application would have taken with more executors, from its event log; without Spark.

        `application_id_or_path`: the path of a log, or the id of an application whose log is in the directory
        `event_logs`. The default is `spark.eventLog.dir` of `session_settings`, or of the session if it has started.
        `execution`: only the SQL query of that number. Raises EventLogNotFound, EventLogUnreadable, InvalidArgument.
        """
        context = self._context
        return estimate_acceleration(
            application_id_or_path,
            directory=event_logs or _directory(context),
            now=context.store.clock(),
            execution=execution,
            options=context.options,
        )


def run_acceleration_sql(lake: AccelerationOfALake, context: ClientContext, text: str) -> DataFrame | None:
    """The answer to SELECT SYSTEM$ESTIMATE_QUERY_ACCELERATION('…'); None for any other statement."""
    call = parse_acceleration_sql(text)
    if call is None:
        return None
    title = call.title.replace("`", "``")
    answer = as_json(lake.estimate_acceleration(call.of))
    return context.spark.createDataFrame([(answer,)], f"`{title}` STRING")


def _directory(context: ClientContext) -> str | None:
    given = context.session.settings.get(_DIRECTORY)
    if given is None and context.session.started and not is_remote(context.spark):
        given = context.spark.conf.get(_DIRECTORY, None)
    return given or None
