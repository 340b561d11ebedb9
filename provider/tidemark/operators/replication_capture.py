"""Taking what a database has committed into the event log of its replication."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from airflow.sdk.exceptions import AirflowSkipException

from tidemark.hooks.replication import event_log_of
from tidemark.operators._base import flag_of, key_of
from tidemark.operators._constants import check_constants
from tidemark.operators._replication import ReplicationOperator, Transfer, by_of, lineage_of, place_text
from tidemark.operators._spark import SparkOperator

if TYPE_CHECKING:
    from airflow.providers.openlineage.extractors import OperatorLineage
    from airflow.sdk import Context

    from tidemark.hooks.tidemark import TidemarkHook
    from tidemark.model.source_address import SourceAddress
    from tidemark.replication.model.jobs import CaptureReport
    from tidemark.replication.sources.open import Source
    from tidemark.streams.worker.runtime import Runtime

    Lineage = OperatorLineage[Any, Any]

__all__ = ["CaptureEventsOperator", "capture_now", "captured_transfer"]


class CaptureEventsOperator(SparkOperator, ReplicationOperator):
    """Captures what the source has committed up to now, then stops. The event log gets each event once, and the
    source's log releases it.

    The same commit has the position and the events, so a retry continues where the log ends. If nothing was committed
    to the selected tables, no JVM starts, and the position moves. Nothing is captured while the replication is draining
    or paused. While another run's capture has the slot it ends as skipped: that one, and the next run, take what there
    is. Returns {replication, captured, transactions, events, objects, lag_bytes}: `events` of all `objects`. Raises
    ReplicationNotFound, SlotLost, SlotAhead, SlotForeign, SlotBusy, SourceIsAnother, SourceSetBack,
    TransactionsMissing, SourceUnreachable, SourceRefused, EventLogChanged.

    :param replication: its name. (templated)
    :param skip_when_empty: end as skipped when nothing is new. (templated)
    """

    template_fields: Sequence[str] = ("replication", "skip_when_empty", "conn_id")

    def __init__(self, *, replication: str, skip_when_empty: bool | str = False, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.replication = replication
        self.skip_when_empty = skip_when_empty
        check_constants(self, skip_when_empty=flag_of)
        self._transfers: list[Transfer] = []

    def get_openlineage_facets_on_complete(self, task_instance: Any) -> Lineage | None:
        """The tables that had events, and the event log; None where nothing was captured."""
        return lineage_of(self._transfers)

    def execute(self, context: Context) -> dict[str, Any]:
        """The report of the capture; if nothing is new {replication, captured, transactions: 0, events: 0, …}."""
        from tidemark.hooks.source_connection import source_address
        from tidemark.replication.sources.open import open_source
        from tidemark.replication.worker.definitions import get_replication

        skip = flag_of("skip_when_empty", self.skip_when_empty)
        store = self.hook.open_store()
        address = source_address(get_replication(store, self.replication).source_conn_id)
        report = capture_now(self.runtime(source=address), self.hook, self.replication, open_source(address), context)
        replication = get_replication(store, self.replication)
        if report is None:
            why = f"Nothing new to capture; replication {replication.name} is {replication.state}."
            if skip:
                raise AirflowSkipException(why)
            self.log.info(why)
        else:
            self._transfers = [captured_transfer(address, report, replication.event_log)]
        return {"replication": replication.name, "captured": place_text(replication.captured), **_report(report)}


def capture_now(
    runtime: Runtime, hook: TidemarkHook, replication: str, source: Source, context: Context
) -> CaptureReport | None:
    """One capture by the task; None if nothing is new. Raises AirflowSkipException if another run captures
    now, and what `capture` does.
    """
    from tidemark.errors import SlotBusy
    from tidemark.replication.worker.capture import capture
    from tidemark.replication.worker.concurrent_runs import is_captured_now

    try:
        return capture(
            runtime,
            replication,
            source=source,
            by=by_of(context),
            key=key_of(context),
            open_log=event_log_of(hook),
        )
    except SlotBusy as busy:
        if not is_captured_now(runtime.store, replication):
            raise
        raise AirflowSkipException(f"Another run captures now; the next one takes what is left. {busy}") from busy


def captured_transfer(address: SourceAddress, report: CaptureReport, event_log: str) -> Transfer:
    """The tables that had events, and the event log."""
    named = [name for name, events in report.events.items() if events]
    return Transfer.from_source(address, named, event_log, sum(report.events.values()))


def _report(report: CaptureReport | None) -> dict[str, Any]:
    if report is None:
        return {"transactions": 0, "events": 0, "objects": {}, "lag_bytes": 0}
    return {
        "transactions": report.transactions,
        "events": sum(report.events.values()),
        "objects": dict(report.events),
        "lag_bytes": report.lag_bytes,
    }
