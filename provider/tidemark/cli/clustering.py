"""`airflow tidemark clustering …`: the state of tables' clustering, and what was rewritten for it."""

from __future__ import annotations

import json
from functools import partial
from typing import TYPE_CHECKING, Any

from airflow.cli.cli_config import ARG_OUTPUT, ARG_VERBOSE, ActionCommand, Arg
from airflow.utils.cli import suppress_logs_and_warning

from tidemark.cli._acts import DRY_RUN, WHY, acting, kept_by, me, store_of, why_of
from tidemark.cli._answers import CONNECTION, errors_in_words, print_facts, print_rows, shown_time
from tidemark.cli._parts import whole_number
from tidemark.hooks.tidemark import TidemarkHook

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Callable

    from tidemark.clustering.model.tables import ClusteredTable
    from tidemark.control.store import ControlStore
    from tidemark.model.streams import TableRef

__all__ = ["clustering_commands"]

_TABLE = Arg(("table",), help="Name or path of the table")  # type: ignore[no-untyped-call]
_COLUMNS = Arg(  # type: ignore[no-untyped-call]
    ("--columns",), help="Columns with commas between them (default: the clustering key)", metavar="COLUMNS"
)
_LIMIT = Arg(("--limit",), help="Show at most this many", type=whole_number(1), default=20)  # type: ignore[no-untyped-call]
_LOOK = (CONNECTION, ARG_OUTPUT, ARG_VERBOSE)


def clustering_commands() -> tuple[ActionCommand, ...]:
    """Looks at tables, from their logs and the control store; none needs Spark."""
    return (
        ActionCommand(
            name="list",
            help="List the tables that are kept clustered, with depth and goal",
            func=list_tables,
            args=_LOOK,
        ),
        ActionCommand(
            name="info",
            help="Show overlaps and depths of a table's files, from its log",
            func=show_information,
            args=(_TABLE, _COLUMNS, *_LOOK),
        ),
        ActionCommand(
            name="history",
            help="List the reclusterings of a table, newest first",
            func=list_history,
            args=(_TABLE, _LIMIT, *_LOOK),
        ),
        ActionCommand(
            name="suspend",
            help="Stop reclustering a table; a second run changes nothing",
            func=suspend,
            args=(_TABLE, WHY, DRY_RUN, *_LOOK),
        ),
        ActionCommand(
            name="resume",
            help="Resume reclustering a table; a second run changes nothing",
            func=resume,
            args=(_TABLE, WHY, DRY_RUN, *_LOOK),
        ),
    )


@suppress_logs_and_warning
def list_tables(args: Namespace) -> None:
    """One row per table: name, state, key, depth as it was last seen, goal, budgets, problem."""
    from tidemark.clustering.worker.tables import list_clustered

    with errors_in_words():
        rows = [_row(one) for one in list_clustered(TidemarkHook(args.conn_id).open_store())]
    print_rows(rows, args.output)


@suppress_logs_and_warning
def show_information(args: Namespace) -> None:
    """The fields of SYSTEM$CLUSTERING_INFORMATION."""
    from tidemark.clustering.worker.looking import clustering_information

    with errors_in_words():
        hook = TidemarkHook(args.conn_id)
        columns = None if args.columns is None else [one.strip() for one in args.columns.split(",")]
        log = hook.open_table(args.table)
        found = clustering_information(hook.open_store(), log, columns, table=args.table).to_plain()
    if args.output in ("json", "yaml"):
        print_rows([found], args.output)
        return
    histogram = found.pop("partition_depth_histogram")
    depths = [{"depth": name, "files": count} for name, count in histogram.items() if count]
    facts = {**found, "clustering_errors": json.dumps(found["clustering_errors"])}
    print_facts(facts, {"depths": depths}, args.output)


@suppress_logs_and_warning
def list_history(args: Namespace) -> None:
    """One row per reclustering: state, bytes, files, depth before and after, seconds, version, reason."""
    from tidemark.clustering.worker.tables import recluster_history

    with errors_in_words():
        hook = TidemarkHook(args.conn_id)
        store = hook.open_store()
        found = recluster_history(store, _table_of(hook, store, args.table), limit=args.limit)
    rows = [
        {
            "planned_at": shown_time(one.planned_at),
            "state": one.state.value,
            "how": one.how.value,
            "bytes": one.bytes,
            "files_removed": one.files_removed,
            "files_added": one.files_added,
            "depth_before": one.depth_before,
            "depth_after": one.depth_after,
            "seconds": one.seconds,
            "version": one.version,
            "why": one.error or one.why,
        }
        for one in found
    ]
    print_rows(rows, args.output)


@acting
def suspend(args: Namespace) -> None:
    """A reclustering that runs ends first."""
    from tidemark.clustering.worker.tables import suspend_recluster

    _move(args, "suspend", partial(suspend_recluster, why=why_of(args)))


@acting
def resume(args: Namespace) -> None:
    """The next run of the DAG looks at the table."""
    from tidemark.clustering.worker.tables import resume_recluster

    _move(args, "resume", resume_recluster)


def _move(args: Namespace, act: str, move: Callable[..., ClusteredTable]) -> None:
    with errors_in_words():
        hook = TidemarkHook(args.conn_id)
        store = store_of(hook, dry_run=args.dry_run)
        writes = kept_by(store, args, "clustered_table", act)
        after = move(store, hook.open_table, _table_of(hook, store, args.table), by=me(), writes=writes)
    print_rows([{**_row(after), "act": act, "done": not args.dry_run}], args.output)


def _table_of(hook: TidemarkHook, store: ControlStore, name: str) -> TableRef:
    """The table, or one that is gone, as it was registered."""
    from tidemark.clustering.worker.tables import table_or_registered

    return table_or_registered(store, hook.table, name, hook.place_of(name))


def _row(table: ClusteredTable) -> dict[str, Any]:
    from tidemark.clustering.planning.keys import in_words
    from tidemark.clustering.planning.states import state_of

    return {
        "name": table.name,
        "state": state_of(table).value,
        "key": in_words(table.key),
        "depth": None if table.seen is None else table.seen.depth,
        "goal": table.goal.depth,
        "run_bytes": table.goal.run_bytes,
        "day_bytes": table.goal.day_bytes,
        "files": None if table.seen is None else table.seen.files,
        "bytes": None if table.seen is None else table.seen.bytes,
        "seen_at": shown_time(table.seen_at),
        "problem": table.suspended or table.problem,
    }
