"""The RESOLVE_QUERY job: the shape of a kept query, its base tables, and its table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from tidemark.jobs.context import JobContext
from tidemark.jobs.schemas import struct_type
from tidemark.lake.delta_log import DeltaLog
from tidemark.lake.external_tables import definition
from tidemark.materialized.driver.resolving import resolved_shape
from tidemark.materialized.driver.tables import create_kept
from tidemark.materialized.driver.taken_names import require_free_in_catalog
from tidemark.materialized.model.jobs import Resolved, ResolveRequest
from tidemark.model.external_tables import EXTERNAL_TABLE_PROPERTY
from tidemark.model.streams import Addressing, TableRef
from tidemark.sql.statements import path_name
from tidemark.sql.table_names import table_name

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["resolve_query", "resolve_query_in"]


def resolve_query(job: JobContext, request: ResolveRequest) -> Resolved:
    """A second run finds the table and says the same. Raises what `resolved_shape` and `create_kept` raise."""
    job.stop_if_due()
    return resolve_query_in(job.session, request, job.options)


def resolve_query_in(
    session: SparkSession, request: ResolveRequest, options: Mapping[str, str] | None = None
) -> Resolved:
    """The same in a session of the caller. Raises KeptViewRefused for a name that the catalog has, too."""
    if request.kept is not None:
        require_free_in_catalog(session, request.kept, request.kind)
    shape = resolved_shape(session, request, options)
    names = {path_name(path): name for name, path in request.tables.items()}
    bases = tuple(_base(session, base, names.get(base), options) for base in shape.followed.bases)
    kept = None if request.kept is None else create_kept(session, shape, request.kept, options)
    return Resolved(shape, bases, tuple(struct_type(shape.whole.schema_json).names), kept)


def _base(session: SparkSession, base: str, name: str | None, options: Mapping[str, str] | None) -> TableRef:
    path = table_name(base).path
    location = path or str(session.sql(f"DESCRIBE DETAIL {base}").collect()[0]["location"])
    log = DeltaLog.open(location, options)
    if EXTERNAL_TABLE_PROPERTY in log.state().metadata.configuration:
        return TableRef(definition(log).name, log.uri, log.state().table_id, Addressing.PATH)
    addressing = Addressing.CATALOG if path is None else Addressing.PATH if name is None else Addressing.LAKE
    return TableRef(name or path or base, log.uri, log.state().table_id, addressing)
