"""Delta tables as OpenLineage's datasets, named by its rules, so that they match those of Spark and others."""

from __future__ import annotations

from urllib.parse import urlsplit

__all__ = ["name_of"]

_OBJECT_STORES = ("s3", "gs", "abfs", "abfss", "wasb", "wasbs")  # keys begin without a slash
_ONE_NAME = {"abfs": "abfss", "wasb": "wasbs"}


def name_of(uri: str) -> tuple[str, str]:
    """Namespace and name of a canonical URI: `file` and `/lake/s/t`, `s3://bucket` and `lake/s/t`.

    `hdfs://namenode:8020` and `/lake/s/t`: other file systems are named like HDFS.
    """
    if uri.startswith("file://"):
        return "file", uri.removeprefix("file://")
    parts = urlsplit(uri)
    _, _, below = uri.partition(f"{parts.netloc}/")  # urlsplit would cut a query off the path
    namespace = f"{_ONE_NAME.get(parts.scheme, parts.scheme)}://{parts.netloc}"
    return namespace, below if parts.scheme in _OBJECT_STORES else f"/{below}"
