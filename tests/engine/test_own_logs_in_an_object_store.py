"""Logs of Tidemark's own in an S3-compatible store: a change stream's, and the event log of a replication.

Both have two writers, capture and expiry, whose commits no log store holds apart by default.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.databases.postgresql.event_log import EVENT_COLUMNS, EVENT_DDL
from tests.engine.replication.event_histories import STORE, SourceTable, apply_events_of, column, schema_of
from tests.object_store import BUCKET, ObjectStore, object_store_of
from tidemark.client import connect
from tidemark.errors import CommitsMayBeLost
from tidemark.lake.event_logs import EventBatch, capture_app_id
from tidemark.model.source_address import SourceKind
from tidemark.replication.driver.apply import apply_events
from tidemark.replication.driver.event_log import append_events, open_event_log
from tidemark.replication.driver.expire import expire_events
from tidemark.replication.model.jobs import CaptureEvents, ExpireEvents, ExpireReport
from tidemark.replication.model.replication import START, LogPosition, ReplicationOptions, TypeKind

pytestmark = [pytest.mark.spark, pytest.mark.e2e]

ROOT = f"s3://{BUCKET}/it's 100% a+b"


@pytest.fixture(scope="module")
def store(spark: SparkSession) -> Iterator[ObjectStore]:
    with object_store_of(spark) as running:
        yield running


def test_a_change_stream_is_captured_read_and_expired(spark: SparkSession, store: ObjectStore, tmp_path: Path) -> None:
    ahead = [timedelta()]
    lake = connect(
        spark,
        f"sqlite:///{tmp_path}/control.db",
        lake_root=ROOT,
        storage_options=store.options,
        clock=lambda: datetime.now(UTC) + ahead[0],
    )
    keyed = "TBLPROPERTIES ('delta.enableRowTracking' = 'true', 'tidemark.primaryKey' = 'id')"
    spark.sql(f"CREATE TABLE delta.`{ROOT}/shop/orders` (id BIGINT, v STRING) USING delta {keyed}")
    spark.sql(f"CREATE TABLE delta.`{ROOT}/shop/copy` (mod_type STRING) USING delta")
    stream = lake.create_change_stream("Orders", "shop.orders")
    assert stream.log_path.startswith(ROOT)
    lake.create_consumer_group("Orders", "copies", start="earliest")

    def captured_and_read() -> int:
        lake.capture("Orders", allowed_skew=timedelta(0))
        return lake.consume_partitions("Orders", "copies", write_as="append", target="shop.copy").rows

    spark.sql(f"INSERT INTO delta.`{ROOT}/shop/orders` VALUES (1, 'ü %')")
    assert captured_and_read() == 1
    ahead[0] = timedelta(hours=25)
    assert captured_and_read() == 0
    with pytest.raises(CommitsMayBeLost, match="only_writer=True"):
        lake.expire_change_log("Orders")
    assert lake.expire_change_log("Orders", only_writer=True).rows > 0
    log = spark.read.format("delta").load(stream.log_path)
    assert log.where("record_type = 'data'").isEmpty()
    copied = spark.read.format("delta").load(f"{ROOT}/shop/copy")
    assert [row.mod_type for row in copied.collect()] == ["INSERT"]
    lake.close()


def test_an_event_log_is_appended_applied_and_expired(spark: SparkSession, store: ObjectStore) -> None:
    table = SourceTable(schema_of(column("id", TypeKind.INTEGER, key=True), column("v")))
    place, target = f"{ROOT}/events", f"{ROOT}/shop/mirror"
    app_id = capture_app_id(STORE, "r")
    asked = CaptureEvents(
        replication_uid="r",
        stream="s",
        kind=SourceKind.POSTGRESQL,
        event_log=place,
        slot="",
        publication="",
        system_id="",
        captured=START,
        batches=0,
        objects=(),
        options=ReplicationOptions(target="shop"),
    )
    log = open_event_log(spark, asked, store.options)

    def append(number: int, start: LogPosition) -> None:
        events = [{**event, "batch": number} for event in table.events if event["position"] >= start.commit]
        rows = [tuple(event.get(name) for name in EVENT_COLUMNS) for event in events]
        batch = EventBatch("r", number, start.commit, table.now.commit, "one", len(rows), 99, 99)
        assert append_events(log, app_id, asked, batch, spark.createDataFrame(rows, EVENT_DDL)) == batch

    table.insert(id="1", v="a")
    table.insert(id="2", v="ü %")
    append(1, START)
    first = table.now
    table.update(["1"], v="b")
    table.delete("2")
    append(2, first)
    request = apply_events_of(table, target=target, event_log=place, schema=table.schema, batches=2)
    assert apply_events(spark, STORE, request, store.options).events == 4
    rows = spark.read.format("delta").load(target).select("id", "v").collect()
    assert [tuple(row) for row in rows] == [(1, "b")]

    def expire(*, only_writer: bool) -> ExpireReport:
        late = datetime(2027, 1, 1, tzinfo=UTC)
        asked = ExpireEvents("r", "s", place, 2, late, {table.source_id: table.now}, only_writer)
        return expire_events(spark, STORE, asked, store.options)

    with pytest.raises(CommitsMayBeLost, match=r"spark\.delta\.logStore\.s3\.impl"):
        expire(only_writer=False)
    assert expire(only_writer=True) == ExpireReport(2)
    left = spark.read.format("delta").load(place)
    assert {row.batch for row in left.select("batch").collect()} == {2}
    spark.conf.set("spark.delta.logStore.s3.impl", "io.delta.storage.AzureLogStore")  # plays one that coordinates
    try:
        assert expire(only_writer=False) == ExpireReport(0)
    finally:
        spark.conf.unset("spark.delta.logStore.s3.impl")
