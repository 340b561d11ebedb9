"""The source of a stream or of CHANGES: one table, or a view with its base tables."""

from __future__ import annotations

from dataclasses import dataclass

from tidemark.model.streams import Addressing, Stream, TableRef
from tidemark.model.views import ViewQuery

__all__ = ["Source", "source_of", "table_source", "view_source"]


@dataclass(frozen=True)
class Source:
    """The source under its name. A view's `ref` has no path, and its text's digest for an id. `tables`: those that are
    read. `keys`: the columns that identify a row in place of its row id.
    """

    ref: TableRef
    tables: tuple[TableRef, ...]
    view: ViewQuery | None = None
    keys: tuple[str, ...] = ()


def table_source(table: TableRef) -> Source:
    """One table, whose rows have row ids."""
    return Source(table, (table,))


def view_source(name: str, view: ViewQuery, tables: tuple[TableRef, ...]) -> Source:
    """A view of Spark's catalog; `tables` are its base tables, in its order."""
    ref = TableRef(name=name, path="", table_id=view.digest, addressing=Addressing.CATALOG)
    return Source(ref, tables, view)


def source_of(stream: Stream) -> Source:
    """The source of a stream that exists."""
    return Source(stream.source, tuple(base.table for base in stream.bases), stream.view, stream.keys)
