"""Parquet is written and read by bytes, not by rows, while rows are wide: pages, row groups and batches. So is what
Spark keeps.

By default the writer looks at its size every 100 rows, and the reader takes 4,096 rows at once. Rows that Spark keeps
are in batches of 10,000. With values of 5 MB that is more than a driver has.

Java's object streams hold the last 100 objects that they wrote or read (`spark.serializer.objectStreamReset`). These
are batches of rows that Spark keeps, or rows that Delta keeps for a MERGE. So 100 batches must fit, and wide rows are
not kept at all.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

from tidemark.jobs.settings import under

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["fitted", "kept", "settings_for"]

_PAGE = 1 << 20  # bytes
_GROUP = 16 << 20
_UNPACKED = 64 << 20
_AT_ONCE = 16 << 20
_KEPT_AT_ONCE = 1 << 20
_WIDEST_KEPT = 64 << 10
_COMPUTED_TWICE = {
    "spark.databricks.delta.merge.materializeSource": "none",
    "spark.sql.autoBroadcastJoinThreshold": "-1",  # both go by sizes of packed bytes
    "spark.sql.adaptive.autoBroadcastJoinThreshold": "-1",
}
_NARROW = 4 << 10  # bytes of a row up to which Parquet's own settings do
_ROWS_OF_A_BATCH, _ROWS_KEPT = 4096, 10_000


def settings_for(widest: int, mean: int = 0) -> Mapping[str, str]:
    """Of a session that writes and reads rows of up to `widest` bytes; none where its own do. `mean`: of a row. If that
    is wide, too, row groups have so few rows that every reader has room for one, however well packed.
    """
    if widest <= _NARROW:
        return {}
    return {
        **({"parquet.block.row.count.limit": str(_rows(_UNPACKED, mean, 1 << 30))} if mean > _NARROW else {}),
        "parquet.page.size.row.check.min": str(_rows(_PAGE, widest, 100)),
        "parquet.page.size.row.check.max": str(_rows(_PAGE, widest, 10_000)),
        "parquet.block.size": str(_GROUP),
        "spark.sql.parquet.columnarReaderBatchSize": str(_rows(_AT_ONCE, widest, _ROWS_OF_A_BATCH)),
        "spark.sql.inMemoryColumnarStorage.batchSize": str(_rows(_KEPT_AT_ONCE, widest, _ROWS_KEPT)),
    }


@contextmanager
def fitted(session: SparkSession, widest: int, mean: int = 0) -> Iterator[None]:
    """The session has these settings while the context lasts."""
    settings = settings_for(widest, mean)
    before: dict[str, str | None] = {name: session.conf.get(name, None) for name in settings}
    for name, value in settings.items():
        session.conf.set(name, value)
    try:
        yield
    finally:
        for name, had in before.items():
            if had is None:
                session.conf.unset(name)
            else:
                session.conf.set(name, had)


@contextmanager
def kept(session: SparkSession, rows: DataFrame, widest: int) -> Iterator[DataFrame]:
    """The rows, of up to `widest` bytes, for a MERGE, which reads them twice while the context lasts.

    They are kept by Spark. Wide rows are computed twice instead, so `rows` must be the same both times. Then neither
    Spark nor Delta keeps them, and no join sends them to all executors.
    """
    if widest > _WIDEST_KEPT:
        with under(session, _COMPUTED_TWICE):
            yield rows
        return
    rows = rows.persist()
    try:
        yield rows
    finally:
        rows.unpersist()


def _rows(size: int, widest: int, most: int) -> int:
    return max(1, min(most, size // widest))
