"""Replications as users define, alter and end them; what was captured and written stays as it is."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

import sqlalchemy as sa

from tidemark.control.store import ControlStore
from tidemark.errors import InvalidArgument, ReplicationExists, ReplicationRefused
from tidemark.model.source_address import SourceKind
from tidemark.replication.model.replication import Actor, Replication, ReplicationOptions, ReplicationState, Selection
from tidemark.replication.planning.hiding import another_secret
from tidemark.replication.planning.options import LONGEST_SOURCE_NAME, options_of_kind, require_options
from tidemark.replication.planning.selection import require_patterns
from tidemark.replication.store import object_writes, replications
from tidemark.streams.planning.names import require_name

__all__ = [
    "alter_options",
    "alter_selection",
    "begin_drop",
    "create_replication",
    "drop_replication",
    "get_replication",
    "list_replications",
]


def create_replication(
    store: ControlStore,
    *,
    name: str,
    kind: SourceKind,
    source_conn_id: str,
    selection: Selection,
    options: ReplicationOptions,
    event_log: str | Callable[[str], str],
    by: Actor,
    if_not_exists: bool = False,
) -> Replication:
    """Define a replication; nothing is made in the source before its start.

    `event_log`: where its event log is to lie, or what tells that by the new replication's uid. `if_not_exists` keeps
    an existing one as it is, so a second run changes nothing. Raises ReplicationExists, InvalidArgument (a name, a
    pattern or an option that cannot be, or the slot of another replication).
    """
    require_name(name)
    _require_selection(selection)
    require_options(options)
    options = options_of_kind(options, kind)
    uid = store.new_id()
    in_the_source = _name_in_the_source(name, uid)
    wanted = Replication(
        uid=uid,
        name=name,
        kind=kind,
        source_conn_id=source_conn_id,
        selection=selection,
        options=options,
        event_log=event_log if isinstance(event_log, str) else event_log(uid),
        slot=options.slot or in_the_source,
        publication=options.publication or in_the_source,
        state=ReplicationState.NOT_STARTED,
        created_at=store.clock(),
    )

    def create(connection: sa.Connection) -> Replication:
        existing = replications.lookup(connection, name)
        if existing is None:
            _require_free_slot(connection, wanted)
            replications.insert(connection, wanted, by=by)
            return wanted
        if not if_not_exists:
            raise ReplicationExists(replication=existing.replication.name)
        return existing.replication

    return store.write(create)


def get_replication(store: ControlStore, name: str) -> Replication:
    """The replication of that name, in any case. Raises ReplicationNotFound."""
    return store.read(lambda connection: replications.find(connection, name).replication)


def list_replications(store: ControlStore) -> tuple[Replication, ...]:
    """Every replication that is not dropped, by name."""
    return tuple(one.replication for one in store.read(replications.live))


def alter_selection(store: ControlStore, name: str, selection: Selection, *, by: Actor) -> Replication:
    """Replicate what this selection names, from the next run's look at the source on. A second run changes nothing.

    Raises ReplicationNotFound, InvalidArgument.
    """
    _require_selection(selection)

    def alter(connection: sa.Connection) -> Replication:
        found = replications.find(connection, name).replication
        if found.selection != selection:
            replications.set_selection(connection, found, selection, at=store.clock(), by=by)
        return replications.by_uid(connection, found.uid).replication

    return store.write(alter)


def alter_options(store: ControlStore, name: str, options: ReplicationOptions, *, by: Actor) -> Replication:
    """Take `invalid_values`, `max_events`, `gives_way_after`, `fetch_rows` and the hidden columns of `options`, from
    the next job on. The others stay as they were made, since targets and event log were, and so does the secret
    that hashes. A second run changes nothing. Raises ReplicationNotFound, InvalidArgument, also for another secret.
    """
    require_options(options)

    def alter(connection: sa.Connection) -> Replication:
        found = replications.find(connection, name).replication
        if options.hash_mark and found.options.hash_mark not in (None, options.hash_mark):
            raise another_secret("hash_columns")
        wanted = replace(
            found.options,
            invalid_values=options.invalid_values,
            max_events=options.max_events,
            gives_way_after=options.gives_way_after,
            fetch_rows=options.fetch_rows,
            mask_columns=options.mask_columns,
            hash_columns=options.hash_columns,
            hash_mark=found.options.hash_mark or options.hash_mark,
        )
        if found.options != wanted:
            replications.set_options(connection, found, wanted, at=store.clock(), by=by)
        return replications.by_uid(connection, found.uid).replication

    return store.write(alter)


def begin_drop(store: ControlStore, name: str, *, by: Actor, force: bool = False) -> Replication:
    """Let no new work begin, and return what must be dropped in the source: its `slot` and `publication`.

    The caller drops these, then calls `drop_replication`. So the store forgets a slot only when it is gone. A crash
    between the two leaves a replication that can be dropped again. A second run finds it begun. Refused while a job of
    it may be alive (ReplicationRefused says until when), unless `force`. Raises ReplicationNotFound.
    """

    def begin(connection: sa.Connection) -> Replication:
        found = replications.find(connection, name)
        now = store.clock()
        alive = object_writes.may_be_alive(connection, found.replication.uid, now=now)
        capture = found.attempt_until if found.attempt is not None else None
        until = max((time for time in (alive, capture) if time is not None and time > now), default=None)
        if until is not None and not force:
            problem = (
                f"a job of it may run until {until.isoformat()}. Wait for its end, or drop it with force=True. Then "
                "the job cannot report its result, and may still write to its target."
            )
            raise ReplicationRefused(replication=found.replication.name, problem=problem)
        replications.begin_drop(connection, found.replication, at=now, by=by)
        return found.replication

    return store.write(begin)


def drop_replication(store: ControlStore, name: str, *, by: Actor) -> Replication:
    """End the replication and its objects, and return what it was; its event log and its targets are the caller's.

    Refused before `begin_drop` (ReplicationRefused). A job that is under way finds nothing to report to any more.
    Raises ReplicationNotFound; so does a second run.
    """

    def drop(connection: sa.Connection) -> Replication:
        found = replications.find(connection, name)
        if not found.dropping:
            problem = "its slot and publication are dropped in the source first."
            raise ReplicationRefused(replication=found.replication.name, problem=problem)
        replications.drop(connection, found.replication, at=store.clock(), by=by)
        return found.replication

    return store.write(drop)


def _name_in_the_source(name: str, uid: str) -> str:
    """`tidemark_<name>_<uid>` of lower-case letters, digits and underscores; the uid tells equal ones apart."""
    tail = "_" + uid.replace("-", "")[:8].lower()
    plain = re.sub(r"[^a-z0-9_]", "_", name.lower())
    return f"tidemark_{plain}"[: LONGEST_SOURCE_NAME - len(tail)] + tail


def _require_free_slot(connection: sa.Connection, wanted: Replication) -> None:
    """Two replications that read one slot would each lose what the other captures. Raises InvalidArgument."""
    for one in replications.live(connection):
        other = one.replication
        if (other.source_conn_id, other.slot) == (wanted.source_conn_id, wanted.slot):
            problem = f"replication {other.name} reads this slot; a slot has one reader"
            raise InvalidArgument(argument="slot", value=wanted.slot, problem=problem)


def _require_selection(selection: Selection) -> None:
    """Raises InvalidArgument."""
    require_patterns("include", selection.include)
    require_patterns("exclude", selection.exclude)
