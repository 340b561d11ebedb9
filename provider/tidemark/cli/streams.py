"""`airflow tidemark streams …`."""

from __future__ import annotations

import getpass
import json
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from airflow.cli.cli_config import ARG_OUTPUT, ARG_VERBOSE, ActionCommand, Arg
from airflow.utils.cli import suppress_logs_and_warning

from tidemark.cli._acts import runtime_of
from tidemark.cli._answers import CONNECTION, errors_in_words, file_errors_in_words, print_facts, print_rows
from tidemark.cli._stream_facts import counts_of, move_facts, rows_of, transaction_facts
from tidemark.cli.stream_acts import stream_acts
from tidemark.cli.stream_renewals import stream_renewals
from tidemark.hooks.tidemark import TidemarkHook

if TYPE_CHECKING:
    from argparse import Namespace

    from tidemark.delivery.model.transactions import Transaction
    from tidemark.streams.worker.transfer import ImportedStream

__all__ = ["stream_commands"]

_TRANSACTIONS = 10

_NAME = Arg(("name",), help="Name of the stream")  # type: ignore[no-untyped-call]
_STREAMS = Arg(  # type: ignore[no-untyped-call]
    ("--stream",), help="A stream to export (default: all)", nargs="+", action="extend", metavar="NAME", dest="streams"
)
_TO_TABLE = Arg(  # type: ignore[no-untyped-call]
    ("--to",),
    help="Location of the table: a path, schema.table or catalog.schema.table",
    required=True,
    metavar="TABLE",
)
_TARGETS = Arg(  # type: ignore[no-untyped-call]
    ("--target",), help="Further targets to look at", nargs="+", action="extend", metavar="TABLE", dest="targets"
)
_TO_VERSION = Arg(  # type: ignore[no-untyped-call]
    ("--to",), help="Version at which it continues, if targets differ", type=int, metavar="VERSION", dest="to_version"
)
_TO_FILE = Arg(("--output",), help="The file to write (default: stdout)", metavar="FILE")  # type: ignore[no-untyped-call]
_FROM_FILE = Arg(("file",), help="File that `export` wrote; - for stdin")  # type: ignore[no-untyped-call]
_OR_REPLACE = Arg(  # type: ignore[no-untyped-call]
    ("--or-replace",), help="End streams of the same names; their places are lost", action="store_true"
)
_IF_NOT_EXISTS = Arg(  # type: ignore[no-untyped-call]
    ("--if-not-exists",), help="Keep streams of the same names and their places", action="store_true"
)
_DRY_RUN = Arg(  # type: ignore[no-untyped-call]
    ("--dry-run",), help="Check everything and show what would be done; store nothing", action="store_true"
)
_NO_CHECK = Arg(  # type: ignore[no-untyped-call]
    ("--no-check",), help="Do not look into the logs of the sources", action="store_true"
)
_NEW_IDENTITY = Arg(  # type: ignore[no-untyped-call]
    ("--new-identity",), help="Copies that live beside the exported streams", action="store_true"
)


def stream_commands() -> tuple[ActionCommand, ...]:
    """Of streams: looking, making, moving, freeing, and taking them elsewhere."""
    return (
        *_look_commands(),
        ActionCommand(
            name="relocate",
            help="Follow a table that was renamed or moved; the stream keeps its place",
            func=relocate,
            args=(_NAME, _TO_TABLE, CONNECTION, ARG_VERBOSE),
        ),
        ActionCommand(
            name="finish",
            help="Finish what was submitted on a stream and left, with the plan that was stored",
            func=finish,
            args=(_NAME, CONNECTION, ARG_VERBOSE),
        ),
        ActionCommand(
            name="release",
            help="Free a stream from its open transaction, if no target holds any of its window",
            func=release,
            args=(_NAME, CONNECTION, ARG_VERBOSE),
        ),
        ActionCommand(
            name="redo",
            help="Let the open transaction of a stream be finished on its targets as they are now",
            func=redo,
            args=(_NAME, CONNECTION, ARG_VERBOSE),
        ),
        ActionCommand(
            name="recover",
            help="After StoreOlderThanLake: put a stream where its targets are",
            func=recover,
            args=(_NAME, _TARGETS, _TO_VERSION, _DRY_RUN, CONNECTION, ARG_VERBOSE),
        ),
        *stream_acts(),
        *stream_renewals(),
        *_transfer_commands(),
    )


def _look_commands() -> tuple[ActionCommand, ...]:
    return (
        ActionCommand(
            name="list",
            help="List streams with their offsets and lags",
            func=list_streams,
            args=(CONNECTION, ARG_OUTPUT, ARG_VERBOSE),
        ),
        ActionCommand(
            name="show",
            help="Show a stream and the history of its offset",
            func=show_stream,
            args=(_NAME, CONNECTION, ARG_OUTPUT, ARG_VERBOSE),
        ),
    )


