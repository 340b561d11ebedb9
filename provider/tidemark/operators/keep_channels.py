"""The upkeep of tables with channels: small files, and channels that nobody uses."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from airflow.sdk.exceptions import AirflowSkipException

from tidemark.errors import InvalidArgument, SourceError, TablesNotKept
from tidemark.operators._base import days_of, flag_of, hours_of, is_left_out, key_of, owner_of
from tidemark.operators._channels import note_landing
from tidemark.operators._constants import check_constants
from tidemark.operators._replication import names_of
from tidemark.operators._spark import SparkOperator

if TYPE_CHECKING:
    from airflow.sdk import Context

    from tidemark.channels.model.jobs import KeepChannels, KeptChannels

__all__ = ["KeepChannelsOperator"]

_FEWEST_LOG_HOURS = 48


class KeepChannelsOperator(SparkOperator):
    """Compacts the small files of landing tables, and removes channels without rows for a month, with their tokens.

    The history of a table's channels loses its days before the last 30. Compaction is Delta's OPTIMIZE. It changes no
    row, so streams show none of it. Returns a list of {table, swept, idle, files_removed, files_added}: channels that
    were removed, and those that soon will be. A retry does the rest. Raises TableNotFound, TableNotSupported,
    CommitsMayBeLost, InvalidArgument, and TablesNotKept for some of several tables, after the others are done. Raises
    AirflowSkipException with `skip_when_unsafe` if no table is left.

    :param tables: the tables, by name: a list, or text with commas. (templated)
    :param idle_days: days without rows or tokens after which a channel is removed. (templated)
    :param warn_days: days without rows or tokens after which the log warns of the removal. (templated)
    :param compact: whether small files are compacted. (templated)
    :param log_hours: hours that commits stay in the logs of the tables, 48 or more; longer if a stream needs them. None
        leaves the setting of the table. (templated)
    :param only_writer: whether no other program writes the tables during the run. On S3 it must be True. (templated)
    :param skip_when_unsafe: pass over tables whose commits may be lost, which otherwise fail; end as skipped if no
        table is left. (templated)
    """

    template_fields: Sequence[str] = (
        "tables",
        "idle_days",
        "warn_days",
        "compact",
        "log_hours",
        "only_writer",
        "skip_when_unsafe",
        "conn_id",
    )

    def __init__(
        self,
        *,
        tables: Sequence[str] | str,
        idle_days: float | str = 30,
        warn_days: float | str = 23,
        compact: bool | str = True,
        log_hours: float | str | None = None,
        only_writer: bool | str = False,
        skip_when_unsafe: bool | str = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.tables = tables
        self.idle_days = idle_days
        self.warn_days = warn_days
        self.compact = compact
        self.log_hours = log_hours
        self.only_writer = only_writer
        self.skip_when_unsafe = skip_when_unsafe
        check_constants(
            self,
            tables=_tables_of,
            idle_days=days_of,
            warn_days=days_of,
            compact=flag_of,
            log_hours=_log_hours_of,
            only_writer=flag_of,
            skip_when_unsafe=flag_of,
        )

    def execute(self, context: Context) -> list[dict[str, Any]]:
        """The upkeep of each table."""
        from tidemark.channels.model.jobs import KEEP_CHANNELS
        from tidemark.channels.worker.landing_tables import end_missing_tables
        from tidemark.model.codec import to_plain

        request = self._request(context)
        passed_over = (SourceError,) if len(request.tables) > 1 else ()
        for table in request.tables:  # a typo of the only table is found before a JVM starts
            with suppress(*passed_over):
                self.hook.table_uri(table)
        done = self.runtime().run_job(KEEP_CHANNELS, request, key=key_of(context))
        for kept in done.tables:
            figures = {"swept": len(kept.swept), "removed": kept.files_removed, "added": kept.files_added}
            note_landing(self.hook, kept.table, key_of(context), figures)
            if kept.idle:
                names = ", ".join(kept.idle)
                self.log.warning("Channels of %s that nobody uses, and that will be removed: %s", kept.table, names)
        if gone := end_missing_tables(self.hook.open_store(), self.hook.open_table):
            self.log.info("Tables with channels that no longer exist: %s", ", ".join(gone))
        self._report(done)
        found: list[dict[str, Any]] = to_plain(done.tables)
        return found

    def _report(self, done: KeptChannels) -> None:
        """Tables that were not kept. Raises TablesNotKept, AirflowSkipException."""
        if done.unsafe:
            names, reason = ", ".join(done.unsafe), next(iter(done.unsafe.values()))
            self.log.warning("Tables that were passed over: %s. %s", names, reason)
        if done.failed:
            problems = " ".join(f"{table}: {problem}" for table, problem in done.failed.items())
            total = len(done.tables) + len(done.failed)
            raise TablesNotKept(failed=len(done.failed), total=total, problems=problems)
        if not done.tables:
            raise AirflowSkipException("No table was kept, as commits may be lost. The log says what helps.")

    def _request(self, context: Context) -> KeepChannels:
        from tidemark.channels.model.jobs import KeepChannels

        tables = _tables_of("tables", self.tables)
        return KeepChannels(
            lake_root=self.hook.settings.lake_root,
            tables=tables,
            log_hours=self._log_hours(tables),
            keeper=owner_of(context),
            idle_days=days_of("idle_days", self.idle_days).total_seconds() / 86_400,
            warn_days=days_of("warn_days", self.warn_days).total_seconds() / 86_400,
            compact=flag_of("compact", self.compact),
            only_writer=flag_of("only_writer", self.only_writer),
            skip_when_unsafe=flag_of("skip_when_unsafe", self.skip_when_unsafe),
        )

    def _log_hours(self, tables: Sequence[str]) -> dict[str, int]:
        """Table → hours, of those whose setting may be changed. The job says what is wrong with an unreadable one."""
        from tidemark.channels.worker.log_retention import log_hours_for

        wanted = _log_hours_of("log_hours", self.log_hours)
        if wanted is None:
            return {}
        store = self.hook.open_store()
        found: dict[str, int] = {}
        for table in tables:
            with suppress(SourceError):
                hours = log_hours_for(store, self.hook.open_table(table), wanted)
                found |= {} if hours is None else {table: hours}
        return found


def _log_hours_of(argument: str, value: float | str | None) -> float | None:
    if value is None or is_left_out(value):
        return None
    hours = hours_of(argument, value) / timedelta(hours=1)
    if hours < _FEWEST_LOG_HOURS:
        problem = f"it must be {_FEWEST_LOG_HOURS} or more, so that each nightly run sees each commit"
        raise InvalidArgument(argument=argument, value=value, problem=problem)
    return hours


def _tables_of(argument: str, value: Sequence[str] | str) -> tuple[str, ...]:
    names = names_of(argument, value)
    if not names:
        raise InvalidArgument(argument=argument, value=value, problem="name at least one table")
    return names
