"""Removing files that neither a table nor its streams need any more."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tidemark.operators._base import flag_of, key_of
from tidemark.operators._constants import check_constants
from tidemark.operators._spark import SparkOperator
from tidemark.streams.planning.vacuum_results import extension_of, result_of

if TYPE_CHECKING:
    from airflow.sdk import Context

    from tidemark.streams.planning.vacuum_results import VacuumResult

__all__ = ["VacuumTableOperator"]


class VacuumTableOperator(SparkOperator):
    """Runs Delta's VACUUM on a table, and leaves every file that a stream still needs (R88).

    All live streams of the control store that read the table count, through views as well. Their files are kept until
    their STALE_AFTER, `max_extension_days` after their offset moved, and not longer. Delta's own retention check stays
    on, and what the table's properties keep is kept. A table without streams is vacuumed as always. A second run finds
    less to remove. Raises TableNotFound, NotADeltaTable, SourceRecreated, InvalidArgument.

    :param table: its name or path. (templated)
    :param max_extension_days: how long an unread stream may hold files back. The table's property
        `tidemark.maxDataExtension` keeps it. None: that property, else 14 if the table has streams. (templated)
    :param stretch: lengthen Delta's own retention properties while a stream needs it, and restore them when none does.
        False restores them now. (templated)
    :param dry_run: only report what would be removed, and change nothing. (templated)
    """

    template_fields: Sequence[str] = ("table", "max_extension_days", "stretch", "only_plan", "conn_id")

    def __init__(
        self,
        *,
        table: str,
        max_extension_days: int | str | None = None,
        stretch: bool | str = True,
        dry_run: bool | str = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.table = table
        self.max_extension_days = max_extension_days
        self.stretch = stretch
        self.only_plan = dry_run  # BaseOperator.dry_run is a method
        check_constants(
            self,
            max_extension_days=lambda _, days: extension_of(days),
            stretch=flag_of,
            only_plan=lambda _, value: flag_of("dry_run", value),
        )

    def execute(self, context: Context) -> dict[str, Any]:
        """{table, dry_run, retain_hours, files, bytes, bytes_kept, bytes_past_retention, held_by, losing, settings,
        changed_meanwhile}.
        """
        from tidemark.model.codec import to_plain
        from tidemark.operators._jobs import vacuum
        from tidemark.streams.worker.vacuum import plan_table_vacuum

        dry_run, stretch = flag_of("dry_run", self.only_plan), flag_of("stretch", self.stretch)
        extension = extension_of(self.max_extension_days)
        runtime = self.runtime()
        plan = plan_table_vacuum(
            runtime.store,
            self.table_by_name(context, self.table),
            runtime.tables,
            extension=extension,
            stretch=stretch,
        )
        done = vacuum(runtime, plan, dry_run=dry_run, key=key_of(context))
        result = result_of(plan, done, dry_run=dry_run)
        self._tell(result)
        found: dict[str, Any] = to_plain(result)
        return found

    def _tell(self, result: VacuumResult) -> None:
        self.log.info("%s", result)
        for one in result.held_by:
            self.log.info(
                "Stream %s at version %s holds back %s bytes, until %s at most.",
                *(one.stream, one.offset, f"{one.bytes:,}", one.until.isoformat()),
            )
        for late in result.losing:
            self.log.warning(
                "Stream %s is past its limit of %s: the changes from version %s on are lost (%s files).",
                *(late.stream, late.until.isoformat(), late.version, late.files),
            )
        if result.changed_meanwhile:
            self.log.warning("No table property was set, since these have changed: %s.", result.changed_meanwhile)
        if result.settings:
            self.log.info("Table properties: %s", result.settings)
