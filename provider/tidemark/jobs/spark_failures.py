"""What a query that fails raises: errors that PySpark has a class for, and those of the JVM that it has none for."""

from __future__ import annotations

from pyspark.errors import PySparkException

__all__ = ["SPARK_FAILURES"]

SPARK_FAILURES: tuple[type[Exception], ...] = (PySparkException,)

try:
    from py4j.protocol import Py4JJavaError
except ImportError:  # a client of Spark Connect alone has no JVM
    pass
else:
    SPARK_FAILURES = (PySparkException, Py4JJavaError)
