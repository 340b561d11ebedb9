"""Replications from a notebook: the steps of tasks, one call each, in this process and on its Spark."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from datetime import timedelta
from enum import StrEnum
from functools import partial
from typing import Any

from tidemark.client.context import ClientContext
from tidemark.client.replication_jobs import PlacedTargets, run_backfill_of
from tidemark.client.source_addresses import address_in
from tidemark.errors import InvalidArgument, ReplicationNotFound
from tidemark.lake.delta_log import DeltaLog
from tidemark.lake.log_paths import event_logs_root
from tidemark.model.source_address import SourceAddress
from tidemark.replication.model.jobs import CaptureReport
from tidemark.replication.model.recorded_errors import RecordedError
from tidemark.replication.model.replication import (
    InvalidValues,
    ReplicatedObject,
    Replication,
    ReplicationOptions,
    Selection,
    WriteMode,
)
from tidemark.replication.model.source_discovery import SourceDiscovery
from tidemark.replication.planning.hiding import marked
from tidemark.replication.sources.open import Source, open_source
from tidemark.replication.worker import definitions, lifecycle
from tidemark.replication.worker.apply import ApplyOutcome, apply_objects
from tidemark.replication.worker.backfill import BackfillOutcome
from tidemark.replication.worker.capture import capture
from tidemark.replication.worker.ending import end_replication
from tidemark.replication.worker.errors import LIMIT, replication_errors
from tidemark.replication.worker.objects import get_object, is_due, request_backfill, to_work_at
from tidemark.replication.worker.preparing import PATIENCE, Prepared, prepare
from tidemark.replication.worker.run_work import objects_named, objects_together
from tidemark.replication.worker.source_discovery import discover_source
from tidemark.replication.worker.status import ReplicationStatus, describe, describe_all

__all__ = ["ReplicationsOfALake"]

_ENUMS: Mapping[str, type[StrEnum]] = {"mode": WriteMode, "invalid_values": InvalidValues, "without_key": WriteMode}


class ReplicationsOfALake:
    """The part of `Lake` for replications of databases. Their names are found in any case.

    A source is named as in `connect(sources=…)`. Calls that ask it raise InvalidArgument for an unknown name,
    SourceUnreachable, SourceRefused, SourceDriverNotInstalled. Calls with a name raise ReplicationNotFound.
    """

    _context: ClientContext

    def discover(
        self, source: str | SourceAddress, *, include: Sequence[str] = (), exclude: Sequence[str] = ()
    ) -> SourceDiscovery:
        """The tables of a source with their columns, and which of them can be replicated; nothing is made.

        `source`: a name, an address, or a URL. `include`, `exclude`: patterns `schema` or `schema.table`, with `*`.
        """
        address = address_in(self._context.sources, source)
        return discover_source(open_source(address), address.kind, include=include, exclude=exclude)

    def replications(self) -> tuple[ReplicationStatus, ...]:
        """The status of each replication, by name. No source is asked."""
        return describe_all(self._context.store)

    def replication_status(self, name: str) -> ReplicationStatus:
        """The state of a replication, its objects and its alerts. No source is asked."""
        return describe(self._context.store, name)

    def replication_errors(
        self, name: str, *, object_name: str | None = None, limit: int = LIMIT
    ) -> tuple[RecordedError, ...]:
        """The errors that the replication and its objects have met, the latest first. Raises ObjectNotFound."""
        return replication_errors(self._context.store, name, object_name=object_name, limit=limit)

    def create_replication(
        self,
        name: str,
        source: str,
        target: str,
        *,
        include: Sequence[str] = (),
        exclude: Sequence[str] = (),
        mode: str = "merge",
        if_not_exists: bool = False,
        **options: Any,
    ) -> Replication:
        """Define a replication of the tables that the patterns name; nothing is made in the source yet.

        `options`: those of CreateReplicationOperator. With `if_not_exists` a second run changes nothing. Raises
        ReplicationExists, and InvalidArgument for a client without a lake root.
        """
        context, address = self._context, address_in(self._context.sources, source)
        PlacedTargets.require_root(context)
        root = event_logs_root(context.paths.workspace)
        return definitions.create_replication(
            context.store,
            name=name,
            kind=address.kind,
            source_conn_id=source,
            selection=Selection(tuple(include), tuple(exclude)),
            options=marked(_options(target, mode, options), address),
            event_log=lambda uid: f"{root}/{uid}",
            by=context.by,
            if_not_exists=if_not_exists,
        )

    def start_replication(self, name: str, *, slot_patience: timedelta = PATIENCE) -> Prepared:
        """Validate and start a replication, publish its tables, and take up new ones. Call it before each round.

        A second run finds all of it done. Errors are those of PrepareReplicationOperator, such as ReplicationInvalid.
        """
        context, (replication, address) = self._context, self._found(name)
        targets = PlacedTargets(context, replication.options)
        return prepare(
            context.store,
            replication.name,
            source=open_source(address),
            targets=targets.of,
            by=context.by,
            patience=slot_patience,
            open_log=partial(DeltaLog.open, options=context.options),
        )

    def capture_replication(self, name: str) -> CaptureReport | None:
        """Put the transactions that the source has committed into the event log. None if there are none.

        Errors are those of CaptureEventsOperator, such as SlotLost and SlotBusy.
        """
        context, (replication, address) = self._context, self._found(name)
        open_log = partial(DeltaLog.open, options=context.options)
        source, runtime = open_source(address), context.runtime_on(address)
        return capture(runtime, replication.name, source=source, by=context.by, open_log=open_log)

    def backfill_replication(
        self, name: str, tables: Sequence[str] | None = None, *, partitions: int = 4
    ) -> Mapping[str, BackfillOutcome]:
        """Copy these tables of the source into their targets, `schema.table` each; None: those that wait for it.

        One after the other; the first that fails ends the call, and the others still wait. Each call with `tables`
        copies them again. Raises ObjectNotFound, ObjectNotReplicable, and the errors of the job.
        """
        context, (replication, address) = self._context, self._found(name)
        if tables is not None:
            request_backfill(context.store, replication.name, tables, by=context.by)
            due: Sequence[ReplicatedObject] = [get_object(context.store, replication.name, one) for one in tables]
        else:
            due = [one for one in to_work_at(context.store, replication.name) if is_due(one)]
        return {one.name.text: run_backfill_of(context, one, address, partitions=partitions) for one in due}

    def apply_replication(self, name: str, tables: Sequence[str] | None = None) -> Mapping[str, ApplyOutcome]:
        """Apply captured events to the targets in one job: those of these tables, or of all that can be applied.

        An object that fails stops no other: its outcome has the error. Raises JobError if the job as a whole failed.
        """
        context, store = self._context, self._context.store
        share = (
            objects_together(store, name, key=context.key)
            if tables is None
            else objects_named(store, name, tables, key=context.key)
        )
        names = {one.uid: one.name.text for one in share.objects}
        outcomes = apply_objects(context.runtime, tuple(names), by=context.by, key=context.key)
        lifecycle.drained(store, name, by=context.by)
        return {names[uid]: outcome for uid, outcome in outcomes.items()}

    def pause_replication(self, name: str, *, at_once: bool = False) -> Replication:
        """Capture nothing new. Captured events are still applied, unless `at_once`. A second run changes nothing.

        Raises ReplicationRefused before the start.
        """
        return lifecycle.let_drain(self._context.store, name, by=self._context.by, at_once=at_once)

    def resume_replication(self, name: str) -> Replication:
        """Continue from the captured position. A second run changes nothing. Raises ReplicationRefused."""
        return lifecycle.resume(self._context.store, name, by=self._context.by)

    def drop_replication(self, name: str, *, if_exists: bool = False, force: bool = False) -> None:
        """End a replication, its slot, its publication and its event log. Targets stay. With `if_exists` a second run
        changes nothing. Raises ReplicationRefused while a job of it may be alive, unless `force`.
        """
        context = self._context
        try:
            end_replication(
                context.store,
                name,
                by=context.by,
                source=self._source,
                storage_options=context.options,
                force=force,
            )
        except ReplicationNotFound:
            if not if_exists:
                raise

    def _found(self, name: str) -> tuple[Replication, SourceAddress]:
        replication = definitions.get_replication(self._context.store, name)
        return replication, address_in(self._context.sources, replication.source_conn_id)

    def _source(self, replication: Replication) -> Source:
        return open_source(address_in(self._context.sources, replication.source_conn_id))


def _options(target: str, mode: str, given: Mapping[str, Any]) -> ReplicationOptions:
    """Raises InvalidArgument for an unknown option, and for a value that it does not take."""
    known = {one.name for one in fields(ReplicationOptions)} - {"target", "mode", "hash_mark"}
    if unknown := sorted(set(given) - known):
        problem = f"no option is named {', '.join(unknown)}; these exist: {', '.join(sorted(known))}"
        raise InvalidArgument(argument="options", value=unknown, problem=problem)
    values: dict[str, Any] = {name: tuple(value) if isinstance(value, list) else value for name, value in given.items()}
    values["mode"] = mode
    for name, kind in _ENUMS.items():
        if name in values:
            values[name] = _member(name, values[name], kind)
    return ReplicationOptions(target=target, **values)


def _member(argument: str, value: Any, kind: type[StrEnum]) -> StrEnum:
    try:
        return kind(value)
    except ValueError as error:
        problem = f"it must be one of {', '.join(member.value for member in kind)}"
        raise InvalidArgument(argument=argument, value=value, problem=problem) from error
