"""`airflow tidemark consumer-groups …`: groups of a change stream, shown, paused, resumed, reset and dropped."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from airflow.cli.cli_config import ARG_OUTPUT, ARG_VERBOSE, ARG_YES, ActionCommand, Arg
from airflow.utils.cli import suppress_logs_and_warning

from tidemark.cli._acts import DRY_RUN, IF_EXISTS, WHY, acting, confirm, kept_by, store_of
from tidemark.cli._answers import CONNECTION, errors_in_words, print_facts, print_rows
from tidemark.hooks.tidemark import TidemarkHook

if TYPE_CHECKING:
    from argparse import Namespace

    from tidemark.change_streams.model.change_streams import ConsumerGroup, GroupStatus
    from tidemark.control.store import ControlStore

__all__ = ["consumer_group_commands", "group_row"]

_STREAM = Arg(("change_stream",), help="Name of the change stream")  # type: ignore[no-untyped-call]
_GROUP = Arg(("group",), help="Name of the consumer group")  # type: ignore[no-untyped-call]
_FROM = Arg(  # type: ignore[no-untyped-call]
    ("--from",),
    help="earliest, now, or a time with a zone that is within the retention",
    required=True,
    metavar="POINT",
    dest="start",
)
_LOOK = (CONNECTION, ARG_OUTPUT, ARG_VERBOSE)


def consumer_group_commands() -> tuple[ActionCommand, ...]:
    """Of consumer groups: lists and acts; each act says in its help what a second run does."""
    return (
        ActionCommand(
            name="list",
            help="List the consumer groups of a change stream with their lags",
            func=list_groups,
            args=(_STREAM, *_LOOK),
        ),
        ActionCommand(
            name="show",
            help="Show a consumer group, its partitions by state, and what failed",
            func=show_group,
            args=(_STREAM, _GROUP, *_LOOK),
        ),
        ActionCommand(
            name="pause",
            help="Stop assigning chunks; assigned ones are finished; a second run changes nothing",
            func=pause,
            args=(_STREAM, _GROUP, WHY, DRY_RUN, *_LOOK),
        ),
        ActionCommand(
            name="resume",
            help="Resume a paused group from its position; a second run changes nothing",
            func=resume,
            args=(_STREAM, _GROUP, WHY, DRY_RUN, *_LOOK),
        ),
        ActionCommand(
            name="reset",
            help="Deliver records again from a time on; a second run delivers them once more",
            func=reset,
            args=(_STREAM, _GROUP, _FROM, WHY, ARG_YES, DRY_RUN, *_LOOK),
        ),
        ActionCommand(
            name="drop",
            help="End a consumer group; a second run needs --if-exists",
            func=drop,
            args=(_STREAM, _GROUP, IF_EXISTS, WHY, ARG_YES, DRY_RUN, *_LOOK),
        ),
    )


@suppress_logs_and_warning
def list_groups(args: Namespace) -> None:
    """One row per group: name, state, where it began, low watermark, lag and time to expiry in seconds."""
    from tidemark.change_streams.worker import groups

    with errors_in_words():
        store = TidemarkHook(args.conn_id).open_store()
        names = [one.name for one in groups.list_groups(store, args.change_stream)]
        rows = [group_row(groups.group_status(store, args.change_stream, name)) for name in names]
    print_rows(rows, args.output)


@suppress_logs_and_warning
def show_group(args: Namespace) -> None:
    """Its facts, then partitions by state and what failed; as JSON and YAML one document with these keys, too."""
    from tidemark.change_streams.worker.groups import group_status

    with errors_in_words():
        found = group_status(TidemarkHook(args.conn_id).open_store(), args.change_stream, args.group)
    facts = {
        "change_stream": found.stream,
        **group_row(found),
        "published_until": found.published_until.isoformat(timespec="seconds"),
        "open_chunks": found.open_chunks,
        "backfilling": found.backfilling,
    }
    parts: dict[str, list[dict[str, Any]]] = {
        "partitions": [{"state": state, "count": count} for state, count in found.counts.items()],
        "failed": [{"partition": token, "error": error} for token, error in found.failed.items()],
    }
    print_facts(facts, parts, args.output)


@acting
def pause(args: Namespace) -> None:
    """Chunks that a task has are finished. A second run changes nothing."""
    from tidemark.change_streams.worker.groups import pause_group

    _act("pause", args, lambda store: pause_group(store, args.change_stream, args.group))


@acting
def resume(args: Namespace) -> None:
    """Waves continue where they were. A second run changes nothing."""
    from tidemark.change_streams.worker.groups import resume_group

    _act("resume", args, lambda store: resume_group(store, args.change_stream, args.group))


@acting
def reset(args: Namespace) -> None:
    """It is another group of the same name from then on: sinks take its records for those of another reader. A paused
    one stays so. A second run does it again.
    """
    from tidemark.change_streams.planning.starts import start_of
    from tidemark.change_streams.worker.groups import reset_group

    with errors_in_words():
        start = start_of("from", args.start)
    question = f"Deliver the records of {args.change_stream} to {args.group} again, from {args.start} on?"
    _act("reset", args, lambda store: reset_group(store, args.change_stream, args.group, start), question, args.start)


@acting
def drop(args: Namespace) -> None:
    """Records that it delivered stay in their targets. No row if there was none."""
    from tidemark.change_streams.worker.groups import drop_group
    from tidemark.errors import ConsumerGroupNotFound

    with errors_in_words():
        store = TidemarkHook(args.conn_id).open_store()
        try:
            before = drop_group(store.rehearsal(), args.change_stream, args.group)
            if not args.dry_run:
                confirm(f"Drop consumer group {before.name} of {args.change_stream}, and its position?", yes=args.yes)
                drop_group(kept_by(store, args, "consumer_group", "drop"), args.change_stream, args.group)
        except ConsumerGroupNotFound:
            if not args.if_exists:
                raise
            print_rows([], args.output)
            return
    row = {"change_stream": args.change_stream, "group": before.name, "act": "drop", "before": _state(before)}
    print_rows([{**row, "done": not args.dry_run}], args.output)


def group_row(status: GroupStatus) -> dict[str, Any]:
    """The state of a group, in a line."""
    return {
        "group": status.group.name,
        "state": _state(status.group),
        "start": status.group.start.isoformat(timespec="seconds"),
        "low_watermark": status.low_watermark.isoformat(timespec="seconds"),
        "lag_seconds": round(status.lag_seconds),
        "seconds_until_expiry": round(status.seconds_until_expiry),
        "stale": status.stale,
    }


def _act(
    act: str, args: Namespace, move: Callable[[ControlStore], ConsumerGroup], question: str = "", start: str = ""
) -> None:
    """Do it, or say what it would do, as one row. An act that the store would refuse is refused before the question."""
    from tidemark.change_streams.worker.groups import group_status

    with errors_in_words():
        store = store_of(TidemarkHook(args.conn_id), dry_run=args.dry_run)
        before = group_status(store, args.change_stream, args.group)
        if question and not args.dry_run:
            move(store.rehearsal())
            confirm(question, yes=args.yes)
        after = move(kept_by(store, args, "consumer_group", act, start=start))
    row = {
        "change_stream": before.stream,
        "group": after.name,
        "act": act,
        "before": _state(before.group),
        "after": _state(after),
        "start": after.start.isoformat(timespec="seconds"),
        "done": not args.dry_run,
    }
    print_rows([row], args.output)


def _state(group: ConsumerGroup) -> str:
    return "paused" if group.paused else "running"
