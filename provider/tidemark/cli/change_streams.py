"""`airflow tidemark change-streams …`: change streams: their state, suspend, resume, backfill and drop."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from airflow.cli.cli_config import ARG_OUTPUT, ARG_VERBOSE, ARG_YES, ActionCommand, Arg
from airflow.utils.cli import suppress_logs_and_warning

from tidemark.cli._acts import (
    DRY_RUN,
    IF_EXISTS,
    WHY,
    acting,
    after_the_act,
    confirm,
    kept_by,
    note_done,
    runtime_of,
    store_of,
)
from tidemark.cli._answers import CONNECTION, errors_in_words, print_facts, print_rows, shown_time
from tidemark.cli.consumer_groups import group_row
from tidemark.hooks.tidemark import TidemarkHook

if TYPE_CHECKING:
    from argparse import Namespace

    from tidemark.change_streams.model.change_streams import ChangeStream
    from tidemark.change_streams.worker.backfill import BackfillPoint
    from tidemark.change_streams.worker.definitions import OpenLog
    from tidemark.control.store import ControlStore

__all__ = ["change_stream_commands"]

_NAME = Arg(("name",), help="Name of the change stream")  # type: ignore[no-untyped-call]
_ON = Arg(  # type: ignore[no-untyped-call]
    ("--on",), help="Tables to watch, or ALL, from their newest versions on", nargs="+", action="extend",
    required=True, metavar="TABLE", dest="tables",
)  # fmt: skip
_KEYS = Arg(  # type: ignore[no-untyped-call]
    ("--key",), help="The primary key of the only table, if it lacks the property tidemark.primaryKey",
    nargs="+", action="extend", metavar="COLUMN", dest="keys",
)  # fmt: skip
_GROUP = Arg(("--group",), help="A consumer group, whose states and watermarks are shown")  # type: ignore[no-untyped-call]
_READER = Arg(  # type: ignore[no-untyped-call]
    ("--group",), help="The consumer group whose records begin there; it is created if it does not exist", required=True
)
_TABLE = Arg(("--table",), help="The watched table", required=True)  # type: ignore[no-untyped-call]
_TARGET = Arg(("--target",), help="The table that is filled", required=True, metavar="TABLE")  # type: ignore[no-untyped-call]
_OVERWRITE = Arg(  # type: ignore[no-untyped-call]
    ("--overwrite",), help="Delete the rows that the target has", action="store_true"
)
_LOOK = (CONNECTION, ARG_OUTPUT, ARG_VERBOSE)


def change_stream_commands() -> tuple[ActionCommand, ...]:
    """Of change streams: lists and acts; each act says in its help what a second run does."""
    return (*_lists(), *_acts())


def _lists() -> tuple[ActionCommand, ...]:
    return (
        ActionCommand(
            name="list",
            help="List change streams with their tables and the time up to which they are captured",
            func=list_change_streams,
            args=_LOOK,
        ),
        ActionCommand(
            name="show",
            help="Show a change stream, its tables, its consumer groups, and the tables that ALL leaves out",
            func=show_change_stream,
            args=(_NAME, *_LOOK),
        ),
        ActionCommand(
            name="partitions",
            help="List the partitions of a change stream, parents before children, with the progress of a group",
            func=list_partitions,
            args=(_NAME, _GROUP, *_LOOK),
        ),
    )


def _acts() -> tuple[ActionCommand, ...]:
    return (
        ActionCommand(
            name="suspend",
            help="Stop watching all tables; a second run changes nothing",
            func=suspend,
            args=(_NAME, WHY, DRY_RUN, *_LOOK),
        ),
        ActionCommand(
            name="resume",
            help="Resume a suspended change stream on these tables; a second run changes nothing",
            func=resume,
            args=(_NAME, _ON, _KEYS, WHY, DRY_RUN, *_LOOK),
        ),
        ActionCommand(
            name="backfill",
            help="Copy the rows of a watched table before a group reads its records; a second run copies nothing",
            func=backfill,
            args=(_NAME, _READER, _TABLE, _TARGET, _OVERWRITE, WHY, ARG_YES, DRY_RUN, *_LOOK),
        ),
        ActionCommand(
            name="drop",
            help="Drop a change stream, its records and its consumer groups; a second run needs --if-exists",
            func=drop,
            args=(_NAME, IF_EXISTS, WHY, ARG_YES, DRY_RUN, *_LOOK),
        ),
    )


@suppress_logs_and_warning
def list_change_streams(args: Namespace) -> None:
    """One row per change stream: name, state, what it watches, groups (a number), captured up to, retention."""
    from tidemark.change_streams.worker.definitions import list_change_streams as all_change_streams
    from tidemark.change_streams.worker.groups import list_groups

    with errors_in_words():
        store = TidemarkHook(args.conn_id).open_store()
        rows = [{**_row(one), "groups": len(list_groups(store, one.name))} for one in all_change_streams(store)]
    print_rows(rows, args.output)


@suppress_logs_and_warning
def show_change_stream(args: Namespace) -> None:
    """Its facts, then tables, consumer groups, and tables left out, with the reason; as JSON and YAML one document."""
    from tidemark.change_streams.worker.definitions import get_change_stream
    from tidemark.change_streams.worker.groups import group_status, list_groups
    from tidemark.change_streams.worker.watching import tables_left_out
    from tidemark.hooks.lake_tables import lake_tables_of

    with errors_in_words():
        hook = TidemarkHook(args.conn_id)
        store = hook.open_store()
        stream = get_change_stream(store, args.name)
        groups = [group_status(store, stream.name, one.name) for one in list_groups(store, stream.name)]
        left = tables_left_out(store, stream, lake_tables_of(hook))
    parts = {
        "tables": [
            {
                "table": one.table.name,
                "keys": ", ".join(one.keys),
                "columns": "all" if one.columns is None else ", ".join(one.columns),
                "captured": one.captured,
            }
            for one in stream.tables
        ],
        "groups": [group_row(one) for one in groups],
        "left_out": [{"table": one.name, "why": one.why} for one in left],
    }
    print_facts({**_row(stream), **_facts(stream)}, parts, args.output)


@suppress_logs_and_warning
def list_partitions(args: Namespace) -> None:
    """One row per partition: token, bounds of the hash of its keys, parents, children, state, start, end, watermark."""
    from tidemark.change_streams.worker.partition_statuses import list_partitions as all_partitions

    with errors_in_words():
        found = all_partitions(TidemarkHook(args.conn_id).open_store(), args.name, args.group)
    rows = [
        {
            "partition_token": one.partition_token,
            "keys": f"[{one.lo}, {one.hi})",
            "parents": ", ".join(one.parent_tokens),
            "children": ", ".join(one.child_tokens),
            "state": one.state,
            "start_timestamp": one.start_timestamp.isoformat(),
            "end_timestamp": None if one.end_timestamp is None else one.end_timestamp.isoformat(),
            "watermark": None if one.watermark is None else one.watermark.isoformat(),
            "error": one.error,
        }
        for one in found
    ]
    print_rows(rows, args.output)


@acting
def suspend(args: Namespace) -> None:
    """Captured changes remain readable; commits after the last capture are not captured. The watched tables are
    forgotten, so `resume` names them again. A second run changes nothing.
    """
    from tidemark.change_streams.worker import definitions

    with errors_in_words():
        hook = TidemarkHook(args.conn_id)
        store = store_of(hook, dry_run=args.dry_run)
        before = definitions.get_change_stream(store, args.name)
        kept = kept_by(store, args, "change_stream", "suspend")
        after = definitions.suspend(kept, before.name, open_log=_open_log(hook))
    print_rows([_moved("suspend", args, before, after)], args.output)


@acting
def resume(args: Namespace) -> None:
    """Each table from its newest version on: what was committed while it was suspended is not captured. A change stream
    that watches just these stays as it is; one that watches others is refused.
    """
    from tidemark.change_streams.worker import defining, definitions
    from tidemark.hooks.lake_tables import lake_tables_of

    with errors_in_words():
        hook = TidemarkHook(args.conn_id)
        store = store_of(hook, dry_run=args.dry_run)
        before = definitions.get_change_stream(store, args.name)
        after = defining.resume(
            kept_by(store, args, "change_stream", "resume", tables=tuple(args.tables), keys=tuple(args.keys or ())),
            before.name,
            watch=args.tables[0] if len(args.tables) == 1 else args.tables,
            keys=args.keys,
            tables=lake_tables_of(hook),
            open_log=_open_log(hook),
        )
    print_rows([_moved("resume", args, before, after)], args.output)


@acting
def backfill(args: Namespace) -> None:
    """As BackfillTableOperator, by a job on Spark. Killed in between, the next run continues from the same version."""
    from tidemark.change_streams.worker.backfill import backfill_from, begin_backfill
    from tidemark.change_streams.worker.sinks import target_of
    from tidemark.model.statements import TransactionKey
    from tidemark.streams.worker.catalog import asking_the_catalog

    with errors_in_words():
        hook = TidemarkHook(args.conn_id)
        runtime = partial(runtime_of, hook)
        target = target_of(asking_the_catalog(hook.table, runtime), args.target)
        asked = (args.name, args.group, args.table, target)
        point = begin_backfill(hook.open_store().rehearsal(), *asked)
        rows, done = point.rows, point.rows is not None
        if not done and not args.dry_run:
            if args.overwrite:
                confirm(f"Delete the rows that {args.target} has?", yes=args.yes)
            to_run = runtime()
            point = begin_backfill(to_run.store, *asked)
            key = TransactionKey("airflow tidemark", to_run.store.new_id(), "backfill")
            rows, done = backfill_from(to_run, point, target, overwrite=args.overwrite, key=key).rows, True
            with after_the_act():
                _note_backfill(to_run.store, args, point)
    row = {"change_stream": args.name, "act": "backfill", "group": point.group.name, "table": point.watched.table.name}
    print_rows([{**row, "version": point.version, "rows": rows, "done": done}], args.output)


@acting
def drop(args: Namespace) -> None:
    """Records that groups delivered stay in their targets. Killed in between it leaves a directory that nobody reads.
    No row if there was none.
    """
    from tidemark.change_streams.worker import defining, definitions
    from tidemark.errors import ChangeStreamNotFound

    with errors_in_words():
        hook = TidemarkHook(args.conn_id)
        store = hook.open_store()
        try:
            before = definitions.drop_change_stream(store.rehearsal(), args.name)
            if not args.dry_run:
                confirm(f"Drop change stream {before.name}, its records and its consumer groups?", yes=args.yes)
                kept = kept_by(store, args, "change_stream", "drop")
                defining.drop(kept, before.name, hook.settings.storage_options)
        except ChangeStreamNotFound:
            if not args.if_exists:
                raise
            print_rows([], args.output)
            return
    row = {"change_stream": before.name, "act": "drop", "before": _watched(before), "log": before.log_path}
    print_rows([{**row, "done": not args.dry_run}], args.output)


def _note_backfill(store: ControlStore, args: Namespace, point: BackfillPoint) -> None:
    """The group has it: its records begin behind these rows."""
    from tidemark.change_streams.worker.definitions import get_change_stream

    stream = get_change_stream(store, args.name)
    values = {"table": point.watched.table.name, "target": args.target, "overwrite": args.overwrite}
    name = f"{stream.name}/{point.group.name}"
    note_done(store, args, "consumer_group", "backfill", uid=point.group.uid, name=name, **values)


def _open_log(hook: TidemarkHook) -> OpenLog:
    from tidemark.lake.delta_log import DeltaLog

    return partial(DeltaLog.open, options=hook.settings.storage_options)


def _watched(stream: ChangeStream) -> str:
    named = ", ".join(one.table.name for one in stream.tables)
    return f"ALL ({named})" if stream.everything else named


def _row(stream: ChangeStream) -> dict[str, Any]:
    watching = stream.everything or stream.tables
    return {
        "name": stream.name,
        "state": "watching" if watching else "suspended",
        "watches": _watched(stream),
        "published_until": stream.published_until.isoformat(timespec="seconds"),
        "retention": str(stream.options.retention),
    }


def _facts(stream: ChangeStream) -> dict[str, Any]:
    expired = stream.expired_until
    return {
        "value_capture_type": stream.options.value_capture_type.value,
        "options_set": ", ".join(stream.options.given),
        "log": stream.log_path,
        "next_batch": stream.next_batch,
        "expired_until": shown_time(expired),
        "created_at": stream.created_at.isoformat(timespec="seconds"),
        "uid": stream.uid,
    }


def _moved(act: str, args: Namespace, before: ChangeStream, after: ChangeStream) -> dict[str, Any]:
    return {
        "change_stream": before.name,
        "act": act,
        "before": _watched(before),
        "after": _watched(after),
        "done": not args.dry_run,
    }
