"""A copy of an object as of one exact position of the source's log, put into its target in one commit."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from tidemark.errors import BackfillGaveWay, BackfillInterrupted, ObjectFailed, TidemarkError
from tidemark.failpoints import failpoint
from tidemark.jobs.spark_failures import SPARK_FAILURES
from tidemark.model.source_address import SourceAddress
from tidemark.model.streams import TableRef
from tidemark.replication.driver.apply import apply_events, position_text
from tidemark.replication.driver.columns import invalid_columns, target_columns
from tidemark.replication.driver.copies import RowsTooWide
from tidemark.replication.driver.hidden_values import seen_of
from tidemark.replication.driver.open_copy import table_copy
from tidemark.replication.driver.source_rows import rows_read
from tidemark.replication.driver.target_table import Target
from tidemark.replication.driver.values import named_invalid_value
from tidemark.replication.driver.wide_rows import fitted
from tidemark.replication.model.catalog import SeenTable
from tidemark.replication.model.jobs import ApplyEvents, BackfillObject, BackfillReport
from tidemark.replication.model.marks import ObjectMark, ObjectWrite
from tidemark.replication.model.replication import START, BackfillProgress, LogPosition, TableSchema, WriteMode
from tidemark.replication.planning import positions
from tidemark.sql.identifiers import quoted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from tidemark.jobs.workspace import Workspace

__all__ = ["backfill_object"]

SECONDS_BETWEEN_LOOKS = 2.0
PAUSES = (1.0, 5.0, 15.0, 60.0)  # seconds, before a copy that gave way begins anew
PATIENCE = timedelta(minutes=5)


def _nothing(*_: object) -> None:
    return None


def backfill_object(
    session: SparkSession,
    store_id: str,
    request: BackfillObject,
    address: SourceAddress,
    workspace: Workspace,
    options: Mapping[str, str] | None = None,
    *,
    now: Callable[[], datetime],
    say: Callable[[str], None] = _nothing,
    stop_if_due: Callable[[], None] = _nothing,
    leave: Callable[[BackfillProgress], None] = _nothing,
    patience: timedelta = PATIENCE,
    pauses: Sequence[float] = PAUSES,
) -> BackfillReport:
    """Copy the object as it is now, and say which position the copy is exact at.

    A mirror's target is overwritten in one commit, so nobody sees half a copy. With `request.catch_up` nobody sees it
    go back, as the events up to there are applied to the copy first. To an append-only target the copy is appended. A
    target that is gone, or another table, is taken as new. A target of an object that is no more (`request.earlier`) is
    overwritten. `leave` gets the progress as it is made; `patience`: how long transactions of the source may hold up
    the snapshot. A copy that gives way to others begins again after each of `pauses` (seconds), while nothing is open
    in the source.

    A second run with the same number finds the copy if it exists, and else starts from the beginning. Raises
    BackfillInterrupted if the source goes away. Raises BackfillGaveWay if others wanted the table to themselves each
    time, or have rewritten it during the copy. Raises ValueDoesNotFit; TargetMovedOn if a newer write came first;
    EventLogChanged; TargetNotDelta; ReplicationRefused for a target with rows of others. Raises TargetLost if the table
    was restored behind the copy, or has another write of that number. Raises ObjectFailed for an append-only target of
    other types, and what `table_copy` does. Then the target is unchanged.
    """
    copying = _Copying(session, store_id, request, workspace, options, stop_if_due)
    found = copying.found()
    if found is not None:
        return found
    name = request.object.name.text

    def copy(*, careful: bool = False) -> None:
        stop_if_due()
        with (
            table_copy(request, address, patience, workspace, stop_if_due) as table,
            _named(table.failure),
            _watched(session, request, now, say, leave),
        ):
            say(f"{name}: copying as of {positions.position_text(table.position)}, about {request.expected_rows} rows")
            copying.widest, copying.seen = table.widest(careful), table.seen
            rows = table.rows(session, careful)
            with fitted(session, copying.widest, table.mean):
                copying.copy(table.position, table.schema, rows)

    _anew(copy, pauses, say, stop_if_due)
    failpoint("backfill.copied")
    with fitted(session, copying.widest):
        report = replace(copying.finish(say), seen=seen_of(request, copying.seen))
    leave(BackfillProgress(max(request.expected_rows, report.rows), report.rows, now()))
    place = positions.position_text(report.snapshot)
    say(f"{name}: {report.rows} rows as of {place} are in {report.target.name}")
    return report


@dataclass
class _Copying:
    """A backfill under way. `staged`: the copy is stored beside the target until the events after it are in it, too."""

    session: SparkSession
    store_id: str
    request: BackfillObject
    workspace: Workspace
    options: Mapping[str, str] | None
    stop_if_due: Callable[[], None]
    staged: Target | None = None
    mark: ObjectMark | None = None
    widest: int = 0  # bytes of a row
    seen: SeenTable | None = None  # what the catalog had at the snapshot

    @property
    def target(self) -> Target:
        one = self.request.object
        return Target(one.target, self.store_id, one.uid, self.options, self.stop_if_due).anew()

    def found(self) -> BackfillReport | None:
        """The copy that an earlier attempt has put into the target. Raises TargetMovedOn."""
        newest = self.target.newest()
        if newest is None or not self.target.has(self._mark(START, START, None)):
            return None
        return self._report(found=True)

    def copy(self, snapshot: LogPosition, schema: TableSchema, rows: DataFrame) -> None:
        """Into the target, or beside it where that would take the target back. Nothing is left of an earlier try."""
        self.staged = self.mark = None
        request, catch_up = self.request, self.request.catch_up
        target = self.target.make(
            self.session, schema, request.object.mode, replication=request.stream, earlier=request.earlier
        )
        if request.object.mode is WriteMode.APPEND_ONLY:
            mark = self._mark(snapshot, self._applied(snapshot), schema)
            put = self._overwrite if self._is_new(target) else self._append
            put(target, schema, mark, rows)
            return
        self.mark = self._mark(snapshot, snapshot, schema)
        if catch_up is not None and catch_up > snapshot:
            place = TableRef(f"the copy of {request.object.name.text}", self.workspace.new_directory(), "")
            beside = replace(target, ref=place)
            target = self.staged = beside.make(self.session, schema, request.object.mode, replication=request.stream)
        self._overwrite(target, schema, self.mark, rows)

    def _is_new(self, target: Target) -> bool:
        """Whether the table has nothing of the object yet: rows that it may have are of an object that is no more."""
        return target.ref.table_id != self.request.object.target.table_id and target.newest() is None

    def _applied(self, snapshot: LogPosition) -> LogPosition:
        """The events that an append-only target has: a copy adds rows to it, and none of an event."""
        newest, known = self.target.newest(), self.request.object.applied
        had = [one for one in (known, None if newest is None else newest.mark.end) if one is not None]
        return max(had) if had else snapshot

    def finish(self, say: Callable[[str], None]) -> BackfillReport:
        """Bring a staged copy to where the target is, and put it into its place."""
        if self.staged is None or self.mark is None:
            return self._report(found=False)
        copy = self.staged.known()
        report = apply_events(
            self.session, self.store_id, self._following(copy), self.options, say=say, stop_if_due=self.stop_if_due
        )
        if report.needs_backfill is not None:
            raise BackfillInterrupted(object=self.request.object.name.text, problem=report.needs_backfill)
        wanted = target_columns(report.schema, self.request.object.mode)
        rows = self.session.read.format("delta").load(copy.ref.path)
        rows = rows.select(*(quoted(one.name) for one in wanted.fields))
        newest = copy.newest()
        self.widest = max(self.widest, 0 if newest is None else newest.mark.widest)
        mark = self._mark(self.mark.start, report.applied, report.schema)
        with fitted(self.session, self.widest):
            self._overwrite(self.target.known(), report.schema, mark, rows)
        return self._report(found=False)

    def _following(self, copy: Target) -> ApplyEvents:
        """The events between the copy and what the target has."""
        if self.mark is None or self.mark.schema is None or self.request.catch_up is None:
            raise AssertionError("there is a copy to bring forward")
        request = self.request
        return ApplyEvents(
            replication_uid=request.replication_uid,
            object_uid=request.object.uid,
            stream=request.stream,
            name=request.object.name,
            number=request.number,
            start=self.mark.start,
            end=self.request.catch_up,
            schema=self.mark.schema,
            mode=request.object.mode,
            target=copy.ref,
            event_log=request.event_log,
            invalid_values=request.invalid_values,
            batches=request.batches,
            source_id=request.object.source_id,
        )

    def _overwrite(self, target: Target, schema: TableSchema, mark: ObjectMark, rows: DataFrame) -> None:
        target.allow_names(self.session, target_columns(schema, self.request.object.mode))
        writer = rows.write.format("delta").mode("overwrite").option("overwriteSchema", "true")
        target.write_once(self.session, mark, lambda: writer.save(target.ref.path), point="backfill")

    def _append(self, target: Target, schema: TableSchema, mark: ObjectMark, rows: DataFrame) -> None:
        invalid = invalid_columns(target.schema(), schema)
        if invalid is not None:
            remedy = "Move the target away; the next backfill makes a new one."
            at = position_text(mark.start)
            raise ObjectFailed(object=self.request.object.name.text, problem=invalid, position=at, remedy=remedy)
        target.evolve(self.session, schema)
        writer = rows.write.format("delta").mode("append")
        target.write_once(self.session, mark, lambda: writer.save(target.ref.path), point="backfill")

    def _mark(self, start: LogPosition, end: LogPosition, schema: TableSchema | None) -> ObjectMark:
        return ObjectMark(
            self.request.object.uid, self.request.number, 0, start, end, ObjectWrite.BACKFILL, schema, self.widest
        )

    def _report(self, *, found: bool) -> BackfillReport:
        target = self.target.known()
        newest = target.newest()
        if newest is None or newest.mark.schema is None:
            raise AssertionError("the copy is in the target's log")
        mark, rows = newest.mark, newest.rows.get("inserted", 0)
        return BackfillReport(mark.start, mark.end, rows, newest.mark.schema, target.ref, found)


def _anew(
    copy: Callable[..., None], pauses: Sequence[float], say: Callable[[str], None], stop_if_due: Callable[[], None]
) -> None:
    """`copy`, again after each pause if it gives way to others, and carefully once rows were wider than thought.
    Raises the last BackfillGaveWay, and what `copy` raises otherwise.
    """
    careful = False
    for pause in (*pauses, None):
        try:
            copy(careful=careful)
            return
        except BackfillGaveWay as error:
            if pause is None:
                raise
            say(f"{error} It starts again in {pause:g} s.")
        except RowsTooWide as error:
            if careful or pause is None:
                raise BackfillInterrupted(**error.facts) from error
            say(f"{error} It starts again, with fewer rows at once.")
            careful, pause = True, 0.0
        _rest(pause, stop_if_due)


def _rest(seconds: float, stop_if_due: Callable[[], None]) -> None:
    """A pause that ends with the job."""
    ends = time.monotonic() + seconds
    stop_if_due()
    while (left := ends - time.monotonic()) > 0:
        time.sleep(min(left, 1.0))
        stop_if_due()


@contextmanager
def _named(failure: Callable[[str], TidemarkError | None]) -> Iterator[None]:
    """The errors of the copy's query, as errors of ours."""
    try:
        yield
    except SPARK_FAILURES as error:
        text = str(error)
        named = named_invalid_value(text) or failure(text)
        if named is None:
            raise
        raise named from error


@contextmanager
def _watched(
    session: SparkSession,
    request: BackfillObject,
    now: Callable[[], datetime],
    say: Callable[[str], None],
    leave: Callable[[BackfillProgress], None],
) -> Iterator[None]:
    """Reports progress while rows are read."""
    ended = threading.Event()

    def watch(rows: Callable[[], int]) -> None:
        done = 0
        while not ended.wait(SECONDS_BETWEEN_LOOKS):
            read = rows()
            if read > done:
                done = read
                progress = BackfillProgress(request.expected_rows, done, now())
                leave(progress)
                say(
                    f"{request.object.name.text}: {done} of about {request.expected_rows} rows, {progress.percent:.0f}%"
                )

    with rows_read(session, request.expected_rows) as rows:
        thread = threading.Thread(target=watch, args=(rows,), name="tidemark-backfill", daemon=True)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join(SECONDS_BETWEEN_LOOKS)
