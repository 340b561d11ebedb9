"""The packages and settings that a Spark session needs for Delta Lake, S3, Avro and the databases."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

__all__ = ["AVRO_PACKAGE", "DELTA_PACKAGE", "DELTA_SETTINGS", "MARIADB_PACKAGE", "POSTGRESQL_PACKAGE", "S3_SETTINGS"]

DELTA_PACKAGE = "io.delta:delta-spark_4.2_2.13:4.4.0"
AVRO_PACKAGE = "org.apache.spark:spark-avro_2.13:4.1.1"  # Spark's reader of Avro files; 4.2 has no release of its own
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
    "org.apache.hadoop:hadoop-aws:3.5.0",
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