def _transfer_commands() -> tuple[ActionCommand, ...]:
    how = (_OR_REPLACE, _IF_NOT_EXISTS, _DRY_RUN, _NO_CHECK, _NEW_IDENTITY)
    return (
        ActionCommand(
            name="export",
            help="Write streams and their offsets as JSON",
            func=export_streams,
            args=(_STREAMS, _TO_FILE, CONNECTION, ARG_VERBOSE),
        ),
        ActionCommand(
            name="import",
            help="Create exported streams in this control store, all or none, each at its exported offset",
            func=import_streams,
            args=(_FROM_FILE, *how, CONNECTION, ARG_VERBOSE),
        ),
    )


@suppress_logs_and_warning
def list_streams(args: Namespace) -> None:
    """One row per stream: name, table, mode, state, offset, head, lag in versions, counts, created_at.

    A table that does not answer keeps no others from the list.
    """
    from tidemark.streams.worker.statistics import stream_healths
    from tidemark.streams.worker.streams import list_streams as all_streams

    with errors_in_words():
        hook = TidemarkHook(args.conn_id)
        store = hook.open_store()
        rows = rows_of(hook, all_streams(store), stream_healths(store))
    print_rows(rows, args.output)


@suppress_logs_and_warning
def show_stream(args: Namespace) -> None:
    """The stream's facts, its newest transactions and every move of its offset. Transactions show the rows of their
    change sets and of each target. As JSON and YAML it is one document with the keys `transactions` and `history`.
    """
    from tidemark.streams.worker.statistics import stream_health
    from tidemark.streams.worker.streams import get_stream, newest_transactions, stream_history

    with errors_in_words():
        hook = TidemarkHook(args.conn_id)
        store = hook.open_store()
        stream = get_stream(store, args.name)
        health = stream_health(store, args.name)
        (row,) = rows_of(hook, [stream], {stream.uid: health})
        facts = {**row, "comment": stream.comment}
        facts |= {"origin": stream.source.addressing.words, "path": stream.source.path}
        facts |= {"table_id": stream.source.table_id, "uid": stream.uid, **counts_of(health)}
        facts |= {"keys": ", ".join(stream.keys)} if stream.keys else {}
        taken = [transaction_facts(one, stream) for one in newest_transactions(store, args.name, limit=_TRANSACTIONS)]
        moves = [move_facts(move) for move in stream_history(store, args.name)]
    print_facts(facts, {"transactions": taken, "history": moves}, args.output)


@suppress_logs_and_warning
def relocate(args: Namespace) -> None:
    """Refused if the place has another table; a second run changes nothing."""
    from tidemark.streams.worker.catalog import asking_the_catalog
    from tidemark.streams.worker.rebase import relocate_stream

    with errors_in_words():
        hook = TidemarkHook(args.conn_id)
        find = asking_the_catalog(hook.table, partial(runtime_of, hook))
        moved = relocate_stream(hook.open_store(), args.name, find(args.to), who=getpass.getuser())
    print(f"{moved.name} reads {moved.source.name} at {moved.source.path} on from version {moved.offset.version}.")


@suppress_logs_and_warning
def finish(args: Namespace) -> None:
    """Runs the Spark job of the stored plan, if targets lack their part; a second run finds nothing to do.

    Refused while the holder's lease is valid: it may be at work. Exit code 1 if the plan fails again.
    """
    from tidemark.hooks.cluster_runtime import on_its_cluster
    from tidemark.hooks.spark_job import SparkJob
    from tidemark.model.statements import TransactionKey
    from tidemark.streams.worker.finish import finish as finish_transaction

    with errors_in_words():
        hook = TidemarkHook(args.conn_id)
        job = SparkJob(hook.settings)
        runtime = on_its_cluster(hook.runtime(job.run), job)
        ended = finish_transaction(
            runtime,
            args.name,
            by=TransactionKey("airflow tidemark", runtime.store.new_id(), "finish"),
            owner=getpass.getuser(),
        )
    print(_said_of_end(args.name, ended))


