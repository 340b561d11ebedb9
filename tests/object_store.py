"""An S3-compatible store on this machine (moto's server), for tests."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tenacity import retry, retry_if_exception_type, stop_after_attempt, wait_fixed

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["BUCKET", "ObjectStore", "object_store_of", "running_object_store"]

BUCKET = "lake"


@dataclass(frozen=True)
class ObjectStore:
    """Where the store answers, and a plain client that knows nothing of ours."""

    endpoint: str
    client: Any

    @property
    def options(self) -> dict[str, Any]:
        """Fsspec's storage options for it."""
        return {"key": "test", "secret": "test", "endpoint_url": self.endpoint}

    def put(self, key: str, body: bytes) -> None:
        self.client.put_object(Bucket=BUCKET, Key=key, Body=body)

    def keys(self, prefix: str = "") -> list[str]:
        pages = self.client.get_paginator("list_objects_v2").paginate(Bucket=BUCKET, Prefix=prefix)
        return [entry["Key"] for page in pages for entry in page.get("Contents", ())]


@contextmanager
def running_object_store() -> Iterator[ObjectStore]:
    """A store of its own with one empty bucket. Its end empties moto's memory, which a process has once."""
    import logging

    import boto3
    from moto.server import ThreadedMotoServer

    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    endpoint = f"http://{host}:{port}"
    try:
        client = boto3.client(
            "s3", endpoint_url=endpoint, aws_access_key_id="test", aws_secret_access_key="test", region_name="us-east-1"
        )
        client.create_bucket(Bucket=BUCKET)
        yield ObjectStore(endpoint, client)
    finally:
        _forget_everything(endpoint)
        server.stop()


@retry(retry=retry_if_exception_type(ConnectionError), stop=stop_after_attempt(3), wait=wait_fixed(1), reraise=True)
def _forget_everything(endpoint: str) -> None:
    """A busy server may close a connection that it has just accepted. To forget twice is harmless."""
    import urllib.request

    urllib.request.urlopen(urllib.request.Request(f"{endpoint}/moto-api/reset", method="POST"), timeout=30).close()


@contextmanager
def object_store_of(spark: SparkSession) -> Iterator[ObjectStore]:
    """A store of its own that the session reaches by S3A."""
    with running_object_store() as running:
        settings = spark.sparkContext._jsc.hadoopConfiguration()  # type: ignore[attr-defined]
        for name, value in {
            "endpoint": running.endpoint,
            "endpoint.region": "us-east-1",
            "path.style.access": "true",
            "access.key": "test",
            "secret.key": "test",
        }.items():
            settings.set(f"fs.s3a.{name}", value)
        try:
            yield running
        finally:
            # The JVM keeps a client per scheme and bucket, which would ask this store for the next one's objects.
            path = spark._jvm.org.apache.hadoop.fs.Path  # type: ignore[attr-defined]
            for scheme in ("s3", "s3a"):
                path(f"{scheme}://{BUCKET}/").getFileSystem(spark._jsparkSession.sessionState().newHadoopConf()).close()
