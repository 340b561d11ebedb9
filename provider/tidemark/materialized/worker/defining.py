"""Views as they are asked for. Operators, the client and statements in SQL all create views here."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

import sqlalchemy as sa

from tidemark.control.store import ControlStore
from tidemark.errors import (
    InvalidArgument,
    KeptViewExists,
    KeptViewRefused,
    NotADeltaTable,
    StatementRefused,
    TableNotFound,
)
from tidemark.lake.delta_log import DeltaLog
from tidemark.materialized.model.definitions import (
    FloatSums,
    Initialize,
    KeptKind,
    KeptView,
    RefreshMode,
    TargetLag,
)
from tidemark.materialized.model.jobs import KeptTable, Resolved, ResolveRequest
from tidemark.materialized.model.shapes import Shape
from tidemark.materialized.planning.columns import columns_read
from tidemark.materialized.planning.graph import reads_itself
from tidemark.materialized.planning.names import require_view_name, title_of
from tidemark.materialized.planning.reading import as_stored_query, as_stored_view
from tidemark.materialized.store import views
from tidemark.materialized.worker.graph import nodes_of
from tidemark.materialized.worker.streams import (
    drop_stream_of,
    insert_stream_of,
    newest_bases,
    require_free_stream_of,
)
from tidemark.materialized.worker.views import find_view, find_views
from tidemark.model.external_tables import EXTERNAL_TABLE_PROPERTY
from tidemark.model.own_tables import PARTIALS_SUFFIX
from tidemark.model.streams import TableRef
from tidemark.model.views import StoredView
from tidemark.sql.statements import StatementKind, parse_statement
from tidemark.sql.table_names import table_name
from tidemark.streams.model.sources import view_source
from tidemark.streams.planning.names import view_stream
from tidemark.streams.worker.defining import prepared
from tidemark.streams.worker.opening import Tables

__all__ = ["CreatedView", "Lakes", "ViewRequest", "create_view", "resolve_request", "stored_view"]

KEEPS = "tidemark.keptView"  # property of a kept table: the name of its view


@dataclass(frozen=True)
class ViewRequest:
    """A view as it is asked for. `path`: of its kept table. `columns`: names for those of the query; empty: its own."""

    name: str
    kind: KeptKind
    text: str
    path: str
    target_lag: TargetLag | None = None
    mode: RefreshMode = RefreshMode.AUTO
    initialize: Initialize = Initialize.ON_CREATE
    float_sums: FloatSums = FloatSums.RECOMPUTED
    cluster_by: tuple[str, ...] = ()
    comment: str | None = None
    columns: tuple[str, ...] = ()
    or_replace: bool = False
    if_not_exists: bool = False


@dataclass(frozen=True)
class Lakes:
    """The means to find the tables of a query. `resolve`: asks Spark for its shape, and creates the kept table.
    `locate`: the URI of a table below the lake root by its name; None for a name of Spark's catalog.
    `files`: the list of an external table's files by its name, or None. `turn_on`: turns row tracking on in a base;
    None: a base without it is refused.
    """

    resolve: Callable[[ResolveRequest], Resolved]
    locate: Callable[[str], str | None]
    open: Tables
    files: Callable[[str], TableRef | None] = lambda _: None
    turn_on: Callable[[TableRef], None] | None = None


@dataclass(frozen=True)
class CreatedView:
    """The view as it is now. `created`: it did not exist before, or was replaced. `replaced`: the view before it."""

    view: KeptView
    created: bool
    replaced: KeptView | None = None


def create_view(store: ControlStore, request: ViewRequest, *, by: str, lakes: Lakes, once: bool = False) -> CreatedView:
    """The view, with its kept table and the stream that pins its bases; it has no rows before its first refresh.

    With `if_not_exists` a second run changes nothing. `once`: `by` is one run, so a view that it has created stays,
    also with `or_replace`. `or_replace` ends an existing view and its history, and uses its
    kept table again. Raises KeptViewExists, KeptViewRefused, InvalidArgument, RowTrackingDisabled and
    UnsupportedTableFeature. Raises TransactionOpen during a refresh of the replaced view. Raises of the resolving job
    ViewRefused for a value of run time in a materialized view, ViewNotUnderstood, TableNotFound.
    """
    _require_fitting(request)
    existing = find_view(store, request.name)
    if existing is not None and (request.if_not_exists or (once and _created_by(store, existing, by))):
        return CreatedView(existing, created=False)
    if existing is not None and not request.or_replace:
        raise KeptViewExists(kind=title_of(existing.kind), view=existing.name)
    _require_free_path(store, request, lakes.open)
    found = _resolved(store, request, existing, lakes)
    view = _view(store, request, found, lakes.open)
    bases = newest_bases(found.bases, lakes.open, {})

    def create(connection: sa.Connection) -> CreatedView:
        before = views.lookup_view(connection, request.name)
        if before is not None and request.if_not_exists:
            return CreatedView(before, created=False)
        if before is not None and not request.or_replace:
            raise KeptViewExists(kind=title_of(before.kind), view=before.name)
        if before is not None:
            drop_stream_of(connection, store, before, who=by, action="replaced")
            views.end_view(connection, before, at=store.clock(), by=by)
        views.create_view(connection, view, by=by)
        insert_stream_of(connection, store, view, bases, who=by, why="created")
        return CreatedView(view, created=True, replaced=before)

    return store.write(create)


def _resolved(store: ControlStore, request: ViewRequest, existing: KeptView | None, lakes: Lakes) -> Resolved:
    """The shape of the query, with its kept table. A refusal leaves the table of the view `existing` as it was."""
    asked = resolve_request(store, request, lakes)
    if existing is not None:
        _require_keepable(store, request, lakes.resolve(replace(asked, kept=None)), existing, lakes)
        store.write(lambda connection: require_free_stream_of(connection, store, existing, action="replaced"))
    found = lakes.resolve(asked)
    _require_keepable(store, request, found, existing, lakes)
    return found


def resolve_request(store: ControlStore, request: ViewRequest, lakes: Lakes) -> ResolveRequest:
    """The request for the job that resolves the query. Raises StatementRefused if the text is not one query."""
    parsed = parse_statement(request.text)
    if parsed.kind is not StatementKind.SELECT:
        raise StatementRefused(problem="a view keeps the rows of a query", sql=request.text)
    known = find_views(store, parsed.names)
    _require_no_files(request, known.values(), lakes)
    kept = KeptTable(request.name, request.path, request.cluster_by, {KEEPS: request.name}, replace=request.or_replace)
    others = [name for name in parsed.names if name not in known]
    tables = {name: path for name in others if (path := lakes.locate(name)) is not None}
    lists = {name: found.path for name in others if name not in tables and (found := lakes.files(name)) is not None}
    return ResolveRequest(
        name=request.name,
        text=request.text,
        kind=request.kind,
        tables=tables,
        files=lists,
        views={name: stored_view(view) for name, view in known.items()},
        float_sums=request.float_sums,
        kept=kept,
        columns=request.columns,
    )


def stored_view(view: KeptView) -> StoredView:
    """The view for a query that reads it: the kept rows of a dynamic table, the query of a materialized view."""
    if view.kind is KeptKind.DYNAMIC_TABLE:
        return as_stored_view(view.name, view.shape, view.kept.path)
    return as_stored_query(view.name, view.shape)


def _require_fitting(request: ViewRequest) -> None:
    """Raises InvalidArgument."""
    require_view_name(request.name)
    if request.or_replace and request.if_not_exists:
        raise InvalidArgument(argument="or_replace", value=True, problem="it contradicts if_not_exists")
    if request.kind is KeptKind.DYNAMIC_TABLE and request.target_lag is None:
        problem = "a dynamic table needs a target lag, or DOWNSTREAM"
        raise InvalidArgument(argument="target_lag", value=None, problem=problem)
    if request.kind is KeptKind.MATERIALIZED_VIEW and request.target_lag is not None:
        problem = "a materialized view always answers for its newest bases"
        raise InvalidArgument(argument="target_lag", value=request.target_lag.at_most, problem=problem)


def _created_by(store: ControlStore, view: KeptView, who: str) -> bool:
    return store.read(lambda connection: views.created_by(connection, view)) == who


def _require_free_path(store: ControlStore, request: ViewRequest, tables: Tables) -> None:
    """No other table is at the kept table's path. Raises KeptViewRefused."""
    kept = store.read(views.kept_paths)
    for path in (request.path, request.path.rstrip("/") + PARTIALS_SUFFIX):
        try:
            log = tables(path)
        except (TableNotFound, NotADeltaTable):
            continue
        owner = log.state().metadata.configuration.get(KEEPS)
        if log.uri not in kept and owner is None:
            problem = f"there is a table at {log.uri} that no view keeps. Use another name, or move the table."
            raise KeptViewRefused(kind=title_of(request.kind), view=request.name, problem=problem)


