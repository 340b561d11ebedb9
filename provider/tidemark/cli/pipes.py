"""`airflow tidemark pipes …`: the state of pipes; pausing, resuming and dropping them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow.cli.cli_config import ARG_OUTPUT, ARG_VERBOSE, ARG_YES, ActionCommand, Arg
from airflow.utils.cli import suppress_logs_and_warning

from tidemark.cli._acts import DRY_RUN, IF_EXISTS, WHY, acting, confirm, kept_by, me, store_of
from tidemark.cli._answers import CONNECTION, errors_in_words, print_facts, print_rows, shown_time
from tidemark.hooks.tidemark import TidemarkHook

if TYPE_CHECKING:
    from argparse import Namespace

    from tidemark.pipes.model.pipes import Pipe

__all__ = ["pipe_commands"]

_NAME = Arg(("name",), help="Name of the pipe")  # type: ignore[no-untyped-call]
_FORCE = Arg(  # type: ignore[no-untyped-call]
    ("--force",),
    help="Even after a pause that is longer than the pipe's history: older files that arrived since are left out",
    action="store_true",
)
_LOOK = (CONNECTION, ARG_OUTPUT, ARG_VERBOSE)


def pipe_commands() -> tuple[ActionCommand, ...]:
    """Of pipes: lists and acts; each act says in its help what a second run does."""
    return (
        ActionCommand(name="list", help="List pipes with state, last run and problem", func=list_pipes, args=_LOOK),
        ActionCommand(
            name="show", help="Show a pipe, its statement and its status", func=show_pipe, args=(_NAME, *_LOOK)
        ),
        ActionCommand(
            name="pause",
            help="Stop loading files; a second run changes nothing",
            func=pause,
            args=(_NAME, WHY, DRY_RUN, *_LOOK),
        ),
        ActionCommand(
            name="resume",
            help="Resume a paused pipe; a second run changes nothing",
            func=resume,
            args=(_NAME, _FORCE, WHY, DRY_RUN, *_LOOK),
        ),
        ActionCommand(
            name="drop",
            help="Drop a pipe and keep its table of files; a second run needs --if-exists",
            func=drop,
            args=(_NAME, IF_EXISTS, WHY, ARG_YES, DRY_RUN, *_LOOK),
        ),
    )


@suppress_logs_and_warning
def list_pipes(args: Namespace) -> None:
    """One row per pipe: name, state, whether runs look for files, last run, pause, problem."""
    from tidemark.pipes.worker.definitions import list_pipes as all_pipes

    with errors_in_words():
        rows = [_row(pipe) for pipe in all_pipes(TidemarkHook(args.conn_id).open_store())]
    print_rows(rows, args.output)


@suppress_logs_and_warning
def show_pipe(args: Namespace) -> None:
    """The pipe's facts, and its state by the stage, the file format and the table that its statement names."""
    from tidemark.pipes.planning.states import state_of
    from tidemark.pipes.worker.definitions import get_pipe
    from tidemark.pipes.worker.needs import needed_objects

    with errors_in_words():
        hook = TidemarkHook(args.conn_id)
        store = hook.open_store()
        pipe = get_pipe(store, args.name)
        state = state_of(pipe, needed_objects(store, pipe, hook.open_table))
    facts = {**_row(pipe), "state": state.value, **_facts(pipe)}
    print_facts(facts, {}, args.output)


@acting
def pause(args: Namespace) -> None:
    """A run that has begun ends first. Files that come are queued when the pipe runs again."""
    from tidemark.pipes.worker import definitions

    with errors_in_words():
        store = store_of(TidemarkHook(args.conn_id), dry_run=args.dry_run)
        before = definitions.get_pipe(store, args.name)
        after = definitions.pause_pipe(kept_by(store, args, "pipe", "pause"), args.name, by=me())
    print_rows([_moved("pause", args, before, after)], args.output)


@acting
def resume(args: Namespace) -> None:
    """Refused without --force if the pause was longer than the pipe's history, since older files are left out."""
    from tidemark.pipes.worker import definitions

    with errors_in_words():
        store = store_of(TidemarkHook(args.conn_id), dry_run=args.dry_run)
        before = definitions.get_pipe(store, args.name)
        kept = kept_by(store, args, "pipe", "resume", force=args.force)
        after = definitions.resume_pipe(kept, args.name, force=args.force, by=me())
    print_rows([_moved("resume", args, before, after)], args.output)


@acting
def drop(args: Namespace) -> None:
    """Rows that the pipe loaded stay, and so does its table of files. No row if there was no such pipe."""
    from tidemark.pipes.worker import definitions

    with errors_in_words():
        store = TidemarkHook(args.conn_id).open_store()
        find = definitions.find_pipe if args.if_exists else definitions.get_pipe
        before = find(store, args.name)
        if before is not None and not args.dry_run:
            confirm(f"Drop pipe {before.name}?", yes=args.yes)
            definitions.drop_pipe(kept_by(store, args, "pipe", "drop"), before.name, if_exists=True, by=me())
    if before is None:
        print_rows([], args.output)
        return
    row = {"pipe": before.name, "act": "drop", "before": _state(before), "files": before.queue}
    print_rows([{**row, "done": not args.dry_run}], args.output)


def _row(pipe: Pipe) -> dict[str, Any]:
    return {
        "name": pipe.name,
        "state": _state(pipe),
        "auto_ingest": pipe.auto_ingest,
        "last_run_at": shown_time(pipe.last_run_at),
        "paused_at": shown_time(pipe.paused_at),
        "problem": pipe.problem,
    }


def _facts(pipe: Pipe) -> dict[str, Any]:
    return {
        "problem_at": shown_time(pipe.problem_at),
        "problem_run": pipe.problem_run,
        "copy_statement": pipe.copy_statement,
        "notification_channel": pipe.notification_channel,
        "files": pipe.queue,
        "comment": pipe.comment,
        "created_at": shown_time(pipe.created_at),
        "uid": pipe.uid,
    }


def _moved(act: str, args: Namespace, before: Pipe, after: Pipe) -> dict[str, Any]:
    states = {"before": _state(before), "after": _state(after)}
    return {"pipe": before.name, "act": act, **states, "done": not args.dry_run}


def _state(pipe: Pipe) -> str:
    from tidemark.pipes.planning.states import kept_state

    return kept_state(pipe).value
