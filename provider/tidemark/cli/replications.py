"""`airflow tidemark replications …`: the state of replications, as the store knows it; others are beside it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from airflow.cli.cli_config import ARG_OUTPUT, ARG_VERBOSE, ActionCommand, Arg
from airflow.utils.cli import suppress_logs_and_warning

from tidemark.cli._answers import CONNECTION, errors_in_words, print_facts, print_rows, shown_time
from tidemark.cli._parts import PART, part_of, say_cursor
from tidemark.cli.replication_acts import replication_acts
from tidemark.cli.replication_looks import replication_looks
from tidemark.hooks.tidemark import TidemarkHook

if TYPE_CHECKING:
    from argparse import Namespace

    from tidemark.replication.model.replication import ReplicationTransition
    from tidemark.replication.worker.status import ObjectStatus, ReplicationStatus

__all__ = ["replication_commands"]

_NAME = Arg(("name",), help="Name of the replication")  # type: ignore[no-untyped-call]
_FIND = Arg(  # type: ignore[no-untyped-call]
    ("--search",), help="Only objects whose name or target has this part, in any case", default="", metavar="TEXT"
)


def replication_commands() -> tuple[ActionCommand, ...]:
    """Of replications: looking, which asks no source but for `discover`, and acting."""
    return (
        ActionCommand(
            name="list",
            help="List replications with their objects and lags",
            func=list_replications,
            args=(*PART, CONNECTION, ARG_OUTPUT, ARG_VERBOSE),
        ),
        ActionCommand(
            name="show",
            help="Show a replication, its alerts, its objects and its latest moves",
            func=show_replication,
            args=(_NAME, _FIND, *PART, CONNECTION, ARG_OUTPUT, ARG_VERBOSE),
        ),
        *replication_looks(),
        *replication_acts(),
    )


@suppress_logs_and_warning
def list_replications(args: Namespace) -> None:
    """One row per replication: name, state, source, objects, behind, lag in seconds and bytes, alerts (a number).
    If more follow, standard error has the cursor for them.
    """
    from tidemark.replication.worker.status import describe_part

    with errors_in_words():
        found = describe_part(TidemarkHook(args.conn_id).open_store(), part_of(args))
    say_cursor(found.cursor)
    rows = [{**_row(status), "alerts": len(status.alerts)} for status in found.replications]
    print_rows(rows, args.output)


@suppress_logs_and_warning
def show_replication(args: Namespace) -> None:
    """Its facts, then its alerts, objects and moves; as JSON and YAML one document with these three keys, too. The
    objects that need somebody come first. If more of them follow, standard error has the cursor.
    """
    from tidemark.replication.worker.object_parts import part_of_objects
    from tidemark.replication.worker.status import describe, history

    with errors_in_words():
        store = TidemarkHook(args.conn_id).open_store()
        status, moves = describe(store, args.name), history(store, args.name)
        _, objects, cursor = part_of_objects(status.objects, args.search, part_of(args))
    say_cursor(cursor, "Further objects")
    names = status.names
    parts = {
        "alerts": [{"alert": alert} for alert in status.alerts],
        "objects": [_object(one) for one in objects],
        "history": [_move(move, names) for move in moves],
    }
    print_facts({**_row(status), **_facts(status)}, parts, args.output)


def _row(status: ReplicationStatus) -> dict[str, Any]:
    replication = status.replication
    return {
        "name": replication.name,
        "state": replication.state.value,
        "source": replication.source_conn_id,
        "objects": len(status.selected),
        "behind": status.behind,
        "lag_seconds": None if status.lag_seconds is None else round(status.lag_seconds),
        "lag_bytes": status.lag_bytes,
    }


def _facts(status: ReplicationStatus) -> dict[str, Any]:
    replication = status.replication
    captured = replication.captured_at
    return {
        "kind": replication.kind.value,
        "target": replication.options.target,
        "mode": replication.options.mode.value,
        "event_log": replication.event_log,
        "slot": replication.slot,
        "publication": replication.publication,
        "system_id": replication.system_id,
        "gtids": replication.gtids,
        "captured_at": shown_time(captured),
        "created_at": replication.created_at.isoformat(timespec="seconds"),
        "uid": replication.uid,
        "backfills": ", ".join(f"{count} {state}" for state, count in status.backfills.items()),
    }


def _object(one: ObjectStatus) -> dict[str, Any]:
    progress = one.object.progress
    return {
        "object": one.object.name.text,
        "target": one.object.target.name,
        "backfill": one.object.state.value,
        "percent": None if progress is None else round(progress.percent, 1),
        "rows": None if progress is None else progress.done,
        "lag_seconds": None if one.lag_seconds is None else round(one.lag_seconds),
        "behind": one.behind,
        "selected": one.object.selected,
        "problem": one.object.needs_backfill or one.object.problem or "; ".join(one.notices) or None,
    }


def _move(move: ReplicationTransition, names: Mapping[str, str]) -> dict[str, Any]:
    return {
        "moved_at": move.at.isoformat(timespec="seconds"),
        "object": None if move.object_uid is None else names.get(move.object_uid, move.object_uid),
        "act": move.act,
        "from": move.before,
        "to": move.after,
        "why": move.by.why,
        "who": move.by.who,
        "run": move.by.run,
    }
