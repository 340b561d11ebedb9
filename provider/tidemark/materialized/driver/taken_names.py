"""Names of views that Spark's catalog has already: a query could mean either."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from tidemark.changes.driver.views.catalog import Catalog
from tidemark.errors import KeptViewRefused, NotADeltaTable, TableNotFound
from tidemark.lake.storage import canonical_uri
from tidemark.materialized.model.definitions import KeptKind
from tidemark.materialized.model.jobs import KeptTable
from tidemark.materialized.planning.names import title_of
from tidemark.model.own_tables import PARTIALS_SUFFIX
from tidemark.sql.identifiers import quoted
from tidemark.sql.statements import path_name
from tidemark.sql.table_names import table_name
from tidemark.streams.driver.catalog_tables import VIEWS, catalog_location, kind_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["is_over", "require_free_in_catalog"]


def require_free_in_catalog(spark: SparkSession, wanted: KeptTable, kind: KeptKind) -> None:
    """Say nothing if Spark's catalog does not know the name. It may have the kept table or our view of it under it.

    Raises KeptViewRefused for everything else.
    """
    meant = table_name(wanted.name)
    if meant.path is not None:
        return
    name = ".".join(map(quoted, meant.parts))
    found = kind_of(spark, name)
    if found is None or _is_of_the_view(spark, name, found, canonical_uri(wanted.path)):
        return
    problem = "Spark's catalog has another table or view of that name, and a query could mean either. Use another name."
    raise KeptViewRefused(kind=title_of(kind), view=wanted.name, problem=problem)


def is_over(view: Mapping[str, Any] | None, path: str) -> bool:
    """Whether the catalog's description of a view says that it reads the rows kept at the path, or partial aggregates
    beside them.
    """
    text = str((view or {}).get("view_text"))
    return any(path_name(f"{path}{suffix}") in text for suffix in ("", PARTIALS_SUFFIX))


def _is_of_the_view(spark: SparkSession, name: str, kind: str, path: str) -> bool:
    if kind.upper() in VIEWS:
        return is_over(Catalog(spark).described(name), path)
    try:
        return canonical_uri(catalog_location(spark, name, kind)) == path
    except (NotADeltaTable, TableNotFound):
        return False