@suppress_logs_and_warning
def release(args: Namespace) -> None:
    """Runs a Spark job that shuts late writers out, if anything was submitted; a second run does what is left.

    Exit code 1 if a target holds its part already: the next run on the stream finishes the transaction.
    """
    from tidemark.delivery.model.transactions import TransactionState
    from tidemark.hooks.spark_job import SparkJob
    from tidemark.streams.worker.replan import replan
    from tidemark.streams.worker.streams import open_transaction

    with errors_in_words():
        hook = TidemarkHook(args.conn_id)
        store = hook.open_store()
        key = open_transaction(store, args.name).key
        job = SparkJob(hook.settings)
        job.require_ready()
        left = replan(hook.runtime(job.run), key)
    if left.state is TransactionState.OPEN:
        help_ = f"run its task again, or `airflow tidemark streams finish {args.name}`"
        raise SystemExit(f"Transaction {key} is written in part already, so it must be finished: {help_}.")
    print(f"Transaction {key} is {left.state.value}; the stream {args.name} is free.")


@suppress_logs_and_warning
def redo(args: Namespace) -> None:
    """Writes nothing itself; the next run of the task, or the next one on the stream, does."""
    from tidemark.streams.worker.redo import redo as redo_transaction
    from tidemark.streams.worker.streams import open_transaction

    with errors_in_words():
        hook = TidemarkHook(args.conn_id)
        store = hook.open_store()
        key = open_transaction(store, args.name).key
        redo_transaction(store, key, tables=hook.open_table)
    print(f"Transaction {key} continues with the targets as they are now: run its task again.")


@suppress_logs_and_warning
def recover(args: Namespace) -> None:
    """Says what each target has, then where the stream continues. A second run finds nothing to recover."""
    from tidemark.streams.worker.recover import recover_stream

    with errors_in_words():
        hook = TidemarkHook(args.conn_id)
        done = recover_stream(
            hook.open_store(),
            args.name,
            who=getpass.getuser(),
            tables=hook.open_table,
            targets=args.targets or (),
            to_version=args.to_version,
            dry_run=args.dry_run,
        )
    for target, end in sorted(done.ends.items()):
        print(f"{target} has it to version {end}.")
    if done.released is not None:
        print(f"Transaction {done.released} is released: it was finished in the time that the store has lost.")
    went = f"from {done.before.offset.version} to {done.after.offset.version}"
    print(f"{done.before.name} {'would go on' if args.dry_run else 'goes on'} {went}, with an identity of its own.")


@suppress_logs_and_warning
def export_streams(args: Namespace) -> None:
    """JSON to stdout or a file; streams that an open transaction holds are named on stderr. Changes nothing."""
    from tidemark.streams.worker.transfer import export_streams as export

    with errors_in_words():
        document = export(TidemarkHook(args.conn_id).open_store(), args.streams)
    text = json.dumps(document, indent=2, ensure_ascii=False) + "\n"
    if args.output is None:
        sys.stdout.write(text)
    else:
        with file_errors_in_words(args.output):
            Path(args.output).write_text(text, encoding="utf-8")
    for exported in document["streams"]:
        if exported["open_transaction"] is not None:
            held = f"{exported['stream']['name']} is held by the open transaction {exported['open_transaction']}"
            print(f"{held}: its window is not in the exported offset.", file=sys.stderr)


@suppress_logs_and_warning
def import_streams(args: Namespace) -> None:
    """One line per stream; all of them are stored, or none. With --if-not-exists a second run changes nothing."""
    from tidemark.streams.worker.transfer import import_streams as bring_in

    with file_errors_in_words(args.file):
        text = sys.stdin.read() if args.file == "-" else Path(args.file).read_text(encoding="utf-8")
    with errors_in_words():
        hook = TidemarkHook(args.conn_id)
        imported = bring_in(
            hook.open_store(),
            text,
            who=getpass.getuser(),
            tables=hook.open_table,
            or_replace=args.or_replace,
            if_not_exists=args.if_not_exists,
            dry_run=args.dry_run,
            check_sources=not args.no_check,
            new_identity=args.new_identity,
        )
    for stream in imported:
        print(_said_of(stream, dry_run=args.dry_run))


def _said_of_end(name: str, ended: Transaction | None) -> str:
    if ended is None:
        return f"No transaction is open on {name}; there is nothing to finish."
    if ended.result is None:
        return f"Transaction {ended.key} was never submitted and is given back; the stream {name} is free."
    windows = ", ".join(f"{w.stream} ({w.from_version}, {w.to_version}]" for w in ended.result.windows)
    return f"Transaction {ended.key} is finished: {windows}, {ended.result.rows} rows."


def _said_of(stream: ImportedStream, *, dry_run: bool) -> str:
    identity = "the identity that was exported" if stream.same_identity else "an identity of its own"
    said = f"{stream.name}: {'would be ' if dry_run else ''}{stream.fate.value}, at {stream.version}, with {identity}"
    held = stream.open_transaction
    return said if held is None else f"{said}; when it was exported, the open transaction {held} held it"