def _require_keepable(
    store: ControlStore, request: ViewRequest, found: Resolved, existing: KeptView | None, lakes: Lakes
) -> None:
    """Raises KeptViewRefused for a query that cannot be kept as it is asked for, and the errors of its bases."""
    problem: str | None = None
    if not found.bases:
        problem = "it reads no table, so its rows never change. Create a table from it."
    elif request.mode is RefreshMode.INCREMENTAL and found.shape.shape is Shape.PLAIN:
        problem = f"REFRESH_MODE = INCREMENTAL is not possible. {found.shape.why} Use AUTO or FULL."
    elif existing is not None and reads_itself(nodes_of(store), existing.uid, _paths(found.bases)):
        problem = "its query reads the view itself, directly or through other views."
    if problem is not None:
        raise KeptViewRefused(kind=title_of(request.kind), view=request.name, problem=problem)
    prepared(view_source(request.name, found.shape.followed, found.bases), lakes.open, turn_on=lakes.turn_on)


def _view(store: ControlStore, request: ViewRequest, found: Resolved, tables: Tables) -> KeptView:
    if found.kept is None:
        raise AssertionError("the resolving job has created no kept table")
    uid, query = store.new_id(), found.shape.whole
    schemas = {base.path: _schema_of(tables(base)) for base in found.bases}
    read = {path: columns_read(query, schema) for path, schema in schemas.items() if schema is not None}
    return KeptView(
        uid=uid,
        name=request.name.strip(),
        kind=request.kind,
        text=request.text,
        kept=found.kept,
        shape=found.shape,
        stream=view_stream(uid),
        created_at=store.clock(),
        target_lag=request.target_lag,
        mode=request.mode,
        initialize=request.initialize,
        float_sums=request.float_sums,
        cluster_by=request.cluster_by,
        comment=request.comment or None,
        columns_read=read,
    )


def _require_no_files(request: ViewRequest, read: Iterable[KeptView], lakes: Lakes) -> None:
    """Raises KeptViewRefused for a query over a materialized view of files, which is read as its own query."""
    for view in (one for one in read if one.kind is KeptKind.MATERIALIZED_VIEW):
        paths = [table_name(base).path for base in view.shape.whole.bases]
        if any(path is not None and _schema_of(lakes.open(path)) is None for path in paths):
            problem = f"it reads {view.name}, a materialized view of files. Create that as a dynamic table."
            raise KeptViewRefused(kind=title_of(request.kind), view=request.name, problem=problem)


def _schema_of(log: DeltaLog) -> str | None:
    """JSON of a base's columns; None for the files of an external table, whose columns never change."""
    metadata = log.state().metadata
    return None if EXTERNAL_TABLE_PROPERTY in metadata.configuration else metadata.schema_json


def _paths(bases: Sequence[TableRef]) -> list[str]:
    return [base.path for base in bases]
