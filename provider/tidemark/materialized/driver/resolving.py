"""The query of a kept view from its text: resolved like a stored view's, and the shape in which it is kept."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from pyspark.errors import AnalysisException
from pyspark.sql import functions as F
from pyspark.sql.types import StructField, StructType

from tidemark.changes.driver.views.catalog import Catalog
from tidemark.changes.driver.views.plain import over_frames
from tidemark.changes.driver.views.same_meaning import require_same_meaning
from tidemark.changes.planning.views.expand import expand
from tidemark.changes.planning.views.settings import settings_of
from tidemark.changes.planning.views.text import parse_view
from tidemark.errors import InvalidArgument, ViewNotUnderstood, ViewRefused
from tidemark.jobs.schemas import struct_type
from tidemark.jobs.settings import under
from tidemark.materialized.driver.file_columns import columns_of_files
from tidemark.materialized.driver.query_text import Names, Pinned, as_spark_knows, renamed
from tidemark.materialized.model.definitions import FloatSums, KeptKind
from tidemark.materialized.model.jobs import ResolveRequest
from tidemark.materialized.model.shapes import KEPT, KEPT_ROW_ID, KeptShape, Shape
from tidemark.materialized.planning.columns import has_star
from tidemark.materialized.planning.runtime_values import refused_values, runtime_value, word_of
from tidemark.materialized.planning.shape import plain_shape, rows_shape, shape_of
from tidemark.model.views import BASE, StoredView, ViewColumn, ViewQuery
from tidemark.sql.identifiers import quoted
from tidemark.sql.statements import path_name
from tidemark.streams.driver.partials import kept_columns, needs_net_rows, signed_sums
from tidemark.streams.model.partial_columns import SIGN

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["kept_schema", "resolved_shape"]

_ALWAYS_STORED = ("spark.sql.ansi.enabled", "spark.sql.session.timeZone")
_OURS = re.compile(r"tidemark_|_row_id$|metadata\$", re.IGNORECASE)


def resolved_shape(spark: SparkSession, request: ResolveRequest, options: Mapping[str, str] | None = None) -> KeptShape:
    """The shape of the request's query, which reads at least one table; nothing is written.

    A query whose changes cannot be computed is PLAIN, and says why. Raises ViewRefused for run-time values in a
    materialized view, ViewNotUnderstood, TableNotFound, InvalidArgument for columns that no table can have.
    """
    with columns_of_files(spark, request.files, options) as files:
        found = _without_views(_shape(spark, request, files), request, files)
    if not found.followed.bases:
        raise InvalidArgument(argument="text", value=request.text, problem="it reads no table, so it never changes")
    return found


def _without_views(shape: KeptShape, request: ResolveRequest, files: Mapping[str, str]) -> KeptShape:
    """The shape over lists of files in place of temporary views. The rows of files have no ids: net changes of their
    queries are unknown.
    """
    meant = {files[name]: path_name(path) for name, path in request.files.items()}
    read = [name for name, view in files.items() if view in shape.followed.bases]
    if not read:
        return shape

    def over_lists(query: ViewQuery) -> ViewQuery:
        return replace(query, bases=tuple(meant.get(base, base) for base in query.bases))

    if shape.shape is Shape.PLAIN or (shape.sums is not None and not needs_net_rows(shape.sums)):
        query = None if shape.query is None else over_lists(shape.query)
        return replace(shape, followed=over_lists(shape.followed), query=query)
    return plain_shape(over_lists(shape.whole), f"The rows of the files of {read[0]} have no ids, and it needs them.")


def _shape(spark: SparkSession, request: ResolveRequest, files: Mapping[str, str]) -> KeptShape:
    text = parse_view(request.name, request.text)
    value = runtime_value(text)
    if value is not None and request.kind is KeptKind.MATERIALIZED_VIEW:
        raise refused_values(text, value)
    catalog = Catalog(spark)
    namespace = (spark.catalog.currentCatalog(), spark.catalog.currentDatabase())
    names = Names(request, catalog, namespace, files)
    known = as_spark_knows(request, files)
    view, schema = _as_view(spark, request, known, namespace)
    if value is not None:
        why = str(refused_values(text, value))
        return plain_shape(_pinned(names, view, schema), why, runtime_value=word_of(text, value))
    try:
        query = expand(
            view, schema.json(), names.resolve, beyond=True, is_builtin=catalog.builtin.__contains__, unnamed=True
        )
        if query.views:
            _require_no_values(_pinned(names, view, schema), request)
        query = replace(query, views=_of_catalogs(query.views or {}, request))
        require_same_meaning(spark, query, _under_list(known, request) if request.columns else known)
    except (ViewRefused, ViewNotUnderstood) as reason:
        return _plain(_pinned(names, view, schema), request, reason)
    return _decided(spark, query, request)


def _plain(query: ViewQuery, request: ResolveRequest, reason: ViewRefused | ViewNotUnderstood) -> KeptShape:
    """The shape of a query whose changes cannot be computed, for that reason. Raises ViewRefused for a materialized
    view with a run-time value in one of its views.
    """
    try:
        text = parse_view(request.name, query.text)
        value = runtime_value(text)
    except ViewNotUnderstood:  # which is the reason then
        return plain_shape(query, str(reason))
    if value is None:
        return plain_shape(query, str(reason))
    if request.kind is KeptKind.MATERIALIZED_VIEW:
        raise refused_values(text, value)
    return plain_shape(query, str(reason), runtime_value=word_of(text, value))


def _require_no_values(query: ViewQuery, request: ResolveRequest) -> None:
    """Raises ViewRefused for a run-time value in a view of the query, whose text is `query` with those of its views."""
    text = parse_view(request.name, query.text)
    value = runtime_value(text)
    if value is not None:
        raise refused_values(text, value)


def kept_schema(spark: SparkSession, shape: KeptShape) -> StructType:
    """The columns of the kept table."""
    if shape.shape is Shape.SUMS:
        assert shape.sums is not None
        rows = spark.createDataFrame([], struct_type(shape.followed.schema_json)).withColumn(SIGN, F.lit(1))
        return _nullable(kept_columns(signed_sums(spark, rows, shape.sums)).schema)
    found = _nullable(struct_type(shape.followed.schema_json))
    return found.add(KEPT_ROW_ID, "string") if shape.shape is Shape.ROWS else found


def _as_view(
    spark: SparkSession, request: ResolveRequest, known: str, namespace: tuple[str, ...]
) -> tuple[StoredView, StructType]:
    """The request as if a catalog had it, under the session's settings, and its schema."""
    try:
        given = spark.sql(known).schema
    except AnalysisException as error:
        raise ViewNotUnderstood(view=request.name, problem=f"Spark says: {str(error).splitlines()[0]}") from error
    schema = _under_names(given, request.columns)
    folded = [name.lower() for name in schema.names]
    twice = sorted({name for name in folded if folded.count(name) > 1})
    if twice:
        raise InvalidArgument(argument="columns", value=twice, problem="a table cannot have two columns of one name")
    ours = [name for name in schema.names if _OURS.match(name)]
    if ours:
        raise InvalidArgument(argument="columns", value=ours, problem="these names are reserved; give them aliases")
    void = [field.name for field in schema.fields if "void" in field.dataType.simpleString()]
    if void:
        raise InvalidArgument(argument="columns", value=void, problem="NULL has no type that a table can have; cast it")
    return (
        StoredView(
            name=request.name,
            text=request.text,
            namespace=namespace,
            columns=tuple(ViewColumn(*pair) for pair in zip(schema.names, given.names, strict=True)),
            settings=_settings(spark),
        ),
        schema,
    )


