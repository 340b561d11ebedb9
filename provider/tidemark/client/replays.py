"""A past window again, from a notebook."""

from __future__ import annotations

from collections.abc import Sequence

from tidemark.client.context import ClientContext
from tidemark.client.quarantine import make_quarantine
from tidemark.delivery.model.transactions import CommitResult
from tidemark.delivery.planning.quarantine import with_quarantine
from tidemark.errors import InvalidArgument
from tidemark.model.statements import PlannedWrite, TransactionKey, WriteAs
from tidemark.streams.planning.arguments import names_of
from tidemark.streams.worker.replay import find_run, replay

__all__ = ["replay_window"]


def replay_window(
    context: ClientContext,
    name: str,
    run: str,
    target: str,
    *,
    write_as: str,
    keys: str | Sequence[str],
    quarantine: str | None,
) -> CommitResult:
    """`Lake.replay`; a second call is a replay of its own. Raises InvalidArgument for another way to write."""
    if write_as not in (WriteAs.APPEND, WriteAs.MERGE):
        raise InvalidArgument(argument="write_as", value=write_as, problem="it must be 'append' or 'merge'")
    write = PlannedWrite(
        WriteAs(write_as),
        target,
        source=name,
        keys=names_of("keys", keys),
        tables={target: context.tables(target).uri},
        quarantine=quarantine,
    )
    return replay(
        context.runtime,
        find_run(context.store, name, run),
        key=TransactionKey("client", context.store.new_id(), "replay"),
        writes=with_quarantine(write, make_quarantine(context, quarantine)),
        owner=context.who,
    ).result
