"""The packages and settings that a Spark session needs for Delta Lake, S3, Avro and the databases.

They are those of the PySpark that is installed, or of the newest one that is supported if there is none.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from types import MappingProxyType
from typing import NamedTuple

__all__ = [
    "AVRO_PACKAGE",
    "DELTA_PACKAGE",
    "DELTA_SETTINGS",
    "MARIADB_PACKAGE",
    "POSTGRESQL_PACKAGE",
    "S3_SETTINGS",
    "SparkRelease",
    "release_of",
]


class SparkRelease(NamedTuple):
    """The packages that fit a release of Spark. `avro`: the version of Spark's reader of Avro files; `hadoop`: that of
    the Hadoop that Spark brings.
    """

    delta: str
    avro: str
    hadoop: str


_TESTED = "4.2"
_RELEASES: Mapping[str, SparkRelease] = MappingProxyType(
    {
        "4.1": SparkRelease("io.delta:delta-spark_4.1_2.13:4.4.0", avro="4.1.1", hadoop="3.4.2"),
        "4.2": SparkRelease(
            "io.delta:delta-spark_4.2_2.13:4.4.0", avro="4.1.1", hadoop="3.5.0"
        ),  # no reader of its own
    }
)


def release_of(pyspark: str) -> SparkRelease:
    """The packages for that version of PySpark, with a warning if not all tests have passed with it. Raises ImportError
    for one that is not supported.
    """
    series = ".".join(pyspark.split(".")[:2])
    found = _RELEASES.get(series)
    if found is None:
        raise ImportError(f"Tidemark runs on Spark {' or '.join(_RELEASES)}, and PySpark {pyspark} is installed.")
    if series != _TESTED:
        problem = f"PySpark {pyspark} is installed. Not all tests of Tidemark have passed with it; use {_TESTED}."
        warnings.warn(problem, stacklevel=2)
    return found


def _installed() -> str:
    for package in ("pyspark", "pyspark-client"):
        try:
            return version(package)
        except PackageNotFoundError:
            continue
    return max(_RELEASES)


_SPARK = release_of(_installed())
DELTA_PACKAGE = _SPARK.delta
AVRO_PACKAGE = f"org.apache.spark:spark-avro_2.13:{_SPARK.avro}"
POSTGRESQL_PACKAGE = "org.postgresql:postgresql:42.7.14"  # the JDBC driver of a backfill
MARIADB_PACKAGE = "org.mariadb.jdbc:mariadb-java-client:3.5.6"  # that of MySQL and MariaDB

DELTA_SETTINGS: Mapping[str, str] = MappingProxyType(
    {
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        "spark.sql.session.timeZone": "UTC",
    }
)

_AWS_SDK = "2.35.4"
_S3_PACKAGES = (
    f"org.apache.hadoop:hadoop-aws:{_SPARK.hadoop}",
    *(f"software.amazon.awssdk:{part}:{_AWS_SDK}" for part in ("s3", "s3-transfer-manager", "sts", "apache-client")),
    f"software.amazon.awssdk:netty-nio-client:{_AWS_SDK}",
)

S3_SETTINGS: Mapping[str, str] = MappingProxyType(
    {
        "spark.jars.packages": ",".join((DELTA_PACKAGE, *_S3_PACKAGES)),
        "spark.jars.excludes": "software.amazon.awssdk:bundle,org.wildfly.openssl:wildfly-openssl,io.netty:*",
        "spark.hadoop.fs.s3.impl": "org.apache.hadoop.fs.s3a.S3AFileSystem",
    }
)
"""Delta on S3: Hadoop's S3A under the name `s3`, with the parts of the AWS SDK that it uses (16 MB) instead of the
bundle of all services (hundreds of MB); Spark has Netty itself.
"""
