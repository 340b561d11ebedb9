"""Before a refresh: the point at which its window ends, whether its bases are unchanged, and the way to refresh."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import sqlalchemy as sa

from tidemark.errors import (
    DataFileChanged,
    IncompatibleSchemaChange,
    KeptViewOutdated,
    LogIncomplete,
    RowsRenumbered,
    SourceRecreated,
    StreamStale,
    TableNotFound,
    TargetChanged,
    TidemarkError,
    TrackingInterrupted,
    VersionNotFound,
    VersionVacuumed,
)
from tidemark.materialized.model.definitions import KeptView, RefreshMode
from tidemark.materialized.model.refreshes import RefreshState
from tidemark.materialized.model.shapes import Shape
from tidemark.materialized.planning.columns import changed_column
from tidemark.materialized.planning.cost import Choice
from tidemark.materialized.planning.graph import ancestors
from tidemark.materialized.store import refreshes, views
from tidemark.materialized.worker.ends import Planned, settled_version
from tidemark.materialized.worker.estimate import choice_for, foreign_write, kept_log
from tidemark.materialized.worker.following import follow_bases
from tidemark.materialized.worker.graph import nodes_of
from tidemark.materialized.worker.streams import newest_bases, replace_stream_of, stream_of_view
from tidemark.materialized.worker.waves import require_active
from tidemark.model.statements import PlannedWrite, RefreshHow, RefreshWrite, TransactionKey, WriteAs
from tidemark.model.streams import Stream
from tidemark.streams.planning.bounds import Bound
from tidemark.streams.worker.begin import make_way
from tidemark.streams.worker.runtime import Runtime
from tidemark.streams.worker.sources import look_at_sources, window_from
from tidemark.streams.worker.takeover import takeover

__all__ = ["LOST", "Prepared", "Preparing"]

LOST: tuple[type[TidemarkError], ...] = (
    StreamStale,
    VersionVacuumed,
    SourceRecreated,
    TrackingInterrupted,
    IncompatibleSchemaChange,
    RowsRenumbered,
    LogIncomplete,
    VersionNotFound,
    DataFileChanged,
)
"""The window since the last refresh cannot be read, but the bases can: all rows are written."""


@dataclass(frozen=True)
class Prepared:
    """A refresh that is ready to begin. `silent`: no base has changed, so its transaction starts no job."""

    planned: Planned
    bound: Bound
    write: PlannedWrite
    silent: bool = False


@dataclass(frozen=True)
class Preparing:
    """The preparation of a refresh, for the transaction `key`. `why`: a reason to start with all rows."""

    runtime: Runtime
    planned: Planned
    key: TransactionKey
    why: str | None = None

    @property
    def view(self) -> KeptView:
        """The view."""
        return self.planned.view

    def prepared(self) -> Prepared:
        """The bound and the write. The choice of a way is kept in the history.

        A stream that owes its first rows owes those at the wave's point in time from now on. A transaction of another
        run that has no lease any more is finished first. Bases that were renamed or moved are followed. A second run
        before the refresh begins looks again. Raises KeptViewSuspended, also for a column that has changed. Raises
        KeptViewOutdated if a dynamic table that the view reads was not refreshed in its wave. Raises TargetChanged if
        another table is at the kept one's path. Raises StreamLocked, RelocationRefused, and errors of bases that cannot
        be read at all.
        """
        require_active(self.view)
        schemas = self._schemas()
        if schemas is None and self._follows():
            return replace(self, planned=self._planned_again()).prepared()
        waited = self._make_way()
        self._require_kept()
        bound = Bound(ends=self._ends())
        self._require_columns(None if waited else schemas)
        if self.why is not None:
            return self._from_the_start(bound, self.why)
        try:
            return self._prepared(bound)
        except LOST as error:
            return self._from_the_start(bound, f"{type(error).__name__}: {error}")

    def _from_the_start(self, bound: Bound, why: str) -> Prepared:
        self._start_again(bound.ends, why)
        return self._prepared(bound, why)

    def _prepared(self, bound: Bound, why: str | None = None) -> Prepared:
        store, tables, view = self.runtime.store, self.runtime.tables, self.view
        if why is None and stream_of_view(store, view).initial_rows_pending:
            if view.fresh_at is not None:
                return self._from_the_start(bound, "an earlier refresh began to write all rows, and has not ended")
            self._start_again(bound.ends, "the first refresh")
        (head,) = look_at_sources(store, [view.stream], tables, bound)
        stream = stream_of_view(store, view)
        window = window_from(stream, head.ends, store.clock())
        silent = head.silent(window)
        if silent and why is None and (reason := self._why_all_the_same(stream)) is not None:
            return self._from_the_start(bound, reason)
        if silent:
            how = RefreshHow.WHOLE if view.shape.shape is Shape.PLAIN else RefreshHow.CHANGES
            return Prepared(self.planned, bound, _write(view, how), silent=True)
        version = self._settled(stream)
        asked = self.planned.refresh.asked
        earlier = store.read(lambda connection: refreshes.measured(connection, view.uid))
        choice = choice_for(view, window, asked, tables, kept_version=version, must_be_whole=why, earlier=earlier)
        self._keep(choice)
        return Prepared(self.planned, bound, _write(view, choice.how))

    def _why_all_the_same(self, stream: Stream) -> str | None:
        """A reason to write all rows although no base has changed. A view that is always refreshed in full has none."""
        view = self.view
        if view.shape.runtime_value is not None:
            return f"no base has changed, but {view.shape.runtime_value} may have"
        if self.planned.refresh.asked is RefreshMode.FULL and view.mode is not RefreshMode.FULL:
            return "REFRESH_MODE = FULL"
        return foreign_write(kept_log(view, self.runtime.tables), self._settled(stream))

    def _settled(self, stream: Stream) -> int | None:
        return self.runtime.store.read(lambda connection: settled_version(connection, self.view, stream.uid))

    def _schemas(self) -> dict[str, str] | None:
        """JSON of the columns of each base whose columns are compared, by its path; None if one is gone."""
        try:
            return {path: self._schema(path) for path in self.view.columns_read}
        except TableNotFound:
            return None

    def _schema(self, path: str) -> str:
        return self.runtime.tables(path).state().metadata.schema_json

    def _follows(self) -> bool:
        store, tables = self.runtime.store, self.runtime.tables
        bases = stream_of_view(store, self.view).bases
        return follow_bases(store, tables, [base.table.path for base in bases], of=self.view.name)

    def _planned_again(self) -> Planned:
        """The view and its refresh as the store has them now."""

        def look(connection: sa.Connection) -> Planned:
            view, refresh = self.planned.view, self.planned.refresh
            live = views.views_with_uids(connection, [view.uid])
            planned = refreshes.find_refresh(connection, view.uid, refresh.run)
            return Planned(next(iter(live), view), planned or refresh)

        return self.runtime.store.read(look)

    def _make_way(self) -> bool:
        """Whether a transaction of another run was finished."""
        runtime, stream = self.runtime, stream_of_view(self.runtime.store, self.view)
        held = runtime.store.write(lambda c: make_way(c, runtime.store, stream, self.key))
        if held is None or held.transaction.key == self.key:
            return False
        takeover(runtime, held.transaction.key, by=self.key, owner=self.planned.refresh.run)
        return True

    def _start_again(self, ends: Mapping[str, int], why: str) -> None:
        """The stream owes all rows as of the wave, or of a later one that has written them: no view goes back."""
        store, view = self.runtime.store, self.view
        stream = stream_of_view(store, view)
        read = () if stream.initial_rows_pending else stream.bases
        bases = newest_bases([base.table for base in stream.bases], self.runtime.tables, ends, read=read)
        replace_stream_of(store, view, bases, who=self.planned.refresh.run, why=why)

    def _require_kept(self) -> None:
        found = kept_log(self.view, self.runtime.tables).state().table_id
        if found != self.view.kept.table_id:
            raise TargetChanged(target=self.view.kept.name, expected=self.view.kept.table_id, found=found)

    def _ends(self) -> Mapping[str, int]:
        """The last version of each base: as planned, and for dynamic tables as they were refreshed in the same wave."""
        store, refresh = self.runtime.store, self.planned.refresh
        nodes = nodes_of(store)
        own = [node for node in nodes if node.view.uid == self.view.uid]
        ends = dict(refresh.ends)
        for node in ancestors(nodes, own):
            if node.view.uid == self.view.uid or node.view.kept.path not in own[0].bases:
                continue
            uid = node.view.uid
            done = store.read(lambda c: refreshes.find_refresh(c, uid, refresh.run))  # noqa: B023 - runs now
            if done is None or done.state not in (RefreshState.DONE, RefreshState.UNCHANGED):
                problem = f"{node.view.name}, which it reads, was not refreshed in the same wave"
                raise KeptViewOutdated(view=self.view.name, problem=problem)
            version = done.kept_version if done.state is RefreshState.DONE else node.view.kept_version
            if version is not None:
                ends[node.view.kept.path] = version
        return ends

    def _require_columns(self, schemas: Mapping[str, str] | None) -> None:
        """Suspends the view if a column that its query names is gone or has another type. `schemas`: as `_schemas`
        says; None: to be read now. Raises KeptViewSuspended, TableNotFound.
        """
        for path, before in self.view.columns_read.items():
            changed = changed_column(before, self._schema(path) if schemas is None else schemas[path])
            if changed is None:
                continue
            why, store, run = f"the base {path} has changed: {changed}", self.runtime.store, self.planned.refresh.run
            at = store.clock()
            store.write(lambda c: views.suspend_view(c, self.view, why=why, problem=why, at=at, by=run))  # noqa: B023
            require_active(store.read(lambda c: views.find_view(c, self.view.name)))

    def _keep(self, choice: Choice) -> None:
        self.runtime.store.write(
            lambda connection: refreshes.decide(
                connection,
                self.planned.refresh,
                how=choice.how,
                why=choice.why,
                incremental_bytes=choice.incremental_bytes,
                full_bytes=choice.full_bytes,
            )
        )


def _write(view: KeptView, how: RefreshHow) -> PlannedWrite:
    refresh = RefreshWrite(how, rows_by_id=view.shape.shape is Shape.ROWS, sums=view.shape.sums)
    return PlannedWrite(
        WriteAs.REFRESH, view.kept.name, source=view.stream, tables={view.kept.name: view.kept.path}, refresh=refresh
    )
