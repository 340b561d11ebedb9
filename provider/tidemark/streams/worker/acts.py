"""Acts on streams that a page offers, by the steps that commands and tasks call."""

from __future__ import annotations

import sqlalchemy as sa

from tidemark.control.act_fields import ActField, Choice, FieldType
from tidemark.control.object_acts import ActStep, ObjectAct
from tidemark.control.object_revisions import Facts
from tidemark.control.store import ControlStore
from tidemark.errors import TransactionNotFound, TransactionOpen
from tidemark.streams.planning.arguments import end_of, start_of
from tidemark.streams.store import streams, transactions
from tidemark.streams.store.objects import LEFT
from tidemark.streams.worker.defining import place_of
from tidemark.streams.worker.points import total
from tidemark.streams.worker.rollback import release
from tidemark.streams.worker.starting_again import past_windows, rebase_in_place, recreate_in_place, replay_from
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
    stream, places = place_of(step.store, step.name, end_of("to", step.text("to")), tables=step.tables)
    bases = places if stream.view is not None else ()
    advance_stream(step.guarded, step.name, total(places), who=step.who, why=step.why, bases=bases)


def _rebase(step: ActStep) -> None:
    rebase_in_place(
        step.store,
        step.name,
        who=step.who,
        why=step.why,
        tables=step.tables,
        keys=step.names("keys"),
        show_initial_rows=step.flag("show_initial_rows"),
        force=step.flag("force"),
        writes=step.guarded,
    )


def _recreate(step: ActStep) -> None:
    recreate_in_place(
        step.store,
        step.name,
        who=step.who,
        tables=step.tables,
        at=start_of("at", step.text("at")),
        initial_rows=step.flag("show_initial_rows"),
        writes=step.guarded,
    )


def _replay(step: ActStep) -> None:
    version = int(step.text("window"))
    replay_from(step.store, step.name, version, who=step.who, why=step.why, tables=step.tables, writes=step.guarded)


def _windows(connection: sa.Connection, uid: str) -> tuple[Choice, ...]:
    """No run is named, as not everybody may read it."""
    found = past_windows(connection, uid)
    return tuple(
        Choice(
            str(one.window.start),
            f"({one.window.start}, {one.window.end}], taken at {one.opened_at:%Y-%m-%d %H:%M:%S} UTC",
        )
        for one in found
    )


def _is_free(_: frozenset[str], facts: Facts) -> bool:
    return not facts.get("window")


def _is_on_a_table(states: frozenset[str], facts: Facts) -> bool:
    return _is_free(states, facts) and not facts.get("view")


def _has_delivered(states: frozenset[str], facts: Facts) -> bool:
    return _is_on_a_table(states, facts) and "undelivered" not in states


def _is_left(states: frozenset[str], facts: Facts) -> bool:
    return LEFT in states and not facts.get("submitted")


_INITIAL_ROWS = ActField(
    "show_initial_rows",
    "Deliver the rows of the table first",
    FieldType.FLAG,
    "--show-initial-rows",
    help="Its next window has all rows that the table has at the start.",
)

_RELEASE = ObjectAct(
    name="release",
    words="Release the lock",
    loses="Nothing: no job of the window was submitted, so no target has a part of it. The next run takes the same "
    "changes again.",
    command="airflow tidemark streams release {name}",
    fits=_is_left,
    do=lambda step: release_left(step.guarded, step.name),
)
_ADVANCE = ObjectAct(
    name="advance",
    words="Advance",
    loses="All changes up to that point that the stream has not delivered yet: they are skipped and never "
    "delivered. Its history says by whom and why.",
    command="airflow tidemark streams advance {name} --to <point> --why <reason>",
    fits=_is_free,
    do=_advance,
    beyond=True,
    fields=(
        ActField(
            "to",
            "Up to",
            FieldType.TEXT,
            "--to",
            help="now, a version, or a time with a zone; for a stream on a view, now or a time.",
            default="now",
        ),
    ),
)
_REBASE = ObjectAct(
    name="rebase",
    words="Re-base",
    loses="Unread changes of the table as it was, unless keys let both be compared. For its targets it is another "
    "stream: exactly once starts again. Name, mode, counts and history stay.",
    command="airflow tidemark streams rebase {name} --why <reason>",
    fits=_is_on_a_table,
    do=_rebase,
    beyond=True,
    fields=(
        ActField(
            "keys",
            "Key columns",
            FieldType.NAMES,
            "--key",
            help="With commas or line breaks between them. Its next window is then the difference between its last "
            "known state and the new one, if the log still has both. It compares by them from now on.",
        ),
        _INITIAL_ROWS,
        ActField(
            "force",
            "Even if it can still be read",
            FieldType.FLAG,
            "--force",
            help="Changes that it has not read are lost.",
        ),
    ),
)
_REPLAY = ObjectAct(
    name="replay",
    words="Deliver again from a window on",
    loses="Nothing of its table. All changes since the start of that window are delivered again. A target that appends "
    "has them twice, a merge by key has them once. For its targets it is another stream: exactly once starts again.",
    command="airflow tidemark streams replay {name} --from <version> --why <reason>",
    fits=_has_delivered,
    do=_replay,
    beyond=True,
    fields=(
        ActField(
            "window",
            "First window to deliver again",
            FieldType.CHOICE,
            "--from",
            help="A window that its table no longer has is refused.",
            required=True,
            choices=_windows,
        ),
    ),
)
_RECREATE = ObjectAct(
    name="recreate",
    words="Recreate",
    loses="Its offset, its counts and its history, which ends. Changes between its offset and the new start are never "
    "delivered. For its targets it is another stream: exactly once starts again.",
    command="airflow tidemark streams recreate {name}",
    fits=_is_on_a_table,
    do=_recreate,
    beyond=True,
    fields=(
        ActField(
            "at",
            "Where it starts",
            FieldType.TEXT,
            "--at",
            help="A version, or a time with a zone; empty: the newest version.",
        ),
        _INITIAL_ROWS,
    ),
)
_DROP = ObjectAct(
    name="drop",
    words="Drop the stream",
    loses="The stream and its offset. A consumer that names it fails. Targets and the stream's history stay.",
    command="airflow tidemark streams drop {name}",
    fits=_is_free,
    do=lambda step: drop_stream(step.guarded, step.name, step.who),
)

STREAM_ACTS = (_RELEASE, _ADVANCE, _REBASE, _REPLAY, _RECREATE, _DROP)
