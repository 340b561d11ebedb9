"""Names of views that Spark's catalog has already: a query could mean either."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidemark.changes.driver.views.catalog import Catalog
from tidemark.errors import KeptViewRefused, NotADeltaTable, TableNotFound
from tidemark.lake.storage import canonical_uri
from tidemark.materialized.model.definitions import KeptKind
from tidemark.materialized.model.jobs import KeptTable
from tidemark.materialized.planning.names import title_of
from tidemark.sql.identifiers import quoted
from tidemark.sql.table_names import table_name
from tidemark.streams.driver.catalog_tables import VIEWS, catalog_location, kind_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["require_free_in_catalog"]


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


def _is_of_the_view(spark: SparkSession, name: str, kind: str, path: str) -> bool:
    if kind.upper() in VIEWS:
        entry = Catalog(spark).described(name) or {}
        return f"delta.`{path}" in str(entry.get("view_text"))
    try:
        return canonical_uri(catalog_location(spark, name, kind)) == path
    except (NotADeltaTable, TableNotFound):
        return False
