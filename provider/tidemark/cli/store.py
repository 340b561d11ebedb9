"""`airflow tidemark db …`: the control store."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from airflow.cli.cli_config import ARG_OUTPUT, ARG_VERBOSE, ActionCommand, Arg
from airflow.utils.cli import suppress_logs_and_warning

from tidemark.cli._acts import acting
from tidemark.cli._answers import CONNECTION, errors_in_words, print_rows
from tidemark.hooks.tidemark import TidemarkHook

if TYPE_CHECKING:
    from argparse import Namespace

__all__ = ["store_commands"]

PATIENCE = timedelta(seconds=3)  # somebody waits for the answer
_KEEP = Arg(  # type: ignore[no-untyped-call]
    ("--keep",), help="For how long history stays: 90d, 36h, 13w; a day at least", required=True, metavar="LENGTH"
)


def store_commands() -> tuple[ActionCommand, ...]:
    """Of the control store itself."""
    return (
        ActionCommand(
            name="migrate",
            help="Bring the control store to this release",
            func=migrate,
            args=(CONNECTION, ARG_VERBOSE),
        ),
        ActionCommand(
            name="check",
            help="Check whether the control store can be used",
            func=check,
            args=(CONNECTION, ARG_OUTPUT, ARG_VERBOSE),
        ),
        ActionCommand(
            name="prune",
            help="Drop old history from the control store, a little at a time",
            func=prune,
            args=(_KEEP, CONNECTION, ARG_OUTPUT, ARG_VERBOSE),
        ),
    )


@acting
def migrate(args: Namespace) -> None:
    """A second run, also at the same time, changes nothing. Exit code 1 with the reason if it cannot be done."""
    with errors_in_words():
        store = TidemarkHook(args.conn_id).open_store(patience=PATIENCE)
        before = store.revision()
        store.migrate()
        after = store.revision()
    moved = "was there before" if before == after else f"was migrated from {before or 'an empty database'}"
    print(f"The control store {store.url} is at revision {after}; it {moved}.")


@suppress_logs_and_warning
def check(args: Namespace) -> None:
    """The store's location, id and revision. Exit code 1 with what to do if tasks could not use it.

    Migrates nothing but the embedded SQLite, which does so on any use.
    """
    with errors_in_words():
        store = TidemarkHook(args.conn_id).open_store(patience=PATIENCE)
        row = {"control_store": store.url, "store_id": store.store_id, "revision": store.revision()}
        store.write(lambda connection: None)  # a writer's rights and turn, too
    print_rows([row], args.output)


@acting
def prune(args: Namespace) -> None:
    """The dropped history, one row for each kind. Streams, their places and what is open stay; consumers wait for no
    more than one small step. If it is stopped in the middle, the dropped rows stay dropped; a second run continues.
    """
    from tidemark.streams.planning.history import keep_of
    from tidemark.streams.worker.pruning import prune as prune_store

    with errors_in_words():
        keep = keep_of("--keep", args.keep)
        dropped = prune_store(TidemarkHook(args.conn_id).open_store(), keep)
    print_rows([{"history": kind, "dropped": count} for kind, count in dropped.items()], args.output)
