"""One bounded run of capture: what the source has committed comes into the event log, batch by batch, each once.

A batch is staged, then committed to the event log, then the slot is moved behind it. So after any end of a run the next
one finds in the log how far it came. The slot still has all events behind that. Nothing is held open in the source
while Spark works.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING

from tenacity import Retrying, retry_if_exception_type, stop_after_delay, wait_fixed

from tidemark.errors import SlotBusy, SourceIsAnother, SourceRefused
from tidemark.failpoints import failpoint
from tidemark.lake.event_logs import EventBatch, capture_app_id
from tidemark.model.source_address import SourceAddress
from tidemark.replication.driver.captured import Captured, captured_since
from tidemark.replication.driver.event_log import append_events, newest_batch, open_event_log
from tidemark.replication.driver.staging import EventsOf, EventStaging
from tidemark.replication.driver.wide_rows import fitted
from tidemark.replication.model.jobs import CaptureEvents, CaptureReport
from tidemark.replication.model.replication import LogPosition, TableSchema
from tidemark.replication.planning.events import READ_METHODS, TextOf
from tidemark.replication.planning.hiding import hasher_of
from tidemark.replication.planning.positions import lsn_of, position_of_lsn
from tidemark.replication.sources.postgresql.catalog import server_facts
from tidemark.replication.sources.postgresql.change_log import read_by_functions, read_by_protocol
from tidemark.replication.sources.postgresql.connection import connect
from tidemark.replication.sources.postgresql.failures import source_text
from tidemark.replication.sources.postgresql.relations import CatalogSchemas
from tidemark.replication.sources.postgresql.slots import (
    advance_slot,
    current_position,
    losses_named,
    require_not_set_back,
    require_ours,
    slot_status,
)
from tidemark.replication.sources.postgresql.transactions import EventRow, TransactionReader

if TYPE_CHECKING:
    import psycopg2
    from pyspark.sql import SparkSession

    from tidemark.jobs.workspace import Workspace
    from tidemark.lake.delta_log import DeltaLog

__all__ = ["FUNCTIONS_UP_TO", "capture_events"]

FUNCTIONS_UP_TO = 64 << 20  # bytes of log that the server decodes at once
_SECONDS_FOR_A_READER_TO_GO = 15.0  # that was cut off, until the server has noticed


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
    functions_up_to: int = FUNCTIONS_UP_TO,
) -> CaptureReport:
    """Put every transaction that commits before `request.until`, or now, into the event log, and say what came of it.

    Without an event nothing is written and the slot stays: the caller stores `captured`, then moves the slot. `now`:
    what events have for `read_timestamp`. More than `functions_up_to` bytes of log are read by the replication
    protocol.

    A second run, also at the same time, continues at the end of the log. Of two runs at once, one finds its batch
    written by the other and continues behind that, or gets SlotBusy. Raises SourceUnreachable, SourceRefused,
    SourceIsAnother, SourceSetBack, SlotLost, SlotForeign, SlotAhead, SlotBusy, EventLogChanged. Raises InvalidArgument
    if columns are hashed and the secret is missing, or another. Events that were committed to the log before stay, and
    are not read again.
    """
    hashed = hasher_of(request.options, address)
    with connect(address) as connection:
        found = server_facts(connection).system_id
        if found != request.system_id:
            raise SourceIsAnother(source=source_text(address), found=found, expected=request.system_id)
        run = _Run(
            session=session,
            log=open_event_log(session, request, options),
            app_id=capture_app_id(store_id, request.replication_uid),
            request=request,
            address=address,
            connection=connection,
            workspace=workspace,
            now=now,
            say=say,
            stop_if_due=stop_if_due,
            functions_up_to=functions_up_to,
            hashed=hashed,
        )
        run.resume()
        run.go_on(current_position(connection) if request.until is None else request.until)
        return run.report()


@dataclass
class _Run:
    """A run: `position` and `number` of what the log has, and what this run has to report."""

    session: SparkSession
    log: DeltaLog
    app_id: str
    request: CaptureEvents
    address: SourceAddress
    connection: psycopg2.extensions.connection
    workspace: Workspace
    now: datetime
    say: Callable[[str], None]
    stop_if_due: Callable[[], None]
    functions_up_to: int
    hashed: TextOf | None
    widths: tuple[int, int] = (0, 0)  # `widest` and `mean` of the log
    position: LogPosition = field(init=False)
    number: int = field(init=False)
    schemas: dict[str, TableSchema] = field(init=False)
    captured: Captured = field(default_factory=Captured)
    protocol: str = "functions"
    heartbeat: bool = True

    def resume(self) -> None:
        """Start where the store or the log ends, and let the slot go as far: all before that is safe."""
        self.position, self.number = self.request.captured, self.request.batches
        self.schemas = {one.source_id: one.schema for one in self.request.objects if one.schema is not None}
        newest = newest_batch(self.session, self.log, self.app_id, self.request)
        self.widths = (0, 0) if newest is None else (newest.widest, newest.mean)
        self._catch_up(newest)
        require_not_set_back(self.connection, self.position)
        require_ours(slot_status(self.connection, self.request.slot), captured=self.position, idle=False)
        self._move_slot()

    def go_on(self, end: LogPosition) -> None:
        """Batch after batch up to `end`."""
        while self.position < end:
            self.stop_if_due()
            reader, staging = self._staged(end)
            if not reader.total:
                self.position = end
                return
            upto = end if reader.exhausted else position_of_lsn(reader.behind)
            if self._committed(reader, staging, upto):
                failpoint("slot.before")
                self._move_slot()
                failpoint("slot.moved")

    def report(self) -> CaptureReport:
        """The result of the run, batches included that an earlier attempt had written."""
        names = {one.source_id: one.name.text for one in self.request.objects}
        behind = lsn_of(current_position(self.connection)) - lsn_of(self.position)
        return CaptureReport(
            captured=self.position,
            batches=self.number,
            transactions=self.captured.transactions,
            events=dict(self.captured.events),
            schemas={names[oid]: self.schemas[oid] for oid in sorted(self.captured.changed) if oid in names},
            renamed=dict(self.captured.renamed),
            newest_source_timestamp=self.captured.newest,
            lag_bytes=max(0, behind),
            protocol=self.protocol,
        )

    def _staged(self, end: LogPosition) -> tuple[TransactionReader, EventStaging]:
        """One batch, in files."""
        of_catalog = CatalogSchemas(self.connection, self.request.options.numeric_as, self.hashed)
        reader = TransactionReader(
            {one.source_id: one for one in self.request.objects},
            dict(self.schemas),
            of_catalog,
            lsn_of(self.position),
            lsn_of(end),
            self.request.options.max_events,
            self.heartbeat,
            of_catalog.hide,
        )
        staging = EventStaging(self.workspace)
        with self._messages(end) as messages:
            for rows in self._readable(reader.chunks(messages)):
                staging.stage(rows, reader.facts)
                failpoint("events.staged")
                self.stop_if_due()
        if reader.unasked:
            self.say(f"left out, as nobody replicates them: {', '.join(sorted(reader.unasked))}")
        return reader, staging

    @contextmanager
    def _messages(self, end: LogPosition) -> Iterator[Iterator[tuple[int, bytes]]]:
        """The slot's messages up to `end`, through a connection of its own that is closed before Spark works."""
        status = slot_status(self.connection, self.request.slot)
        behind = lsn_of(end) - lsn_of(status.restart or self.position)
        slot, publication = self.request.slot, self.request.publication
        if behind <= self.functions_up_to:
            with connect(self.address, autocommit=False) as reading, losses_named(self.connection, slot):
                yield read_by_functions(reading, slot, publication, end)
            return
        self.protocol = "replication"
        with connect(self.address, replication=True) as reading, losses_named(self.connection, slot):
            yield read_by_protocol(reading, slot, publication, self.position, end)

    def _readable(self, chunks: Iterator[list[EventRow]]) -> Iterator[list[EventRow]]:
        try:
            yield from chunks
        except (ValueError, LookupError, struct.error) as error:
            slot, behind = self.request.slot, self.position.commit
            raise SourceRefused(
                source=source_text(self.address),
                what="a message that can be read",
                problem=f"a message of slot {slot} behind {behind}: {_without_values(error)}",
                remedy="Its database must have an encoding that is known (not SQL_ASCII), its plugin be pgoutput.",
            ) from error

    def _committed(self, reader: TransactionReader, staging: EventStaging, upto: LogPosition) -> bool:
        """Whether the log has the batch now; if not, another capture came first, and the run continues behind it."""
        request, attempt = self.request, self.workspace.new_directory().rsplit("/", 1)[-1]
        batch = EventBatch(
            request.replication_uid,
            self.number + 1,
            self.position.commit,
            upto.commit,
            attempt,
            reader.transactions,
            max(staging.widest, self.widths[0]),
            max(staging.mean, self.widths[1]),
        )
        common = EventsOf(request.stream, READ_METHODS[request.kind], request.system_id, batch.number, self.now)
        with fitted(self.session, staging.widest, staging.mean):
            found = append_events(self.log, self.app_id, request, batch, staging.events(self.session, common))
        if found != batch:
            self.say(f"another capture has written batch {batch.number}; going on behind {found.end}")
            self._catch_up(found)
            return False
        self.position, self.number, self.widths = upto, batch.number, (batch.widest, batch.mean)
        self.schemas, self.heartbeat = reader.schemas, reader.heartbeat
        self.captured.add(reader)
        self.say(
            f"batch {batch.number}: {reader.total} events of {reader.transactions} transactions, up to {batch.end}"
        )
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
        self.position = max(self.position, LogPosition(found.end))

    def _move_slot(self) -> None:
        """Behind what the log has. A reader that was cut off just now holds the slot for a moment."""
        patience = Retrying(
            retry=retry_if_exception_type(SlotBusy),
            stop=stop_after_delay(_SECONDS_FOR_A_READER_TO_GO),
            wait=wait_fixed(0.2),
            reraise=True,
        )
        patience(advance_slot, self.connection, self.request.slot, self.position)


def _without_values(error: Exception) -> str:
    """The message of an error of decoding, without the values of the row that it was about."""
    kind = type(error).__name__
    return f"{kind}: {error.reason} at {error.start}" if isinstance(error, UnicodeDecodeError) else kind
