"""Settings of Spark reach Delta Kernel."""

from __future__ import annotations

from tidemark.channels.planning.storages import kernel_settings

COORDINATING = "io.delta.storage.S3DynamoDBLogStore"


def test_settings_of_file_systems_and_log_stores_are_those_of_the_session() -> None:
    of_spark = {
        "spark.hadoop.fs.s3a.endpoint": "https://storage.example.com",
        "spark.delta.logStore.s3.impl": COORDINATING,
        "spark.delta.logStore.s3a.impl": COORDINATING,
        "spark.io.delta.storage.S3DynamoDBLogStore.ddb.tableName": "commits",
        "spark.sql.session.timeZone": "UTC",
        "spark.delta.logStore.class": "another.LogStore",
    }
    assert kernel_settings(of_spark) == {
        "fs.s3a.endpoint": "https://storage.example.com",
        "io.delta.kernel.logStore.s3.impl": COORDINATING,
        "io.delta.kernel.logStore.s3a.impl": COORDINATING,
        "spark.io.delta.storage.S3DynamoDBLogStore.ddb.tableName": "commits",
    }
