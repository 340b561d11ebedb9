"""An explicit transaction from a notebook: reads pinned, writes recorded at once and run at the commit (R16–R25)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import TracebackType
from typing import TYPE_CHECKING

from tidemark.client.context import ClientContext, logger
from tidemark.client.quarantine import make_quarantine
from tidemark.client.temporary_views import TemporaryViews
from tidemark.client.views_in_statements import (
    refuse_statements_of_views,
    require_no_view,
    views_read,
)
from tidemark.delivery.model.transactions import CommitResult, TransactionState
from tidemark.delivery.planning.quarantine import with_quarantine
from tidemark.errors import (
    AmbiguousTableName,
    CommitRefused,
    InvalidArgument,
    SourceError,
    StatementRefused,
    StreamError,
    TidemarkError,
)
from tidemark.lake.delta_log import DeltaLog
from tidemark.materialized.worker.reads_of_writes import over_dynamic_tables
from tidemark.model.statements import PlannedWrite, TransactionKey, WriteAs
from tidemark.model.streams import Stream, StreamWindow, TableRef
from tidemark.sql.statements import ParsedStatement, StatementKind, parse_statement
from tidemark.streams.driver.check import check_write
from tidemark.streams.driver.pinned_streams import PinnedStreams
from tidemark.streams.driver.sql import query_text
from tidemark.streams.planning.arguments import evolution_of, names_of
from tidemark.streams.worker.begin import begin, get_transaction
from tidemark.streams.worker.commit import commit
from tidemark.streams.worker.extend import extend
from tidemark.streams.worker.following import followed
from tidemark.streams.worker.replan import replan
from tidemark.streams.worker.rollback import rollback
from tidemark.streams.worker.sources import ends_at, ends_to_read, window_from
from tidemark.streams.worker.statistics import count_failure
from tidemark.streams.worker.streams import get_stream, list_streams
from tidemark.streams.worker.submit import submit
from tidemark.streams.worker.targets import open_target

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["LakeTransaction"]


class LakeTransaction:
    """Use as `with lake.transaction() as tx:`; it commits at the end, and rolls back on an exception.

    Every read of a stream gives the same window (offset, start of the transaction], also after commits of others (R20,
    R21). A write is checked and stored when it is asked for, and locks the streams that it reads (R23). It runs at the
    commit, in order: before that no target has a trace. Columns, keys and SQL are checked then. Keys that are not
    unique and broken constraints show in the rows only, so their errors come at the commit. Each write reaches its
    target once. Reading alone moves no offset (R16). Each stream that a write names moves to the start of the
    transaction, or none does (R22). A transaction that was submitted on such a stream and left open is finished first.
    """

    def __init__(self, context: ClientContext, key: TransactionKey, *, checks: bool = True) -> None:
        """Without `checks` a write is refused at the commit only, for one that follows at once."""
        self._context = context
        self._key = key
        self._checks = checks
        self._started = context.store.clock()
        self._ends: dict[str, int] = {}
        self._windows: dict[str, StreamWindow] = {}
        self._frames: dict[str, PinnedStreams] = {}
        self._begun = False
        self._locked: set[str] = set()
        self._writes = 0
        self._result: CommitResult | None = None
        self._ended = False

    def __enter__(self) -> LakeTransaction:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._ended:
            return
        if kind is None:
            self.commit()
        else:
            self.rollback()

    @property
    def key(self) -> TransactionKey:
        """The key of the transaction in the control store."""
        return self._key

    def stream(self, name: str) -> DataFrame:
        """The stream's rows, columns as in `Lake.stream`. Lazy: the plan is pinned, not the rows."""
        self._require_open()
        window = self._window(name)
        return self._pinned((window,)).frame(window.stream_name)

    def sql(self, text: str) -> DataFrame | None:
        """A SELECT runs now, with streams known by their names. A write is recorded and runs at the commit.

        Writes are INSERT INTO, INSERT OVERWRITE, MERGE INTO, UPDATE and DELETE on Delta tables; the first must read a
        stream. Raises StatementRefused, TargetNotFound, TargetNotDelta, StreamLocked, and CommitRefused where the
        stream was read before and has moved since. Views are read as `Lake.table` reads them at that time. A write can
        read dynamic tables alone, and none can write a view.
        """
        self._require_open()
        refuse_statements_of_views(text)
        parsed = parse_statement(text)
        streams = self._streams_in(parsed)
        if parsed.kind is StatementKind.SELECT:
            return self._selected(parsed, streams)
        if parsed.target is None:
            raise StatementRefused(problem="it has no target", sql=text)
        if not streams and not self._locked:
            raise StatementRefused(problem="the first statement of a transaction must read a stream", sql=text)
        require_no_view(self._context, parsed.target.name, text)
        asked = over_dynamic_tables(self._context.store, self._context.tables, parsed, streams)
        tables = self._tables_in(parse_statement(asked), streams)
        sql = text if asked == parsed.sql else asked
        self._record(streams, PlannedWrite(WriteAs.SQL, parsed.target.name, sql=sql, tables=tables))
        return None

    def _selected(self, parsed: ParsedStatement, streams: Sequence[str]) -> DataFrame:
        context = self._context
        pinned = self._pinned([self._window(name) for name in streams])
        with TemporaryViews(context.spark) as views:
            kept = views_read(context, [name for name in parsed.names if name not in streams], views)
            tables = self._tables_in(parsed, (*streams, *kept))
            return context.spark.sql(query_text(parsed, pinned, tables, kept))

    def append(
        self, stream: str, target: str, *, schema_evolution: str = "fail", quarantine: str | None = None
    ) -> None:
        """Record an INSERT of all the stream's rows into `target`. Rows that break a constraint of it go to the table
        `quarantine`, which is created if it does not exist. Raises InvalidArgument, TargetDoesNotFit,
        QuarantineDoesNotFit, and as `sql` does.
        """
        self._require_open()
        evolution = evolution_of(schema_evolution)
        write = PlannedWrite(WriteAs.APPEND, target, source=stream, schema_evolution=evolution, quarantine=quarantine)
        self._record((stream,), write)

    def merge(
        self,
        stream: str,
        target: str,
        keys: str | Sequence[str],
        *,
        schema_evolution: str = "fail",
        quarantine: str | None = None,
    ) -> None:
        """Record a MERGE of the stream into `target` by `keys`: per key the INSERT image, else the DELETE. A key whose
        INSERT image breaks a constraint stays unchanged in the target, and all its rows go to the table `quarantine`.
        Raises MissingMergeKey, and as `append` does; AmbiguousMergeKey comes at the commit.
        """
        self._require_open()
        evolution = evolution_of(schema_evolution)
        write = PlannedWrite(
            WriteAs.MERGE,
            target,
            source=stream,
            keys=names_of("keys", keys),
            schema_evolution=evolution,
            quarantine=quarantine,
        )
        self._record((stream,), write)

    def commit(self) -> CommitResult | None:
        """Run the recorded writes and move the offsets; None where nothing was written, and then nothing moves.

        On failure all is rolled back: what no target has yet is shut out and the streams are free again (R18). If one
        target has its part already, the transaction stays pinned. The next one on its streams, or `Lake.finish`,
        finishes it.
        """
        self._require_open()
        self._end()
        if not self._writes:
            self._release()
            return None
        context = self._context
        try:
            transaction = get_transaction(context.store, self._key)
            submit(context.runtime, transaction)
            self._result = commit(context.store, self._key, tables=context.tables)
        except TidemarkError as error:
            count_failure(context.store, (), error, run=self._key, transaction=self._key, hide=context.without_secrets)
            self._undo(error)
            raise
        except BaseException:
            rollback(context.store, self._key)
            raise
        return self._result

    def rollback(self) -> None:
        """Give the streams back; nothing was written. A second call does nothing."""
        if not self._ended:
            self._end()
            self._release()

    def _window(self, name: str) -> StreamWindow:
        """The stream's window in this transaction, the same from the first read on."""
        stream = followed(self._context.store, name, self._context.tables)
        if stream.uid not in self._windows:
            ends = ends_to_read(stream, self._ends_of(stream), self._context.tables)  # as `_lock` takes it
            self._windows[stream.uid] = window_from(stream, ends, self._started)
        return self._windows[stream.uid]

    def _ends_of(self, stream: Stream) -> tuple[int, ...]:
        """The tables' versions at the start. They are looked up when a stream on them is first named, and stay."""
        context = self._context
        return ends_at(stream, context.tables, self._started, context.store.clock, self._ends)

    def _streams_in(self, parsed: ParsedStatement) -> tuple[str, ...]:
        known = {stream.name.casefold() for stream in list_streams(self._context.store)}
        target = None if parsed.target is None else parsed.target.name
        return tuple(name for name in parsed.names if name.casefold() in known and name != target)

    def _tables_in(self, parsed: ParsedStatement, streams: Sequence[str]) -> dict[str, str]:
        """Paths of the Delta tables that the statement names; what is none stays for Spark to find."""
        target = None if parsed.target is None else parsed.target.name
        found = {}
        for name in parsed.names:
            if name in streams or name == target:
                continue
            try:
                found[name] = self._context.tables(name).uri
            except AmbiguousTableName:
                raise
            except TidemarkError:
                continue
        return found

    def _pinned(self, windows: Sequence[StreamWindow]) -> PinnedStreams:
        context = self._context
        label = "_".join(window.stream_uid for window in windows)
        if label not in self._frames:
            prefix = f"tidemark_{self._key.run_id.replace('-', '')}_{len(self._frames)}"
            self._frames[label] = PinnedStreams(
                context.spark, tuple(windows), context.workspace, context.options, prefix=prefix
            )
        return self._frames[label]

    def _record(self, streams: Sequence[str], write: PlannedWrite) -> None:
        """Lock the streams, at the windows that were read if they were, check the statement and store it: before
        anything runs.
        """
        context = self._context
        require_no_view(context, write.target, write.sql or write.target)
        target = open_target(write.target, context.tables)
        with self._counted(streams, SourceError, StreamError):
            windows = self._lock_all(streams)
        if self._checks:
            with self._counted(streams, TidemarkError):
                check_write(context.spark, write, self._pinned(windows), target)
        writes = with_quarantine(write, make_quarantine(context, write.quarantine))
        extend(context.runtime, self._key, writes=writes)
        self._writes += 1

    @contextmanager
    def _counted(self, streams: Sequence[str], *kinds: type[TidemarkError]) -> Iterator[None]:
        """An error of these kinds is a failure to consume the streams."""
        try:
            yield
        except kinds as error:
            count_failure(self._context.store, streams, error, run=self._key, hide=self._context.without_secrets)
            raise

    def _lock_all(self, streams: Sequence[str]) -> list[StreamWindow]:
        context = self._context
        if not self._begun:
            begin(
                context.runtime,
                key=self._key,
                streams=(),
                writes=(),
                owner=context.who,
            )
            self._begun = True
        uids = [get_stream(context.store, name).uid for name in streams]
        return [
            self._windows[uid] if uid in self._locked else self._lock(name)
            for uid, name in zip(uids, streams, strict=True)
        ]

    def _lock(self, name: str) -> StreamWindow:
        """The window that the stream is held at, which is the one that was read, if it was. A transaction that another
        process has submitted and left is finished before (step 4).
        """
        context = self._context
        held = extend(
            context.runtime,
            self._key,
            streams=(name,),
            sources=lambda table: self._as_it_was(name, table),
            read_at=self._started,
        )
        window = next(one for one in held.windows if one.stream_name.casefold() == name.casefold())
        if self._windows.setdefault(window.stream_uid, window) != window:
            problem = f"another transaction has moved {name} since it was read; read it again in a new transaction"
            raise CommitRefused(key=str(self._key), problem=problem)
        self._locked.add(window.stream_uid)
        return window

    def _as_it_was(self, name: str, table: TableRef | str) -> DeltaLog:
        """The log of a table, up to where the transaction began for one that the stream reads."""
        log = self._context.tables(table)
        stream = get_stream(self._context.store, name)
        pairs = zip(stream.bases, self._ends_of(stream), strict=True)
        until = [max(base.version, end) for base, end in pairs if base.table == table]
        return _LogUntil(log, until[0]) if until else log

    def _end(self) -> None:
        self._ended = True
        for pinned in self._frames.values():
            pinned.close()

    def _undo(self, error: TidemarkError) -> None:
        context = self._context
        rollback(context.store, self._key)
        try:
            left = replan(context.runtime, self._key)
            held = left.windows if left.state is TransactionState.OPEN else ()
            why = "targets hold their part of it"
        except TidemarkError as problem:  # the commit's own error is the one to be seen
            held, why = get_transaction(context.store, self._key).windows, str(problem)
        if held:
            said = f"Transaction {self._key} stays open, since {why}. When this is fixed, the next transaction on"
            names = " or ".join(window.stream_name for window in held)
            error.add_note(f"{said} {names} finishes it first; so does lake.finish({held[0].stream_name!r}).")
            logger.warning("Transaction %s stays open, since %s", self._key, why)

    def _release(self) -> None:
        if self._begun:
            rollback(self._context.store, self._key)

    def _require_open(self) -> None:
        if self._ended:
            raise InvalidArgument(argument="transaction", value=str(self._key), problem="it has ended")


class _LogUntil(DeltaLog):
    """The log as of the time when `until` was the head. So a stream is locked at the window that was read (R21)."""

    def __init__(self, log: DeltaLog, until: int) -> None:
        super().__init__(log.storage)
        self._until = until

    def head(self) -> int:
        return self._until
