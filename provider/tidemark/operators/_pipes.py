"""Arguments and steps that operators of loads share."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from airflow.sdk import Asset

from tidemark.errors import InvalidArgument, TidemarkError
from tidemark.operators._base import flag_of, is_left_out

if TYPE_CHECKING:
    from airflow.sdk import BaseOperator, Context

    from tidemark.hooks.tidemark import TidemarkHook
    from tidemark.pipes.model.files import FileReport
    from tidemark.pipes.planning.statements import CopyInto

__all__ = [
    "MOST_SAID",
    "choice_of",
    "copy_in_pipe",
    "listing_of",
    "packages_of",
    "pipe_of",
    "prefix_of",
    "say_failed",
    "tell_outlets",
    "time_of",
]

MOST_SAID = 20  # files with errors in a task's log and in its result

log = logging.getLogger(__name__)


def pipe_of(argument: str, value: str) -> str:
    """The name of a pipe. Raises InvalidArgument."""
    from tidemark.pipes.planning.names import key_of

    if not isinstance(value, str):
        raise InvalidArgument(argument=argument, value=value, problem="give the name of a pipe")
    key_of(value, argument)
    return value


def copy_in_pipe(argument: str, value: str) -> CopyInto:
    """The COPY statement of a pipe. Raises SqlCompilationError, NotYetSupported, InvalidArgument."""
    from tidemark.pipes.planning.sql_copy import copy_of_pipe
    from tidemark.sql.text import Cursor

    if not isinstance(value, str) or not value.strip():
        raise InvalidArgument(argument=argument, value=value, problem="give one COPY statement")
    return copy_of_pipe(Cursor(value))


def prefix_of(argument: str, value: str | None) -> str:
    """The beginning of names of files; nothing for None, also as a template renders it. Raises InvalidArgument."""
    if value is None or value == "None":
        return ""
    if not isinstance(value, str):
        raise InvalidArgument(argument=argument, value=value, problem="give the beginning of names of files")
    return value


def time_of(argument: str, value: datetime | str | None) -> datetime | None:
    """A time with a zone, or None, also as a template renders it. Raises InvalidArgument."""
    from tidemark.streams.planning import points

    if value is None or is_left_out(value):
        return None
    moment = points.time_of(value)
    if moment is None or moment.tzinfo is None:
        problem = "give a time with a zone, as 2026-01-31T12:00:00Z"
        raise InvalidArgument(argument=argument, value=value, problem=problem)
    return moment


def packages_of(hook: TidemarkHook, copy: CopyInto) -> Sequence[str]:
    """The jars that the statement's files need, unless the connection has them or brings its own jars.

    A stage or a format that is gone is an error of the load.
    """
    from tidemark.model.spark import AVRO_PACKAGE
    from tidemark.pipes.model.formats import FileType
    from tidemark.pipes.worker.resolve import format_of

    known = hook.settings.spark_packages
    if known is None or "spark-avro" in known:
        return ()
    try:
        return (AVRO_PACKAGE,) if format_of(copy, hook.open_store()).type is FileType.AVRO else ()
    except TidemarkError:
        return ()


def say_failed(who: str, failed: Sequence[FileReport]) -> None:
    """A warning for each of the first files with errors: its first error, and the place of it."""
    for report in failed[:MOST_SAID]:
        problem = report.system_error or report.first_error
        log.warning("%s: %s in %s: %s", who, report.status.value, report.place, problem)


def tell_outlets(context: Context, operator: BaseOperator, facts: Mapping[str, Any]) -> None:
    """Attach the facts to the event of each asset among the task's outlets."""
    for outlet in operator.outlets:
        if isinstance(outlet, Asset):
            context["outlet_events"][outlet].extra = dict(facts)


def choice_of(argument: str, value: bool | str | None) -> bool | None:
    """A flag, or None to let the pipe decide. Raises InvalidArgument."""
    if value is None or is_left_out(value):
        return None
    return flag_of(argument, value)


def listing_of(argument: str, value: bool | str | None) -> tuple[bool | None, bool]:
    """Whether a run looks for new files, or None to let the pipe decide; and whether it loads all files again ("all").

    Raises InvalidArgument.
    """
    if str(value).strip().lower() == "all":
        return True, True
    return choice_of(argument, value), False
