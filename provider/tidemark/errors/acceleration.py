"""Errors of event logs, from which query acceleration is estimated."""

from __future__ import annotations

from tidemark.errors.tree import TidemarkError

__all__ = ["EventLogError", "EventLogNotFound", "EventLogUnreadable"]


class EventLogError(TidemarkError):
    """{message}"""


class EventLogNotFound(EventLogError):
    """There is no event log of {application} in {place}. Spark writes one if spark.eventLog.enabled is true, into
    spark.eventLog.dir; give that directory, or the path of the log.
    """


class EventLogUnreadable(EventLogError):
    """The event log {path} cannot be read at line {line}: {problem}. Give the log as Spark has written it."""
