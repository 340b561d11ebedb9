"""One bounded run of capture: what the source has committed comes into the event log, batch by batch, each once.

A batch is staged, then committed to the event log, then the slot is moved behind it. So after any end of a run the next
one finds in the log how far it came. The slot still has all events behind that. Nothing is held open in the source
while Spark works.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING

from tidemark.errors import SlotAhead
from tidemark.failpoints import failpoint
from tidemark.lake.event_logs import EventBatch, capture_app_id
from tidemark.model.source_address import SourceAddress
from tidemark.replication.driver.captured import Captured, captured_since
from tidemark.replication.driver.event_log import append_events, newest_batch, open_event_log
from tidemark.replication.driver.late_events import without_overtaken
from tidemark.replication.driver.log_forms import EventsOf
from tidemark.replication.driver.staging import EventStaging
from tidemark.replication.driver.wide_rows import fitted
from tidemark.replication.model.jobs import CaptureEvents, CaptureReport
from tidemark.replication.model.replication import LogPosition, TableSchema
from tidemark.replication.planning.events import READ_METHODS
from tidemark.replication.planning.hiding import hasher_of
from tidemark.replication.planning.positions import position_text
from tidemark.replication.sources.change_log import ChangeLog, Found, OpenLog, Origin
from tidemark.replication.sources.open_log import open_change_log

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tidemark.jobs.workspace import Workspace
    from tidemark.lake.delta_log import DeltaLog

__all__ = ["capture_events"]


def capture_events(
    session: SparkSession,
    store_id: str,
    request: CaptureEvents,
    address: SourceAddress,
    workspace: Workspace,
    options: Mapping[str, str] | None = None,
    *,
    now: datetime,
    say: Callable[[str], None],
    stop_if_due: Callable[[], None],
    open_log: OpenLog = open_change_log,
) -> CaptureReport:
    """Put every transaction that commits before `request.until`, or now, into the event log, and say what came of it.

    Without an event nothing is written and the slot stays: the caller stores `captured`, then moves the slot. `now`:
    what events have for `read_timestamp`.

    A server that took over from the one before is read on where that one's transactions end.

    A second run, also at the same time, continues at the end of the log. Of two runs at once, one finds its batch
    written by the other and continues behind that, or gets SlotBusy. Raises SourceUnreachable, SourceRefused,
    SourceIsAnother, TransactionsMissing, SourceSetBack, SlotLost, SlotForeign, SlotAhead, SlotBusy, EventLogChanged.
    Raises InvalidArgument if columns are hashed and the secret is missing, or another. Events that were committed to
    the log before stay, and are not read again.
    """
    hashed = hasher_of(request.options, address)
    with open_log(request, address, hashed) as source:
        run = _Run(
            session=session,
            log=open_event_log(session, request, options),
            app_id=capture_app_id(store_id, request.replication_uid),
            request=request,
            source=source,
            workspace=workspace,
            now=now,
            say=say,
            stop_if_due=stop_if_due,
        )
        run.resume()
        run.go_on()
        return run.report()


@dataclass
class _Run:
    """A run: `position` with its `origin` and `number` of what the log has, and what this run has to report."""

    session: SparkSession
    log: DeltaLog
    app_id: str
    request: CaptureEvents
    source: ChangeLog
    workspace: Workspace
    now: datetime
    say: Callable[[str], None]
    stop_if_due: Callable[[], None]
    widths: tuple[int, int] = (0, 0)  # `widest` and `mean` of the log
    position: LogPosition = field(init=False)
    origin: Origin = field(init=False)
    number: int = field(init=False)
    schemas: dict[str, TableSchema] = field(init=False)
    captured: Captured = field(default_factory=Captured)
    heartbeat: bool = True

    def resume(self) -> None:
        """Start where the store or the log ends, and let the slot go as far: all before that is safe."""
        self.position, self.number = self.request.captured, self.request.batches
        self.origin = Origin(self.request.system_id, self.request.gtids)
        self.schemas = {one.source_id: one.schema for one in self.request.objects if one.schema is not None}
        newest = newest_batch(self.session, self.log, self.app_id, self.request)
        self.widths = (0, 0) if newest is None else (newest.widest, newest.mean)
        self._catch_up(newest)
        self._read_on()
        self.source.release(self.position)

    def _read_on(self) -> None:
        """Another capture may have written a batch, and moved the slot behind it, since the log was read."""
        while True:
            number = self.number
            try:
                self.source.resume(self.position, self.origin)
                return
            except SlotAhead:
                self._catch_up(newest_batch(self.session, self.log, self.app_id, self.request))
                if self.number == number:
                    raise

    def go_on(self) -> None:
        """Batch after batch up to the end that was asked for, or up to where the source stops before it."""
        end, exhausted = self.source.end(self.request.until), False
        while self.position < end and not exhausted:
            self.stop_if_due()
            server = self.origin.server
            found, staging = self._staged(end)
            if not found.total:
                self.position, self.origin = found.upto, found.origin
                return
            if self._committed(found, staging):
                exhausted = found.exhausted
                failpoint("slot.before")
                self.source.release(self.position)
                failpoint("slot.moved")
            elif self.origin.server != server:  # the end was a place of another log
                end = self.source.end(self.request.until)

    def report(self) -> CaptureReport:
        """The result of the run, batches included that an earlier attempt had written."""
        names = {one.source_id: one.name.text for one in self.request.objects}
        return CaptureReport(
            captured=self.position,
            batches=self.number,
            transactions=self.captured.transactions,
            events=dict(self.captured.events),
            schemas={names[oid]: self.schemas[oid] for oid in sorted(self.captured.changed) if oid in names},
            renamed=dict(self.captured.renamed),
            newest_source_timestamp=self.captured.newest,
            lag_bytes=self.source.lag(self.position),
            protocol=self.source.protocol,
            server=self.origin.server,
            gtids=self.origin.gtids,
        )

    def _staged(self, end: LogPosition) -> tuple[Found, EventStaging]:
        """One batch, in files."""
        batch = self.source.batch(self.position, end, self.schemas, heartbeat=self.heartbeat)
        staging = EventStaging(self.workspace, self.request.kind)
        with batch.rows() as chunks:
            for rows in chunks:
                staging.stage(rows, batch.found.facts)
                failpoint("events.staged")
                self.stop_if_due()
        if batch.found.unasked:
            self.say(f"left out, as nobody replicates them: {', '.join(sorted(batch.found.unasked))}")
        return batch.found, staging

    def _committed(self, found: Found, staging: EventStaging) -> bool:
        """Whether the log has the batch now; if not, another capture came first, and the run continues behind it."""
        request, upto, attempt = self.request, found.upto, self.workspace.new_directory().rsplit("/", 1)[-1]
        batch = EventBatch(
            request.replication_uid,
            self.number + 1,
            self.position.commit,
            upto.commit,
            attempt,
            found.transactions,
            max(staging.widest, self.widths[0]),
            max(staging.mean, self.widths[1]),
            found.origin.server,
            found.origin.gtids,
        )
        system_id = found.origin.server or request.system_id
        common = EventsOf(request.stream, READ_METHODS[request.kind], system_id, batch.number, self.now)
        with fitted(self.session, staging.widest, staging.mean):
            events = staging.events(self.session, common)
            if found.late:
                events = without_overtaken(self.session, self.log, events)
            newest = append_events(self.log, self.app_id, request, batch, events)
        if newest != batch:
            self.say(f"another capture has written batch {batch.number}; continuing behind {newest.end}")
            self._catch_up(newest)
            if newest.server:  # the other one may have read another server
                self.source.resume(self.position, self.origin)
            return False
        self.position, self.number, self.widths = upto, batch.number, (batch.widest, batch.mean)
        self.origin = found.origin
        self.schemas, self.heartbeat = found.schemas, found.heartbeat
        self.captured.add(found)
        place = position_text(upto)
        self.say(f"batch {batch.number}: {found.total} events of {found.transactions} transactions, up to {place}")
        return True

    def _catch_up(self, found: EventBatch | None) -> None:
        """Know what the log has behind what was known of it."""
        if found is None or found.number <= self.number:
            return
        self.widths = found.widest, found.mean
        missed = captured_since(self.session, self.log, self.app_id, self.request, self.number)
        self.captured.include(missed)
        self.schemas.update(missed.schemas)
        self.number = found.number
        end = LogPosition(found.end)
        if end > self.position or found.server not in ("", self.origin.server):
            self.position, self.origin = end, Origin(found.server or self.origin.server, found.gtids)
