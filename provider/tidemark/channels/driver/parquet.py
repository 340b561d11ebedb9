"""Rows as Parquet files in the directory of their table, and Delta's statistics of them."""

from __future__ import annotations

import io
from datetime import datetime

import pyarrow as pa
import pyarrow.parquet as pq

from tidemark.channels.driver.arrow_types import file_schema, paths_with_dictionary
from tidemark.channels.driver.kernel import DataFile
from tidemark.channels.driver.lake_files import LakeFiles
from tidemark.channels.driver.partitions import Part, parts_of
from tidemark.channels.driver.statistics import statistics_of
from tidemark.channels.driver.table_spec import TableSpec
from tidemark.channels.driver.variants import with_variants
from tidemark.channels.planning.records import millis

__all__ = ["write_files"]


def write_files(rows: pa.Table, spec: TableSpec, files: LakeFiles, *, token: str, now: datetime) -> list[DataFile]:
    """One file for each partition of `rows`, or one for all. `token`: a text that no other write has.

    Nothing reads the files before they are committed. A failure leaves at most files that VACUUM removes.
    """
    return [
        _write(part, spec, files, f"part-{number:05d}-{token}.snappy.parquet", now)
        for number, part in enumerate(parts_of(rows, spec))
    ]


def _write(part: Part, spec: TableSpec, files: LakeFiles, name: str, now: datetime) -> DataFile:
    columns = [column for column in spec.columns if column.name not in spec.partition_columns]
    stats = statistics_of(part.rows, columns, spec)
    target = io.BytesIO()
    table = with_variants(part.rows, columns).cast(file_schema(columns))
    pq.write_table(
        table,
        target,
        compression="snappy",
        use_dictionary=paths_with_dictionary(table.schema),
        store_decimal_as_integer=True,
        coerce_timestamps="us",
        write_page_index=False,
        store_schema=False,
    )
    path = f"{part.directory}{name}"
    modified = files.write(path, target.getbuffer())
    return DataFile(
        path=path,
        size=target.tell(),
        modified=modified or millis(now),
        stats=stats,
        partition=part.values,
    )
