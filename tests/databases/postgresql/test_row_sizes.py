"""What is fetched at once fits into memory, whatever a sample has seen of the rows."""

from __future__ import annotations

import pytest

from tidemark.replication.driver.wide_rows import settings_for
from tidemark.replication.model.replication import Column, TypeKind, UnifiedType
from tidemark.replication.sources.fetches import AT_ONCE, MOST_ROWS, WIDE, Fetch, RowSizes, assumed_width, fetches
from tidemark.replication.sources.postgresql.row_sizes import row_bytes, sample_percent


@pytest.mark.parametrize(
    ("widest", "rows"), [(0, MOST_ROWS), (200, MOST_ROWS), (2_000, AT_ONCE // 2_000), (WIDE, AT_ONCE // WIDE)]
)
def test_narrow_rows_are_read_in_one_go_as_many_at_once_as_there_is_room(widest: int, rows: int) -> None:
    (fetch,) = fetches(RowSizes(widest))
    assert fetch == Fetch("true", rows, AT_ONCE * 4)


@pytest.mark.parametrize(("widest", "rows"), [(200, 500), (WIDE, AT_ONCE // WIDE)])
def test_no_more_rows_are_fetched_at_once_than_the_user_wants(widest: int, rows: int) -> None:
    (fetch,) = fetches(RowSizes(widest), most=500)
    assert fetch.rows == rows
    assert {one.rows for one in fetches(RowSizes(widest, out_of_line=True), most=1)} == {1}


@pytest.mark.parametrize("sizes", [RowSizes(WIDE + 1), RowSizes(0, out_of_line=True), RowSizes(5 << 20, True)])
def test_wide_rows_are_read_apart_and_the_conditions_part_all_rows(sizes: RowSizes) -> None:
    narrow, wide = fetches(sizes)
    assert (narrow.condition, wide.condition) == (f"bytes <= {WIDE}", f"bytes > {WIDE}")
    assert narrow.rows * WIDE <= AT_ONCE or narrow.rows * sizes.widest <= AT_ONCE
    assert wide.rows * max(sizes.widest, WIDE) <= AT_ONCE


def test_rows_wider_than_all_that_is_read_at_once_come_alone_and_without_a_limit() -> None:
    assert fetches(RowSizes(AT_ONCE + 1, True))[1] == Fetch(f"bytes > {WIDE}", 1, None)


def test_whoever_met_wider_rows_than_thought_takes_wide_ones_alone() -> None:
    narrow, wide = fetches(RowSizes(100), careful=True)
    assert (narrow.rows, wide.rows, wide.limit) == (AT_ONCE // WIDE, 1, None)
    assert (narrow.condition, wide.condition) == ("bytes <= 2048", "bytes > 2048")
    assert assumed_width(RowSizes(100), careful=True) == AT_ONCE


def test_a_row_is_measured_without_reading_what_is_stored_out_of_line() -> None:
    told = {
        "int": ("integer", TypeKind.INTEGER),
        'te"xt': ("text", TypeKind.STRING),
        "vc": ("character varying(9)", TypeKind.STRING),
        "by": ("bytea", TypeKind.BYTES),
        "js": ("jsonb", TypeKind.JSON),
        "ts": ("timestamp(3) with time zone", TypeKind.TIMESTAMP),
        "ai": ("integer[]", TypeKind.ARRAY),
    }
    measured = row_bytes([Column(name, UnifiedType(kind), native) for name, (native, kind) in told.items()])
    assert measured.split(" + ") == [
        "256::bigint",
        'coalesce(octet_length("te""xt"), 0)::bigint * 1',
        'coalesce(octet_length("vc"), 0)::bigint * 1',
        'coalesce(octet_length("by"), 0)::bigint * 2',
        'coalesce(pg_column_size("js"), 0)::bigint * 8',
        'coalesce(pg_column_size("ai"), 0)::bigint * 8',
    ]


@pytest.mark.parametrize(("pages", "percent"), [(0, 100), (200, 100), (2_000, 10), (2_000_000, 0.01)])
def test_a_sample_has_about_as_many_pages_of_a_table_of_any_size(pages: int, percent: float) -> None:
    assert sample_percent(pages) == pytest.approx(percent)


def test_parquet_looks_at_its_size_as_often_as_rows_are_wide() -> None:
    assert settings_for(0) == settings_for(4096) == {}
    of_5_mb = settings_for(5 << 20)
    assert {name.rsplit(".", 1)[-1]: value for name, value in of_5_mb.items()} == {
        "min": "1",
        "max": "1",
        "size": str(16 << 20),
        "columnarReaderBatchSize": "3",
        "batchSize": "1",
    }
    assert settings_for(5 << 20, 5 << 20)["parquet.block.row.count.limit"] == "12"
    assert "parquet.block.row.count.limit" not in settings_for(5 << 20, 200)
    assert settings_for(100 << 20)["spark.sql.parquet.columnarReaderBatchSize"] == "1"
    assert settings_for(5000)["parquet.page.size.row.check.min"] == "100"