def _under_names(schema: StructType, names: tuple[str, ...]) -> StructType:
    """The schema with other names. Raises InvalidArgument for another number of them."""
    if not names:
        return schema
    if len(names) != len(schema.fields):
        problem = f"the query has {len(schema.fields)} columns, and the list names {len(names)}"
        raise InvalidArgument(argument="columns", value=list(names), problem=problem)
    pairs = zip(schema.fields, names, strict=True)
    return StructType([StructField(name, field.dataType, field.nullable) for field, name in pairs])


def _settings(spark: SparkSession) -> dict[str, str]:
    """The settings that a catalog would store with a view that the session creates."""
    always = {name: str(spark.conf.get(name)) for name in _ALWAYS_STORED}
    known = {**spark.conf.getAll, **always}
    return {name: value for name, value in settings_of(known).items() if value is not None}


def _under_list(text: str, request: ResolveRequest) -> str:
    """The query under the names that the request lists."""
    listed = ", ".join(map(quoted, request.columns))
    return f"SELECT * FROM (\n{text}\n) AS tidemark_view" + (f" ({listed})" if listed else "")


def _under_names_of(view: StoredView, text: str, request: ResolveRequest) -> str:
    """The query under the names of the view. A star is fixed at the creation, so its columns are found by name then,
    unless two have one name.
    """
    sources = [column.source.casefold() for column in view.columns]
    if request.columns and len(set(sources)) == len(sources) and _has_star(view):
        return renamed(view, text)
    return _under_list(text, request)


