"""The rows of change streams in the catalog views: only named objects, so no table of FOR ALL."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from tidemark.change_streams.model.change_streams import ChangeStream, WatchedTable
from tidemark.change_streams.planning.options import OPTIONS, shown_options
from tidemark.streams.planning.stream_sql.listing import name_parts

__all__ = [
    "CatalogColumn",
    "CatalogOption",
    "CatalogStream",
    "CatalogTable",
    "catalog_columns",
    "catalog_options",
    "catalog_streams",
    "catalog_tables",
]


@dataclass(frozen=True)
class CatalogStream:
    """A row of CHANGE_STREAMS. `all`: FOR ALL."""

    change_stream_catalog: str
    change_stream_schema: str
    change_stream_name: str
    all: bool


@dataclass(frozen=True)
class CatalogTable:
    """A row of CHANGE_STREAM_TABLES: a table that FOR names. `all_columns`: as a whole."""

    change_stream_catalog: str
    change_stream_schema: str
    change_stream_name: str
    table_catalog: str
    table_schema: str
    table_name: str
    all_columns: bool


@dataclass(frozen=True)
class CatalogColumn:
    """A row of CHANGE_STREAM_COLUMNS: a column that FOR names."""

    change_stream_catalog: str
    change_stream_schema: str
    change_stream_name: str
    table_catalog: str
    table_schema: str
    table_name: str
    column_name: str


@dataclass(frozen=True)
class CatalogOption:
    """A row of CHANGE_STREAM_OPTIONS: an option that was set. `option_type`: STRING or BOOL."""

    change_stream_catalog: str
    change_stream_schema: str
    change_stream_name: str
    option_name: str
    option_type: str
    option_value: str


def catalog_streams(streams: Iterable[ChangeStream]) -> tuple[CatalogStream, ...]:
    """CHANGE_STREAMS, by name."""
    return tuple(CatalogStream(*_stream(stream), stream.everything) for stream in _by_name(streams))


def catalog_tables(streams: Iterable[ChangeStream]) -> tuple[CatalogTable, ...]:
    """CHANGE_STREAM_TABLES, by stream, then as they were named."""
    return tuple(
        CatalogTable(*_stream(stream), *_table(watched), watched.columns is None)
        for stream in _by_name(streams)
        for watched in _named(stream)
    )


def catalog_columns(streams: Iterable[ChangeStream]) -> tuple[CatalogColumn, ...]:
    """CHANGE_STREAM_COLUMNS, by stream and table."""
    return tuple(
        CatalogColumn(*_stream(stream), *_table(watched), column)
        for stream in _by_name(streams)
        for watched in _named(stream)
        for column in watched.columns or ()
    )


def catalog_options(streams: Iterable[ChangeStream]) -> tuple[CatalogOption, ...]:
    """CHANGE_STREAM_OPTIONS, by stream."""
    return tuple(
        CatalogOption(*_stream(stream), name, OPTIONS[name], value)
        for stream in _by_name(streams)
        for name, value in shown_options(stream.options).items()
    )


def _by_name(streams: Iterable[ChangeStream]) -> list[ChangeStream]:
    return sorted(streams, key=lambda stream: stream.name.casefold())


def _named(stream: ChangeStream) -> tuple[WatchedTable, ...]:
    return () if stream.everything else stream.tables


def _stream(stream: ChangeStream) -> tuple[str, str, str]:
    """(catalog, schema, name): change streams are in the default schema, which has no name."""
    return "", "", stream.name


def _table(watched: WatchedTable) -> tuple[str, str, str]:
    name = watched.table.name
    catalog, schema, last = (None, None, name) if "/" in name else name_parts(name)
    return catalog or "", schema or "", last
