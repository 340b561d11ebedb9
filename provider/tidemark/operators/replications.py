"""Defining, preparing, settling and ending replications of databases."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from airflow.sdk.exceptions import AirflowSkipException

from tidemark import metrics
from tidemark.hooks.replication import event_log_of, event_log_path, source_of
from tidemark.operators._base import flag_of, key_of, seconds_of
from tidemark.operators._constants import check_constants, check_options
from tidemark.operators._replication import (
    Names,
    ReplicationOperator,
    by_of,
    label_of,
    most_mapped,
    names_of,
    options_of,
    patterns_of,
    require_conn_id,
    selection_of,
    targets_of,
)
from tidemark.streams.planning.names import require_name

if TYPE_CHECKING:
    from airflow.sdk import Context

    from tidemark.replication.model.replication import Replication
    from tidemark.replication.worker.preparing import Prepared

__all__ = [
    "CreateReplicationOperator",
    "DropReplicationOperator",
    "FinishReplicationOperator",
    "PrepareReplicationOperator",
]


class CreateReplicationOperator(ReplicationOperator):
    """Defines a replication of chosen tables of a database, or keeps the one of that name. No Spark; nothing is made in
    the source before it is prepared.

    An existing replication takes this selection from now on, and of the options `invalid_values`, `max_events`,
    `gives_way_after`, `fetch_rows`, `mask_columns` and `hash_columns`. The rest stays as it was created. `hash_columns`
    needs the extra `hash_secret` of the source's connection.

    Raises InvalidArgument for a name, a pattern, an option or a connection that cannot be; nothing is written then.
    Returns {replication, state, created}.

    :param replication: its name. (templated)
    :param source_conn_id: Airflow connection of type `postgres`, `mysql`, `debezium` for landed envelopes, or
        `event_files` for files in Datastream's layout. (templated)
    :param target: a schema of the lake, or a path. `schema.table` goes to its table `schema_table`, or to the table
        that the option `target_table` names. (templated)
    :param include: patterns of what is replicated, `schema`, `schema.table` or `schema.table.column`, with `*`; nothing
        given: every table. (templated)
    :param exclude: patterns of what is not replicated. A renamed table stays excluded, see "Columns that nobody may
        see". (templated)
    :param mode: `merge`, a mirror, or `append_only`, a row for every event. (templated)
    :param options: invalid_values, backfill, backfill_exclude, numeric_as, max_events, gives_way_after, without_key,
        mask_columns, hash_columns, target_table, append_only_tables, merge_tables, fetch_rows, publication, slot.
        (templated)
    """

    template_fields: Sequence[str] = (
        "replication", "source_conn_id", "target", "include", "exclude", "mode", "options", "conn_id",
    )  # fmt: skip

    def __init__(
        self,
        *,
        replication: str,
        source_conn_id: str,
        target: str,
        include: Names = None,
        exclude: Names = None,
        mode: str = "merge",
        options: Mapping[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.replication = replication
        self.source_conn_id = source_conn_id
        self.target = target
        self.include = include
        self.exclude = exclude
        self.mode = mode
        self.options = options
        check_constants(
            self,
            replication=lambda argument, name: require_name(name, argument),
            source_conn_id=require_conn_id,
            target=lambda _, target: options_of(target, "merge", None),
            include=patterns_of,
            exclude=patterns_of,
            mode=lambda _, mode: options_of("target", mode, None),
        )
        check_options(self, lambda _, options: options_of("target", "merge", options))

    def execute(self, context: Context) -> dict[str, Any]:
        """The replication as it stands. A second run changes nothing."""
        from tidemark.errors import ReplicationNotFound
        from tidemark.hooks._secrets import require_no_password
        from tidemark.hooks.source_connection import kind_at, source_address
        from tidemark.replication.planning.hiding import marked
        from tidemark.replication.planning.options import options_of_kind
        from tidemark.replication.worker import definitions

        selection, options = selection_of(self.include, self.exclude), options_of(self.target, self.mode, self.options)
        require_conn_id("source_conn_id", self.source_conn_id)
        require_no_password("target", self.target)
        address, by = source_address(self.source_conn_id), by_of(context)
        options = options_of_kind(marked(options, address), address.kind)
        store = self.hook.open_store()
        try:
            kept = definitions.get_replication(store, self.replication)
        except ReplicationNotFound:
            kept = None
        made = kept or definitions.create_replication(
            store,
            name=self.replication,
            kind=kind_at(address),
            source_conn_id=self.source_conn_id,
            selection=selection,
            options=options,
            event_log=event_log_path(self.hook),
            by=by,
            if_not_exists=True,
        )
        if made.selection != selection:
            made = definitions.alter_selection(store, made.name, selection, by=by)
            self.log.info("Replication %s selects other objects from its next run on.", made.name)
        before, made = made.options, definitions.alter_options(store, made.name, options, by=by)
        if made.options != before:
            self.log.info("Replication %s has other options from its next run on: %s", made.name, made.options)
        self._say(made, options == made.options and made.source_conn_id == self.source_conn_id, created=kept is None)
        return {"replication": made.name, "state": made.state.value, "created": kept is None}

    def _say(self, made: Replication, same: bool, *, created: bool) -> None:
        self.log.info("Replication %s is %s.", made.name, "new" if created else f"there already, {made.state}")
        if not same:
            self.log.warning(
                "Its connection, target, mode and other options stay as they are. To change them, drop and recreate "
                "the replication: its objects are then backfilled into the same targets."
            )


class PrepareReplicationOperator(ReplicationOperator):
    """Before each run: validates and starts a replication that has not started, and publishes what its selection names
    now. Returns the objects that need tasks of their own, over which they are expanded. No Spark.

    These objects wait for a backfill, or failed when they were applied last. Of more than 16 objects, the small ones
    share a task. These are up to 1,000 tables of at most 10,000 rows, by statistics. An object that another run
    backfills is left to that run. If all other runs that the DAG may have do backfills, this run begins none, so that
    it can capture. The first run creates the publication and the slot, in that order. Each failure of the validation
    has the statement that corrects it, and nothing is created then. A paused replication ends it as skipped. A second
    run finds all done. Returns a list of `schema.table`, and of a list of them for each task with several. Raises
    ReplicationNotFound, ReplicationInvalid, ReplicationRefused, ObjectNotFound, ObjectNotReplicable, SlotBlocked,
    SlotLost, SlotForeign, SlotAhead, SourceIsAnother, SourceSetBack, TransactionsMissing, SourceUnreachable,
    SourceRefused, InvalidArgument.

    :param replication: its name. (templated)
    :param backfill: objects whose backfill is requested once all else is prepared. Give `schema.table`, a list, or
        text separated by commas. (templated)
    :param slot_patience_seconds: how long a new slot may wait for transactions that are open in the source. (templated)
    """

    template_fields: Sequence[str] = ("replication", "backfill", "slot_patience_seconds", "conn_id")

    def __init__(
        self, *, replication: str, backfill: Names = None, slot_patience_seconds: float | str = 300.0, **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        self.replication = replication
        self.backfill = backfill
        self.slot_patience_seconds = slot_patience_seconds
        check_constants(self, backfill=names_of, slot_patience_seconds=seconds_of)

    def execute(self, context: Context) -> list[str | list[str]]:
        """The objects with tasks of their own; [] if there is none."""
        from tidemark.replication.model.replication import ReplicationState
        from tidemark.replication.worker.definitions import get_replication
        from tidemark.replication.worker.objects import request_backfill
        from tidemark.replication.worker.preparing import prepare
        from tidemark.replication.worker.run_work import objects_alone

        patience, store = seconds_of("slot_patience_seconds", self.slot_patience_seconds), self.hook.open_store()
        requested = names_of("backfill", self.backfill)
        replication, by = get_replication(store, self.replication), by_of(context)
        if replication.state is ReplicationState.PAUSED:
            raise AirflowSkipException(f"Replication {replication.name} is paused; resume it to continue.")
        prepared = prepare(
            store,
            replication.name,
            source=source_of(replication),
            targets=targets_of(self.hook, store, replication.name),
            by=by,
            patience=patience,
            open_log=event_log_of(self.hook),
        )
        say_prepared(prepared, self.log)
        if requested:
            request_backfill(store, replication.name, requested, by=by)
        active_runs, most = self.dag.max_active_runs, most_mapped()
        share = objects_alone(store, replication.name, key=key_of(context), active_runs=active_runs, most=most)
        for name, why in share.left.items():
            self.log.info("%s: %s", name, why)
        for names in share.tasks:
            self.log.info("With a task of its own: %s", names if isinstance(names, str) else label_of(names))
        return share.tasks


def say_prepared(prepared: Prepared, log: Any) -> None:
    """The changes in the source and of its objects, one line each, and warnings."""
    for change in prepared.made:
        log.info("In the source: %s", change)
    found = prepared.registered
    for what in ("new", "recreated", "selected_again", "gone", "deselected", "taken") if found else ():
        for name in getattr(found, what):
            log.info("%s: %s", name, what.replace("_", " "))
    for name, now in ((found.renamed or {}) if found else {}).items():
        log.info("%s: renamed to %s in the source; its target keeps its name", name, now)
    for warning in prepared.warnings:
        log.warning(warning)


class FinishReplicationOperator(ReplicationOperator):
    """The end of a run: reports the state of the replication and each object, and pauses a drained one. No Spark.

    The source is asked about its slot in every state, since it keeps its log for a paused replication, too. A source
    that is away is an alert, no error. Returns {replication, state, captured, lag_seconds, lag_bytes, alerts, objects:
    {name: {state, applied, lag_seconds, behind, needs_backfill, problem, notices, rows, percent}}}. Of more than 100
    objects it names those that are behind or need a look. A second run reports it again. Raises ReplicationNotFound;
    BackfillNeeded where that is wanted.

    :param replication: its name. (templated)
    :param fail_on_needs_backfill: fail if an object waits for a backfill that nobody has requested; otherwise it is an
        alert. (templated)
    :param fail_on_failed: fail if the last backfill or apply of an object failed; otherwise it is an alert. (templated)
    """

    template_fields: Sequence[str] = ("replication", "fail_on_needs_backfill", "fail_on_failed", "conn_id")

    def __init__(
        self,
        *,
        replication: str,
        fail_on_needs_backfill: bool | str = False,
        fail_on_failed: bool | str = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.replication = replication
        self.fail_on_needs_backfill = fail_on_needs_backfill
        self.fail_on_failed = fail_on_failed
        check_constants(self, fail_on_needs_backfill=flag_of, fail_on_failed=flag_of)

    def execute(self, context: Context) -> dict[str, Any]:
        """The current status."""
        from tidemark.errors import BackfillNeeded, ObjectsFailed
        from tidemark.operators._replication_status import in_words, report_status, told_of
        from tidemark.replication.model.replication import ObjectState
        from tidemark.replication.worker.lifecycle import drained
        from tidemark.replication.worker.status import describe

        on_needs_backfill = flag_of("fail_on_needs_backfill", self.fail_on_needs_backfill)
        on_failed = flag_of("fail_on_failed", self.fail_on_failed)
        store = self.hook.open_store()
        drained(store, self.replication, by=by_of(context))
        status = describe(store, self.replication)
        facts = report_status(status, of_source=_alerts_of_source(status.replication))
        for alert in facts["alerts"]:
            self.log.warning(alert)
        for one in told_of(status):
            self.log.info(in_words(one))
        metrics.replicated(
            status.replication.name,
            lag_seconds=status.lag_seconds,
            lag_bytes=status.lag_bytes,
            failed_objects=sum(one.object.state is ObjectState.FAILED for one in status.objects),
        )
        if on_failed and status.failed:
            failed = "; ".join(f"{name} ({why})" for name, why in status.failed.items())
            raise ObjectsFailed(replication=status.replication.name, objects=failed)
        if on_needs_backfill and status.to_backfill:
            needed = "; ".join(f"{name} ({why})" for name, why in status.to_backfill.items())
            raise BackfillNeeded(replication=status.replication.name, objects=needed)
        return facts


def _alerts_of_source(replication: Replication) -> tuple[str, ...]:
    from tidemark.errors import SourceDriverNotInstalled, SourceRefused, SourceUnreachable
    from tidemark.replication.model.replication import ReplicationState

    if replication.state is ReplicationState.NOT_STARTED:
        return ()
    try:
        return source_of(replication).alerts(replication)
    except (SourceUnreachable, SourceRefused, SourceDriverNotInstalled) as error:
        return (f"Slot {replication.slot} could not be looked at: {error}",)


class DropReplicationOperator(ReplicationOperator):
    """Ends a replication: its slot and its publication in the source, its event log, and what the control store knows.
    Targets stay. No Spark.

    Slot first: a source whose slot nobody reads keeps its log until its disk is full. Killed in between, it is dropped
    by the next run. Refused while a job of it may be alive. Returns whether there was one. Raises ReplicationRefused,
    SlotBusy, SlotForeign, SourceUnreachable, SourceRefused; ReplicationNotFound unless `if_exists`.

    :param replication: its name. (templated)
    :param if_exists: accept a missing replication. (templated)
    :param without_source: the source no longer exists, so nothing is dropped in it. (templated)
    :param force: do not wait for jobs that may be alive. (templated)
    """

    template_fields: Sequence[str] = ("replication", "if_exists", "without_source", "force", "conn_id")

    def __init__(
        self,
        *,
        replication: str,
        if_exists: bool | str = True,
        without_source: bool | str = False,
        force: bool | str = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.replication = replication
        self.if_exists = if_exists
        self.without_source = without_source
        self.force = force
        check_constants(self, if_exists=flag_of, without_source=flag_of, force=flag_of)

    def execute(self, context: Context) -> bool:
        """Whether there was one to drop. A second run drops nothing."""
        from tidemark.errors import ReplicationNotFound
        from tidemark.replication.worker.ending import end_replication

        if_exists = flag_of("if_exists", self.if_exists)
        alone, force = flag_of("without_source", self.without_source), flag_of("force", self.force)
        try:
            ended = end_replication(
                self.hook.open_store(),
                self.replication,
                by=by_of(context),
                source=None if alone else source_of,
                storage_options=self.hook.settings.storage_options,
                force=force,
            )
        except ReplicationNotFound:
            if not if_exists:
                raise
            self.log.info("There is no replication %s.", self.replication)
            return False
        dropped = ended.replication
        if ended.in_source is None:
            self.log.warning("Slot %s and publication %s are left in the source.", dropped.slot, dropped.publication)
        for gone in ended.in_source or ():
            self.log.info("In the source: %s", gone)
        self.log.info("Dropped replication %s and its event log; its targets stay.", dropped.name)
        return True
