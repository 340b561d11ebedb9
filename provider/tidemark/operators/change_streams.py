"""Making, altering and dropping change streams."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from tidemark.change_streams.planning.definition import require_name
from tidemark.errors import ChangeStreamNotFound, InvalidArgument
from tidemark.hooks.lake_tables import lake_tables_of
from tidemark.operators._base import TidemarkOperator, flag_of, unless_left_out, whole_number_of
from tidemark.operators._constants import check_constants, check_options, is_constant
from tidemark.operators._spark import SparkOperator

if TYPE_CHECKING:
    from airflow.sdk import Context

    from tidemark.change_streams.model.change_streams import ChangeStream
    from tidemark.hooks.tidemark import TidemarkHook

__all__ = ["AlterChangeStreamOperator", "CreateChangeStreamOperator", "DropChangeStreamOperator"]

Watch = str | Sequence[str] | Mapping[str, Sequence[str] | None]
Keys = str | Sequence[str] | Mapping[str, Sequence[str]]
FLAGS = {"true": True, "false": False, "none": None, "null": None, "": None}


class _WithOptions(SparkOperator):
    """An operator that says which options a change stream has."""

    change_stream: str
    watch: Watch | None
    keys: Keys | None

    def _check_watch(self, *, new: bool) -> None:
        """Check `watch` and its `keys` if they are constants. Raises InvalidArgument."""
        from tidemark.change_streams.planning.definition import TableRequest, keys_by_name, parse_keys, parse_watch

        ends = self.template_ext
        asked = parse_watch(self.watch) if is_constant(self.watch, ends) else None
        if not is_constant(self.keys, ends):
            return
        if asked is None or (self.watch is None and not new):
            parse_keys(self.keys, (TableRequest("watched"),))
            return
        keys = parse_keys(self.keys, asked.tables)
        if not asked.everything:
            keys_by_name(keys, [one.name for one in asked.tables])

    def _check_options(self, _: str, given: Mapping[str, Any] | None) -> None:
        """Raises ChangeStreamRefused, as the change stream itself would."""
        from tidemark.change_streams.planning.options import parse_options

        parse_options(self.change_stream, options_of(given))


class CreateChangeStreamOperator(_WithOptions):
    """Creates a change stream, or keeps the one of that name with all that it watches. No Spark.

    Each table is watched from its newest version on. `ALL` leaves those out that cannot be watched, such as one without
    key, with a warning. Returns {change_stream, everything, tables, created, left_out}; `left_out`: tables that `ALL`
    cannot watch. Raises ChangeStreamRefused for a named table or column that cannot be watched, such as a table without
    key. The same for a fourth change stream on a table, an eleventh in all, and a bad option. Also raises
    RowTrackingDisabled, UnsupportedTableFeature, InvalidArgument. Nothing is written then.

    :param change_stream: its name: a letter, then letters, digits and underscores. (templated)
    :param watch: `ALL`, a table, a list of tables, or a mapping of tables to columns. In a mapping None means all
        columns, and an empty list the key alone. None watches nothing: the change stream is suspended.
        (templated)
    :param keys: the primary key of tables without the property `tidemark.primaryKey`: a mapping of tables to columns.
        For a single table: its columns. (templated)
    :param options: `retention_period` (`1d` to `30d`), `value_capture_type`, `exclude_insert`, `exclude_update`,
        `exclude_delete`, `exclude_ttl_deletes`, `allow_txn_exclusion`. (templated)
    :param initial_partitions: the number of partitions at first, at most 1,024; load splits and merges them later.
        (templated)
    """

    template_fields: Sequence[str] = ("change_stream", "watch", "keys", "options", "initial_partitions", "conn_id")

    def __init__(
        self,
        *,
        change_stream: str,
        watch: Watch | None = None,
        keys: Keys | None = None,
        options: Mapping[str, Any] | None = None,
        initial_partitions: int | str = 1,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.change_stream = change_stream
        self.watch = watch
        self.keys = keys
        self.options = options
        self.initial_partitions = initial_partitions
        check_constants(self, change_stream=lambda _, name: require_name(name), initial_partitions=_partitions_of)
        check_options(self, self._check_options)
        self._check_watch(new=True)

    def execute(self, context: Context) -> dict[str, Any]:
        """The change stream as it stands: {change_stream, everything, tables, created, left_out}. Repeatable."""
        from tidemark.change_streams.worker import defining
        from tidemark.lake.log_paths import logs_root

        store = self.hook.open_store()
        kept = defining.find(store, self.change_stream)
        if kept is not None:
            self.log.info("Change stream %s exists already.", kept.name)
            return facts_of(kept, left_out_of(self.hook, kept), created=False)
        made = defining.create(
            store,
            self.change_stream,
            watch=unless_left_out(self.watch),
            keys=unless_left_out(self.keys),
            options=options_of(self.options),
            tables=lake_tables_of(self.hook, partial(self.table_by_name, context)),
            logs=logs_root(self.hook.settings.workspace),
            initial_partitions=_partitions_of("initial_partitions", self.initial_partitions),
            if_not_exists=True,
        )
        self.log.info("Created change stream %s on %s.", made.name, _tables(made))
        return facts_of(made, left_out_of(self.hook, made), created=True)


class AlterChangeStreamOperator(_WithOptions):
    """Lets a change stream watch other tables, suspends it, or sets its options. No Spark.

    It applies from the next capture on. Capture before it, so that the new list takes nothing that a table has waiting.
    A table that stays in `watch` continues at its captured version. An open batch is discarded, unless the log has it.
    The next capture takes its changes of the tables that stay. Raises ChangeStreamNotFound, and what
    CreateChangeStreamOperator raises.

    :param change_stream: its name, in any case. (templated)
    :param watch: the new watch list, which replaces the old one, as in CreateChangeStreamOperator. None keeps the old
        list. (templated)
    :param keys: the primary key of new tables without the property `tidemark.primaryKey`. (templated)
    :param options: the options to change; None resets one to its default. (templated)
    :param suspend: watch nothing; captured records can still be read. (templated)
    :param restart: a table, or a list of them, to be watched from the newest version on. The commits in between are not
        captured. The way past a version that cannot be captured. (templated)
    """

    template_fields: Sequence[str] = ("change_stream", "watch", "keys", "options", "suspend", "restart", "conn_id")

    def __init__(
        self,
        *,
        change_stream: str,
        watch: Watch | None = None,
        keys: Keys | None = None,
        options: Mapping[str, Any] | None = None,
        suspend: bool | str = False,
        restart: str | Sequence[str] = (),
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.change_stream = change_stream
        self.watch = watch
        self.keys = keys
        self.options = options
        self.suspend = suspend
        self.restart = restart
        check_constants(self, suspend=flag_of, restart=_restart_of)
        check_options(self, self._check_options)
        self._check_watch(new=False)
        if is_constant([suspend, watch, restart], self.template_ext):
            _require_one_wish(flag_of("suspend", suspend), watch, restart)

    def execute(self, context: Context) -> dict[str, Any]:
        """The change stream as it stands: {change_stream, everything, tables, created, left_out}. Repeatable; a retry
        restarts at what is newest then.
        """
        from tidemark.change_streams.worker import defining
        from tidemark.lake.delta_log import DeltaLog

        suspend = flag_of("suspend", self.suspend)
        watch, restart = unless_left_out(self.watch), unless_left_out(self.restart)
        _require_one_wish(suspend, watch, restart)
        altered = defining.alter(
            self.hook.open_store(),
            self.change_stream,
            watch=() if suspend else watch,
            keys=unless_left_out(self.keys),
            options=options_of(self.options),
            tables=lake_tables_of(self.hook, partial(self.table_by_name, context)),
            restart=restart,
            open_log=partial(DeltaLog.open, options=self.hook.settings.storage_options),
        )
        self.log.info("Change stream %s watches %s.", altered.name, _tables(altered))
        return facts_of(altered, left_out_of(self.hook, altered), created=False)


class DropChangeStreamOperator(TidemarkOperator):
    """Ends a change stream and its consumer groups, and deletes its records. No Spark.

    :param change_stream: its name, in any case. (templated)
    :param if_exists: accept a missing change stream; False: ChangeStreamNotFound. (templated)
    """

    template_fields: Sequence[str] = ("change_stream", "if_exists", "conn_id")

    def __init__(self, *, change_stream: str, if_exists: bool | str = True, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.change_stream = change_stream
        self.if_exists = if_exists
        check_constants(self, if_exists=flag_of)

    def execute(self, context: Context) -> bool:
        """Whether there was one to drop. A second run drops nothing."""
        from tidemark.change_streams.worker import defining

        if_exists = flag_of("if_exists", self.if_exists)
        try:
            defining.drop(self.hook.open_store(), self.change_stream, self.hook.settings.storage_options)
        except ChangeStreamNotFound:
            if not if_exists:
                raise
            self.log.info("There is no change stream %s.", self.change_stream)
            return False
        self.log.info("Dropped change stream %s and its records.", self.change_stream)
        return True


def _require_one_wish(suspend: bool, watch: Watch | None, restart: str | Sequence[str] | None) -> None:
    """Raises InvalidArgument."""
    if suspend and watch is not None:
        raise InvalidArgument(argument="suspend", value=suspend, problem="it contradicts watch")
    if suspend and restart:
        raise InvalidArgument(argument="suspend", value=suspend, problem="it contradicts restart")


def _partitions_of(argument: str, value: int | str) -> int:
    """How many partitions it begins with, also as a template renders it. Raises InvalidArgument."""
    from tidemark.change_streams.planning.definition import require_partitions

    count = whole_number_of(argument, value) or 1
    require_partitions(count)
    return count


def _restart_of(_: str, value: Any) -> None:
    from tidemark.change_streams.planning.definition import names_of_restart

    names_of_restart(value)


def options_of(given: Mapping[str, Any] | None) -> dict[str, Any]:
    """The options, with flags as templates render them. Raises InvalidArgument for what is no mapping."""
    from tidemark.change_streams.planning.options import OPTIONS

    if not given:
        return {}
    if not isinstance(given, Mapping):
        raise InvalidArgument(argument="options", value=given, problem="give a mapping from options to values")
    return {
        name: FLAGS.get(value.strip().lower(), value)
        if isinstance(value, str) and OPTIONS.get(str(name).lower()) == "BOOL"
        else value
        for name, value in given.items()
    }


def left_out_of(hook: TidemarkHook, stream: ChangeStream) -> list[str]:
    """Names of the tables that FOR ALL cannot watch now."""
    from tidemark.change_streams.worker.watching import tables_left_out
    from tidemark.hooks.lake_tables import lake_tables_of

    return [one.name for one in tables_left_out(hook.open_store(), stream, lake_tables_of(hook))]


def facts_of(stream: ChangeStream, left_out: Sequence[str], *, created: bool) -> dict[str, Any]:
    """The change stream in plain values: {change_stream, everything, tables, created, left_out}."""
    return {
        "change_stream": stream.name,
        "everything": stream.everything,
        "tables": [table.table.name for table in stream.tables],
        "created": created,
        "left_out": list(left_out),
    }


def _tables(stream: ChangeStream) -> str:
    named = ", ".join(table.table.name for table in stream.tables) or "no table"
    return f"all tables ({named})" if stream.everything else named
