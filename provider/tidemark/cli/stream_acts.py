"""`airflow tidemark streams create | advance | abandon | drop`: acts on streams, without a DAG and without Spark."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from airflow.cli.cli_config import ARG_OUTPUT, ARG_VERBOSE, ARG_YES, ActionCommand, Arg

from tidemark.cli._acts import (
    DRY_RUN,
    IF_EXISTS,
    WHY,
    acting,
    confirm,
    kept_by,
    me,
    runtime_of,
    store_of,
    why_of,
)
from tidemark.cli._answers import CONNECTION, errors_in_words, print_rows
from tidemark.hooks.tidemark import TidemarkHook

if TYPE_CHECKING:
    from argparse import Namespace

    from tidemark.model.streams import Stream

__all__ = ["stream_acts"]

_MODES = ("standard", "append_only", "every_change", "insert_only")

_NAME = Arg(("name",), help="Name of the stream")  # type: ignore[no-untyped-call]
_ON = Arg(  # type: ignore[no-untyped-call]
    ("--on",),
    help="The table that it reads: schema.table, a path, or an external table",
    required=True,
    metavar="TABLE",
)
_MODE = Arg(  # type: ignore[no-untyped-call]
    ("--mode",), help="Which changes it shows; insert_only for an external table (default: standard)",
    choices=_MODES, default="standard",
)  # fmt: skip
_AT = Arg(  # type: ignore[no-untyped-call]
    ("--at",), help="A version, or a time with a zone (default: the newest version)", metavar="POINT"
)
_KEYS = Arg(  # type: ignore[no-untyped-call]
    ("--key",), help="Columns that identify rows, in place of row ids", nargs="+", action="extend", metavar="COLUMN",
    dest="keys",
)  # fmt: skip
_INITIAL_ROWS = Arg(  # type: ignore[no-untyped-call]
    ("--show-initial-rows",), help="Deliver the rows that the table has at the start first", action="store_true"
)
_OR_REPLACE = Arg(  # type: ignore[no-untyped-call]
    ("--or-replace",), help="Replace a stream of the same name; each run loses its offset", action="store_true"
)
_COMMENT = Arg(("--comment",), help="Shown with the stream", metavar="TEXT")  # type: ignore[no-untyped-call]
_TO = Arg(  # type: ignore[no-untyped-call]
    ("--to",), help="now, a version, or a time with a zone; for a view, now or a time", required=True, metavar="POINT"
)
_WHY = Arg(("--why",), help="Why these changes may be skipped", required=True, metavar="TEXT")  # type: ignore[no-untyped-call]
_ANSWERS = (DRY_RUN, CONNECTION, ARG_OUTPUT, ARG_VERBOSE)


def stream_acts() -> tuple[ActionCommand, ...]:
    """The acts of tasks, by hand; each says in its help what a second run does."""
    how = (_ON, _MODE, _AT, _KEYS, _INITIAL_ROWS, _OR_REPLACE, _COMMENT)
    return (
        ActionCommand(
            name="create",
            help="Create a stream on a table; a second run finds it and changes nothing",
            func=create,
            args=(_NAME, *how, WHY, *_ANSWERS),
        ),
        ActionCommand(
            name="advance",
            help="Skip unread changes, which are then never delivered; a second run moves nothing",
            func=advance,
            args=(_NAME, _TO, _WHY, ARG_YES, *_ANSWERS),
        ),
        ActionCommand(
            name="abandon",
            help="Give up a window that can never be finished; a second run finds none",
            func=abandon,
            args=(_NAME, _WHY, ARG_YES, *_ANSWERS),
        ),
        ActionCommand(
            name="drop",
            help="Drop a stream; its history stays; a second run needs --if-exists",
            func=drop,
            args=(_NAME, IF_EXISTS, WHY, ARG_YES, *_ANSWERS),
        ),
    )


@acting
def create(args: Namespace) -> None:
    """An existing stream on the same table, in the same mode and by the same keys keeps its place. Row tracking must be
    on, unless keys are given: turning it on takes Spark.
    """
    from tidemark.hooks.stream_sources import stream_sources
    from tidemark.streams.planning.arguments import mode_of, start_of
    from tidemark.streams.worker.defining import IfExists, StreamRequest, create_stream, find_stream

    with errors_in_words():
        hook = TidemarkHook(args.conn_id)
        request = StreamRequest(
            name=args.name,
            on=args.on,
            mode=mode_of(args.mode),
            at=start_of("at", args.at),
            keys=tuple(args.keys or ()),
            initial_rows=args.show_initial_rows,
            if_exists=IfExists.REPLACE if args.or_replace else IfExists.KEEP_SAME,
            comment=args.comment,
        )
        store = store_of(hook, dry_run=args.dry_run)
        if args.or_replace or find_stream(store, args.name) is None:
            store = kept_by(store, args, "stream", "create", on=args.on, or_replace=args.or_replace)
        made = create_stream(store, request, who=me(), sources=stream_sources(hook, partial(runtime_of, hook)))
    row = {
        "stream": made.stream.name,
        "act": "create",
        "table": made.stream.source.name,
        "mode": made.stream.mode.value,
        "version": made.stream.offset.version,
        "created": made.created,
    }
    print_rows([{**row, "done": not args.dry_run}], args.output)


@acting
def advance(args: Namespace) -> None:
    """Changes in between are never delivered; the stream's history records who moved it and why. Refused while a
    transaction holds the stream. A second run to the same place moves nothing. `now` is asked about if it passes over
    anything, and then the stream moves to the place of the question.
    """
    from tidemark.streams.planning.arguments import end_of, reason_of
    from tidemark.streams.worker.defining import place_of
    from tidemark.streams.worker.points import total
    from tidemark.streams.worker.streams import advance_stream

    with errors_in_words():
        hook = TidemarkHook(args.conn_id)
        to, why = end_of("to", args.to), reason_of("why", why_of(args))
        store = store_of(hook, dry_run=args.dry_run)
        before, places = place_of(store, args.name, to, tables=hook.open_table)
        bases = places if before.view is not None else ()
        who, end = me(), total(places)
        move = partial(advance_stream, name=args.name, to_version=end, who=who, why=why, bases=bases)
        after = move(store.rehearsal())
        if not args.dry_run:
            if to is None and after.offset != before.offset:
                confirm(_passed_over(before, after), yes=args.yes)
            after = move(kept_by(store, args, "stream", "advance", to=args.to))
    row = {"stream": after.name, "act": "advance", "before": before.offset.version, "after": after.offset.version}
    print_rows([{**row, "done": not args.dry_run}], args.output)


def _passed_over(before: Stream, after: Stream) -> str:
    versions = f"versions {before.offset.version + 1} to {after.offset.version} of {before.source.name}"
    changes = "its unread changes up to now" if before.view is not None else f"its unread changes of {versions}"
    return f"Advance stream {before.name}? It passes over {changes}, which are never delivered then."


@acting
def abandon(args: Namespace) -> None:
    """The streams of its transaction continue behind their windows. Targets that have none of a window never get it.
    Refused while a worker or a job may still write, and if no target has any of it.
    """
    from tidemark.streams.planning.arguments import reason_of
    from tidemark.streams.worker.abandon import abandon as abandon_window

    with errors_in_words():
        hook = TidemarkHook(args.conn_id)
        store, why = hook.open_store(), reason_of("why", why_of(args))
        give_up = partial(abandon_window, name=args.name, who=me(), why=why, tables=hook.open_table)
        done = give_up(store.rehearsal())
        if not args.dry_run:
            confirm(f"Give up the window of transaction {done.transaction.key}? {done.remains}.", yes=args.yes)
            done = give_up(kept_by(store, args, "stream", "abandon"))
    rows = [
        {
            "stream": window.stream_name,
            "act": "abandon",
            "from": window.start,
            "to": window.end,
            "written": ", ".join(done.remains.written),
            "without": ", ".join(done.remains.without),
            "unclear": ", ".join(done.remains.unclear),
            "done": not args.dry_run,
        }
        for window in done.transaction.windows
    ]
    print_rows(rows, args.output)


@acting
def drop(args: Namespace) -> None:
    """Its place is lost, its history stays. Refused while a transaction holds it. No row if there was none."""
    from tidemark.errors import StreamNotFound
    from tidemark.streams.worker.streams import drop_stream

    with errors_in_words():
        store, who = TidemarkHook(args.conn_id).open_store(), me()
        try:
            before = drop_stream(store.rehearsal(), args.name, who)
            if not args.dry_run:
                question = (
                    f"Drop stream {before.name} on {before.source.name}? Its place, {before.offset.version}, is lost."
                )
                confirm(question, yes=args.yes)
                drop_stream(kept_by(store, args, "stream", "drop"), args.name, who)
        except StreamNotFound:
            if not args.if_exists:
                raise
            print_rows([], args.output)
            return
    row = {"stream": before.name, "act": "drop", "table": before.source.name, "version": before.offset.version}
    print_rows([{**row, "done": not args.dry_run}], args.output)
