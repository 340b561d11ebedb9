"""`airflow tidemark streams rebase | replay | recreate`: streams on tables that start again, without Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow.cli.cli_config import ARG_OUTPUT, ARG_VERBOSE, ARG_YES, ActionCommand, Arg

from tidemark.cli._acts import DRY_RUN, WHY, acting, confirm, kept_by, me, store_of, why_of
from tidemark.cli._answers import CONNECTION, errors_in_words, print_rows
from tidemark.hooks.tidemark import TidemarkHook

if TYPE_CHECKING:
    from argparse import Namespace

    from tidemark.model.streams import Stream

__all__ = ["stream_renewals"]

_NAME = Arg(("name",), help="Name of the stream")  # type: ignore[no-untyped-call]
_WHY = Arg(("--why",), help="A reason, which the history keeps", required=True, metavar="TEXT")  # type: ignore[no-untyped-call]
_KEYS = Arg(  # type: ignore[no-untyped-call]
    ("--key",), help="Columns by which both states are compared, and its changes from now on", nargs="+",
    action="extend", metavar="COLUMN", dest="keys",
)  # fmt: skip
_INITIAL_ROWS = Arg(  # type: ignore[no-untyped-call]
    ("--show-initial-rows",), help="Deliver the rows that the table has at the start first", action="store_true"
)
_FORCE = Arg(  # type: ignore[no-untyped-call]
    ("--force",), help="Even if it can still be read: what it has not read is lost", action="store_true"
)
_FROM = Arg(  # type: ignore[no-untyped-call]
    ("--from",), help="The version at which a window of its history began", required=True, metavar="VERSION",
    dest="version",
)  # fmt: skip
_AT = Arg(  # type: ignore[no-untyped-call]
    ("--at",), help="A version, or a time with a zone (default: the newest version)", metavar="POINT"
)
_ANSWERS = (DRY_RUN, CONNECTION, ARG_OUTPUT, ARG_VERBOSE)


def stream_renewals() -> tuple[ActionCommand, ...]:
    """Acts after which it is another stream for its targets; each says in its help what a second run does."""
    return (
        ActionCommand(
            name="rebase",
            help="Move an unreadable stream onto the table that now has its source's name; a second run needs --force",
            func=rebase,
            args=(_NAME, _WHY, _KEYS, _INITIAL_ROWS, _FORCE, *_ANSWERS),
        ),
        ActionCommand(
            name="replay",
            help="Deliver again from an earlier window on; each run moves back to it",
            func=replay,
            args=(_NAME, _FROM, _WHY, ARG_YES, *_ANSWERS),
        ),
        ActionCommand(
            name="recreate",
            help="Create a stream again as it is defined; each run loses its offset",
            func=recreate,
            args=(_NAME, _AT, _INITIAL_ROWS, WHY, ARG_YES, *_ANSWERS),
        ),
    )


@acting
def rebase(args: Namespace) -> None:
    """Refused if it can still be read, without --force. A stream on a view takes a task."""
    from tidemark.streams.worker.starting_again import rebase_in_place

    with errors_in_words():
        hook, keys = TidemarkHook(args.conn_id), tuple(args.keys or ())
        store, rows, force = store_of(hook, dry_run=args.dry_run), args.show_initial_rows, args.force
        done = rebase_in_place(
            store,
            args.name,
            who=me(),
            why=why_of(args),
            tables=hook.open_table,
            keys=keys,
            show_initial_rows=rows,
            force=force,
            writes=kept_by(store, args, "stream", "rebase", keys=keys, show_initial_rows=rows, force=force),
        )
    print_rows([_moved("rebase", args, done.before, done.after)], args.output)


@acting
def replay(args: Namespace) -> None:
    """All changes since then are delivered again, by the stream's own consumer. `streams show` has the windows."""
    from tidemark.streams.worker.starting_again import replay_from

    with errors_in_words():
        hook = TidemarkHook(args.conn_id)
        how: dict[str, Any] = {"who": me(), "why": why_of(args)}
        store, version = store_of(hook, dry_run=True), _version_of(args.version)
        done = replay_from(store, args.name, version, tables=hook.open_table, **how)
        if not args.dry_run:
            confirm(f"Deliver all changes of {done.before.name} since version {version} again?", yes=args.yes)
            store = hook.open_store()
            kept = kept_by(store, args, "stream", "replay", window=str(version))
            done = replay_from(store, args.name, version, tables=hook.open_table, writes=kept, **how)
    print_rows([_moved("replay", args, done.before, done.after)], args.output)


@acting
def recreate(args: Namespace) -> None:
    """Its place is lost, its history ends. Name, table, mode, keys and comment are those that it had."""
    from tidemark.streams.planning.arguments import start_of
    from tidemark.streams.worker.starting_again import recreate_in_place
    from tidemark.streams.worker.streams import get_stream

    with errors_in_words():
        hook, at = TidemarkHook(args.conn_id), start_of("at", args.at)
        before = get_stream(hook.open_store(), args.name)
        how: dict[str, Any] = {"who": me(), "at": at, "initial_rows": args.show_initial_rows}
        made = recreate_in_place(store_of(hook, dry_run=True), args.name, tables=hook.open_table, **how)
        if not args.dry_run:
            question = f"Recreate {before.name}? Its place, {before.offset.version}, is lost."
            confirm(question, yes=args.yes)
            store, rows = hook.open_store(), args.show_initial_rows
            kept = kept_by(store, args, "stream", "recreate", at=args.at, show_initial_rows=rows)
            made = recreate_in_place(store, args.name, tables=hook.open_table, writes=kept, **how)
    print_rows([_moved("recreate", args, before, made.stream)], args.output)


def _version_of(text: str) -> int:
    """Raises InvalidArgument."""
    from tidemark.errors import InvalidArgument

    if not (text.isascii() and text.isdigit()):
        raise InvalidArgument(argument="from", value=text, problem="it is a version, such as 42")
    return int(text)


def _moved(act: str, args: Namespace, before: Stream, after: Stream) -> dict[str, Any]:
    versions = {"before": before.offset.version, "after": after.offset.version}
    return {"stream": after.name, "act": act, "table": after.source.name, **versions, "done": not args.dry_run}
