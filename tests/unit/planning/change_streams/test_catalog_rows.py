"""What the catalog views have of each change stream."""

from __future__ import annotations

from datetime import UTC, datetime

from tidemark.change_streams.model.change_streams import ChangeStream, WatchedTable
from tidemark.change_streams.planning.catalog import catalog_columns, catalog_options, catalog_streams, catalog_tables
from tidemark.change_streams.planning.options import parse_options
from tidemark.model.streams import TableRef

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def watched(name: str, *columns: str, whole: bool = False) -> WatchedTable:
    return WatchedTable(TableRef(name, f"file:///lake/{name}", f"id-{name}"), ("id",), None if whole else columns, 0)


def stream(name: str, *tables: WatchedTable, everything: bool = False, **options: object) -> ChangeStream:
    return ChangeStream(name, name, everything, tables, parse_options(name, options), NOW, "file:///log", NOW, 0)


STREAMS = [
    stream("some", watched("main.shop.orders", "amount", "status"), watched("loose", whole=True)),
    stream("Everything", watched("shop.orders", whole=True), everything=True, retention_period="7d"),
    stream("paths", watched("file:///lake/my.tables/orders"), allow_txn_exclusion=False),
]


def test_streams_stand_by_name_and_say_whether_they_watch_all() -> None:
    assert [(row.change_stream_name, row.all) for row in catalog_streams(STREAMS)] == [
        ("Everything", True), ("paths", False), ("some", False),
    ]  # fmt: skip


def test_tables_are_those_that_were_named_in_their_parts_and_a_path_is_one_name() -> None:
    assert [(*row.__dict__.values(),)[2:] for row in catalog_tables(STREAMS)] == [
        ("paths", "", "", "file:///lake/my.tables/orders", False),
        ("some", "main", "shop", "orders", False),
        ("some", "", "", "loose", True),
    ]


def test_columns_are_those_that_were_named_and_options_those_that_were_set() -> None:
    assert [(row.table_name, row.column_name) for row in catalog_columns(STREAMS)] == [
        ("orders", "amount"), ("orders", "status"),
    ]  # fmt: skip
    assert [(*row.__dict__.values(),)[2:] for row in catalog_options(STREAMS)] == [
        ("Everything", "retention_period", "STRING", "7d"),
        ("paths", "allow_txn_exclusion", "BOOL", "false"),
    ]
