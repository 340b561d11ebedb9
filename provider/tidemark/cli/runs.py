"""`airflow tidemark objects run`: the work of the tasks of a DAG, of a run, or of one task."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow.cli.cli_config import ARG_OUTPUT, ARG_VERBOSE, ActionCommand, Arg
from airflow.utils.cli import suppress_logs_and_warning

from tidemark.cli._answers import CONNECTION, errors_in_words, print_facts, shown_time
from tidemark.cli._parts import whole_number
from tidemark.control.run_keys import RunPart
from tidemark.hooks.tidemark import TidemarkHook

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Iterator

    from tidemark.control.object_list import ShownObject
    from tidemark.streams.store.transactions import StoredTransaction
    from tidemark.streams.worker.next_windows import NextWindow

__all__ = ["run_command"]

_DAG = Arg(("dag_id",), help="Id of the DAG")  # type: ignore[no-untyped-call]
_RUN = Arg(("run_id",), help="Id of one run; without it, all of them", nargs="?")  # type: ignore[no-untyped-call]
_TASK = Arg(("task_id",), help="Id of one task of the run", nargs="?")  # type: ignore[no-untyped-call]
_INDEX = Arg(("--map-index",), help="One mapped instance of the task", type=whole_number(0, 2**31 - 1))  # type: ignore[no-untyped-call]
_LIMIT = Arg(  # type: ignore[no-untyped-call]
    ("--limit",), help="At most this many of each list (default: 50 transactions, 200 objects)", type=int
)
_CURSOR = Arg(  # type: ignore[no-untyped-call]
    ("--cursor",), help="One of `cursors` of the answer before, for what follows in its list", metavar="TEXT"
)


def run_command() -> ActionCommand:
    """One more command of `objects`."""
    return ActionCommand(
        name="run",
        help="Show what the tasks of a DAG, of a run or one task did: objects, windows with rows, and evidence",
        func=show_run,
        args=(_DAG, _RUN, _TASK, _INDEX, _LIMIT, _CURSOR, CONNECTION, ARG_OUTPUT, ARG_VERBOSE),
    )


@suppress_logs_and_warning
def show_run(args: Namespace) -> None:
    """Facts, then a row per window, per write, and per object that was touched or that the DAG owns. Then the next
    window of each stream among them, as it is planned now. `cursors` has a cursor for each list that continues.
    """
    from tidemark.streams.worker.runs import RunWish, read_run

    with errors_in_words():
        hook = TidemarkHook(args.conn_id)
        part = RunPart(args.dag_id, args.run_id, args.task_id, args.map_index if args.task_id else None)
        found = read_run(hook.open_store(), hook.open_table, RunWish(part, args.limit, args.cursor))
    facts = {**vars(part), "objects_owned": found.total, "cursors": dict(found.cursors)}
    parts = {
        "windows": [row for one in found.transactions for row in _windows(one)],
        "writes": [row for one in found.transactions for row in _writes(one)],
        "touched": [{**_object(one), "did": touch.did, "why": touch.why} for one, touch in found.touched],
        "owned": [_object(one) for one in found.owned],
        "next": [_next(one) for one in found.next],
    }
    print_facts(facts, parts, args.output)


def _windows(one: StoredTransaction) -> Iterator[dict[str, Any]]:
    from tidemark.streams.worker.statistics import changes_of

    transaction, evidence = one.transaction, tuple(one.all_evidence.values())
    for window in transaction.windows:
        yield {
            "transaction": str(transaction.key),
            "state": transaction.state.value,
            "opened_at": shown_time(transaction.opened_at),
            "stream": window.stream_name,
            "from": window.start,
            "to": window.end,
            "rows": changes_of(window, transaction.plan.statements, evidence),
        }


def _writes(one: StoredTransaction) -> Iterator[dict[str, Any]]:
    evidence = one.all_evidence
    for statement in one.transaction.plan.statements:
        found = evidence.get(statement.number)
        yield {
            "transaction": str(one.transaction.key),
            "number": statement.number,
            "target": statement.target.name,
            "write_as": statement.write.write_as.value,
            "version": None if found is None else found.commit_version,
            "rows": None if found is None else ", ".join(f"{count} {how}" for how, count in sorted(found.rows.items())),
        }


def _next(one: NextWindow) -> dict[str, Any]:
    return {
        "stream": one.stream,
        "state": one.state,
        "from": one.from_version,
        "to": one.to_version,
        "initial_rows": one.initial_rows,
        "versions": one.versions,
        "estimated_rows": one.rows,
        "estimated_bytes": one.bytes,
        "sample": one.sample,
        "problem": one.problem,
    }


def _object(one: ShownObject) -> dict[str, Any]:
    return {
        "kind": one.kind,
        "name": one.name,
        "state": one.state,
        "severity": one.severity.value,
        "problem": one.trouble,
        "uid": one.uid,
    }
