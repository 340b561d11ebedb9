"""The client: streams by name."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from tidemark.changes.driver.every_change import ROWS_PER_PAGE, plan_pages
from tidemark.changes.driver.rows import read_changes
from tidemark.client.change_streams import ChangeStreamsOfALake
from tidemark.client.context import ClientContext
from tidemark.client.descriptions import StreamDescription, describe_listed, look_and_describe
from tidemark.client.external_tables import ExternalTables
from tidemark.client.left_open import OpenTransactions
from tidemark.client.points import Point
from tidemark.client.reads import changes_between, unread_rows, version_at, windows_between
from tidemark.client.rebase import RebasedStreams
from tidemark.client.replays import replay_window
from tidemark.client.replications import ReplicationsOfALake
from tidemark.client.results import ResultsOfALake
from tidemark.client.sources import sources_of
from tidemark.client.sql import SubjectsOfALake, run_sql
from tidemark.client.transaction import LakeTransaction
from tidemark.client.vacuum import vacuum_table
from tidemark.client.views import ViewsOfALake
from tidemark.delivery.model.transactions import CommitResult
from tidemark.errors import InvalidArgument, NotYetSupported
from tidemark.model.statements import TransactionKey
from tidemark.model.streams import Stream as StoredStream
from tidemark.model.streams import StreamMode, StreamWindow
from tidemark.streams.driver.windows import read_window
from tidemark.streams.planning.arguments import names_of
from tidemark.streams.planning.stream_sql.listing import listed
from tidemark.streams.planning.vacuum_results import VacuumResult
from tidemark.streams.worker import streams
from tidemark.streams.worker.backlog import WaitingVersion, stream_backlog, stream_table_timestamp
from tidemark.streams.worker.defining import (
    IfExists,
    StreamRequest,
    advance_to,
    clone_stream,
    create_stream,
    find_stream,
)
from tidemark.streams.worker.has_data import has_data, has_rows
from tidemark.streams.worker.transfer import ImportedStream, export_streams, import_streams

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pyspark.sql import DataFrame

    from tidemark.streams.planning.stream_sql.constants import Constant

__all__ = ["Lake"]

INFORMATION = {"default": StreamMode.STANDARD, "append_only": StreamMode.APPEND_ONLY}


class Lake(
    RebasedStreams,
    OpenTransactions,
    ChangeStreamsOfALake,
    ReplicationsOfALake,
    ResultsOfALake,
    SubjectsOfALake,
    ViewsOfALake,
):
    """The result of `connect`. Stream names are found in any case (R12)."""

    def __init__(self, context: ClientContext) -> None:
        self._context = context
        self._variables: dict[str, Constant] = {}  # what SET has set
        self.external_tables = ExternalTables(context)

    def create_stream(
        self,
        name: str,
        on: str,
        *,
        mode: str = "standard",
        at: Point | None = None,
        before: Point | None = None,
        show_initial_rows: bool = False,
        or_replace: bool = False,
        if_not_exists: bool = False,
        comment: str | None = None,
        enable_row_tracking: bool = False,
        beyond_snowflake: bool = False,
        keys: str | Sequence[str] = (),
    ) -> StreamDescription:
        """A stream on the Delta table, view or external table `on`, at the current version or at the given point (R1,
        R8).

        `mode`: standard, append_only, or every_change: what each commit did, with METADATA$COMMIT_VERSION and
        METADATA$COMMIT_TIMESTAMP; insert_only for an external table (R4, R5). `show_initial_rows`: the rows of the
        start point come first (R10). `enable_row_tracking` turns it on where it is off, by up to three commits, before
        the offset is taken (R3). `beyond_snowflake`: the view may group, and join with outer, semi and anti joins
        (R70). `keys`: columns that tell a table's rows apart in place of row ids, for full reloads and without row
        tracking; standard only. With `if_not_exists` a second run changes nothing. Raises StreamExists,
        InvalidArgument, TableNotFound, NotADeltaTable, RowTrackingDisabled, UnsupportedTableFeature, StreamOnStream,
        TrackingInterrupted (R8g), VersionNotFound, StreamNotFound, TransactionOpen, ViewRefused (R70), ViewTextMissing,
        ViewNotUnderstood, ExternalTableNotFound.
        """
        request = StreamRequest(
            name=name,
            on=on,
            mode=_mode(mode),
            at=at,
            before=before,
            keys=names_of("keys", keys),
            initial_rows=show_initial_rows,
            if_exists=IfExists.of(or_replace=or_replace, if_not_exists=if_not_exists),
            comment=comment,
            beyond_snowflake=beyond_snowflake,
        )
        sources = sources_of(self._context, enable_row_tracking=enable_row_tracking)
        created = create_stream(self._context.store, request, who=self._context.who, sources=sources)
        return self._describe(created.stream)

    def stream(self, name: str) -> DataFrame:
        """The stream's unread rows up to now; reading never advances it (R16).

        Columns: those of the source in its current schema, METADATA$ACTION (INSERT or DELETE), METADATA$ISUPDATE
        (boolean), METADATA$ROW_ID (string) (R27 to R31). A stream of every change adds METADATA$COMMIT_VERSION and
        METADATA$COMMIT_TIMESTAMP. Raises StreamNotFound, SourceRecreated, StreamStale, TrackingInterrupted,
        VersionVacuumed, IncompatibleSchemaChange, RowsRenumbered, KeyColumnChanged.
        """
        return unread_rows(self._context, name)

    def transaction(self) -> LakeTransaction:
        """A transaction that starts now: its end of every stream's window is the source's version at this moment."""
        context = self._context
        return LakeTransaction(context, TransactionKey("client", context.store.new_id(), "transaction"))

    def replay(
        self,
        name: str,
        run: str,
        target: str,
        *,
        write_as: str = "append",
        keys: str | Sequence[str] = (),
        quarantine: str | None = None,
    ) -> CommitResult:
        """Deliver what `run` took from the stream again, into another table, once; the stream stays where it is.

        `run`: a run id, or the key of a transaction in words. `write_as`: append or merge, by `keys`. `quarantine`: the
        table for rows that break a constraint of the target. Each call is a replay of its own. Raises
        TransactionNotFound, InvalidArgument, PastWindowLost, VersionVacuumed, QuarantineDoesNotFit.
        """
        return replay_window(self._context, name, run, target, write_as=write_as, keys=keys, quarantine=quarantine)

    def has_data(self, name: str, *, exact: bool = False) -> bool:
        """Whether the stream may have unread rows, from the log alone: never a false negative (R120); a no renews the
        anchor (R86). `exact`: what the log calls changed is read, so changes that cancel each other are a no, too.
        """
        context = self._context
        if not exact:
            return has_data(context.store, name, tables=context.tables)

        def holds_rows(window: StreamWindow) -> bool:
            return not read_window(context.spark, window, context.workspace, context.options).isEmpty()

        return has_rows(context.store, name, holds_rows=holds_rows, tables=context.tables)

    def show_streams(
        self,
        *,
        like: str | None = None,
        database: str | None = None,
        schema: str | None = None,
        starts_with: str | None = None,
        limit: int | None = None,
        from_name: str | None = None,
    ) -> tuple[StreamDescription, ...]:
        """Every stream, by database, schema and name (R130, R131), or those that pass the filters.

        `like` knows % and _ and no case, `starts_with` knows case. At most `limit`, those behind `from_name`.
        """
        choose = partial(
            listed,
            like=like,
            database=database,
            schema=schema,
            starts_with=starts_with,
            limit=limit,
            from_name=from_name,
        )
        return describe_listed(self._context, choose)

    def describe_stream(self, name: str) -> StreamDescription:
        """One stream as in `show_streams`. Raises StreamNotFound."""
        return self._describe(streams.get_stream(self._context.store, name))

    def alter_stream(self, name: str, *, comment: str | None) -> StreamDescription:
        """Give the stream another comment, None for none: all that can be changed of it (R4). Raises StreamNotFound."""
        return self._describe(streams.comment_on_stream(self._context.store, name, comment))

    def stream_backlog(self, name: str) -> tuple[WaitingVersion, ...]:
        """Each version between the offset and now with its estimated change records, from the log alone (R125).

        Raises what `stream` raises.
        """
        return stream_backlog(self._context.store, name, tables=self._context.tables)

    def stream_table_timestamp(self, name: str) -> int:
        """When the version at the offset was committed, in nanoseconds since 1970 (R124).

        Raises StreamNotFound, InvalidArgument for a stream on a view, LogIncomplete.
        """
        return stream_table_timestamp(self._context.store, name, tables=self._context.tables)

    def drop_stream(self, name: str, *, if_exists: bool = False) -> None:
        """End the stream; its place is gone for good (R92). Row tracking stays on (R3). Raises TransactionOpen."""
        if if_exists and find_stream(self._context.store, name) is None:
            return
        streams.drop_stream(self._context.store, name, self._context.who)

    def export_streams(self, names: Sequence[str] | None = None) -> dict[str, Any]:
        """A document of these streams, all by default, with their committed offsets: for `import_streams` and JSON.

        Raises StreamNotFound.
        """
        return export_streams(self._context.store, names)

    def import_streams(self, document: str | Mapping[str, Any], **how: bool) -> tuple[ImportedStream, ...]:
        """Make the streams of an exported document, all or none; with `if_not_exists` a second run changes nothing.

        `how`: or_replace, if_not_exists, dry_run, check_sources (true by default) and new_identity, as options of
        `airflow tidemark streams import`. Raises DocumentUnreadable, ImportRefused, StreamExists, TransactionOpen,
        SourceRecreated, TrackingInterrupted, StreamStale.
        """
        context = self._context
        return import_streams(context.store, document, who=context.who, tables=context.tables, **how)

    def advance_stream(self, name: str, to: Point | None = None, *, why: str = "advanced by hand") -> StreamDescription:
        """Skip unread changes up to now or `to`, never back; logged with who and why. Raises InvalidArgument,
        TransactionOpen.
        """
        context = self._context
        _, moved = advance_to(context.store, name, to, who=context.who, why=why, tables=context.tables)
        return self._describe(moved)

    def changes(
        self,
        table: str,
        *,
        information: str = "default",
        at: Point | None = None,
        before: Point | None = None,
        end: Point | None = None,
    ) -> DataFrame:
        """The rows that a stream with that window would show, without an offset (R110–R114).

        `information`: default or append_only. `end`, inclusive, is now where left out. Columns as in `stream`.
        """
        if information not in INFORMATION:
            raise InvalidArgument(argument="information", value=information, problem=f"one of {list(INFORMATION)}")
        return changes_between(self._context, table, INFORMATION[information], at=at, before=before, end=end)

    def every_change(
        self,
        table: str,
        *,
        at: Point | None = None,
        before: Point | None = None,
        end: Point | None = None,
        rows_per_page: int = ROWS_PER_PAGE,
    ) -> Iterator[DataFrame]:
        """Each change of each commit, not only the net: pages of whole commits in their order.

        A page reads `rows_per_page` rows at most, or one commit. Columns as in `stream`, then METADATA$COMMIT_VERSION
        (bigint) and METADATA$COMMIT_TIMESTAMP (timestamp). `at`, `before`, `end` as in `changes`.
        """
        windows, source = windows_between(self._context, table, at, before, end)
        if source.view is not None:
            raise NotYetSupported(feature=f"every change of a view ({table})", instead="Ask for its tables' changes.")
        (window,) = windows
        log = self._context.tables(window.table)
        for page in plan_pages(log, window.start, window.end, rows_per_page=rows_per_page):
            yield read_changes(self._context.spark, log, page, self._context.workspace)

    def clone_stream(
        self,
        name: str,
        clone: str,
        *,
        comment: str | None = None,
        at: Point | None = None,
        before: Point | None = None,
        or_replace: bool = False,
    ) -> StreamDescription:
        """Another stream with the definition and the place of `name`, from now on independent of it (R11).

        With a point its offset is that point instead. Raises StreamNotFound, StreamExists, and what `create_stream`
        raises for a point.
        """
        context = self._context
        made = clone_stream(
            context.store,
            name,
            clone,
            who=context.who,
            tables=context.tables,
            at=at,
            before=before,
            or_replace=or_replace,
            comment=comment,
        )
        return self._describe(made)

    def version_of(self, table: str, *, at: Point | None = None, before: Point | None = None) -> int:
        """The version of the Delta table at a point, now if none is given. Raises TableNotFound, VersionNotFound."""
        return version_at(self._context, table, at=at, before=before)

    def sql(self, text: str) -> DataFrame:
        """One statement in the SQL of the source system, or Spark's, with streams known by their names.

        It understands CREATE, ALTER, DROP, SHOW and DESCRIBE STREAM, CHANGES, AT | BEFORE and the system functions of
        streams. It understands COPY INTO, and the statements of stages, file formats, pipes, clustering, materialized
        views and dynamic tables. A query of a stream reads it (R16). A write that reads one is a transaction of its own
        and advances it (R13, R21). Everything else is passed to Spark.

        CREATE STREAM turns row tracking on where it is off (R3), and so do views in their bases. Answers have the
        columns of the source system; a statement that has none, a status. Raises SqlCompilationError with the place
        in the text, StatementRefused, and what the client's methods raise.
        """
        return run_sql(self, self._context, text, self._variables)

    def vacuum(
        self, table: str, *, dry_run: bool = False, max_extension_days: int | None = None, stretch: bool = True
    ) -> VacuumResult:
        """Delta's VACUUM, which leaves what a stream needs (R88). Arguments, errors: those of VacuumTableOperator."""
        return vacuum_table(self._context, table, max_extension_days, dry_run=dry_run, stretch=stretch)

    def close(self) -> None:
        """Remove the working files of this client. DataFrames of its streams cannot be read any more."""
        self._context.workspace.close()
        self._context.store.close()

    def _describe(self, stored: StoredStream) -> StreamDescription:
        return look_and_describe(self._context, stored)


def _mode(mode: str) -> StreamMode:
    try:
        return StreamMode(str(mode).lower())
    except ValueError as error:
        problem = f"one of {', '.join(StreamMode)}"
        raise InvalidArgument(argument="mode", value=mode, problem=problem) from error
