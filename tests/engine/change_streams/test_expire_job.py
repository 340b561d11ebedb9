"""Retention from a notebook: the log loses what is too old, a reader that is behind is refused, the others go on."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.engine.change_streams.test_client_change_streams import Bench
from tidemark.change_streams.model.change_streams import ChangeStream
from tidemark.change_streams.worker.waves import plan_wave
from tidemark.errors import PartitionExpired

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


def test_old_records_leave_the_log_and_nobody_loses_one_unsaid(spark: SparkSession, tmp_path: Path) -> None:
    bench = Bench(spark, tmp_path)
    stream: ChangeStream = bench.lake.create_change_stream("SingersNameStream", "music.Singers")
    for group in ("reads", "sleeps"):
        bench.lake.create_consumer_group(stream.name, group, start="earliest")
    bench.singers("1, 'a', 'b', 1", "2, 'a', 'b', 1")
    bench.capture()
    assert bench.lake.expire_change_log(stream.name).rows == 0
    bench.spark.sql(f"CREATE TABLE {bench.name('music.Copy')} (mod_type STRING) USING delta")

    def read() -> int:
        done = bench.lake.consume_partitions(stream.name, "reads", write_as="append", target="music.Copy")
        return int(done.rows)

    assert read() == 2
    store = bench.lake._context.store
    store.clock = lambda: datetime.now(UTC) + timedelta(hours=25)  # type: ignore[method-assign]
    bench.capture()
    read()
    done = bench.lake.expire_change_log(stream.name)
    data = spark.read.format("delta").load(stream.log_path).where("record_type = 'data'")
    assert (done.rows, data.count(), done.forgotten.partitions) == (2, 0, 0)
    assert bench.lake.expire_change_log(stream.name).rows == 0
    with pytest.raises(PartitionExpired, match="sleeps"):
        plan_wave(store, stream.name, "sleeps", run="r", max_chunks=9, max_rows=9)
    store.clock = lambda: datetime.now(UTC) + timedelta(hours=26)  # type: ignore[method-assign]
    bench.singers("3, 'a', 'b', 1")
    bench.capture()
    assert read() == 1
