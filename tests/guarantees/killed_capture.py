"""Captures or expires a change stream, for the kill tests: `killed_capture.py HOME CHANGE_STREAM capture|expire`.

A client in a process group of its own; an expiry is done a day and an hour later, when the retention is over.
"""

from __future__ import annotations

import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from tidemark.client import connect
from tidemark.client.lake import Lake

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LATER = timedelta(hours=25)


def connected(spark: SparkSession, home: Path, ahead: timedelta = timedelta(0)) -> Lake:
    """A client of the installation in `home`, whose clock is `ahead`."""
    return connect(
        spark, f"sqlite:///{home}/control.db", lake_root=f"{home}/lake", clock=lambda: datetime.now(UTC) + ahead
    )


def main(home: Path, stream: str, step: str) -> None:
    from tidemark.testing import local_spark

    spark = local_spark(warehouse=home / "warehouse")
    if step == "expire":
        connected(spark, home, LATER).expire_change_log(stream)
    else:
        connected(spark, home).capture(stream, allowed_skew=timedelta(0))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], sys.argv[3])
