"""What a consumption of the shop's orders writes: two targets, and between them it can be held."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def mirror_then_history(tx: Any) -> None:
    (stream,), (mirror, history) = tx.streams, tx.targets
    tx.merge(tx.stream(stream), mirror, keys=["id"])
    _wait_while_held(tx.stream(stream).sparkSession)
    tx.sql(f"INSERT INTO {history} SELECT id, name, `METADATA$ACTION` FROM {stream}")


def _wait_while_held(spark: SparkSession) -> None:
    """Says that it is here, and keeps Spark busy while the file `hold` is there; not for ever."""
    hold = Path(os.environ["SHOP_HOLD"])
    until = time.monotonic() + 120
    while hold.exists() and time.monotonic() < until:
        hold.with_suffix(".reached").touch()
        spark.range(1).selectExpr("reflect('java.lang.Thread', 'sleep', 300L)").collect()
