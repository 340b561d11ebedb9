"""`airflow tidemark metrics …`: gauges of lag and staleness for Airflow's metrics, and the table of all metrics."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from airflow.cli.cli_config import ARG_OUTPUT, ARG_VERBOSE, ActionCommand, Arg
from airflow.utils.cli import suppress_logs_and_warning

from tidemark.cli._answers import CONNECTION, errors_in_words, print_rows

if TYPE_CHECKING:
    from argparse import Namespace

    from tidemark.model.metrics import Metric

__all__ = ["metric_commands"]

_EVERY = Arg(  # type: ignore[no-untyped-call]
    ("--every",), help="Send again after this many seconds, until the process is ended", type=float, metavar="SECONDS"
)
_OFF = "No backend is on. Set statsd_on, otel_on or statsd_datadog_enabled in [metrics] of Airflow's configuration."


def metric_commands() -> tuple[ActionCommand, ...]:
    """Of metrics. They change nothing."""
    return (
        ActionCommand(
            name="emit",
            help="Send gauges of every object's lag, time to stale and severity to Airflow's metrics",
            func=emit,
            args=(_EVERY, CONNECTION, ARG_VERBOSE),
        ),
        ActionCommand(
            name="list",
            help="List all metrics with type, unit and tags",
            func=list_metrics,
            args=(ARG_OUTPUT, ARG_VERBOSE),
        ),
    )


@suppress_logs_and_warning
def emit(args: Namespace) -> None:
    """Says how many gauges were sent. Exit code 1 if no backend is on, or if the store cannot be read."""
    from tidemark import metrics

    with errors_in_words():
        if not metrics.wanted():
            raise SystemExit(_OFF)
        if args.every is not None and not args.every >= 1:
            raise SystemExit("--every takes seconds, from 1 on.")
        _begin()
        while True:
            print(f"{metrics.emit_gauges(args.conn_id)} gauges were sent.", flush=True)
            if args.every is None:
                return
            time.sleep(args.every)


@suppress_logs_and_warning
def list_metrics(args: Namespace) -> None:
    """One row per metric, as the reference has them."""
    from tidemark.model.metrics import METRICS

    print_rows([_row(one) for one in METRICS.values()], args.output)


def _begin() -> None:
    """A command has no metrics by itself, unlike a task or a scheduler."""
    from airflow.sdk.configuration import conf
    from airflow.sdk.observability import stats
    from airflow.sdk.observability.metrics import stats_utils

    legacy = conf.getboolean("metrics", "legacy_names_on", fallback=True)
    stats.initialize(factory=stats_utils.get_stats_factory(), export_legacy_names=legacy)


def _row(one: Metric) -> dict[str, Any]:
    return {
        "name": f"tidemark.{one.name}",
        "type": one.type.value,
        "unit": one.unit,
        "tags": ", ".join((*one.objects, *one.tags)),
        "sent_by": "metrics emit" if one.looks else "tasks",
        "prometheus": one.prometheus,
        "meaning": one.meaning,
    }
