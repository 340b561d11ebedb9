"""`airflow tidemark streams …`."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from airflow.cli.cli_config import ARG_OUTPUT, ARG_VERBOSE, ActionCommand, Arg
from airflow.utils.cli import suppress_logs_and_warning

from tidemark.cli._acts import WHY, acting, after_the_act, kept_by, me, note_done, runtime_of, why_of
from tidemark.cli._answers import CONNECTION, errors_in_words, print_facts, print_rows
from tidemark.cli._parts import DESCENDING, PART, part_of, say_cursor
from tidemark.cli._stream_facts import counts_of, move_facts, rows_of, transaction_facts
from tidemark.cli.stream_acts import stream_acts
from tidemark.cli.stream_renewals import stream_renewals
from tidemark.cli.stream_transfer import stream_transfers
from tidemark.hooks.tidemark import TidemarkHook

if TYPE_CHECKING:
    from argparse import Namespace

    from tidemark.control.store import ControlStore
    from tidemark.delivery.model.transactions import Transaction

__all__ = ["stream_commands"]

_TRANSACTIONS = 10
_ORDERS = ("name", "source", "mode", "offset", "created", "advanced", "held", "state")  # as `SortBy` has them

_NAME = Arg(("name",), help="Name of the stream")  # type: ignore[no-untyped-call]
_FIND = Arg(  # type: ignore[no-untyped-call]
    ("--search",), help="Only streams whose name, table or path has this part, in any case", default="", metavar="TEXT"
)
_HELD = Arg(("--held",), help="Only streams that an open transaction holds", action="store_true")  # type: ignore[no-untyped-call]
_SORT = Arg(  # type: ignore[no-untyped-call]
    ("--sort",), help="The order, by what the store knows (default: name)", choices=_ORDERS, default="name"
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
_DRY_RUN = Arg(  # type: ignore[no-untyped-call]
    ("--dry-run",), help="Check everything and show what would be done; store nothing", action="store_true"
)


def stream_commands() -> tuple[ActionCommand, ...]:
    """Of streams: looking, making, moving, freeing, and taking them elsewhere."""
    return (
        *_look_commands(),
        ActionCommand(
            name="relocate",
            help="Follow a table that was renamed or moved; the stream keeps its offset",
            func=relocate,
            args=(_NAME, _TO_TABLE, WHY, CONNECTION, ARG_VERBOSE),
        ),
        ActionCommand(
            name="finish",
            help="Finish what was submitted on a stream and left, with the plan that was stored",
            func=finish,
            args=(_NAME, WHY, CONNECTION, ARG_VERBOSE),
        ),
        ActionCommand(
            name="release",
            help="Free a stream from its open transaction, if no target has any part of its window",
            func=release,
            args=(_NAME, WHY, CONNECTION, ARG_VERBOSE),
        ),
        ActionCommand(
            name="redo",
            help="Let the open transaction of a stream be finished on its targets as they are now",
            func=redo,
            args=(_NAME, WHY, CONNECTION, ARG_VERBOSE),
        ),
        ActionCommand(
            name="recover",
            help="After StoreOlderThanLake: put a stream where its targets are",
            func=recover,
            args=(_NAME, _TARGETS, _TO_VERSION, WHY, _DRY_RUN, CONNECTION, ARG_VERBOSE),
        ),
        *stream_acts(),
        *stream_renewals(),
        *stream_transfers(),
    )


def _look_commands() -> tuple[ActionCommand, ...]:
    return (
        ActionCommand(
            name="list",
            help="List streams with their offsets and lags",
            func=list_streams,
            args=(_FIND, _HELD, _SORT, DESCENDING, *PART, CONNECTION, ARG_OUTPUT, ARG_VERBOSE),
        ),
        ActionCommand(
            name="show",
            help="Show a stream and the history of its offset",
            func=show_stream,
            args=(_NAME, CONNECTION, ARG_OUTPUT, ARG_VERBOSE),
        ),
    )


@suppress_logs_and_warning
def list_streams(args: Namespace) -> None:
    """One row per stream: name, table, mode, state, offset, head, lag in versions, counts, created_at.

    A table that does not answer keeps no others from the list. If more follow, standard error has the cursor.
    """
    from tidemark.streams.store import overview
    from tidemark.streams.store.overview import SortBy

    with errors_in_words():
        hook = TidemarkHook(args.conn_id)
        wish: dict[str, Any] = {"search": args.search, "only_held": args.held, "sort": SortBy(args.sort)}
        wish |= {"descending": args.descending, "part": part_of(args)}
        found = hook.open_store().read(lambda connection: overview.page(connection, **wish))
        healths = {row.stream.uid: row.health for row in found.rows}
        rows = rows_of(hook, [row.stream for row in found.rows], healths)
    say_cursor(found.cursor)
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


@acting
def relocate(args: Namespace) -> None:
    """Refused if the place has another table; a second run changes nothing."""
    from tidemark.streams.worker.catalog import asking_the_catalog
    from tidemark.streams.worker.rebase import relocate_stream

    with errors_in_words():
        hook = TidemarkHook(args.conn_id)
        find = asking_the_catalog(hook.table, partial(runtime_of, hook))
        kept = kept_by(hook.open_store(), args, "stream", "relocate", to=args.to)
        moved = relocate_stream(kept, args.name, find(args.to), who=me(), why=why_of(args))
    print(f"{moved.name} reads {moved.source.name} at {moved.source.path} on from version {moved.offset.version}.")


@acting
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
            owner=me(),
        )
        if ended is not None:
            _note(runtime.store, args, "finish")
    print(_said_of_end(args.name, ended))


@acting
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
        if left.state is not TransactionState.OPEN:
            _note(store, args, "release")
    if left.state is TransactionState.OPEN:
        help_ = (
            f"run its task again, or `airflow tidemark streams finish {args.name}`. If it never can be, give it up by "
            f"`airflow tidemark streams abandon {args.name}`, which says what each target has"
        )
        raise SystemExit(f"Transaction {key} is written in part already, so it must be finished: {help_}.")
    print(f"Transaction {key} is {left.state.value}; the stream {args.name} is free.")


@acting
def redo(args: Namespace) -> None:
    """Writes nothing itself; the next run of the task, or the next one on the stream, does."""
    from tidemark.streams.worker.redo import redo as redo_transaction
    from tidemark.streams.worker.streams import open_transaction

    with errors_in_words():
        hook = TidemarkHook(args.conn_id)
        store = hook.open_store()
        key = open_transaction(store, args.name).key
        redo_transaction(store, key, tables=hook.open_table)
        _note(store, args, "redo")
    print(f"Transaction {key} continues with the targets as they are now: run its task again.")


@acting
def recover(args: Namespace) -> None:
    """Says what each target has, then where the stream continues. A second run finds nothing to recover."""
    from tidemark.streams.worker.recover import recover_stream

    with errors_in_words():
        hook = TidemarkHook(args.conn_id)
        to = None if args.to_version is None else str(args.to_version)
        done = recover_stream(
            kept_by(hook.open_store(), args, "stream", "recover", to=to, targets=tuple(args.targets or ())),
            args.name,
            who=me(),
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


def _note(store: ControlStore, args: Namespace, act: str) -> None:
    """The stream is let go of by a write that does not move it."""
    from tidemark.streams.worker.streams import get_stream

    with after_the_act():
        stream = get_stream(store, args.name)
        note_done(store, args, "stream", act, uid=stream.uid, name=stream.name)


def _said_of_end(name: str, ended: Transaction | None) -> str:
    if ended is None:
        return f"No transaction is open on {name}; there is nothing to finish."
    if ended.result is None:
        return f"Transaction {ended.key} was never submitted and is given back; the stream {name} is free."
    windows = ", ".join(f"{w.stream} ({w.from_version}, {w.to_version}]" for w in ended.result.windows)
    return f"Transaction {ended.key} is finished: {windows}, {ended.result.rows} rows."
