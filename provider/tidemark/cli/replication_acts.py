"""`airflow tidemark replications pause | resume | recover | backfill | forget-files | drop`, without a DAG."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from airflow.cli.cli_config import ARG_OUTPUT, ARG_VERBOSE, ARG_YES, ActionCommand, Arg

from tidemark.cli._acts import (
    DRY_RUN,
    IF_EXISTS,
    WHY,
    acting,
    after_the_act,
    by_me,
    confirm,
    kept_by,
    note_done,
    runtime_of,
    store_of,
)
from tidemark.cli._answers import CONNECTION, errors_in_words, print_rows
from tidemark.hooks.tidemark import TidemarkHook

if TYPE_CHECKING:
    from argparse import Namespace

    from tidemark.control.store import ControlStore
    from tidemark.replication.model.replication import LogPosition, ReplicatedObject, Replication
    from tidemark.replication.sources.open import Source
    from tidemark.replication.worker.recovering import Recovery

__all__ = ["replication_acts"]

_ACTIONS = ("start", "restart", "stop")

_NAME = Arg(("name",), help="Name of the replication")  # type: ignore[no-untyped-call]
_TABLES = Arg(("tables",), help="Tables of the source: schema.table", nargs="*", metavar="TABLE")  # type: ignore[no-untyped-call]
_ALL = Arg(("--all",), help="Every table that can be backfilled", action="store_true")  # type: ignore[no-untyped-call]
_ACTION = Arg(  # type: ignore[no-untyped-call]
    ("--action",),
    help="start: the next run backfills them; restart: even those that are under way; stop: end them (default: start)",
    choices=_ACTIONS,
    default="start",
)
_AT_ONCE = Arg(  # type: ignore[no-untyped-call]
    ("--at-once",), help="Stop applying, too; captured events are applied after it is resumed",
    action="store_true",
)  # fmt: skip
_FROM = Arg(  # type: ignore[no-untyped-call]
    ("--from",),
    help="now, or a position as the source writes it: 16/B374D848",
    required=True,
    metavar="POSITION",
    dest="position",
)
_KEEP = Arg(  # type: ignore[no-untyped-call]
    ("--keep",), help="Tables that are not backfilled again", nargs="+", action="extend", metavar="TABLE"
)
_WITHOUT_SOURCE = Arg(  # type: ignore[no-untyped-call]
    ("--without-source",), help="The source no longer exists: nothing is dropped in it", action="store_true"
)
_FILES = Arg(("target",), help="Directory of the event files: an absolute path, or a URI", metavar="TARGET")  # type: ignore[no-untyped-call]
_FORCE = Arg(("--force",), help="Do not wait for jobs that may be alive", action="store_true")  # type: ignore[no-untyped-call]
_ANSWERS = (DRY_RUN, CONNECTION, ARG_OUTPUT, ARG_VERBOSE)


def replication_acts() -> tuple[ActionCommand, ...]:
    """The acts of tasks, by hand; each says in its help what a second run does."""
    return (
        ActionCommand(
            name="pause",
            help="Drain and pause a replication; a second run changes nothing",
            func=pause,
            args=(_NAME, _AT_ONCE, WHY, *_ANSWERS),
        ),
        ActionCommand(
            name="resume",
            help="Resume a paused or draining replication; a second run changes nothing",
            func=resume,
            args=(_NAME, WHY, *_ANSWERS),
        ),
        ActionCommand(
            name="recover",
            help="Let a failed replication continue from a position; a second run from there changes nothing",
            func=recover,
            args=(_NAME, _FROM, _KEEP, WHY, ARG_YES, *_ANSWERS),
        ),
        ActionCommand(
            name="backfill",
            help="Request backfills, which the next run does; a second run changes nothing",
            func=backfill,
            args=(_NAME, _TABLES, _ALL, _ACTION, WHY, *_ANSWERS),
        ),
        ActionCommand(
            name="forget-files",
            help="Forget which events a directory has as files, by a job on Spark; a second run forgets nothing",
            func=forget_files,
            args=(_NAME, _FILES, WHY, ARG_YES, *_ANSWERS),
        ),
        ActionCommand(
            name="drop",
            help="Drop a replication, its slot and its publication; targets stay; a second run needs --if-exists",
            func=drop,
            args=(_NAME, IF_EXISTS, _WITHOUT_SOURCE, _FORCE, WHY, ARG_YES, *_ANSWERS),
        ),
    )


@acting
def pause(args: Namespace) -> None:
    """Captured changes are still applied, by the next run. A second run changes nothing."""
    from tidemark.replication.worker.definitions import get_replication
    from tidemark.replication.worker.lifecycle import let_drain

    with errors_in_words():
        store = store_of(TidemarkHook(args.conn_id), dry_run=args.dry_run)
        before = get_replication(store, args.name)
        kept = kept_by(store, args, "replication", "pause", at_once=args.at_once)
        after = let_drain(kept, before.name, by=by_me(args), at_once=args.at_once)
    print_rows([_moved("pause", args, before, after)], args.output)


@acting
def resume(args: Namespace) -> None:
    """The next run captures, from where it was captured. A second run changes nothing."""
    from tidemark.replication.worker.definitions import get_replication
    from tidemark.replication.worker.lifecycle import resume as run_on

    with errors_in_words():
        store = store_of(TidemarkHook(args.conn_id), dry_run=args.dry_run)
        before = get_replication(store, args.name)
        after = run_on(kept_by(store, args, "replication", "resume"), before.name, by=by_me(args))
    print_rows([_moved("resume", args, before, after)], args.output)


@acting
def recover(args: Namespace) -> None:
    """Tables but those of `--keep` are backfilled again, or need a backfill if that is not done by itself. A second run
    from the same position changes nothing until more is captured; `now` is another time then, and refused. `now` is
    asked about, as it gives up what was not captured.
    """
    from tidemark.hooks.replication import source_of
    from tidemark.replication.model.replication import ReplicationState
    from tidemark.replication.planning.positions import NOW
    from tidemark.replication.worker.definitions import get_replication
    from tidemark.replication.worker.objects import objects_of
    from tidemark.replication.worker.recovering import plan_recovery

    with errors_in_words():
        hook = TidemarkHook(args.conn_id)
        store = hook.open_store()
        before = get_replication(store, args.name)
        source, keep = source_of(before), tuple(args.keep or ())
        plan = partial(plan_recovery, store, before.name, position=args.position, source=source, keep=keep)
        if args.dry_run:
            found = plan()
            after = replace(before, state=ReplicationState.RUNNING, captured=found.start)
            needs_backfill = list(found.to_backfill)
        else:
            if args.position.strip().lower() == NOW:
                confirm(_given_up(plan()), yes=args.yes)
            after = _recovered(hook, store, before, source, args)
            needs_backfill = [one.name.text for one in objects_of(store, before.name) if one.needs_backfill is not None]
    print_rows([{**_moved("recover", args, before, after), "needs_backfill": ", ".join(needs_backfill)}], args.output)


@acting
def backfill(args: Namespace) -> None:
    """One row per table, before and after. The next run does what is requested. A second request changes nothing, but a
    `restart` begins a backfill again that is under way. With `--all`, tables that cannot be backfilled are named on
    standard error.
    """
    from tidemark.replication.worker.objects import objects_of, request_backfill, stop_backfill

    with errors_in_words():
        store = store_of(TidemarkHook(args.conn_id), dry_run=args.dry_run)
        tables, by = _requested_tables(store, args), by_me(args)
        before = {one.name.text: one for one in objects_of(store, args.name)}
        kept = _kept_of_backfill(store, args)
        if args.action == "stop":
            after = stop_backfill(kept, args.name, tables, by=by)
        else:
            after = request_backfill(kept, args.name, tables, by=by, restart=args.action == "restart")
    print_rows([_requested(args, before[one.name.text], one) for one in after], args.output)


@acting
def forget_files(args: Namespace) -> None:
    """Files stay, and events that only this directory needed may expire. The next files in it would begin with the
    oldest event of the log. A dry run starts no Spark, and shows what the newest commits tell.
    """
    from tidemark.hooks.replication import event_log_of
    from tidemark.lake.storage import canonical_uri
    from tidemark.replication.worker.event_files import forget_event_files, known_event_files

    with errors_in_words():
        hook, target = TidemarkHook(args.conn_id), canonical_uri(args.target)
        written = known_event_files(hook.open_store(), args.name, target, open_log=event_log_of(hook))
        if not args.dry_run:
            confirm(f"Forget the event files of replication {args.name} in {target}?", yes=args.yes)
            runtime = runtime_of(hook)
            written = forget_event_files(runtime, args.name, target, open_log=event_log_of(hook)).written
            with after_the_act():
                _note_forgotten(runtime.store, args, target, written)
    row = {"replication": args.name, "act": "forget-files", "target": target, "written": _place(written)}
    print_rows([{**row, "done": not args.dry_run and written is not None}], args.output)


@acting
def drop(args: Namespace) -> None:
    """Slot first, then publication, what the store knows, and the event log; targets stay. Killed in between, it is
    dropped by the next run. Refused while a job of it may be alive, but with `--force`.
    """
    from tidemark.errors import ReplicationNotFound
    from tidemark.hooks.replication import source_of
    from tidemark.replication.worker.definitions import begin_drop, get_replication
    from tidemark.replication.worker.ending import end_replication

    with errors_in_words():
        hook = TidemarkHook(args.conn_id)
        store, by = hook.open_store(), by_me(args)
        try:
            before = get_replication(store, args.name)
        except ReplicationNotFound:
            if not args.if_exists:
                raise
            print_rows([], args.output)
            return
        begin_drop(store.rehearsal(), before.name, by=by, force=args.force)
        row = {"replication": before.name, "act": "drop", "before": before.state.value, "after": "dropped"}
        row |= {"slot": before.slot, "publication": before.publication, "event_log": before.event_log}
        if not args.dry_run:
            confirm(_question(before, args), yes=args.yes)
            source = None if args.without_source else source_of
            options = hook.settings.storage_options
            kept = kept_by(store, args, "replication", "drop", without_source=args.without_source, force=args.force)
            end_replication(kept, before.name, by=by, source=source, storage_options=options, force=args.force)
    print_rows([{**row, "done": not args.dry_run}], args.output)


def _question(replication: Replication, args: Namespace) -> str:
    left = " Slot and publication are left in the source." if args.without_source else ""
    return f"Drop replication {replication.name}, its slot, its publication and its event log?{left} Its targets stay."


def _given_up(found: Recovery) -> str:
    captured = found.replication.captured
    since = "" if captured is None else f" since {_place(captured)}"
    return (
        f"Let replication {found.replication.name} continue from now? Changes that were committed{since} and not "
        f"captured are lost. Tables that need a backfill then: {', '.join(found.to_backfill) or 'none'}."
    )


def _recovered(
    hook: TidemarkHook, store: ControlStore, before: Replication, source: Source, args: Namespace
) -> Replication:
    from tidemark.hooks.replication import event_log_path
    from tidemark.replication.worker.recovering import recover_from

    return recover_from(
        kept_by(store, args, "replication", "recover", position=args.position, keep=tuple(args.keep or ())),
        before.name,
        position=args.position,
        source=source,
        event_log=event_log_path(hook),
        by=by_me(args),
        keep=tuple(args.keep or ()),
    )


def _kept_of_backfill(store: ControlStore, args: Namespace) -> ControlStore:
    """The history has a row of each table that is named, and one of the replication for all of them."""
    from tidemark.replication.worker.definitions import get_replication

    act = "backfill" if args.action == "start" else args.action
    if not args.all:
        return kept_by(store, args, "replicated_table", act)
    return kept_by(store, args, "replication", act, name=get_replication(store, args.name).name)


def _note_forgotten(store: ControlStore, args: Namespace, target: str, written: LogPosition | None) -> None:
    from tidemark.replication.worker.definitions import get_replication

    if written is not None:
        found = get_replication(store, args.name)
        note_done(store, args, "replication", "forget-files", uid=found.uid, name=found.name, target=target)


def _requested_tables(store: ControlStore, args: Namespace) -> Sequence[str]:
    """Raises InvalidArgument, ReplicationNotFound."""
    from tidemark.errors import InvalidArgument
    from tidemark.replication.worker.objects import can_be_backfilled

    if bool(args.tables) == args.all:
        raise InvalidArgument(argument="TABLE", value=args.tables, problem="name tables, or give --all")
    if not args.all:
        return tuple(args.tables)
    names, refused = can_be_backfilled(store, args.name)
    for name, problem in refused.items():
        print(f"{name} is left out: {problem}", file=sys.stderr)
    return names


def _moved(act: str, args: Namespace, before: Replication, after: Replication) -> dict[str, Any]:
    """The change that the act has made, or would make."""
    return {
        "replication": before.name,
        "act": act,
        "before": before.state.value,
        "after": after.state.value,
        "captured": _place(after.captured),
        "done": not args.dry_run,
    }


def _requested(args: Namespace, before: ReplicatedObject, after: ReplicatedObject) -> dict[str, Any]:
    return {
        "replication": args.name,
        "object": after.name.text,
        "act": args.action,
        "before": before.state.value,
        "after": after.state.value,
        "done": not args.dry_run,
    }


def _place(position: LogPosition | None) -> str | None:
    from tidemark.replication.planning.positions import position_text

    return None if position is None else position_text(position)