def _has_star(view: StoredView) -> bool:
    try:
        tree = parse_view(view.name, view.text).tree
    except ViewNotUnderstood:  # Spark understands more; its columns are found by their places then
        return False
    return has_star(tree)


def _pinned(names: Names, view: StoredView, schema: StructType) -> ViewQuery:
    """The query as it was given, over numbered base tables."""
    work = Pinned(names.resolve)
    text = _under_names_of(view, work.text(view), names.request)
    said = "\n".join([text, *work.bases, *work.views.values()])
    return ViewQuery(
        name=view.name,
        text=text,
        schema_json=schema.json(),
        bases=tuple(work.bases),
        settings=settings_of(view.settings),
        digest=hashlib.sha256(said.encode()).hexdigest(),
        views=_of_catalogs(work.views, names.request),
    )


def _of_catalogs(views: Mapping[str, str], request: ResolveRequest) -> dict[str, str]:
    """The views without kept queries, which no catalog has."""
    kept = {view.name for view in request.views.values()}
    return {name: digest for name, digest in views.items() if name not in kept}


def _decided(spark: SparkSession, query: ViewQuery, request: ResolveRequest) -> KeptShape:
    """The shape of a query whose changes can be computed. Sums whose answer has not the query's schema are rows."""

    def analyse(text: str) -> str:
        named = re.sub(rf"{BASE}(\d+)", lambda found: query.bases[int(found[1])], text)
        with under(spark, query.settings):
            return str(spark.sql(named).schema.json())

    try:
        found = shape_of(
            query,
            analyse=analyse,
            sums=request.kind is KeptKind.MATERIALIZED_VIEW,
            drifting=request.float_sums is FloatSums.INCREMENTAL,
        )
        if found.shape is not Shape.SUMS:
            return found
        empty = spark.createDataFrame([], kept_schema(spark, found))
        schema = over_frames(spark, found.read, {KEPT: empty}, query.settings).schema
    except AnalysisException as error:
        return rows_shape(query, f"Spark does not read its sums: {str(error).splitlines()[0]}")
    if _kinds(schema) != _kinds(struct_type(query.schema_json)):
        return rows_shape(query, "its sums have other types than the query")
    return replace(found, followed=replace(found.followed, views=query.views))


def _kinds(schema: StructType) -> list[tuple[str, str]]:
    return [(field.name, field.dataType.simpleString()) for field in schema.fields]


def _nullable(schema: StructType) -> StructType:
    found = StructType()
    for field in schema.fields:
        found = found.add(field.name, field.dataType, True)
    return found
