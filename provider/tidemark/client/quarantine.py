"""A client's quarantine table, made where its name leads to none."""

from __future__ import annotations

from tidemark.client.surroundings import Surroundings
from tidemark.delivery.driver.quarantine_table import create_in_catalog, create_quarantine_table
from tidemark.errors import TableNotFound
from tidemark.lake.tables import place_of
from tidemark.sql.table_names import table_name

__all__ = ["make_quarantine"]


def make_quarantine(around: Surroundings, name: str | None) -> str:
    """The URI of the table, "" for no name. A name that is not there becomes a table under the lake root, without one
    or with a catalog in Spark's. A second run finds it.
    """
    if name is None:
        return ""
    try:
        return around.tables(name).uri
    except TableNotFound:
        meant = table_name(name)
        in_catalog = meant.only_in_catalog or (around.lake_root is None and meant.path is None)
        if in_catalog:
            create_in_catalog(around.spark, name, lambda: _is_there(around, name))
        else:
            create_quarantine_table(around.spark, place_of(name, around.lake_root or "/")[0], around.options)
        return around.tables(name).uri


def _is_there(around: Surroundings, name: str) -> bool:
    try:
        around.tables(name)
    except TableNotFound:
        return False
    return True
