"""Channels to a table on an S3-compatible store, where only one committer is safe."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from tests.object_store import BUCKET, ObjectStore, object_store_of
from tidemark.channels.driver.client import IngestClient
from tidemark.channels.driver.kernel import KernelEngine
from tidemark.channels.planning.listing import records_of
from tidemark.errors import CommitsMayBeLost
from tidemark.lake.delta_log import DeltaLog

pytestmark = [pytest.mark.spark, pytest.mark.e2e]


@pytest.fixture(scope="module")
def store(spark: SparkSession) -> Iterator[ObjectStore]:
    with object_store_of(spark) as running:
        yield running


def client(spark: SparkSession, store: ObjectStore, name: str = "app", *, only_writer: bool = True) -> IngestClient:
    engine = KernelEngine.of_session(spark)
    locate = f"s3://{BUCKET}/{{}}".format
    return IngestClient(name, engine, locate, options=store.options, only_writer=only_writer)


def create(spark: SparkSession, name: str) -> str:
    path = f"s3://{BUCKET}/{name}"
    spark.sql(
        f"CREATE TABLE delta.`{path}` (id BIGINT, p STRING) USING delta PARTITIONED BY (p)"
        " TBLPROPERTIES ('delta.enableRowTracking' = 'true')"
    )
    return path


def test_rows_are_committed_once_by_the_only_writer(spark: SparkSession, store: ObjectStore) -> None:
    path = create(spark, "landing/it's 100% a+b ü")
    with client(spark, store) as writer:
        channel = writer.open_channel("c", path.removeprefix(f"s3://{BUCKET}/"))
        for at in range(3):
            channel.insert_rows([{"id": at, "p": "x/y=ü %"}, {"id": at, "p": None}], str(at))
            channel.flush()
    assert spark.read.format("delta").load(path).count() == 6
    assert records_of(DeltaLog.open(path, store.options).state())["C"].offset_token == "2"


def test_a_channel_opens_only_if_commits_are_safe(
    spark: SparkSession, store: ObjectStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = create(spark, "unsafe")
    with (
        client(spark, store, only_writer=False) as writer,
        pytest.raises(CommitsMayBeLost, match=r"logStore\.s3"),
    ):
        writer.open_channel("c", "unsafe")
    assert DeltaLog.open(path, store.options).head() == 0
    spark.conf.set("spark.delta.logStore.s3.impl", "io.delta.storage.S3SingleDriverLogStore")
    try:
        with client(spark, store, only_writer=False) as writer, pytest.raises(CommitsMayBeLost):
            writer.open_channel("c", "unsafe")
        spark.conf.set("spark.delta.logStore.s3.impl", "io.delta.storage.AzureLogStore")  # plays one that coordinates
        client(spark, store, only_writer=False).open_channel("c", "unsafe")
    finally:
        spark.conf.unset("spark.delta.logStore.s3.impl")


def test_an_overwritten_commit_does_not_count_and_comes_again(spark: SparkSession, store: ObjectStore) -> None:
    """Another driver, which does not know of the writer, replaces its commit just after it was made."""
    path = create(spark, "overwritten")
    with client(spark, store) as writer:
        channel = writer.open_channel("c", "overwritten")
        commits = writer._writers[f"s3://{BUCKET}/overwritten"]._commits
        read, overwritten = commits.files.read, []

        def overwrite(name: str) -> bytes:
            if not overwritten:
                overwritten.append(name)
                foreign = b'{"commitInfo":{"timestamp":1,"operation":"WRITE"}}\n'
                commits.files._filesystem.pipe_file(f"{path}/{name}", foreign)
            return read(name)

        commits.files.read = overwrite  # type: ignore[method-assign]
        channel.insert_rows([{"id": 1}], "1")
        channel.flush()
        assert channel.latest_committed_offset_token() == "1"
    assert overwritten
    assert spark.read.format("delta").load(path).count() == 1
