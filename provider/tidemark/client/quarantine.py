"""A client's quarantine table, made where its name leads to none."""

from __future__ import annotations

from tidemark.client.context import ClientContext
from tidemark.delivery.driver.quarantine_table import create_in_catalog, create_quarantine_table
from tidemark.errors import TableNotFound
from tidemark.lake.tables import location_of
from tidemark.sql.table_names import table_name

__all__ = ["make_quarantine"]


def make_quarantine(context: ClientContext, name: str | None) -> str:
    """The URI of the table, "" for no name. An unknown name becomes a table under the lake root. Without a lake root,
    or with a catalog in the name, it becomes a table of Spark's catalog. A second run finds it.
    """
    if name is None:
        return ""
    try:
        return context.tables(name).uri
    except TableNotFound:
        meant = table_name(name)
        in_catalog = meant.only_in_catalog or (context.lake_root is None and meant.path is None)
        if in_catalog:
            create_in_catalog(context.spark, name, lambda: _is_there(context, name))
        else:
            create_quarantine_table(context.spark, location_of(name, context.lake_root or "/")[0], context.options)
        return context.tables(name).uri


def _is_there(context: ClientContext, name: str) -> bool:
    try:
        context.tables(name)
    except TableNotFound:
        return False
    return True
