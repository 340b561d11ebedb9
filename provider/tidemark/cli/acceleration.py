"""`airflow tidemark acceleration …`: what more executors would save, and what they saved."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow.cli.cli_config import ARG_OUTPUT, ARG_VERBOSE, ActionCommand, Arg
from airflow.utils.cli import suppress_logs_and_warning

from tidemark.cli._answers import CONNECTION, errors_in_words, print_facts, print_rows
from tidemark.cli._parts import whole_number
from tidemark.hooks.tidemark import TidemarkHook

if TYPE_CHECKING:
    from argparse import Namespace

    from tidemark.acceleration.model.estimates import JobRun

__all__ = ["acceleration_commands", "estimate", "list_accelerated_runs"]

_APPLICATION = Arg(("application",), help="The id of a Spark application, or the path of its event log")  # type: ignore[no-untyped-call]
_EVENT_LOGS = Arg(  # type: ignore[no-untyped-call]
    ("--event-logs",),
    help="The directory of event logs (default: spark.eventLog.dir of the connection's Spark settings)",
    metavar="DIRECTORY",
)
_EXECUTION = Arg(("--execution",), help="Only the SQL query of this number", type=int, metavar="NUMBER")  # type: ignore[no-untyped-call]
_LIMIT = Arg(("--limit",), help="At most this many runs (default: 20)", type=whole_number(1), default=20)  # type: ignore[no-untyped-call]
_ALL = Arg(("--all",), help="Runs without acceleration, too", action="store_true")  # type: ignore[no-untyped-call]


def acceleration_commands() -> tuple[ActionCommand, ...]:
    """Estimating from an event log, and listing runs. Neither needs Spark."""
    return (
        ActionCommand(
            name="estimate",
            help="Estimate the time of an application with more executors, from its event log",
            func=estimate,
            args=(_APPLICATION, _EXECUTION, _EVENT_LOGS, CONNECTION, ARG_OUTPUT, ARG_VERBOSE),
        ),
        ActionCommand(
            name="list",
            help="List accelerated runs, newest first, with predicted and measured seconds",
            func=list_accelerated_runs,
            args=(_ALL, _LIMIT, CONNECTION, ARG_OUTPUT, ARG_VERBOSE),
        ),
    )


@suppress_logs_and_warning
def estimate(args: Namespace) -> None:
    """The facts of the estimate, then a row for each scale factor."""
    from tidemark.acceleration.planning.settings import event_log_directory
    from tidemark.acceleration.worker.estimates import estimate_acceleration
    from tidemark.control.store import utc_now

    with errors_in_words():
        settings = TidemarkHook(args.conn_id).settings
        found = estimate_acceleration(
            args.application,
            directory=args.event_logs or event_log_directory(settings.spark_conf),
            now=utc_now(),
            execution=args.execution,
            options=settings.storage_options,
        )
    facts = {
        "application": found.query,
        "status": found.status.value,
        "seconds": round(found.seconds, 3),
        "slots": found.slots,
        "upper_limit": found.upper_limit,
        "reason": found.reason,
    }
    times = [{"factor": factor, "seconds": round(seconds, 3)} for factor, seconds in found.times.items()]
    print_facts(facts, {"estimates": times}, args.output)


@suppress_logs_and_warning
def list_accelerated_runs(args: Namespace) -> None:
    """One row per run."""
    from tidemark.acceleration.worker.runs import list_runs

    with errors_in_words():
        store = TidemarkHook(args.conn_id).open_store()
        found = list_runs(store, limit=args.limit, accelerated=not args.all)
    print_rows([_row(run) for run in found], args.output)


def _row(run: JobRun) -> dict[str, Any]:
    return {
        "ended": run.ended_at.isoformat(timespec="seconds"),
        "dag": run.dag_id,
        "task": run.task_id,
        "job": run.kind,
        "application": run.application,
        "factor": run.factor,
        "executors": run.executors,
        "peak": run.peak,
        "predicted": None if run.predicted is None else round(run.predicted, 1),
        "measured": None if run.measured is None else round(run.measured, 1),
        "off_by": None if run.off_by is None else f"{run.off_by:.0%}",
        "predicted_from": run.predicted_from,
        "note": run.note,
    }
