"""Parquet is written and read by bytes, not by rows, while rows are wide: pages, row groups and batches. So is what
Spark keeps.

By default the writer looks at its size every 100 rows, and the reader takes 4,096 rows at once. Rows that Spark keeps
are in batches of 10,000. With values of 5 MB that is more than a driver has.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["fitted", "settings_for"]

_PAGE = 1 << 20  # bytes
_GROUP = 16 << 20
_UNPACKED = 64 << 20
_AT_ONCE = 16 << 20
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
        "spark.sql.inMemoryColumnarStorage.batchSize": str(_rows(_AT_ONCE, widest, _ROWS_KEPT)),
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


def _rows(size: int, widest: int, most: int) -> int:
    return max(1, min(most, size // widest))
