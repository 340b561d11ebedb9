"""Tables by the name that a user gives: a path, or schema.table below the lake root."""

from __future__ import annotations

from collections.abc import Mapping

from tidemark.errors import InvalidArgument, TableNotFound
from tidemark.lake.delta_log import DeltaLog
from tidemark.lake.near_names import hint_for
from tidemark.lake.segments import LOG_DIRECTORY
from tidemark.lake.storage import Storage, canonical_uri
from tidemark.model.streams import Addressing, TableRef
from tidemark.sql.table_names import table_name

__all__ = ["location_of", "resolve", "table_ref"]

ONLY_SPARK_KNOWS = (
    "only Spark's catalog knows its path, and is not asked here. Give the path of the table, or schema.table if it is"
    " below the lake root"
)
WITH_ITS_CATALOG = "For a table of Spark's catalog, give its catalog, too: spark_catalog.schema.table."


def resolve(
    name: str, lake_root: str, options: Mapping[str, str] | None = None, *, origin: str = ""
) -> tuple[str, Addressing]:
    """The canonical URI of a table by its name, without a catalog, and the form of the name.

    A path, a URI or delta.`path` is itself; `schema.table` is <lake root>/schema/table. `origin`: the setting that has
    the lake root. Raises TableNotFound, with similar names, if the lake root has no such table, and InvalidArgument for
    a name with a catalog.
    """
    meant = table_name(name)
    if meant.only_in_catalog:
        raise InvalidArgument(argument="table", value=meant.text, problem=ONLY_SPARK_KNOWS)
    uri, addressing = location_of(name, lake_root)
    if addressing is Addressing.LAKE and not Storage(uri, options).exists(LOG_DIRECTORY):
        root = canonical_uri(lake_root)
        hint = hint_for(name, meant.parts, root, options, origin=origin)
        raise TableNotFound(path=uri, hint=f"{hint} {WITH_ITS_CATALOG}")
    return uri, addressing


def location_of(name: str, lake_root: str) -> tuple[str, Addressing]:
    """The path of a table of that name, whether or not it exists. Raises InvalidArgument for a name with a catalog."""
    meant = table_name(name)
    if meant.only_in_catalog:
        raise InvalidArgument(argument="table", value=meant.text, problem=ONLY_SPARK_KNOWS)
    if meant.path is not None:
        return canonical_uri(meant.path), Addressing.PATH
    return canonical_uri("/".join((canonical_uri(lake_root), *meant.parts))), Addressing.LAKE


def table_ref(name: str, lake_root: str, options: Mapping[str, str] | None = None, *, origin: str = "") -> TableRef:
    """The table with its id at the head. Raises TableNotFound, NotADeltaTable, CorruptLog."""
    uri, addressing = resolve(name, lake_root, options, origin=origin)
    log = DeltaLog.open(uri, options)
    return TableRef(name=name, path=log.uri, table_id=log.state().table_id, addressing=addressing)
