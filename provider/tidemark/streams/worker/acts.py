"""Acts on streams that a page offers, by the steps that commands and tasks call."""

from __future__ import annotations

import sqlalchemy as sa

from tidemark.control.object_acts import ActStep, ObjectAct
from tidemark.control.object_revisions import Facts
from tidemark.control.store import ControlStore
from tidemark.errors import TransactionNotFound, TransactionOpen
from tidemark.streams.store import streams, transactions
from tidemark.streams.store.objects import LEFT
from tidemark.streams.worker.defining import place_of
from tidemark.streams.worker.points import total
from tidemark.streams.worker.rollback import release
from tidemark.streams.worker.streams import advance_stream, drop_stream

__all__ = ["STREAM_ACTS", "release_left"]


def release_left(store: ControlStore, name: str) -> None:
    """Free the stream from a window that was left before anything of it was submitted. So no target can have a part
    of it. The next run takes the same changes again.

    A second run finds no window. Raises StreamNotFound, TransactionNotFound, and TransactionOpen while the lease lasts
    or if a job was submitted.
    """

    def free(connection: sa.Connection) -> None:
        stream = streams.find(connection, name)
        held_by = streams.holder(connection, stream.uid)
        if held_by is None:
            raise TransactionNotFound(key=f"on stream {name}")
        held = transactions.by_id(connection, held_by)
        if held.transaction.submitted or held.transaction.lease_until > store.clock():
            raise TransactionOpen(stream=stream.name, action="freed", key=str(held.transaction.key))
        release(connection, store, held)

    store.write(free)


def _advance(step: ActStep) -> None:
    """Its table is looked up before the write, and maybe followed to its new place; that loses nothing."""
    stream, places = place_of(step.store, step.name, None, tables=step.tables)
    bases = places if stream.view is not None else ()
    advance_stream(step.guarded, step.name, total(places), who=step.who, why=step.why, bases=bases)


def _is_free(_: frozenset[str], facts: Facts) -> bool:
    return not facts.get("window")


def _is_left(states: frozenset[str], facts: Facts) -> bool:
    return LEFT in states and not facts.get("submitted")


STREAM_ACTS = (
    ObjectAct(
        name="release",
        words="Release the lock",
        loses="Nothing: no job of the window was submitted, so no target has a part of it. The next run takes the same "
        "changes again.",
        command="airflow tidemark streams release {name}",
        fits=_is_left,
        do=lambda step: release_left(step.guarded, step.name),
    ),
    ObjectAct(
        name="advance",
        words="Advance to now",
        loses="All changes that the stream has not delivered yet: they are passed over and never delivered. Its "
        "history says by whom and why.",
        command="airflow tidemark streams advance {name} --to now --why TEXT",
        fits=_is_free,
        do=_advance,
    ),
    ObjectAct(
        name="drop",
        words="Drop the stream",
        loses="The stream and its place. A consumer that names it fails. Targets and the stream's history stay.",
        command="airflow tidemark streams drop {name}",
        fits=_is_free,
        do=lambda step: drop_stream(step.guarded, step.name, step.who),
    ),
)
